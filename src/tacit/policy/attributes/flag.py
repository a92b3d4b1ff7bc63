"""Yes or no."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Attribute, OrderedAttribute, Value, rank_of_number
from tacit.policy.files.spec import BOOLEAN, Key, Keys, Row
from tacit.policy.files.yaml_entries import YAML_TAG, YamlEntry
from tacit.policy.genuine import settle


@dataclass(frozen=True)
class Flag(OrderedAttribute):
    """Yes or no: True/False or 1/0 in the data. `otherwise` is True, False, or None (row dropped)."""

    otherwise: bool | None = None

    kind = "flag"
    keys = Keys(Key("otherwise", BOOLEAN, "What unexpected values count as.", "the row is dropped"))
    nested = True
    row = Row("`flag`", "`{flag: {otherwise: false}}`", "true and false, 1 and 0")
    example = "flag"
    measured = "truth"
    watched = "itself"
    ordered = True

    def __post_init__(self) -> None:
        settle(self)
        is_value = isinstance(self.otherwise, Hashable) and self.otherwise in (True, False)
        if self.otherwise is not None and not is_value:
            raise PolicyError("must be true or false", key="otherwise", given=self.otherwise, fix="Leave it out.")

    @property
    def size(self) -> int:
        return 2

    def position(self, value: Value) -> int:
        if isinstance(value, bool | int) and value in (0, 1):
            return int(value)
        raise PolicyError("must be true or false", given=value, fix="Write true or false.")

    def value(self, position: int) -> bool:
        return bool(position)

    def rank(self, operand: Value) -> Fraction | float:
        """Return where a number stands between no, which is 0, and yes, which is 1."""
        return rank_of_number(operand)

    @classmethod
    def read(cls, entry: YamlEntry, main: YamlEntry | None, places: dict[str, YamlEntry]) -> Attribute:
        if main is not None and not main.is_empty:
            raise main.refuse(
                "must be a mapping", given=main.plain(), fix="Write `flag` alone, or {flag: {otherwise: ..}}."
            )
        return cls(**cls.keys.read(places))

    @classmethod
    def schemas(cls) -> list[dict[str, Any]]:
        return [
            {"const": cls.kind, "description": "Yes or no."},
            cls.keys.schema("Yes or no.", first={cls.kind: {"type": "null"}}),
            Keys().schema("Yes or no.", first={cls.kind: cls.keys.schema()}),
        ]

    def document(self) -> Any:
        return self.kind if self.otherwise is None else {self.kind: {"otherwise": bool(self.otherwise)}}

    def read_value(self, entry: YamlEntry) -> Value:
        return entry.yes_or_no() if entry.node.tag == f"{YAML_TAG}bool" else entry.value()

    def words(self, value: Value) -> str:
        return "yes" if value else "no"

    @classmethod
    def examples(cls) -> Iterator[Attribute]:
        yield cls()
