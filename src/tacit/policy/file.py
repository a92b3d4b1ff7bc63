"""Policy files: YAML that people write and review <-> the policy objects.

Reading keeps the line of every key and value, so that each refusal names the file, the line, the key, the rule, the
value given and the fix. Nothing in a file is ever run: tags are refused, predicates are read by `where.py`. Where YAML
itself would silently change what was written (`no`, `01234`, `2024-05-01`, a key given twice), the file is refused.
Writing gives a text that reads back as an equal policy. `Source` and `Entry` know YAML and lines but no policies; job
files are read through them too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from tacit.errors import PolicyError, Refused, nearest
from tacit.policy import knowledge, secrets
from tacit.policy.domain import CLIP, Attribute, Categories, Domain, Flag, Grid, Integers, Items, Value
from tacit.policy.knowledge import Known
from tacit.policy.policy import PRESENCE, Policy
from tacit.policy.secrets import Everything, Secrets

LARGEST_FILE: Final = 10_000_000  # bytes; a policy is read by people
_LARGEST_TREE: Final = 2_000_000  # values after aliases are followed: a few nested anchors could stand for billions
_DEEPEST: Final = 40

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = frozenset(_TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge"))
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_GROUPED: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
# what other YAML readers, or people, take for a number although ours says it is a text: 1e3, 08, 0o17
_LIKE_A_NUMBER: Final = re.compile(r"[-+]?(\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|0[oOxXbB][0-9a-fA-F_]+)")
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same safe reader, ten times as fast
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True)
class Source:
    """The text of a YAML file, what to call the file, and which refusal to raise."""

    text: str
    file: str
    whole: str = "the policy"
    refusal: type[Refused] = PolicyError

    def refuse(self, rule: str, *, line: int | None = None, fix: str = "", key: str = "") -> Refused:
        """Return the refusal of the file as a whole, or of one line."""
        return self.refusal(rule, key=key or self.whole, file=self.file, line=line, fix=fix)

    def read(self) -> Entry:
        """Return the top of the file, or refuse a text that is no plain YAML."""
        if len(self.text) > LARGEST_FILE:
            raise self.refuse(
                f"must not be larger than {LARGEST_FILE // 1_000_000} MB",
                fix="Give the number of items instead of their names.",
            )
        node = self._composed(self.text.removeprefix("\ufeff"))
        if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null"):
            raise self.refuse("must not be empty", fix="Draft one with `tacit init DATA`.")
        self._check(node, "", 0, [0])
        return Entry(node, "", self)

    def _composed(self, text: str) -> yaml.Node | None:
        try:
            self._check_depth(text)
            node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            problem = fault.problem or fault.context or "unreadable"
            refusal = self._unreadable(text, None if mark is None else mark.line, problem)
        except yaml.reader.ReaderError as fault:
            line = text[: fault.position].count("\n") + 1 if isinstance(fault.position, int) else None
            refusal = self.refuse("must not contain control characters", line=line, fix="Remove them.")
        except (yaml.YAMLError, UnicodeError, ValueError):
            refusal = self.refuse("must be YAML", fix="Check the brackets, quotes and indentation.")
        else:
            return node
        # raised outside the handlers, so that no YAML traceback hangs on it
        raise refusal

    def _check_depth(self, text: str) -> None:
        """Refuse deep nesting while it is only a stream of events: composing recurses, in C without a limit."""
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                line = event.start_mark.line + 1
                raise self.refuse(
                    f"must not be nested deeper than {_DEEPEST} levels", line=line, fix="Remove brackets."
                )

    def _unreadable(self, text: str, at: int | None, problem: str) -> Refused:
        lines = text.split("\n")
        # the reader may stop one line after the tab, at the first token it could not place
        for place in [] if at is None else [at, at - 1]:
            if 0 <= place < len(lines) and re.match(r" *\t", lines[place]):
                return self.refuse("must be indented with spaces, not tabs", line=place + 1, fix="Replace the tab.")
        if "document" in problem:
            return self.refuse("must be one document", line=None if at is None else at + 1, fix="Remove the `---`.")
        if "alias" in problem:
            fix = "Define the anchor first, or quote the text."
        elif "character" in problem and "token" in problem:
            fix = "Quote the text."
        else:
            fix = "Check the brackets, quotes, colons and indentation there."
        return self.refuse(f"must be YAML: {problem}", line=None if at is None else at + 1, fix=fix)

    def _check(self, node: yaml.Node, path: str, depth: int, seen: list[int]) -> None:
        """Refuse tags, keys given twice, and trees that are too large or too deep once aliases are followed."""
        line = node.start_mark.line + 1
        seen[0] += 1
        if depth > _DEEPEST:
            raise self.refuse(f"must not be nested deeper than {_DEEPEST} levels", line=line, fix="Remove brackets.")
        if seen[0] > _LARGEST_TREE:
            raise self.refuse("must not repeat anchors inside anchors", line=line, fix="Write the values out.")
        match node:
            case yaml.ScalarNode():
                if node.tag not in _SCALARS:
                    raise self._tagged(node, path, line)
            case yaml.SequenceNode():
                if node.tag != f"{_TAG}seq":
                    raise self._tagged(node, path, line)
                for number, child in enumerate(node.value):
                    self._check(child, f"{path}[{number}]", depth + 1, seen)
            case yaml.MappingNode():
                if node.tag != f"{_TAG}map":
                    raise self._tagged(node, path, line)
                first: dict[tuple[str, str], int] = {}
                for key, child in node.value:
                    at = key.start_mark.line + 1
                    if not isinstance(key, yaml.ScalarNode):
                        raise self.refuse("must have texts as keys", line=at, fix="Write name: value.", key=path)
                    self._check(key, path, depth + 1, seen)
                    inner = _joined(path, key.value)
                    if (key.tag, key.value) in first:
                        raise self.refuse(
                            "must not be given twice",
                            line=at,
                            key=inner,
                            fix=f"Remove one of the two; the first is in line {first[key.tag, key.value]}.",
                        )
                    first[key.tag, key.value] = at
                    self._check(child, inner, depth + 1, seen)

    def _tagged(self, node: yaml.Node, path: str, line: int) -> Refused:
        tag = node.tag.replace(_TAG, "!!")
        return self.refuse(f"must not have the tag {tag}", line=line, key=path, fix="Remove it.")


_UNSAID: Final = object()


@dataclass(frozen=True)
class Entry:
    """One value of a YAML file with its place: the path of keys that leads to it, and its line."""

    node: yaml.Node
    path: str
    source: Source

    @property
    def line(self) -> int:
        """The line it starts in, from 1."""
        return int(self.node.start_mark.line) + 1

    def refuse(self, rule: str, *, given: Any = _UNSAID, fix: str = "") -> Refused:
        """Return the refusal of this value."""
        place: dict[str, Any] = {"key": self.path or self.source.whole, "file": self.source.file, "line": self.line}
        said = {} if given is _UNSAID else {"given": given}
        return self.source.refusal(rule, fix=fix, **place, **said)

    @contextmanager
    def blamed(self, places: Mapping[str, Entry] = MappingProxyType({})) -> Iterator[None]:
        """Give every refusal inside that has no line yet the place of this entry, or the one that its key ends with."""
        try:
            yield
        except Refused as refusal:
            if refusal.line is not None:
                raise
            ending = re.split(r"[.:\s]", refusal.key)[-1]
            blame = places.get(ending, self)
            located = refusal.located(file=self.source.file, line=blame.line, key=blame.path or self.source.whole)
        else:
            return
        raise located

    @property
    def is_mapping(self) -> bool:
        """Whether it is `key: value` pairs."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return bool(self.node.tag == f"{_TAG}null")

    def plain(self) -> Any:
        """Return the whole value as it was written, to be shown in a refusal."""
        if self.is_mapping:
            return {name: entry.plain() for name, entry in self.mapping().items()}
        if self.is_list:
            return [entry.plain() for entry in self.listed()]
        if self.is_empty:
            return None
        if self.node.tag == f"{_TAG}int" and _GROUPED.fullmatch(self.node.value) and len(self.node.value) < 40:
            return int(self.node.value.replace("_", ""))
        if self.node.tag == f"{_TAG}bool":
            return _boolean(self.node)
        try:
            return float(self.node.value) if self.node.tag == f"{_TAG}float" else self.node.value
        except ValueError:
            return self.node.value

    def mapping(self) -> dict[str, Entry]:
        """Return the values by key; keys that a merge (`<<`) brings in come last and do not override."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refuse("must be a mapping", given=self.plain(), fix="Write key: value.")
        found: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in self.node.value:
            if key.tag == f"{_TAG}merge":
                brought = Entry(value, self.path, self.source)
                for part in brought.listed() if brought.is_list else [brought]:
                    merged = {**Entry(part.node, self.path, self.source).mapping(), **merged}
                continue
            name = Entry(key, self.path, self.source).text(what="key")
            found[name] = Entry(value, _joined(self.path, name), self.source)
        return found | {name: entry for name, entry in merged.items() if name not in found}

    def fields(self, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the values by key, refusing unknown keys and missing ones."""
        found = self.mapping()
        for name, entry in found.items():
            if name not in known:
                at = next((key for key, _ in self.node.value if key.value == name), entry.node)
                raise Entry(at, entry.path, self.source).refuse(
                    "is not a key that may stand here", fix=nearest(name, list(known))
                )
        for name in required:
            if name not in found:
                raise self.refuse(f"must have the key {name}", given=sorted(found), fix=f"Add `{name}: ..`.")
        return found

    def listed(self) -> list[Entry]:
        """Return the members of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.refuse("must be a list", given=self.plain(), fix="Write [a, b, ..].")
        return [Entry(child, f"{self.path}[{number}]", self.source) for number, child in enumerate(self.node.value)]

    def one_or_more(self) -> list[Entry]:
        """Return the members of a list, or a single value as a list of one."""
        return self.listed() if self.is_list else [self]

    def text(self, *, what: str = "") -> str:
        """Return a text, refusing what YAML reads as something else."""
        if self.is_list or self.is_mapping or self.is_empty:
            raise self.refuse(f"{what} must be a text".strip(), given=self.plain(), fix="Write one text.")
        if self.node.tag != f"{_TAG}str":
            raise self._misread(what)
        return str(self.node.value)

    def whole(self) -> int:
        """Return a whole number."""
        written = self.node.value
        if isinstance(self.node, yaml.ScalarNode) and self.node.tag == f"{_TAG}int":
            if len(written) > 40:
                raise self.refuse("must fit into 62 bits", fix="Use a smaller number.")
            if _GROUPED.fullmatch(written):
                return int(written.replace("_", ""))
            raise self.refuse(
                f"must be a decimal number without leading zeros: YAML reads {written} as {_number(self.node)}",
                fix="Write it out.",
            )
        fix = "Write it without a fraction, a quote or an exponent."
        if self.node.tag in (f"{_TAG}str", f"{_TAG}float") and _LIKE_A_NUMBER.fullmatch(written):
            exact = _exact(written)
            fix = f"Write {exact}." if isinstance(exact, int) else "Round it."
        raise self.refuse("must be a whole number", given=self.plain(), fix=fix)

    def real(self) -> float | int:
        """Return a finite number."""
        if self.node.tag == f"{_TAG}int":
            return self.whole()
        try:
            found = float(self.node.value.replace("_", "")) if self.node.tag == f"{_TAG}float" else math.nan
        except ValueError:
            found = math.nan
        if math.isfinite(found):
            return found
        exact = _exact(self.node.value) if isinstance(self.node, yaml.ScalarNode) else None
        fix = "Write a number." if exact is None else f"Write {exact}."
        raise self.refuse("must be a finite number", given=self.plain(), fix=fix)

    def yes_or_no(self) -> bool:
        """Return a truth value, however it is spelled."""
        if self.node.tag != f"{_TAG}bool":
            raise self.refuse("must be true or false", given=self.plain(), fix="Write true or false.")
        return _boolean(self.node)

    def value(self) -> str | int | bool:
        """Return a text, whole number or truth value that means to every reader of YAML what it means to people."""
        if self.is_list or self.is_mapping:
            raise self.refuse("must be one value", given=self.plain(), fix="Remove the brackets.")
        written, tag = self.node.value, self.node.tag
        if tag == f"{_TAG}str" and not (_is_bare(self.node) and _LIKE_A_NUMBER.fullmatch(written)):
            return str(written)
        if tag == f"{_TAG}int" and _DECIMAL.fullmatch(written) and len(written) <= 40:
            return int(written)
        if tag == f"{_TAG}bool" and written.lower() in ("true", "false"):
            return _boolean(self.node)
        raise self._misread("")

    def _misread(self, what: str) -> Refused:
        """Return the refusal of a value that YAML reads as something else than was meant."""
        written = self.node.value
        read_as = {
            f"{_TAG}bool": "true or false",
            f"{_TAG}int": "a number" if _DECIMAL.fullmatch(written) else "another number",
            f"{_TAG}float": "a fraction",
            f"{_TAG}timestamp": "a date",
            f"{_TAG}null": "nothing",
            f"{_TAG}merge": "a merge",
            f"{_TAG}str": "a text, other readers as a number",
        }[self.node.tag]
        shown = written if written else "an empty place"
        fix = f"Write {quoted(written)}."
        if self.node.tag == f"{_TAG}str":
            fix = f"Write {quoted(written)} for the text, or {_exact(written)} for the number."
        return self.refuse(f"{what} must be quoted: YAML reads {shown} as {read_as}".strip(), fix=fix)


def _joined(path: str, name: str) -> str:
    if not re.fullmatch(r"[\w-]+", name):
        return f"{path}[{quoted(name)}]"
    return f"{path}.{name}" if path else name


def quoted(text: str) -> str:
    """Return a text in YAML's double quotes, on one line."""
    written: str = yaml.dump(text, Dumper=yaml.SafeDumper, default_style='"', width=2**31, allow_unicode=True)
    return written.rstrip("\n")


def _is_bare(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and not node.style


def _boolean(node: yaml.Node) -> bool:
    return str(node.value).lower() in ("true", "yes", "on")


def _number(node: yaml.ScalarNode) -> Any:
    try:
        return yaml.constructor.SafeConstructor().construct_yaml_int(node)
    except ValueError:
        return "something else"


def _exact(written: str) -> int | float | None:
    """Return the number that a text like 1e3 or 08 stands for."""
    try:
        found = float(written.replace("_", ""))
    except ValueError:
        return None
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


# ---- policies -------------------------------------------------------------------------------------------------------

_KEYS: Final = ("name", "domain", "secrets", "known", "presence")
_OPTIONS: Final[dict[str, tuple[str, ...]]] = {
    "integers": ("low", "high", "step", "otherwise"),
    "categories": ("ordered", "otherwise"),
    "flag": ("otherwise",),
    "grid": ("rows", "columns", "of", "low", "high", "otherwise"),
    "items": ("first", "at_most"),
}
_FAMILIES: Final = ("everything", "attributes", "partition", "within", "pairs", "values", "records")
_FACTS: Final = ("size", "marginal", "count")


def load_policy(path: str | Path) -> Policy:
    """Read a policy file. A policy that does not say its name is called like the file."""
    file = Path(path).name
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)  # never more, whatever the path leads to
    except FileNotFoundError:
        refusal = PolicyError("must exist", key=str(path), fix="Check the path, or draft one: `tacit init DATA`.")
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "not a path"
        refusal = PolicyError(f"must be a readable file ({reason.lower()})", key=str(path), fix="Check the path.")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as fault:
            line = content[: fault.start].count(b"\n") + 1
            refusal = PolicyError(
                "must be a text in UTF-8", key="the policy", file=file, line=line, fix="Save the file as UTF-8."
            )
        else:
            return _read(Source(text, file), name=Path(path).stem or "policy")
    raise refusal


def read_policy(text: str, *, file: str = "policy") -> Policy:
    """Read a policy from a text; `file` is what refusals call it.

    >>> read_policy("{domain: {age: {integers: [17, 90]}}, secrets: {within: {age: 5}}}").secrets
    Within(theta=Fraction(5, 1), names=('age',), metric='l1')
    """
    return _read(Source(text, file), name="policy")


def _read(source: Source, *, name: str) -> Policy:
    top = source.read()
    if not top.is_mapping:
        raise top.refuse(
            "must be a mapping", given=top.plain(), fix="Start with `domain:` and `secrets:`, without a dash."
        )
    said = top.fields(_KEYS, required=("domain", "secrets"))
    domain = read_domain(said["domain"])
    secret = read_secrets(said["secrets"], domain)
    known = read_known(said["known"], domain) if "known" in said else []
    presence = "public"
    if "presence" in said:
        presence = said["presence"].plain()
        if presence not in PRESENCE:
            raise said["presence"].refuse(
                "must be public or secret", given=presence, fix=nearest(str(presence), PRESENCE)
            )
    with top.blamed(said):
        return Policy(domain, secret, known, presence, said["name"].text() if "name" in said else name)


def read_domain(entry: Entry) -> Domain:
    """Read the attributes."""
    attributes: dict[str, Attribute] = {}
    for name, said in entry.mapping().items():
        attributes[name] = _attribute(said)
        with said.blamed():
            Domain({name: attributes[name]})  # refuses the name here, where its line is known
    with entry.blamed():
        return Domain(attributes)


def _attribute(entry: Entry) -> Attribute:
    if not entry.is_mapping:
        if entry.is_list or entry.is_empty or entry.text() != "flag":
            raise entry.refuse(
                "must say what the values are",
                given=entry.plain(),
                fix="For instance {integers: [0, 99]}, {categories: [a, b]}, flag, {grid: ..} or {items: 1000}.",
            )
        return Flag()
    said = entry.mapping()
    kinds = [kind for kind in _OPTIONS if kind in said] or (["integers"] if {"low", "high"} & set(said) else [])
    if len(kinds) != 1:
        unknown = [name for name in said if not any(name in options for options in _OPTIONS.values())]
        raise entry.refuse(
            "must have exactly one of integers, categories, flag, grid and items",
            given=list(said),
            fix=nearest(unknown[0], list(_OPTIONS)) if unknown and not kinds else "Keep one of them.",
        )
    kind = kinds[0]
    places = dict(entry.fields((kind, *_OPTIONS[kind])))
    main = places.pop(kind, None)
    if main is not None and main.is_mapping and kind in ("integers", "grid", "flag"):
        inside = main.fields(_OPTIONS[kind])
        for twice in inside.keys() & places.keys():
            raise places[twice].refuse("must not be given twice", fix=f"It stands inside {kind}, too.")
        places |= inside
        main = None
    with entry.blamed(places):
        return _KIND_READERS[kind](entry, main, places)


def _integers(entry: Entry, main: Entry | None, places: dict[str, Entry]) -> Attribute:
    if main is not None:
        ends = main.listed()
        if len(ends) != 2 or {"low", "high"} & set(places):
            raise main.refuse("must be [low, high]", given=main.plain(), fix="For instance [0, 99].")
        places |= {"low": ends[0], "high": ends[1]}
    for name in ("low", "high"):
        if name not in places:
            raise entry.refuse(f"must have the key {name}", given=sorted(places), fix="Write {integers: [low, high]}.")
    otherwise: int | str | None = None
    if "otherwise" in places:
        said = places["otherwise"]
        otherwise = said.text() if said.node.value == CLIP else said.whole()
    low, high = places["low"].whole(), places["high"].whole()
    step = places["step"].whole() if "step" in places else 1
    return Integers(low, high, step, otherwise)


def _categories(entry: Entry, main: Entry | None, places: dict[str, Entry]) -> Attribute:
    assert main is not None  # noqa: S101 - the key was found above
    values = [value.value() for value in main.listed()]
    with main.blamed(places):
        return Categories(
            values,
            ordered=places["ordered"].yes_or_no() if "ordered" in places else False,
            otherwise=places["otherwise"].value() if "otherwise" in places else None,
        )


def _flag(entry: Entry, main: Entry | None, places: dict[str, Entry]) -> Attribute:
    if main is not None and not main.is_empty:
        raise main.refuse(
            "must be a mapping", given=main.plain(), fix="Write `flag` alone, or {flag: {otherwise: ..}}."
        )
    return Flag(places["otherwise"].yes_or_no() if "otherwise" in places else None)


def _grid(entry: Entry, main: Entry | None, places: dict[str, Entry]) -> Attribute:
    if main is not None:
        raise main.refuse("must be a mapping", given=main.plain(), fix="Write {grid: {rows: 40, columns: 30}}.")
    for name in ("rows", "columns"):
        if name not in places:
            raise entry.refuse(f"must have the key {name}", given=sorted(places), fix=f"Add `{name}: ..` to the grid.")

    def two(name: str) -> list[Entry]:
        parts = places[name].listed()
        if len(parts) != 2:
            raise places[name].refuse("must have two parts", given=places[name].plain(), fix="Write [first, second].")
        return parts

    options: dict[str, Any] = {}
    if "of" in places:
        options["of"] = tuple(part.text() for part in two("of"))
    for name in ("low", "high"):
        if name in places:
            options[name] = tuple(part.real() for part in two(name))
    if "otherwise" in places:
        said = places["otherwise"]
        options["otherwise"] = tuple(part.whole() for part in two("otherwise")) if said.is_list else said.text()
    return Grid(places["rows"].whole(), places["columns"].whole(), **options)


def _items(entry: Entry, main: Entry | None, places: dict[str, Entry]) -> Attribute:
    assert main is not None  # noqa: S101 - the key was found above
    named = main.is_list
    if named and "first" in places:
        raise places["first"].refuse("must not be given for items with names", fix="Remove it.")
    with main.blamed(places):
        return Items(
            [value.value() for value in main.listed()] if named else main.whole(),
            first=places["first"].whole() if "first" in places else 0,
            at_most=places["at_most"].whole() if "at_most" in places else None,
        )


_KIND_READERS: Final = {
    "integers": _integers,
    "categories": _categories,
    "flag": _flag,
    "grid": _grid,
    "items": _items,
}


def read_secrets(entry: Entry, domain: Domain) -> Secrets:
    """Read one family, or a list of families (their union)."""
    listed = entry.one_or_more()
    if not listed or entry.is_empty:
        raise entry.refuse(
            "must protect something", given=entry.plain(), fix="Write everything, or a list of families."
        )
    families = [_family(said, domain) for said in listed]
    united = families[0]
    for family in families[1:]:
        united = united | family
    return united


def _keyword(entry: Entry, known: Sequence[str], example: str) -> tuple[str, Entry]:
    """Return the one key of an entry and what stands under it; a bare word is its own."""
    if not entry.is_mapping:
        if entry.is_list:
            raise entry.refuse("must not be a list in a list", given=entry.plain(), fix=f"For instance {example}.")
        word = entry.text()
        if word not in known:
            raise entry.refuse("is not a word that may stand here", given=word, fix=nearest(word, list(known)))
        return word, entry
    said = entry.fields(known)
    if len(said) != 1:
        raise entry.refuse(
            "must have exactly one key in each entry",
            given=list(said),
            fix="Start each on a line of its own with a dash.",
        )
    return next(iter(said.items()))


def _family(entry: Entry, domain: Domain) -> Secrets:
    keyword, said = _keyword(entry, _FAMILIES, "{attributes: [disease]}")
    if keyword == "everything":
        if said is not entry and not said.is_empty:
            raise said.refuse("must stand alone", given=said.plain(), fix="Write `everything` without a colon.")
        return Everything()
    if said is entry:
        raise entry.refuse("must say more", given=keyword, fix=f"For instance {_EXAMPLES[keyword]}.")
    places = said.mapping() if said.is_mapping else {}
    with said.blamed(places):
        family = _FAMILY_READERS[keyword](said, domain)
        family.check(domain)
        family.shapes(domain)
        return family


_EXAMPLES: Final = {
    "attributes": "{attributes: [disease]}",
    "partition": "{partition: {attribute: age, width: 10}}",
    "within": "{within: {age: 5}}",
    "pairs": "{pairs: [[{disease: hiv}, {disease: flu}]]}",
    "values": "{values: {disease: [hiv]}}",
    "records": '{records: "age < 18"}',
}


def _names(entry: Entry, domain: Domain) -> list[str]:
    found = []
    for said in entry.one_or_more():
        with said.blamed():
            found.append(said.text())
            domain.attribute(found[-1])
    return found


def _attributes(entry: Entry, domain: Domain) -> Secrets:
    return secrets.attributes(*_names(entry, domain))


def _partition(entry: Entry, domain: Domain) -> Secrets:
    said = entry.fields(("attribute", "width", "blocks"), required=("attribute",))
    if len({"width", "blocks"} & set(said)) != 1:
        raise entry.refuse("must have either width or blocks", given=sorted(said), fix="Give one of the two.")
    if said["attribute"].is_list:
        raise said["attribute"].refuse("must be one attribute", fix="Write one entry for each.")
    name = _names(said["attribute"], domain)[0]
    if "width" in said:
        widths = [width.whole() for width in said["width"].one_or_more()]
        return secrets.partition(name, width=widths)
    blocks: list[list[Value] | str] = []
    for block in said["blocks"].listed():
        if block.is_list:
            blocks.append([_value(value, domain[name]) for value in block.listed()])
        else:
            blocks.append(block.text())
    return secrets.partition(name, blocks=blocks)


def _within(entry: Entry, domain: Domain) -> Secrets:
    said = entry.mapping()
    # short: {age: 5}, also {place: 5, metric: l2}; an attribute may itself be called theta
    names = [name for name in said if name != "metric" or (len(said) == 1 and name in domain)]
    if len(names) == 1 and (names[0] in domain or names[0] not in ("theta", "attributes")):
        with said[names[0]].blamed():
            domain.attribute(names[0])
            theta = _theta(said[names[0]])
            secrets.within(theta, names[0]).check(domain)
        metric = said["metric"].text() if "metric" in said and names != ["metric"] else "l1"
        return secrets.within(theta, names[0], metric=metric)
    if len(names) > 1 and not {"theta", "attributes"} & set(names) and all(name in domain for name in names):
        raise entry.refuse(
            "must say one distance for all attributes together",
            given=entry.plain(),
            fix=f"Write {{theta: 5, attributes: [{', '.join(names)}]}}, or one entry for each.",
        )
    long = entry.fields(("theta", "attributes", "metric"), required=("theta", "attributes"))
    metric = long["metric"].text() if "metric" in long else "l1"
    return secrets.within(_theta(long["theta"]), *_names(long["attributes"], domain), metric=metric)


def _theta(entry: Entry) -> int | str:
    """Return the distance exactly as written: 5, 2.5 or 5/2."""
    if entry.node.tag in (f"{_TAG}str", f"{_TAG}float"):
        return str(entry.node.value).replace("_", "")
    return entry.whole()


def _pairs(entry: Entry, domain: Domain) -> Secrets:
    found = []
    for pair in entry.listed():
        sides = pair.listed()
        if len(sides) != 2:
            raise pair.refuse("must be [hidden, cover]", given=pair.plain(), fix="Give two records.")
        found.append(tuple(_side(side, domain) for side in sides))
        with pair.blamed():
            secrets.pairs(found[-1:]).check(domain)
    return secrets.pairs(found)


def _side(entry: Entry, domain: Domain) -> Any:
    if entry.is_mapping:
        found = {}
        for name, value in entry.mapping().items():
            with value.blamed():
                found[name] = _value(value, domain.attribute(name))
        return found
    if len(domain) == 1:
        return _value(entry, next(iter(domain.values())))
    parts = entry.listed()
    if len(parts) != len(domain):
        raise entry.refuse(
            f"must have the attributes {', '.join(domain)}", given=entry.plain(), fix="Write {name: value, ..}."
        )
    return [_value(part, attribute) for part, attribute in zip(parts, domain.values(), strict=True)]


def _values(entry: Entry, domain: Domain) -> Secrets:
    found = {}
    for name, listed in entry.mapping().items():
        with listed.blamed():
            attribute = domain.attribute(name)
        is_set = isinstance(attribute, Items)
        found[name] = [value.whole() if is_set else _value(value, attribute) for value in listed.listed()]
        with listed.blamed():
            secrets.values({name: found[name]}).check(domain)
    return secrets.values(found)


def _records(entry: Entry, domain: Domain) -> Secrets:
    return secrets.records(entry.text())


_FAMILY_READERS: Final = {
    "attributes": _attributes,
    "partition": _partition,
    "within": _within,
    "pairs": _pairs,
    "values": _values,
    "records": _records,
}


def _value(entry: Entry, attribute: Attribute) -> Value:
    """Return one value of an attribute, read as that attribute's values are meant."""
    found: Value
    match attribute:
        case Flag():
            found = entry.yes_or_no() if entry.node.tag == f"{_TAG}bool" else entry.value()
        case Integers():
            found = entry.whole()
        case Grid():
            found = tuple(part.whole() for part in entry.listed())
        case Items():
            found = frozenset(item.value() for item in entry.listed())
        case Categories():
            found = entry.value()
    with entry.blamed():
        if isinstance(attribute, Items):
            attribute.positions(found)
        else:
            attribute.position(found)
    return found


def read_known(entry: Entry, domain: Domain) -> list[Known]:
    """Read what is public: one fact, or a list."""
    if entry.is_empty:
        return []
    return [_fact(said, domain) for said in entry.one_or_more()]


def _fact(entry: Entry, domain: Domain) -> Known:
    keyword, said = _keyword(entry, _FACTS, "{marginal: [disease]}")
    fact: Known
    with said.blamed():
        if keyword == "size":
            fact = knowledge.size(None if said is entry else said.whole())
        elif said is entry:
            example = "{marginal: [disease]}" if keyword == "marginal" else '{count: "age < 18"}'
            raise entry.refuse("must say more", given=keyword, fix=f"For instance {example}.")
        elif keyword == "marginal":
            fact = knowledge.marginal(*_names(said, domain))
        else:
            fact = knowledge.count(said.text())
        fact.check(domain)
    return fact


# ---- writing --------------------------------------------------------------------------------------------------------


def policy_document(policy: Policy) -> dict[str, Any]:
    """Return the policy as plain data that JSON can hold, in the order of a policy file."""
    return {
        "name": policy.name,
        "domain": {name: _attribute_document(attribute) for name, attribute in policy.domain.attributes},
        "secrets": policy.secrets.document(),
        "known": [fact.document() for fact in policy.known],
        "presence": policy.presence,
    }


def _attribute_document(attribute: Attribute) -> Any:
    otherwise = {} if getattr(attribute, "otherwise", None) is None else {"otherwise": attribute.otherwise}  # type: ignore[union-attr]
    said: dict[str, Any]
    match attribute:
        case Categories():
            ordered = {"ordered": True} if attribute.ordered else {}
            return {"categories": list(attribute.values), **ordered, **otherwise}
        case Integers():
            step = {"step": attribute.step} if attribute.step != 1 else {}
            return {"integers": [attribute.low, attribute.high], **step, **otherwise}
        case Flag():
            return "flag" if attribute.otherwise is None else {"flag": {"otherwise": bool(attribute.otherwise)}}
        case Grid():
            said = {"rows": attribute.rows, "columns": attribute.columns, "of": list(attribute.of)}
            if attribute.low is not None and attribute.high is not None:
                said |= {"low": list(attribute.low), "high": list(attribute.high)}
            if attribute.otherwise is not None:
                said["otherwise"] = CLIP if attribute.otherwise == CLIP else list(attribute.otherwise)
            return {"grid": said}
        case Items():
            said = {"items": attribute.items if isinstance(attribute.items, int) else list(attribute.items)}
            if isinstance(attribute.items, int) and attribute.first != 0:
                said["first"] = attribute.first
            if attribute.at_most is not None:
                said["at_most"] = attribute.at_most
            return said


_TITLE: Final = """\
# A Tacit policy: what must stay secret, about whom, and what the world already knows.
# Everything in this file is public. `tacit check` says in plain words what it protects and what not.
"""
_NOTES: Final = {
    "domain": "# The values that a person's record may have. Declared here, never read off the data.",
    "secrets": "# What a release must not give away.",
    "known": "# What is public about the data set anyway.",
    "presence": "# Whether it is secret who is in the data: public or secret.",
}


def write_policy(policy: Policy) -> str:
    """Return a policy file that reads back as an equal policy."""
    parts = [_TITLE]
    for key, value in policy_document(policy).items():
        if key in _NOTES:
            parts.append(f"\n{_NOTES[key]}\n")
        parts.append(write_yaml({key: value}))
    return "".join(parts)


def write_yaml(said: Mapping[str, Any]) -> str:
    """Return plain data as YAML with one line for each attribute, family and fact, quoted wherever it is in doubt."""
    node = yaml.representer.SafeRepresenter(sort_keys=False).represent_data(dict(said))
    _laid_out(node, 0)
    text: str = yaml.serialize(node, Dumper=_DUMPER, allow_unicode=True, width=110)
    return text


def _laid_out(node: yaml.Node, depth: int, *, in_a_list: bool = False) -> None:
    """Choose lines for the outer two levels and brackets below; quote what other readers take for a number."""
    if isinstance(node, yaml.MappingNode):
        in_a_list = in_a_list and depth == 2 and len(node.value) == 1  # `- attributes: [disease]`
        node.flow_style = not node.value or (depth > 1 and not in_a_list)
        for key, value in node.value:
            _laid_out(key, depth + 1)
            _laid_out(value, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        node.flow_style = depth > 1 or not node.value
        for value in node.value:
            _laid_out(value, depth + 1, in_a_list=True)
    elif isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}str" and _in_doubt(node.value):
        node.style = "'"


def _in_doubt(text: str) -> bool:
    return bool(_LIKE_A_NUMBER.fullmatch(text)) or text.lower() in ("y", "n")


# ---- the JSON schema ------------------------------------------------------------------------------------------------


def policy_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of policy files, for editors that complete and check while typing.

    A schema cannot know which attributes a domain has, so the reader refuses more: names and values that the domain
    does not have, predicates that cannot be read, and what YAML would silently change.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tacit policy",
        "description": "What must stay secret, about whom, and what the world already knows.",
        **_object(
            {
                "name": {"type": "string", "description": "What reports call the policy."},
                "domain": {
                    "type": "object",
                    "minProperties": 1,
                    "propertyNames": {"type": "string", "pattern": r"^[^\[\]`\r\n]+$"},
                    "additionalProperties": {"$ref": "#/$defs/attribute"},
                    "description": "The columns and the values they may have. Declared, never read off the data.",
                },
                "secrets": {
                    "anyOf": [
                        {"$ref": "#/$defs/family"},
                        {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/family"}},
                    ],
                    "description": "What a release must not give away: one family of secrets, or the union of several.",
                },
                "known": {
                    "anyOf": [
                        {"$ref": "#/$defs/fact"},
                        {"type": "array", "items": {"$ref": "#/$defs/fact"}},
                        {"type": "null"},
                    ],
                    "description": "What is public about the data set anyway. It couples people and raises the noise.",
                },
                "presence": {
                    "enum": list(PRESENCE),
                    "default": "public",
                    "description": "Whether it is secret who is in the data (and so how many there are).",
                },
            },
            required=["domain", "secrets"],
        ),
        "$defs": {
            "attribute": {"anyOf": _attribute_schemas(), "description": "The values of one column."},
            "family": {"anyOf": _family_schemas(), "description": "A family of secrets."},
            "fact": {
                "anyOf": [
                    {"const": "size", "description": "How many people there are."},
                    _object(
                        {"size": {"type": "integer", "minimum": 0}}, ["size"], "How many there are, and the number."
                    ),
                    _object({"marginal": _NAMES}, ["marginal"], "The whole histogram of some attributes."),
                    _object({"count": _PREDICATE}, ["count"], "How many people a predicate picks."),
                ],
                "description": "Something public about the data set.",
            },
        },
    }


_NAMES: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
    ],
    "description": "Names of attributes.",
}
_PREDICATE: Final = {
    "type": "string",
    "minLength": 1,
    "description": "For instance: age < 18 and disease in ['flu', 'hiv'], or clicked.has(7).",
}
_VALUE: Final[dict[str, Any]] = {"type": ["string", "integer", "boolean"]}
_WHOLE: Final[dict[str, Any]] = {"type": "integer"}
_POSITIVE: Final[dict[str, Any]] = {"type": "integer", "minimum": 1}
_DISTANCE: Final = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\+?[0-9]+([./][0-9]+)?"}],
    "description": "The largest distance that is protected: 5, 2.5 or 5/2.",
}


def _object(properties: dict[str, Any], required: list[str], description: str = "") -> dict[str, Any]:
    """Return the schema of a mapping with these keys and no others."""
    said = {"description": description} if description else {}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **said}


def _two(of: dict[str, Any], description: str = "") -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"type": "array", "items": of, "minItems": 2, "maxItems": 2, **said}


def _attribute_schemas() -> list[dict[str, Any]]:
    clip_or_whole = {
        "anyOf": [{"const": CLIP}, _WHOLE],
        "description": "What unexpected values count as: clip, or a value of the range. Left out: the row is dropped.",
    }
    range_options = {"step": {**_POSITIVE, "default": 1}, "otherwise": clip_or_whole}
    ends = {"low": _WHOLE, "high": _WHOLE, **range_options}
    flag_options = {
        "otherwise": {"type": "boolean", "description": "What unexpected values count as. Left out: row dropped."}
    }
    cell = {
        "anyOf": [{"const": CLIP}, _two({"type": "integer", "minimum": 0})],
        "description": "The cell of places off the map: clip, or [row, column]. Left out: the row is dropped.",
    }
    sizes = {
        "rows": _POSITIVE,
        "columns": _POSITIVE,
        "of": _two({"type": "string"}, "The two data columns, for instance [latitude, longitude]."),
        "low": _two({"type": "number"}, "Where cell [0, 0] starts. Left out: the columns hold cell numbers."),
        "high": _two({"type": "number"}, "Where the last cell ends."),
        "otherwise": cell,
    }
    return [
        _object(
            {"integers": _two(_WHOLE, "[low, high], both included."), **range_options}, ["integers"], "Whole numbers."
        ),
        _object({"integers": _object(ends, ["low", "high"])}, ["integers"], "Whole numbers."),
        _object(ends, ["low", "high"], "Whole numbers from low to high, both included."),
        _object(
            {
                "categories": {"type": "array", "items": _VALUE, "minItems": 1, "uniqueItems": True},
                "ordered": {"type": "boolean", "default": False, "description": "Whether their order means anything."},
                "otherwise": {**_VALUE, "description": "What unexpected values count as. Left out: row dropped."},
            },
            ["categories"],
            "A value out of a list.",
        ),
        {"const": "flag", "description": "Yes or no."},
        _object({"flag": {"type": "null"}, **flag_options}, ["flag"], "Yes or no."),
        _object({"flag": _object(flag_options, [])}, ["flag"], "Yes or no."),
        _object({"grid": _object(sizes, ["rows", "columns"])}, ["grid"], "A cell of a map."),
        _object(
            {
                "grid": _object({k: v for k, v in sizes.items() if k != "otherwise"}, ["rows", "columns"]),
                "otherwise": cell,
            },
            ["grid"],
            "A cell of a map.",
        ),
        _object(
            {
                "items": {**_POSITIVE, "description": "How many items there are."},
                "first": {**_WHOLE, "default": 0, "description": "The number of the first item."},
                "at_most": {**_POSITIVE, "description": "The most items that one person may have."},
            },
            ["items"],
            "A set of numbered items.",
        ),
        _object(
            {
                "items": {
                    "type": "array",
                    "items": {"type": ["string", "integer"]},
                    "minItems": 1,
                    "uniqueItems": True,
                },
                "at_most": {**_POSITIVE, "description": "The most items that one person may have."},
            },
            ["items"],
            "A set of items with names.",
        ),
    ]


def _family_schemas() -> list[dict[str, Any]]:
    metric = {"enum": list(secrets.METRICS), "default": "l1", "description": "How several differences add up."}
    width = {"anyOf": [_POSITIVE, {"type": "array", "items": _POSITIVE, "minItems": 1, "maxItems": 2}]}
    part = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]}
    side = {"anyOf": [{"type": "object", "additionalProperties": part}, {"type": "array", "items": part}, _VALUE]}
    block = {"anyOf": [{"type": "array", "items": part}, {"type": "string", "pattern": r"^\s*-?[0-9]+\s*\.\."}]}
    blocks = {"type": "array", "minItems": 1, "items": block, "description": "Lists of values, or ranges like 0..17."}
    return [
        {"const": "everything", "description": "Every value looks like every other: differential privacy."},
        _object({"everything": {"type": "null"}}, ["everything"], "Every value looks like every other."),
        _object({"attributes": _NAMES}, ["attributes"], "Each of these attributes, one at a time."),
        _object(
            {"partition": _object({"attribute": {"type": "string"}, "width": width}, ["attribute", "width"])},
            ["partition"],
            "The value within its block of a width; which block it is stays public.",
        ),
        _object(
            {"partition": _object({"attribute": {"type": "string"}, "blocks": blocks}, ["attribute", "blocks"])},
            ["partition"],
            "The value within its listed block; which block it is stays public.",
        ),
        _object(
            {"within": _object({"theta": _DISTANCE, "attributes": _NAMES, "metric": metric}, ["theta", "attributes"])},
            ["within"],
            "Values up to a distance; the rough value stays public.",
        ),
        _object(
            {
                "within": {
                    "type": "object",
                    "properties": {"metric": metric},
                    "additionalProperties": _DISTANCE,
                    "minProperties": 1,
                    "maxProperties": 2,
                    "not": {"required": ["theta", "attributes"]},
                }
            },
            ["within"],
            "Values up to a distance, in short: {age: 5}.",
        ),
        _object(
            {"pairs": {"type": "array", "minItems": 1, "items": _two(side)}},
            ["pairs"],
            "Listed pairs [hidden, cover]: the first looks like the second.",
        ),
        _object(
            {
                "values": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {"type": "array", "minItems": 1, "items": part},
                }
            },
            ["values"],
            "Sensitive values by attribute; 1 means having an item. They look like any other value.",
        ),
        _object({"records": _PREDICATE}, ["records"], "Everything about the people that a predicate calls sensitive."),
    ]
