"""What job files may write for a question: keys, from which the reader, the JSON schema and the docs table follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from tacit.errors import PlanError, PolicyError, nearest
from tacit.plan.question import as_plan_error

if TYPE_CHECKING:
    from tacit.policy.policy import Policy

Schema = dict[str, Any]
TEXT: Final[Schema] = {"type": "string", "minLength": 1}
NAMES: Final[Schema] = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1}]}
WHOLE: Final[Schema] = {"type": "integer", "minimum": 1}
VALUE: Final[Schema] = {"type": ["string", "number", "boolean"]}
_GROUPS: Final = ("by", "group", "groups", "group_by", "groupby")
_ONE_BY_ONE: Final = "Groups are asked one by one: one release for each, with `where` saying which people."
IN_A_HISTOGRAM: Final = "Release a `histogram` of these attributes: it answers for all groups at once."


@dataclass(frozen=True)
class QuestionKey:
    """One key of a question: the schema of what may stand there, and what it means.

    `holds` says what must not be read as YAML reads it: `decimals` (0.1 is one tenth), `ends` (lists of values of the
    question's attributes) or an `item` (the name of an attribute, and one of its values).
    """

    name: str
    schema: Schema
    says: str = ""
    required: bool = False
    holds: Literal["", "decimals", "ends", "item"] = ""

    def property(self) -> Schema:
        """Return the schema with its description."""
        return {**self.schema, "description": self.says} if self.says else self.schema


WHERE: Final = QuestionKey("where", TEXT, "For instance: age < 18.")
ATTRIBUTE: Final = QuestionKey("attribute", TEXT, required=True)
BY: Final = QuestionKey("by", NAMES, "One answer for each cell of these attributes.")


@dataclass(frozen=True)
class Question:
    """A word of job files: its keys, the first of which may be written alone; its reader; an example for audits.

    `shown` has lines of the docs table: what to write, and what it answers. Of `either`, exactly one key must be given.
    `by_group` tells whoever wants an answer for each group, where there is no key `by`, how to ask for it.
    """

    keyword: str
    keys: tuple[QuestionKey, ...]
    read: Callable[[Mapping[str, Any]], Any]
    example: Callable[[Policy], Any]
    shown: tuple[tuple[str, str], ...]
    either: tuple[str, ...] = ()
    by_group: str = _ONE_BY_ONE

    @property
    def required(self) -> list[str]:
        """The keys that must be given."""
        return [key.name for key in self.keys if key.required]

    def reading(self, given: Any) -> Any:
        """Return the question that stands below the keyword, or refuse."""
        names = [key.name for key in self.keys]
        options = dict(given) if isinstance(given, Mapping) else {names[0]: given} if given is not None else {}
        for key in options:
            if key not in names:
                fix = self.by_group if str(key) in _GROUPS and "by" not in names else nearest(str(key), names)
                raise PlanError("must be a known key", key=f"query.{self.keyword}", given=key, fix=fix)
        for key in self.required:
            if key not in options:
                fix = f"Add `{key}: ..` under `{self.keyword}:`."
                raise PlanError(f"must say {key}", key=f"query.{self.keyword}", given=given, fix=fix)
        try:
            return self.read(options)
        except PolicyError as refusal:
            raise as_plan_error(refusal, key=f"query.{self.keyword}.{refusal.key}") from None

    def schema(self) -> Schema:
        """Return the JSON schema of what stands below the keyword."""
        long: Schema = {
            "type": "object",
            "additionalProperties": False,
            "required": self.required,
            "properties": {key.name: key.property() for key in self.keys},
        }
        if self.either:
            long["oneOf"] = [{"required": [name]} for name in self.either]
        main, *_ = self.keys
        if not set(self.required) <= {main.name} or self.either:
            return long
        short = [*main.schema.get("anyOf", [main.schema])]
        return {"anyOf": [*short, *([] if self.required else [{"type": "null"}]), long]}

    def rows(self) -> list[str]:
        """Return the lines of the docs table."""
        return [
            f"| {self.keyword if number == 0 else ''} | {written} | {answers} |".replace("|  |", "| |")
            for number, (written, answers) in enumerate(self.shown)
        ]


def names_of(given: Any) -> list[str]:
    """Return one name or a list of them as a list."""
    return [given] if isinstance(given, str) else list(given)
