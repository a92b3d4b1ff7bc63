"""Values at a distance of at most theta."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

from tacit.amounts import shown
from tacit.errors import PolicyError, nearest
from tacit.policy.attributes.attribute import Axis
from tacit.policy.domain import Domain, Record
from tacit.policy.edges.relations import Near, Relation
from tacit.policy.edges.shapes import MOST_POWER, EdgeShape, ItemMoves, Metric
from tacit.policy.genuine import as_plain
from tacit.policy.keys import NAMES, Key, Keys, Row, together
from tacit.policy.secrets.family import (
    MOST_NAMES,
    ExamplePair,
    Fields,
    PolicyContext,
    Promise,
    Secrets,
    changed,
    check_names,
    listed,
    listed_briefly,
    read_names,
    restricted_to,
)
from tacit.policy.where import Where
from tacit.policy.yaml_entries import YamlEntry

# short exponents only: the exact fraction of 1e999999999 would not fit into memory
_DISTANCE: Final = re.compile(r"[-+]?[0-9]{1,30}(\.[0-9]{0,30}|/[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?")
_THETA: Final = Key(
    "theta",
    {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\+?[0-9]+([./][0-9]+)?"}]},
    "The largest distance that is protected: 5, 2.5 or 5/2.",
    read=together,
    required=True,
)
_METRIC: Final = Key(
    "metric",
    {"type": "string", "pattern": "^l([1-9]|[1-5][0-9]|6[0-4]|inf)$", "default": "l1"},
    "How several differences add up: l1, l2, l3 and so on, or linf, of which the largest counts.",
    read=YamlEntry.text,
)
_LONG: Final = Keys(_THETA, Key("attributes", NAMES, read=together, required=True), _METRIC)


@dataclass(frozen=True)
class Within(Secrets):
    """Values at a distance of at most theta in the listed attributes."""

    theta: Fraction
    names: tuple[str, ...]
    metric: str = "l1"
    keyword: ClassVar[str] = "within"
    example: ClassVar[str] = "{within: {age: 5}}"
    rows: ClassVar[tuple[Row, ...]] = (
        Row(
            "within",
            "`within: {age: 5}`",
            "values up to a distance; the rough value stays public",
            {
                "type": "object",
                "properties": {"metric": _METRIC.property()},
                "additionalProperties": _THETA.property(),
                "minProperties": 1,
                "maxProperties": 2,
                "not": {"required": ["theta", "attributes"]},
            },
        ),
        Row(
            "",
            "`within: {theta: 5, attributes: [age, stage], metric: l1}`",
            "values up to a distance in all, added up by `l1`, `l2`, `l3` and so on, or `linf`",
            _LONG.schema(),
        ),
    )

    def check(self, domain: Domain) -> None:
        check_names(self.names, domain, "secrets.within")
        if self.theta <= 0:
            raise PolicyError("must be positive", key="secrets.within.theta", given=self.theta, fix="Raise it.")
        if not isinstance(self.metric, str) or not Metric.is_kind(self.metric):
            rule, fix = (
                f"must be l1, l2, l3 and so on up to l{MOST_POWER}, or linf",
                nearest(str(self.metric), ["l1", "linf"]),
            )
            raise PolicyError(rule, key="secrets.within.metric", given=self.metric, fix=fix)
        for name in self.names:
            attribute = domain[name]
            if not all(axis.ordered for axis in attribute.axes(name)):
                fix = "Use attributes, or declare ordered=True (in a file: `ordered: true`)."
                raise PolicyError("must have distances", key="secrets.within", given=name, fix=fix)
        wide = self._width(domain)
        if wide is not None and self.theta > wide:
            # the same promise as a smaller one, so most likely a slip: another unit, or another attribute
            all_of_it = f" If any two values look alike, write attributes: [{self.names[0]}]."
            raise PolicyError(
                f"must not be larger than the range of {listed(self.names)}, {shown(wide)}",
                key="secrets.within.theta",
                given=self.theta,
                fix="Lower it." + (all_of_it if len(self.names) == 1 else ""),
            )

    def _axes(self, domain: Domain) -> list[Axis]:
        return [axis for name in self.names for axis in domain.axes_of(name)]

    def _width(self, domain: Domain) -> Fraction | None:
        """Return the width of all attributes together: no larger theta is needed. None if there are sets."""
        if any(domain[name].is_set for name in self.names):
            return None
        return sum((axis.size * Fraction(axis.spacing) for axis in self._axes(domain)), Fraction(0))

    def _reaches_all(self, domain: Domain) -> bool:
        widest = [(axis.size - 1) * Fraction(axis.spacing) for axis in self._axes(domain)]
        return self._width(domain) is not None and Metric(self.theta, self.metric).allows(widest)

    def _distances(self, domain: Domain, hidden: Record, cover: Record) -> list[Fraction]:
        return [
            distance
            for (name, attribute), a, b in zip(domain.attributes, hidden, cover, strict=True)
            if name in self.names
            for distance in attribute.distances(a, b)
        ]

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        if not set(changed(domain, hidden, cover)) <= set(self.names) or hidden == cover:
            return False
        return Metric(self.theta, self.metric).allows(self._distances(domain, hidden, cover))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        relations: dict[str, Relation] = {
            axis.name: Near(int(self.theta // axis.spacing)) for axis in self._axes(domain)
        }
        items = {name: ItemMoves(lose=True, gain=True) for name in self.names if domain[name].is_set}
        return [EdgeShape(relations, items, metric=Metric(self.theta, self.metric))]

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        others = tuple(name for name in self.names if name not in names)
        if not others:
            return None
        narrow = replace(self, names=others)
        wide = narrow._width(domain)
        return narrow if wide is None else replace(narrow, theta=min(self.theta, wide))

    def document(self) -> Any:
        theta = int(self.theta) if self.theta.denominator == 1 else str(self.theta)
        document: dict[str, Any] = {"theta": theta, "attributes": list(self.names)}
        if self.metric != "l1":
            document["metric"] = self.metric
        return {self.keyword: document}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        if not entry.is_mapping:
            names = [str(one.node.value) for one in entry.one_or_more() if not (one.is_list or one.is_mapping)]
            # also `age 5`, `age: 5` in quotes
            spelled = re.fullmatch(r"(\w+)[\s:=]+([0-9.]+)", names[0]) if len(names) == 1 else None
            name, theta = spelled.groups() if spelled else ((names or ["age"])[0], "5")
            short = f"{{{name}: {theta}}}"
            if len(names) > 1:
                short = f"{{theta: 5, attributes: [{', '.join(names)}]}}"
            raise entry.refuse("must say the distance", given=entry.plain(), fix=f"Write within: {short}.")
        entries = entry.mapping()
        # short: {age: 5}, also {place: 5, metric: l2}; an attribute may itself be called theta
        names = [name for name in entries if name != "metric" or (len(entries) == 1 and name in domain)]
        if len(names) == 1 and (names[0] in domain or names[0] not in ("theta", "attributes")):
            with entries[names[0]].blamed():
                domain.attribute(names[0])
                theta = _theta(entries[names[0]], domain[names[0]].distance_unit)
                within(theta, names[0]).check(domain)
            metric = entries["metric"].text() if "metric" in entries and names != ["metric"] else "l1"
            return within(theta, names[0], metric=metric)
        if len(names) > 1 and not {"theta", "attributes"} & set(names) and all(name in domain for name in names):
            fix = f"Write {{theta: 5, attributes: [{', '.join(names)}]}}, or one entry for each."
            raise entry.refuse("must say one distance for all attributes together", given=entry.plain(), fix=fix)
        long = _LONG.entries(entry)
        return within(_theta(long["theta"]), *read_names(long["attributes"], domain), **_LONG.read(long))

    def far(self, domain: Domain) -> str:
        """Say how far the distance is: 5, 0.5, 2 months."""
        units = {domain[name].distance_unit for name in self.names}
        unit = units.pop() if len(units) == 1 else ""
        return f"{shown(self.theta)} {unit}{'s' * (self.theta != 1)}" if unit else shown(self.theta)

    def promise(self, domain: Domain) -> Promise:
        """Say in plain words what is protected, and that the rough value is not unless every value is close enough."""
        if self._reaches_all(domain):
            together = "" if len(self.names) == 1 else ", all at once"
            return Promise(
                f"{listed(self.names)}{together}: any value looks like any other, since none are further apart than "
                f"{self.far(domain)}"
            )
        how = "" if len(self._axes(domain)) == 1 else f" ({self.metric})"  # on one axis all of them are the same
        if all(domain[name].is_set for name in self.names):
            how = " (items)"
        return Promise(
            f"{listed(self.names)} up to a distance of {self.far(domain)}{how}: the rough value",
            " stays public",
            " is protected at twice the epsilon only",
        )

    def why_empty(self, domain: Domain) -> str:
        if any(domain[name].is_set for name in self.names):
            none = self.theta < 1
        else:
            none = all(self.theta < axis.spacing or axis.size == 1 for axis in self._axes(domain))
        return f"no two values of {listed_briefly(self.names)} are as close as {self.far(domain)}" if none else ""

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        if self._reaches_all(domain):
            return
        yield (
            f"`within` leaves the rough value public: two values of {listed_briefly(self.names)} that are further "
            f"apart than {self.far(domain)} can be told apart{self._price_of_far(domain, setting)}."
        )

    def _price_of_far(self, domain: Domain, setting: PolicyContext) -> str:
        """Return what the promise still is between the two ends of an axis, where there is a way of small steps."""
        if setting.known:
            return ""
        if setting.absence:
            return ", at twice the epsilon at most"  # by way of absence no two records cost more
        grows = "; the cost grows with the distance"
        for axis in self._axes(domain):
            reach, span = int(self.theta // axis.spacing), axis.size - 1
            if 0 < reach < span:
                return f"{grows}, up to {-(-span // reach):,} times the epsilon between the ends of {axis.name}"
        return grows

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        near, far = (f"{how}further apart than {self.far(domain)}" for how in ("not ", ""))
        moved_all: Fields = {}
        for name in self.names[:MOST_NAMES]:
            attribute = domain[name]
            if attribute.is_set:
                reach = int(self.theta) if self.metric != "linf" else attribute.most_items
                steps = [min(reach, attribute.most_items), reach + 1]
            else:
                axis = domain.axes_of(name)[0]
                reach = min(int(self.theta // axis.spacing), axis.size - 1)
                steps = [reach, reach + 1]
            for step in steps:
                start, end = attribute.apart(base[name], step)
                if end is None or start == end:
                    continue
                yield ExamplePair({**base, name: start}, {**base, name: end}, near, far)
                if step == steps[0]:
                    moved_all[name] = (start, end)
        if len(moved_all) > 1:
            starts, ends = ({name: pair[side] for name, pair in moved_all.items()} for side in (0, 1))
            yield ExamplePair({**base, **starts}, {**base, **ends}, near, f"together {far}")


def _write_alone(theta: Any) -> str:
    """Return how to write a distance that was given with a unit, or no number at all."""
    number = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*[A-Za-z]{2,}\s*", theta) if isinstance(theta, str) else None
    return f"Write {number[1] if number else 5}."


def _theta(entry: YamlEntry, unit: str = "") -> int | str:
    """Return the distance exactly as written: 5, 2.5 or 5/2."""
    if unit and entry.tag == "str" and not _DISTANCE.fullmatch(str(entry.node.value).strip()):
        number = re.fullmatch(rf"([0-9.]+)\s*{unit}s?", str(entry.node.value).strip())
        fix = f"Write the number of {unit}s alone, for instance {number[1] if number else 2}."
        raise entry.refuse("must be a number", given=entry.plain(), fix=fix)
    if entry.tag in ("str", "float"):
        return str(entry.node.value).replace("_", "")
    return entry.whole()


def within(
    theta: int | float | str | Fraction, *names: str, metric: str = "l1", where: Where | str | None = None
) -> Secrets:
    """Protect values against others at a distance of at most theta (Blowfish's distance graph)."""
    try:
        if isinstance(theta, bool):
            raise ValueError
        theta = as_plain(theta)
        if isinstance(theta, float | str):
            text = str(theta)
            if not _DISTANCE.fullmatch(text.strip()):
                raise ValueError
            exact = Fraction(text)
        else:
            read = Fraction(theta)
            exact = Fraction(int(read.numerator), int(read.denominator))
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        swapped = isinstance(theta, str) and names and not isinstance(names[0], str)
        fix = f"Write within({names[0]!r}, {theta!r})." if swapped else _write_alone(theta)
        raise PolicyError("must be a number", key="secrets.within.theta", given=theta, fix=fix) from None
    return restricted_to(Within(exact, tuple(names), metric), where)
