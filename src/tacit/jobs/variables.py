"""Variables in job files: `${DATE}` stands for what `--set DATE=..` or the environment says.

Guarantee   A variable stands for a part of one value: it can add no key, no line and no release. None is replaced in a
            policy, which is what somebody has reviewed, nor in keys. What is not set is refused, and so is what is set
            and used nowhere. No message repeats what a variable stands for where it is not fit to stand there.
Assumes     Whoever sets variables may as well write the job file.
Why         They are replaced after the file was read as YAML. A value that is then a number is one, unless the file has
            it in quotes; any other is a text.
Checked by  tests/unit/jobs/test_variables.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import yaml

from tacit.errors import JobError, nearest
from tacit.policy.yaml_entries import YamlEntry

Variables: TypeAlias = Mapping[str, str]
NONE_SET: Final[Variables] = MappingProxyType({})

_VARIABLE: Final = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z0-9_]*\})?")  # $${ is ${ itself
_NUMBERS: Final = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_RESOLVER: Final[Any] = yaml.SafeLoader("")


def read_variables(given: list[str] | None) -> dict[str, str]:
    """Return what is set by `NAME=VALUE` texts.

    >>> read_variables(["DATE=2024-05-01", "NOTE=a=b"])
    {'DATE': '2024-05-01', 'NOTE': 'a=b'}
    """
    found: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(f"${{{name}}}"):
            raise JobError("must be NAME=VALUE", key="--set", given=name, fix="For instance --set DATE=2024-05-01.")
        if name in found:
            raise JobError("must not be given twice", key=f"--set {name}", fix="Remove one of the two.")
        found[name] = value
    return found


def replace_variables(top: YamlEntry, given: Variables) -> dict[str, str]:
    """Replace the variables of a file, whose top this is, by those that are given and then by the environment's.

    Returns what each stands for, but for those of the ledger's address: one may be a password.
    """
    known, used, hidden = {**os.environ, **given}, set[str](), set[str]()

    def value_of(name: str, entry: YamlEntry) -> str:
        if name not in known:
            fix = f"Say --set {name}=.., or set it in the environment."
            raise entry.refuse(f"needs the variable {name}, which is not set", fix=fix)
        if not known[name].isprintable():
            raise entry.refuse(f"needs the variable {name} as one printable line", fix="Set it anew.")
        used.add(name)
        hidden.update([name] if entry.path == "ledger" else [])
        return known[name]

    for entry in _values(top):
        written, parts, at = entry.node.value, [], 0
        for found in _VARIABLE.finditer(written):
            parts.append(written[at : found.start()])
            at = found.end()
            if found[1]:
                parts.append(found[0][1:])
            elif found[2]:
                parts.append(value_of(found[2][:-1], entry))
            else:
                raise entry.refuse("must name a variable after ${", fix="Write ${DATE}; $${ stands for ${ itself.")
        if parts:
            entry.node.value = "".join(parts) + written[at:]
            if isinstance(entry.node, yaml.ScalarNode) and not entry.node.style:
                tag = _RESOLVER.resolve(yaml.ScalarNode, entry.node.value, (True, False))
                entry.node.tag = tag if tag in _NUMBERS else entry.node.tag
    if unused := sorted(given.keys() - used):
        fix = nearest(unused[0], sorted(used)) if used else "Write it as ${..} where it belongs."
        raise top.source.refuse(f"uses no variable {unused[0]}, which --set gives", fix=fix)
    return {name: known[name] for name in sorted(used - hidden)}


def _values(top: YamlEntry) -> Iterator[YamlEntry]:
    """Yield each single value with a `$` once, but none of a policy that is written in the file, and no key."""
    seen: set[int] = set()

    def walk(node: yaml.Node, path: str) -> Iterator[YamlEntry]:
        if id(node) in seen:
            return
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from walk(value, f"{path}.{key.value}".removeprefix("."))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                yield from walk(value, f"{path}[{number}]")
        elif "${" in node.value:
            yield YamlEntry(node, path, top.source)

    for key, value in top.node.value:
        if key.value == "policy" and not isinstance(value, yaml.ScalarNode):
            list(walk(value, ""))  # an anchor in it may be used elsewhere: as it is
    yield from walk(top.node, "")
