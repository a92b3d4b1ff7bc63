"""Against whom a policy protects, where what is known ties people together.

Somebody who knows a count of people learns about one of them from the others. How much noise that needs depends on what
they may believe of people whom they do not know; so a policy may name a weaker adversary than the usual one, in
exchange for less noise. It is part of the policy's fingerprint, and accounts of different adversaries stay apart.

    independent   what they believe of each person is independent of the others, and may differ from person to person
    alike         all people whose records they do not know are independent draws from one law, whichever that is
    group         they know all records but those of a few people, whom they hold for independent

What each means for the data sets that are compared is in `plan/sensitivity/known_cells.py`, with proofs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tacit.errors import PolicyError, nearest, word_or_kind
from tacit.policy.genuine import as_plain, settle
from tacit.policy.keys import Key
from tacit.policy.yaml_entries import YamlEntry

INDEPENDENT, ALIKE, GROUP = "independent", "alike", "group"
_FIX: Final = "Write alike, or {group: 4}."


@dataclass(frozen=True)
class Adversary:
    """One kind of adversary; of a group, how many people they are unsure of."""

    kind: str = INDEPENDENT
    people: int | None = None

    def __post_init__(self) -> None:
        settle(self)
        if self.kind not in (INDEPENDENT, ALIKE, GROUP):
            fix = f"{nearest(str(self.kind), [INDEPENDENT, ALIKE])} {_FIX}"
            raise PolicyError(
                "must be independent, alike or a group", key="adversary", given=word_or_kind(self.kind), fix=fix
            )
        if (self.kind == GROUP) != (self.people is not None):
            raise PolicyError("must say of how many people, for a group alone", key="adversary", fix=_FIX)
        if self.people is not None and (type(self.people) is not int or self.people < 2):
            rule, given = "must be a whole number from 2", word_or_kind(self.people)
            raise PolicyError(rule, key="adversary.group", given=given, fix=_FIX)

    @property
    def is_named(self) -> bool:
        """Whether the policy names a weaker adversary than the usual one."""
        return self.kind != INDEPENDENT

    def document(self) -> Any:
        """Return what a policy file says for it."""
        return self.kind if self.people is None else {self.kind: self.people}

    def words(self) -> tuple[str, str]:
        """Say against whom a policy protects, and against whom it does not."""
        if self.kind == ALIKE:
            return (
                "somebody who knows what is public, may know the records of some people exactly, and takes all others "
                "for independent draws from one law, the same for everybody, whatever law that is (adversary: alike)",
                "Somebody who tells people apart whom they do not know exactly may learn more than the epsilon says: "
                "who knows a part of their records, such as their ages, or thinks that one of them is likelier to be "
                "ill than another. Leave out `adversary: alike` for noise that is meant for such beliefs as well. "
                "(Somebody who holds people for dependent, such as a family, or is unsure of the law, is covered "
                "neither way.)",
            )
        if self.kind == GROUP:
            return (
                f"somebody who knows what is public and the exact records of all but {self.people} people, and takes "
                f"these {self.people} for independent of each other (adversary: group of {self.people})",
                f"Somebody who is unsure of more than {self.people} people may learn more about each of them than the "
                "epsilon says. Leave out `adversary` for noise that is meant for whatever is believed of each person.",
            )
        return "", ""


USUAL: Final = Adversary()


def as_adversary(given: Any) -> Adversary:
    """Return the adversary that somebody names: a word, or `{"group": 4}`."""
    if given is None:
        return USUAL
    if type(given) is Adversary:
        return given
    given = as_plain(given)
    if isinstance(given, str):
        return Adversary(given)
    if type(given) is dict and list(given) == [GROUP]:
        return Adversary(GROUP, as_plain(given[GROUP]))
    rule = "must be independent, alike or {group: ..}"
    raise PolicyError(rule, key="adversary", given=word_or_kind(given), fix=_FIX)


def _read(entry: YamlEntry) -> Adversary:
    with entry.blamed():
        if not entry.is_mapping:
            return as_adversary(entry.text())
        return Adversary(GROUP, entry.fields([GROUP], required=[GROUP])[GROUP].whole())


ADVERSARY: Final = Key(
    "adversary",
    {
        "anyOf": [
            {"enum": [INDEPENDENT, ALIKE]},
            {
                "type": "object",
                "properties": {GROUP: {"type": "integer", "minimum": 2}},
                "required": [GROUP],
                "additionalProperties": False,
            },
        ]
    },
    "Against whom, where what is known ties people together: `independent`, `alike` or `{group: 4}`. Needs `known`.",
    "`independent`, the strongest",
    read=_read,
)
