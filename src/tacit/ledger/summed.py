"""What charges rest on beside their accounts, summed up entry by entry, so that a charge reads a few rows.

Guarantee   What is summed up is what reading all entries of a data set would give: which limits hold, the epsilon that
            each application has reached for each attribute, what was shown along each line of coins, and which tables
            tell about a column. `verify` sums it up again.
Why         Each appended entry changes the rows that it is about, in its own transaction (`ledger/page.py`): sums
            of what was shown (`plan/leakage/shown.py`) change only by the line that is raised, and whether tables go
            together is asked column by column. Names that look alike have a skeleton in common (`ledger/input.py`), so
            that whoever is new is looked up by theirs.
Checked by  tests/unit/ledger/test_ledger_sealed.py, tests/unit/ledger/test_applications.py,
            tests/unit/ledger/test_tables_together.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final, Protocol

from tacit.ledger.chain import LIMITS, SHOWN, TABLE, TOTAL, Stored
from tacit.ledger.input import skeletons
from tacit.plan.leakage.shown import Shown, ShownSoFar

DATASET, LINE, COLUMN, NAME, CAPPED = "dataset", "line", "column", "name", "capped"
"""Kinds of sums: of a data set, a line of coins, a column of tables; names by a skeleton; whether anybody has a cap."""

UNREADABLE: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)
"""What reading an entry raises that Tacit cannot have written."""


class State(Protocol):
    """Where sums are kept: a transaction (`ledger/page.py`), or memory."""

    def state(self, kind: str, dataset: str, name: str) -> Any:
        """Return a sum as plain data, None if there is none."""

    def set_state(self, kind: str, dataset: str, name: str, body: Any) -> None:
        """Keep a sum."""


class InMemory:
    """Sums of a whole ledger, added up from its rows."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], Any] = {}

    def state(self, kind: str, dataset: str, name: str) -> Any:
        """Return a sum as plain data, None if there is none."""
        return self.found.get((kind, dataset, name))

    def set_state(self, kind: str, dataset: str, name: str, body: Any) -> None:
        """Keep a sum."""
        self.found[kind, dataset, name] = body

    def rows(self) -> list[dict[str, str]]:
        """Return the sums as a ledger keeps them."""
        return [
            {"kind": kind, "dataset": dataset, "name": name, "body": written(body)}
            for (kind, dataset, name), body in self.found.items()
        ]


def written(body: Any) -> str:
    """Return plain data as the one text that is written of it."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def add_entry(state: State, entry: Stored) -> None:
    """Add an entry to the sums."""
    dataset, number = entry["dataset"], entry["number"]
    if entry["kind"] == LIMITS:
        body = state.state(DATASET, dataset, "") or {"reached": []}
        state.set_state(DATASET, dataset, "", {**body, "limits": entry["policy"]})
    elif entry["kind"] == SHOWN:
        shown = shown_of(entry["policy_text"])
        seen = seen_before(state, dataset, {one.line for one in shown if one.line})
        seen.add(shown)
        _keep(state, dataset, seen)
    elif entry["kind"] == TABLE:
        said = json.loads(entry["policy_text"])
        for column in dict.fromkeys([*said["sensitive"], *said["public"]]):
            body = state.state(COLUMN, dataset, column) or {}
            body = {"told": [number, said], **body}  # the first one that was published counts
            if said["promises"] and column in said["sensitive"]:
                body = {"promised": [number, said], **body}
            state.set_state(COLUMN, dataset, column, body)


def shown_of(document: str) -> list[Shown]:
    """Return what an entry says was shown."""
    return [Shown(**{**one, "epsilon": Fraction(one["epsilon"])}) for one in json.loads(document)["shown"]]


def limits_before(state: State, dataset: str) -> str | None:
    """Return the fingerprint of the limits that hold for a data set, None if there are none."""
    found: str | None = (state.state(DATASET, dataset, "") or {}).get("limits")
    return found


def seen_before(state: State, dataset: str, lines: Iterable[str]) -> ShownSoFar:
    """Return what was shown of a data set in all, and along these lines."""
    body = state.state(DATASET, dataset, "") or {"reached": []}
    seen = ShownSoFar()
    for application, attribute, epsilon, is_public in body["reached"]:
        seen.reached[application, attribute] = Fraction(epsilon)
        seen.public |= {(application, attribute)} if is_public else set()
    for line in sorted(lines):
        for application, attribute, epsilon in state.state(LINE, dataset, line) or []:
            seen.lines.setdefault((application, line), {})[attribute] = Fraction(epsilon)
    return seen


def _keep(state: State, dataset: str, seen: ShownSoFar) -> None:
    reached = [[*whom, str(epsilon), whom in seen.public] for whom, epsilon in seen.reached.items()]
    state.set_state(DATASET, dataset, "", {**(state.state(DATASET, dataset, "") or {}), "reached": reached})
    lines: dict[str, list[list[str]]] = {}
    for (application, line), own in seen.lines.items():
        lines.setdefault(line, []).extend([application, name, str(epsilon)] for name, epsilon in own.items())
    for line, told in lines.items():
        state.set_state(LINE, dataset, line, sorted(told))


def add_account(state: State, account: Stored) -> None:
    """Add an account that is new, or has got its first grant, to what is known of names and caps."""
    dataset, analyst = account["dataset"], account["analyst"]
    for whose, name in (("", dataset), *([(dataset, analyst)] if analyst != TOTAL else [])):
        for skeleton in sorted(skeletons(name)):
            known = state.state(NAME, whose, skeleton) or []
            if name not in known:
                state.set_state(NAME, whose, skeleton, sorted([*known, name]))
    if analyst != TOTAL and account["granted"] != "0" and state.state(CAPPED, dataset, "") is None:
        state.set_state(CAPPED, dataset, "", True)


def known_alike(state: State, dataset: str, name: str) -> str | None:
    """Return a name that is known and may be mistaken for a new one; None if there is none, or if it is known itself.

    With an empty `dataset` names of data sets are meant, else names of its analysts.
    """
    found = [other for one in sorted(skeletons(name)) for other in state.state(NAME, dataset, one) or []]
    return None if name in found else next(iter(found), None)
