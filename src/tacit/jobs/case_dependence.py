"""The dependence of a case file: a table, counts of a file, or a network, with the values of the policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tacit.dependence.dependence import Dependence
from tacit.errors import InternalError, JobError, nearest
from tacit.plan.questions.counts import Marginals
from tacit.policy.domain import Domain
from tacit.policy.keys import BOOLEAN, TEXT, TEXTS, Key, Keys, Schema, together
from tacit.policy.policy import Policy
from tacit.policy.secrets import everything
from tacit.policy.yaml_entries import YamlEntry
from tacit.rows.files.identity import files_below

MOST_CELLS: Final = 2**20  # of a dependence that is counted


def _smoothing(entry: YamlEntry) -> float:
    found = float(entry.real())
    if found < 0:
        raise entry.refuse("must be zero or more", given=found, fix="Write 0.5, or leave it out to add nothing.")
    return found


CELL: Final[Schema] = {"type": ["string", "integer", "number", "boolean"]}
_TABLE: Final = Keys(
    Key("names", {"type": "array", "minItems": 1, "items": TEXT}, read=together, required=True),
    Key(
        "cells",
        {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 2, "items": CELL}},
        read=together,
        required=True,
    ),
)
_COUNTS: Final = Keys(
    Key("file", TEXT, "A public or earlier data set, relative to the case file.", read=together, required=True),
    Key("attributes", TEXTS, read=together, required=True),
    Key("smoothing", {"type": "number", "minimum": 0}, "Added to the count of every cell.", read=_smoothing),
    Key("unprotected", BOOLEAN, "It is the private rows: show the result to nobody."),
)
_FORMS: Final = Keys(
    Key("table", _TABLE.schema(), read=together),
    Key("counts", _COUNTS.schema(), read=together),
    Key("network", {"type": "object", "minProperties": 1}, read=together),
)
DEPENDENCE: Final = Key(
    "dependence",
    {**_FORMS.schema(), "minProperties": 1, "maxProperties": 1},
    "How attributes depend on each other: a table, counts of a file, or a network.",
    read=together,
    required=True,
)


def read_dependence(entry: YamlEntry, policy: Policy, rows: Mapping[str, YamlEntry]) -> Dependence:
    """Read the dependence of a case; `rows` are the private ones, which are counted only with a mark.

    They are paths and patterns, each with the place where it was written.
    """
    fields = _FORMS.entries(entry)
    if len(fields) != 1:
        raise entry.refuse("must have one of the keys table, counts and network", given=sorted(fields), fix="Keep one.")
    ((form, below),) = fields.items()
    read = {"table": _table, "network": _network}
    found = _counts(below, policy, rows) if form == "counts" else read[form](below, policy)
    for name in found.names:
        _attribute(below, name, policy.domain)
    return found


def _attribute(entry: YamlEntry, name: str, domain: Domain) -> None:
    if name not in domain:
        fix = nearest(name, list(domain), most=20)
        raise entry.refuse("must be about attributes of the policy", given=name, fix=fix)


def read_value(entry: YamlEntry, domain: Domain, name: str) -> Any:
    """Return a value of an attribute, or refuse one that it does not have."""
    value = domain[name].read_value(entry)
    with entry.blamed():
        return domain[name].value(domain[name].position(value))


def _table(entry: YamlEntry, policy: Policy) -> Dependence:
    fields = _TABLE.entries(entry)
    names = [one.text() for one in fields["names"].listed()]
    for name in names:
        _attribute(fields["names"], name, policy.domain)
    cells: dict[tuple[Any, ...], float] = {}
    for one in fields["cells"].listed():
        parts = one.listed()
        if len(parts) != len(names) + 1:
            rule = f"must have a value for each of {', '.join(names)}, then the probability"
            raise one.refuse(rule, given=one.plain(), fix="Write [late, early, 0.2].")
        cell = tuple(read_value(part, policy.domain, name) for name, part in zip(names, parts, strict=False))
        if cell in cells:
            raise one.refuse("must not be given twice", given=one.plain(), fix="Add the two up.")
        cells[cell] = float(parts[-1].real())
    with fields["cells"].blamed({"names": fields["names"]}):
        return Dependence.from_table(cells, names=names)


def _network(entry: YamlEntry, policy: Policy) -> Dependence:
    for name in entry.mapping():
        _attribute(entry, name, policy.domain)
    tables = {name: _conditional(name, below, policy.domain) for name, below in entry.mapping().items()}
    with entry.blamed(entry.mapping()):
        return Dependence.from_network(tables)


def _conditional(name: str, entry: YamlEntry, domain: Domain) -> Any:
    """Return the table of one attribute, by value; below `given` and `table`, by the values of its parents first."""
    mapping = entry.mapping()
    if set(mapping) != {"given", "table"}:
        if any(below.is_mapping or below.is_list for below in mapping.values()):
            entry.fields(("given", "table"), required=("given", "table"))  # refuses what is misspelt or missing
        return _chances(entry, domain, name)
    parents = [one.text() for one in mapping["given"].one_or_more()]
    for parent in parents:
        _attribute(mapping["given"], parent, domain)

    def below(found: YamlEntry, left: list[str]) -> Any:
        if not left:
            return _chances(found, domain, name)
        return {_value(found, domain, left[0], key): below(one, left[1:]) for key, one in found.mapping().items()}

    nested = below(mapping["table"], parents)
    return {"given": parents, "table": nested if len(parents) == 1 else dict(_flat(nested, len(parents)))}


def _flat(nested: Any, depth: int, before: tuple[Any, ...] = ()) -> Any:
    if not depth:
        yield before, nested
        return
    for value, below in nested.items():
        yield from _flat(below, depth - 1, (*before, value))


def _chances(entry: YamlEntry, domain: Domain, name: str) -> dict[Any, float]:
    return {_value(entry, domain, name, key): float(one.real()) for key, one in entry.mapping().items()}


def _value(entry: YamlEntry, domain: Domain, name: str, key: str) -> Any:
    """Return the value that a key stands for: keys are texts, whatever the attribute is."""
    known = {domain[name].words(value): value for value in domain[name].every_value()}
    if key not in known:
        raise entry.refuse(f"must have values of {name} as keys", given=key, fix=nearest(key, list(known), most=10))
    return known[key]


def _counts(entry: YamlEntry, policy: Policy, rows: Mapping[str, YamlEntry]) -> Dependence:
    """Count a public or earlier data set, read as the policy reads rows."""
    # the engines take seconds to load, and most cases and jobs are only looked at
    from tacit.release.estimate.measure import true_answers
    from tacit.rows.guard import closed
    from tacit.rows.rows import open_rows

    fields = _COUNTS.entries(entry)
    options = {"smoothing": 0.0, "unprotected": False, **_COUNTS.read(fields)}
    names = [one.text() for one in fields["attributes"].one_or_more()]
    for name in names:
        _attribute(fields["attributes"], name, policy.domain)
    domain = Domain({name: policy.domain[name] for name in names})
    cells = math.prod(attribute.size for attribute in domain.values())
    if cells > MOST_CELLS:
        fix = "Name fewer, or give a network."
        raise fields["attributes"].refuse(f"must have at most {MOST_CELLS:,} cells together", given=cells, fix=fix)
    path = fields["file"].file_path()
    if not path.is_file():
        fix = "Check the path; it is relative to the case file."
        raise fields["file"].refuse("must be a file", given=fields["file"].text(), fix=fix)
    if not options["unprotected"]:
        _check_public(fields["file"], path, rows)
    # whoever is in it: a row is a row
    plain = Policy(domain, everything())
    query = Marginals((tuple(names),))
    opened = open_rows(str(path), domain)
    counted = closed(lambda: true_answers(query, opened, plain), InternalError("rows were open"))
    values = {name: domain[name].every_value() for name in names}
    shape = tuple(len(each) for each in values.values())
    with fields["file"].blamed(fields):
        table = counted.reshape(shape) + options["smoothing"]
        if not table.sum() > 0:
            raise JobError("must have a row that the policy reads", key="file", fix="Check the file, or add smoothing.")
        found = Dependence.from_table(table / table.sum(), names=names, values=values)
    return replace(found, unprotected=options["unprotected"])


def _check_public(entry: YamlEntry, path: Path, rows: Mapping[str, YamlEntry]) -> None:
    """Refuse to count a file that is among the private rows, or may be: of every path it must be clear what it is."""
    for private, written in rows.items():
        try:
            found = files_below(private)
        except (OSError, ValueError):
            found = []
        if not found:
            rule = "must lead to a file, or nobody can tell whether the dependence is counted from it"
            raise written.refuse(rule, given=written.text(), fix="Check the path; it is relative to the case file.")
        if any(path.samefile(one) for one in found):
            rule = "must be public: it is the rows of the case, and nobody pays for what their counts tell"
            fix = "Count an earlier data set, or write `unprotected: true` and show the result to nobody."
            raise entry.refuse(rule, given=entry.text(), fix=fix)
