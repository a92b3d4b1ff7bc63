"""Applications: who may ask what of the rows, for which purpose and until when, as the policy declares it.

Guarantee   Under a policy that declares applications, everything that is released was asked for by one of them, of what
            it may see, by the kinds of question that it may ask, and not after its last day. All else is refused before
            anything is charged and before rows are opened (`release/planner.py` asks `may_ask`, and sessions once more
            when they charge). What an application is shown keeps the secrets of the policy and its own.
Assumes     Whoever releases says truly who asks. Who may change the policy decides who may ask.
Why         An application's own secrets are edges on top of the policy's, so what it is shown keeps the policy's too:
            along these, epsilons of all applications add up (composition), and the ledger adds them up. Along an edge
            that one application alone has, nothing is promised of what others are shown: what several see together
            keeps the edges that all of them have.
Checked by  tests/unit/release/test_declared_applications.py
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.clock import now
from tacit.errors import PlanError, PolicyError, nearest, word_or_kind
from tacit.policy.domain import Domain
from tacit.policy.genuine import settle
from tacit.policy.keys import NAMES, TEXT, TEXTS, Key, Keys, together
from tacit.policy.secrets.family import Secrets, listed

KEYS: Final = Keys(
    Key("purpose", TEXT, "What it is for, in words.", required=True),
    Key("asks", TEXTS, "The kinds of question that it may ask, such as histogram or true_records.", required=True),
    Key("sees", NAMES, "The attributes that its questions may look at.", required=True),
    Key("key", TEXTS, "Other columns that may name the rows of its true records.", "none"),
    Key("coalition", TEXTS, "The applications with which it pools what it sees.", "none"),
    Key("until", {"type": "string", "format": "date"}, "The last day, in UTC, on which it may ask.", "it has no end"),
    Key("secrets", {"$ref": "#/$defs/families"}, "Secrets beside the policy's, of what it is shown.", read=together),
)


@dataclass(frozen=True)
class Application:
    """One application: its purpose, what it may ask and see, with whom it colludes, and until when it may ask.

    Args:
        name: What releases, ledgers and certificates call it.
        purpose: What it is for, in words.
        asks: The kinds of question that it may ask, such as "histogram".
        sees: The attributes that its questions may look at.
        key: Other columns that may name the rows of its true records.
        coalition: The applications with which it pools what it sees.
        until: The last day on which it may ask, such as "2027-12-31"; left out, it has no end.
        secrets: Secrets beside the policy's, which hold for what it is shown.
    """

    name: str
    purpose: str
    asks: tuple[str, ...]
    sees: tuple[str, ...]
    key: tuple[str, ...] = ()
    coalition: tuple[str, ...] = ()
    until: str | None = None
    secrets: Secrets | None = None

    def __post_init__(self) -> None:
        for field in ("asks", "sees", "key", "coalition"):
            object.__setattr__(self, field, _texts(getattr(self, field), field))
        settle(self)
        for field in ("name", "purpose"):
            given = getattr(self, field)
            if not isinstance(given, str) or not given.strip() or len(given.splitlines()) > 1:
                rule, fix = "must be a text in one line", "For instance: to switch lights on in time."
                raise PolicyError(rule, key=f"applications.{field}", given=word_or_kind(given), fix=fix)
        for field in ("asks", "sees"):
            if not getattr(self, field):
                fix = "Name something, or leave the application out."
                raise PolicyError("must not be empty", key=f"applications.{self.name}.{field}", fix=fix)
        if self.until is not None and _day(self.until) is None:
            key, fix = f"applications.{self.name}.until", "Write it as 2027-12-31."
            raise PolicyError("must be a day", key=key, given=word_or_kind(self.until), fix=fix)
        if self.secrets is not None and not isinstance(self.secrets, Secrets):
            key, fix = f"applications.{self.name}.secrets", "For instance tc.secrets.values({..})."
            raise PolicyError("must be secrets", key=key, given=word_or_kind(self.secrets), fix=fix)

    def check(self, domain: Domain, others: list[str]) -> None:
        """Refuse attributes that the domain does not have, and colluding with applications that nobody declares."""
        for name in self.sees:
            domain.attribute(name, key=f"applications.{self.name}.sees")
        for name in self.coalition:
            if name not in others or name == self.name:
                rule, fix = "must be another application of the policy", f"{nearest(name, others)} Or declare it."
                raise PolicyError(rule, key=f"applications.{self.name}.coalition", given=name, fix=fix)

    @property
    def has_expired(self) -> bool:
        """Whether its last day is over."""
        last = None if self.until is None else _day(self.until)
        return last is not None and now().date() > last

    def check_day(self) -> None:
        """Refuse an application whose last day is over."""
        if self.has_expired:
            fix = f"Nothing was charged. Declare it anew: let `until` of {self.name} be a later day."
            rule = f"must not have expired: the last day of {self.name} is over"
            raise PlanError(rule, key="application", given=self.until, fix=fix)

    def may_ask(self, question: str, looks_at: Iterable[str]) -> None:
        """Refuse what it may not ask, what it may not see, and everything after its last day."""
        self.check_day()
        where = f"in `applications.{self.name}` of the policy"
        if question not in self.asks:
            rule = f"must be a kind of question that {self.name} may ask: {listed(self.asks, 'or')}"
            fix = f"Nothing was charged. Ask for that, or add it to `asks` {where}."
            raise PlanError(rule, key="application", given=question, fix=fix)
        for name in sorted(set(looks_at) - {*self.sees, *self.key}):
            rule = f"must be something that {self.name} may see: {listed([*self.sees, *self.key])}"
            fix = f"Nothing was charged. Leave it out, or add it to `sees` or `key` {where}."
            raise PlanError(rule, key="application", given=name, fix=fix)

    def document(self) -> dict[str, Any]:
        """Return what a policy file says below its name."""
        listed_ = {key: list(getattr(self, key)) for key in ("asks", "sees", "key", "coalition") if getattr(self, key)}
        until = {} if self.until is None else {"until": self.until}
        secrets = {} if self.secrets is None else {"secrets": self.secrets.document()}
        return {"purpose": self.purpose, **listed_, **until, **secrets}

    def words(self, domain: Domain) -> str:
        """Say who may ask for what, until when."""
        rows = f", with rows named by {listed(self.key)}" if self.key else ""
        until = "" if self.until is None else f"; until {self.until}{', which is over' if self.has_expired else ''}"
        own = "" if self.secrets is None else f"; what it is shown also keeps: {self.secrets.words(domain)}"
        may = f"It may ask for {listed(self.asks)} about {listed(self.sees)}{rows}"
        return f"{self.name}, for: {self.purpose}. {may}{until}{own}"


def coalitions(declared: Sequence[Application]) -> list[tuple[str, ...]]:
    """Return who may put together what they see: everybody whom collusion connects, in whatever direction."""
    found: list[set[str]] = []
    for one in declared:
        joined = {one.name, *one.coalition}
        met = [group for group in found if group & joined]
        found = [group for group in found if not group & joined] + [joined.union(*met)]
    return [tuple(one.name for one in declared if one.name in group) for group in found if len(group) > 1]


def _day(given: Any) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(given)
    except (TypeError, ValueError):
        return None


def _texts(given: Any, key: str) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else [None]
    if not all(isinstance(name, str) and name for name in names):
        fix = 'For instance ["histogram", "count"].'
        raise PolicyError("must be names", key=f"applications.{key}", given=word_or_kind(given), fix=fix)
    return tuple(dict.fromkeys(names))
