"""What job files may write for a question: keys, from which the reader, the JSON schema and the docs table follow.

An audit that names no attribute asks about the first one that suits, secret ones first: `first_attribute`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import PlanError, PolicyError, nearest
from tacit.plan.question import read_where
from tacit.policy.genuine import as_plain
from tacit.policy.keys import ANY, TEXT, TEXTS, Key, Keys, Schema
from tacit.policy.person_numbers import EACH, PersonNumber
from tacit.policy.policy import Policy
from tacit.policy.yaml_entries import YamlEntry

if TYPE_CHECKING:
    from tacit.policy.domain import Domain


_GROUPS: Final = ("by", "group", "groups", "group_by", "groupby")
_ONE_BY_ONE: Final = "Groups are asked one by one: one release for each, with `where` saying which people."
IN_A_HISTOGRAM: Final = "Release a `histogram` of these attributes: it answers for all groups at once."


# ---- readers: of what stands below a key, given the attributes that the question is about ---------------------------


def as_written(entry: YamlEntry, names: Any = None, domain: Domain | None = None) -> Any:
    """Return a value as it was written, refusing what YAML would silently change."""
    if entry.is_mapping:
        return {name: as_written(value) for name, value in entry.mapping().items()}
    if entry.is_list:
        return [as_written(value) for value in entry.listed()]
    return None if entry.is_empty else entry.value()


def as_decimals(entry: YamlEntry, names: Any, domain: Domain) -> Any:
    """Return decimal numbers as texts: 0.1 is one tenth."""
    if entry.is_list:
        return [as_decimals(one, names, domain) for one in entry.listed()]
    is_number = entry.node.tag.endswith((":float", ":int"))
    return str(entry.node.value).replace("_", "") if is_number else as_written(entry)


def as_ends(entry: YamlEntry, names: Any, domain: Domain) -> Any:
    """Return lists of ends, two for each attribute, as the attributes read their values."""
    if not entry.is_list:
        return as_written(entry)
    about = names if isinstance(names, list) else [names]
    if not about or not all(isinstance(one, str) and one in domain for one in about):
        return entry.plain()  # the name is what will be refused
    if domain[about[0]].measured == "places":
        return as_written(entry)  # rows and columns
    return [
        [domain[about[min(at // 2, len(about) - 1)]].read_value(end) for at, end in enumerate(listed.listed())]
        if listed.is_list
        else listed.plain()
        for listed in entry.listed()
    ]


def as_item(entry: YamlEntry, names: Any, domain: Domain) -> Any:
    """Return the name of an attribute and one of its values, or of its items."""
    if not entry.is_list or len(entry.listed()) != 2:
        return as_written(entry)
    first, second = entry.listed()
    about = first.text()
    if about not in domain:
        return entry.plain()
    return [about, second.value() if domain[about].is_set else domain[about].read_value(second)]


def listed_ends(ends: int) -> Schema:
    """Return the JSON schema of "all", or of lists of so many ends each."""
    each = {"type": "array", "items": ANY, "minItems": ends, "maxItems": ends}
    return {"anyOf": [{"const": "all"}, {"type": "array", "minItems": 1, "items": each}]}


def read_ends(given: Any, key: str, one: tuple[str, ...], fix: str) -> tuple[tuple[Any, ...], ...] | None:
    """Return lists of ends, each as long as `one`, which names them; None for "all"; or refuse."""
    if isinstance(given, str) and as_plain(given) == "all":
        return None
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise PlanError("must be 'all' or a list", key=key, given=given, fix=fix)
    listed = []
    for ends in given:
        if not isinstance(ends, tuple | list) or len(ends) != len(one):
            raise PlanError(f"must be [{', '.join(one)}]", key=key, given=ends, fix="Give all ends.")
        listed.append(tuple(ends))
    return tuple(listed)


WHERE: Final = Key("where", TEXT, "For instance: age < 18.")
OF: Final = Key("of", {"enum": ["people", "rows"]}, "What counts where a person owns several rows: people or rows.")
ATTRIBUTE: Final = Key("attribute", TEXT, required=True)
OF_EACH: Final = (
    Key("each", {"enum": list(EACH)}, "One number of each person: how many rows, or sum, mean or max in them."),
    Key("at_most", {"type": "number"}, "Numbers of people above it count as that.", read=as_decimals),
    Key("step", {"type": "number", "exclusiveMinimum": 0}, "People's numbers are rounded to it.", read=as_decimals),
)
ATTRIBUTE_OR_EACH: Final = (Key("attribute", TEXT), *OF_EACH)
OR_ROWS: Final = ("attribute", "each")
ATTRIBUTES: Final = Key("attributes", TEXTS, required=True)
BY: Final = Key("by", TEXTS, "One answer for each cell of these attributes.")


@dataclass(frozen=True)
class Question:
    """A word of job files: its keys, the first of which may be written alone; what asks it; an example for audits.

    `ask` is called with the value of the first key (of `attributes`, with each name) and with the others by name.
    `shown` has lines of the docs table: what to write, and what it answers. Of `either`, exactly one key must be given,
    of `some` at least one.
    `by_group` tells whoever wants an answer for each group, where there is no key `by`, how to ask for it.
    """

    keyword: str
    keys: tuple[Key, ...]
    ask: Callable[..., Any]
    example: Callable[[Policy], Any]
    shown: tuple[tuple[str, str], ...]
    either: tuple[str, ...] = ()
    some: tuple[str, ...] = ()
    by_group: str = _ONE_BY_ONE

    @property
    def required(self) -> list[str]:
        """The keys that must be given."""
        return Keys(*self.keys).required

    def reading(self, given: Any) -> Any:
        """Return the question that stands below the keyword, or refuse."""
        main, *_ = names = [key.name for key in self.keys]
        options = dict(given) if isinstance(given, Mapping) else {main: given} if given is not None else {}
        for key in options:
            if key not in names:
                fix = self.by_group if str(key) in _GROUPS and "by" not in names else nearest(str(key), names)
                raise PlanError("must be a known key", key=f"query.{self.keyword}", given=key, fix=fix)
        neither = self.some[:1] if not options.keys() & set(self.some) else ()
        for key in [*neither, *(key for key in self.required if key not in options)]:
            fix = f"Add `{key}: ..` under `{self.keyword}:`."
            raise PlanError(f"must say {key}", key=f"query.{self.keyword}", given=given, fix=fix)
        first = [options.pop(main)] if main in options else []
        try:
            return self.ask(*(names_of(*first) if main == "attributes" and first else first), **options)
        except PolicyError as refusal:
            raise refusal.retold(PlanError, key=f"query.{self.keyword}.{refusal.key}") from None

    def schema(self) -> Schema:
        """Return the JSON schema of what stands below the keyword."""
        long = Keys(*self.keys).schema()
        if self.either:
            long["oneOf"] = [{"required": [name]} for name in self.either]
        if self.some:
            long["anyOf"] = [{"required": [name]} for name in self.some]
        main, *_ = self.keys
        if not set(self.required) <= {main.name} or self.either:
            return long
        # a mapping has the keys of the question, never the value of the first
        short = [one for one in main.schema.get("anyOf", [main.schema]) if one.get("type") != "object"]
        return {"anyOf": [*short, *([] if self.required or self.some else [{"type": "null"}]), long]}

    def rows(self) -> list[str]:
        """Return the lines of the docs table."""
        return [
            f"| {self.keyword if number == 0 else ''} | {written} | {answers} |".replace("|  |", "| |")
            for number, (written, answers) in enumerate(self.shown)
        ]


def about(
    keyword: str, name: Any, *, where: Any, of: Any, each: Any, at_most: Any, step: Any, also: Any = None
) -> dict[str, Any]:
    """Return the fields of a question about an attribute, or about one number of each person.

    `also` is what a question about such numbers does not take: groups, a weight, or further attributes.
    """
    picked = read_where(where)
    if each is None:
        for key, given in (("at_most", at_most), ("step", step)):
            if given is not None:
                fix = "Add `each`: rows, sum, mean or max; or leave it out."
                raise PlanError("is about one number of each person", key=f"{keyword}.{key}", given=given, fix=fix)
        return {"name": name, "where": picked, "of": of}
    if of == "rows":
        fix = "Leave one of the two out."
        raise PlanError("must not be rows where each person has one number", key=f"{keyword}.of", given=of, fix=fix)
    if also:
        rule, fix = "is about one number of each person alone", "Leave it out; `where` picks the rows that count."
        raise PlanError(rule, key=f"{keyword}.each", given=also, fix=fix)
    number = PersonNumber(each, name, at_most, step, picked)
    return {"name": number.name, "each": number}


def names_of(given: Any) -> list[str]:
    """Return one name or a list of them as a list."""
    return [given] if isinstance(given, str) else list(given)


def first_attribute(policy: Policy, keyword: str, fits: Callable[[Any], bool]) -> str:
    """Return the name of an attribute that a question can be asked about, or refuse."""
    for name in _secret_first(policy):
        if fits(policy.domain[name]):
            return name
    raise PlanError(
        f"has no attribute that {keyword} can be asked about", key="policy", fix="Ask another kind of question."
    )


def first_predicate(policy: Policy) -> str:
    """Return a predicate about a value that people may want to hide."""
    for name in _secret_first(policy):
        attribute = policy.domain[name]
        if attribute.is_set:
            return f"{name}.has({attribute.cell(0)!r})"
        if len(attribute.axes(name)) == 1:
            return f"{name} == {attribute.value(_sensitive(policy, name))!r}"
    raise PlanError("has no attribute to count by", key="policy", fix="Ask for a histogram.")


def has_order(attribute: Any) -> bool:
    """Say whether cumulative counts of an attribute make sense, beyond those of yes and no."""
    return bool(attribute.ordered and attribute.measured != "truth")


def has_cells(attribute: Any) -> bool:
    """Say whether an attribute has a list of values, or of items, that can be ranked."""
    return bool(attribute.measured != "places")


def can_be_added_up(attribute: Any) -> bool:
    """Say whether an attribute is a number."""
    return attribute.unit is not None


def _secret_first(policy: Policy) -> list[str]:
    return sorted(policy.domain, key=lambda name: name not in policy.moved_attributes)


def _sensitive(policy: Policy, name: str) -> int:
    """Return the position of a value from which some edge leads away."""
    (axis,) = policy.domain.axes_of(name)
    for place in range(min(axis.size, 1000)):
        for shape in policy.shapes:
            other = place - 1 if place else 1
            if other < axis.size and shape.relation(axis).allows(place, other):
                return place
    return 0
