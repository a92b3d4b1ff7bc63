"""What a ledger hands out (accounts, receipts, runs, statements), and the sums that a charge depends on.

Guarantee   `Statement`: for every secret edge of the account's policy, all releases that were charged to the account,
            taken together, lose at most what it has spent.
            Sums hold what reading all entries of a data set would give: which limits hold, the epsilon that each
            application has reached for each attribute, what was shown along each line of coins, and which tables tell
            about a column. `verify` adds them up again.
Assumes     Each release keeps its epsilon along the edges of the policy that it was charged under.
Why         Epsilons add up (sequential composition). The ledger accepts a charge only if its policy has all edges of
            the account's policy, so every release protects those. An edge that only some of the policies have is
            protected by the releases under these policies alone.
            Each appended entry changes the sums that it concerns, in its own transaction (`ledger/page.py`), so that a
            charge reads a few rows instead of all entries: sums of what was shown (`plan/leakage/shown.py`) change only
            on the line that is raised, and tables are compared column by column. Names that look alike share a skeleton
            (`ledger/input.py`), so a new name is looked up by its skeletons.
Checked by  tests/unit/ledger/test_ledger_statement.py, tests/unit/ledger/test_ledger_sealed.py,
            tests/unit/ledger/test_applications.py, tests/unit/ledger/test_tables_together.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol

from tacit.amounts import shown
from tacit.drawing import Held
from tacit.ledger.chain import LIMITS, SHOWN, TABLE, TOTAL, LedgerEntry, Stored
from tacit.ledger.input import canonical_json, skeletons
from tacit.plan.leakage.shown import Shown, ShownSoFar
from tacit.policy.policy import Policy


@dataclass(frozen=True)
class Receipt(Held):
    """Proof of one charge: the number and hash of its entry, and what the analyst may still spend."""

    entry: int
    hash: str
    remaining: Fraction

    def __str__(self) -> str:
        return f"entry {self.entry}, {shown(self.remaining)} remains"


@dataclass(frozen=True)
class Account(Held):
    """A budget that was granted: a data set's total (`analyst` is None) or one analyst's cap within it.

    `policy` is the fingerprint of the policy that the budget is counted under, `policy_text` the policy itself; both
    None as long as nothing was granted or charged under one. A cap without a policy of its own is counted under that of
    the total. `remaining` of a cap is never more than what remains of the total.
    """

    dataset: str
    analyst: str | None
    policy: str | None
    granted: Fraction
    spent: Fraction
    remaining: Fraction
    policy_text: str | None = None

    def __str__(self) -> str:
        who = holder_name(self.dataset, self.analyst)
        return f"{who}: {shown(self.granted)} granted, {shown(self.spent)} spent, {shown(self.remaining)} remains"


@dataclass(frozen=True)
class Run:
    """One run of a job, which paid for all its releases at once: the entries from `first` to `last`.

    `state` is "finished", "lost" (it ended before everything it had paid for was published), or "reserved": it is still
    at work, or was killed and is lost as well.
    """

    run: str
    job: str
    first: int
    last: int
    state: str


@dataclass(frozen=True)
class RunningSum:
    """The running sums of one account. `policy_entry` is the entry that carries the text of its policy."""

    granted: Fraction = Fraction(0)
    spent: Fraction = Fraction(0)
    policy: str | None = None
    policy_entry: int | None = None

    @property
    def remaining(self) -> Fraction:
        """What may still be charged: nothing if a cap was granted to someone who had already spent more."""
        return max(self.granted - self.spent, Fraction(0))

    def row(self) -> dict[str, Any]:
        """Return the sums as a ledger stores them."""
        return {
            "granted": str(self.granted),
            "spent": str(self.spent),
            "policy": self.policy,
            "first_grant": self.policy_entry,
        }


def holder_name(dataset: str, analyst: str | None) -> str:
    """Return an account in words."""
    return f"the total of dataset {dataset!r}" if analyst is None else f"the cap of {analyst!r} in dataset {dataset!r}"


def policy_name(fingerprint: str | None) -> str:
    """Return a policy in words."""
    return "no policy" if fingerprint is None else f"policy {fingerprint[:12]}"


@dataclass(frozen=True)
class UnderPolicy:
    """What was charged to a data set under one policy; `policy` is its fingerprint, None for charges without one."""

    policy: str | None
    charges: int
    epsilon: Fraction


@dataclass(frozen=True, repr=False)
class Statement(Held):
    """What all charges to one data set promise together, along the edges that all of their policies have in common.

    `policy` is the fingerprint of the policy with these edges, and `policy_text` the policy itself; both None where
    nothing was charged or granted under one. `parts` says what was charged under which policy.
    """

    dataset: str
    epsilon: Fraction
    policy: str | None
    policy_text: str | None
    parts: tuple[UnderPolicy, ...]

    @property
    def unknown(self) -> int:
        """How many charges name no policy: the ledger cannot say along which edges these releases promise anything."""
        return sum(part.charges for part in self.parts if part.policy is None)

    @property
    def text(self) -> str:
        """The promise in words."""
        count = sum(part.charges for part in self.parts)
        if not count:
            return f"Nothing was charged to {self.dataset!r}: nothing was released."
        charges = "1 charge" if count == 1 else f"{count:,} charges"
        if self.policy is None:
            return (
                f"{charges} to {self.dataset!r}, without a policy: only certificates say what these releases promise."
            )
        promise = (
            f"All that was released from {self.dataset!r} so far ({charges}), taken together: for every secret edge "
            f"hidden -> cover of {policy_name(self.policy)}, every data set and every set O of outputs, "
            f"Pr[M(hidden) in O] <= exp({shown(self.epsilon)}) * Pr[M(cover) in O]."
        )
        if others := [part for part in self.parts if part.policy not in (None, self.policy)]:
            listed = ", ".join(f"{shown(part.epsilon)} under {policy_name(part.policy)}" for part in others)
            promise += (
                f" Of this, {listed}: policies with these edges and more. The other edges are protected by these "
                "releases alone, and by no other."
            )
        if self.policy_text is not None and "\nadversary:" in self.policy_text:
            promise += f" Against {Policy.from_yaml(self.policy_text).adversary.words()[0]}."
        if self.unknown:
            promise += f" {self.unknown:,} of the charges without a policy, counted as if under this one."
        return promise

    def __str__(self) -> str:
        return self.text

    def document(self) -> dict[str, Any]:
        """Return the statement as plain data."""
        return {
            "dataset": self.dataset,
            "epsilon": str(self.epsilon),
            "policy": self.policy,
            "statement": self.text,
            "parts": [
                {"policy": part.policy, "charges": part.charges, "epsilon": str(part.epsilon)} for part in self.parts
            ],
        }


def statement_of(account: Account, entries: Sequence[LedgerEntry]) -> Statement:
    """Return what the charges among these entries of a data set promise together, given its total."""
    charged: dict[str | None, list[Fraction]] = {}
    for entry in entries:
        if entry.kind == "charge":
            charged.setdefault(entry.policy, []).append(entry.epsilon)
    parts = [UnderPolicy(policy, len(costs), sum(costs, Fraction(0))) for policy, costs in charged.items()]
    return Statement(account.dataset, account.spent, account.policy, account.policy_text, tuple(parts))


# ---- sums of entries ------------------------------------------------------------------------------------------------

DATASET, LINE, COLUMN, NAME, CAPPED = "dataset", "line", "column", "name", "capped"
"""Kinds of sums: of a data set, a line of coins, a column of tables; names by a skeleton; whether anybody has a cap."""

UNREADABLE: Final = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)
"""What reading an entry raises that Tacit cannot have written."""


class State(Protocol):
    """Where sums are kept: a transaction (`ledger/page.py`), or memory."""

    def state(self, kind: str, dataset: str, name: str) -> Any:
        """Return a sum as plain data, None if there is none."""

    def set_state(self, kind: str, dataset: str, name: str, body: Any) -> None:
        """Store a sum."""


class InMemory(State):
    """Sums of a whole ledger, added up from its rows."""

    def __init__(self) -> None:
        self.sums: dict[tuple[str, str, str], Any] = {}

    def state(self, kind: str, dataset: str, name: str) -> Any:
        return self.sums.get((kind, dataset, name))

    def set_state(self, kind: str, dataset: str, name: str, body: Any) -> None:
        self.sums[kind, dataset, name] = body

    def rows(self) -> list[dict[str, str]]:
        """Return the sums as a ledger stores them."""
        return [
            {"kind": kind, "dataset": dataset, "name": name, "body": canonical_json(body)}
            for (kind, dataset, name), body in self.sums.items()
        ]


def add_entry(state: State, entry: Stored) -> None:
    """Add an entry to the sums."""
    dataset, number = entry["dataset"], entry["number"]
    if entry["kind"] == LIMITS:
        body = state.state(DATASET, dataset, "") or {"reached": []}
        state.set_state(DATASET, dataset, "", {**body, "limits": entry["policy"]})
    elif entry["kind"] == SHOWN:
        new = shown_of(entry["policy_text"])
        seen = seen_before(state, dataset, {one.line for one in new if one.line})
        seen.add(new)
        _store_seen(state, dataset, seen)
    elif entry["kind"] == TABLE:
        table = json.loads(entry["policy_text"])
        for column in dict.fromkeys([*table["sensitive"], *table["public"]]):
            body = state.state(COLUMN, dataset, column) or {}
            body = {"told": [number, table], **body}  # the first one that was published counts
            if table["promises"] and column in table["sensitive"]:
                body = {"promised": [number, table], **body}
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


def _store_seen(state: State, dataset: str, seen: ShownSoFar) -> None:
    reached = [[*whom, str(epsilon), whom in seen.public] for whom, epsilon in seen.reached.items()]
    state.set_state(DATASET, dataset, "", {**(state.state(DATASET, dataset, "") or {}), "reached": reached})
    lines: dict[str, list[list[str]]] = {}
    for (application, line), attributes in seen.lines.items():
        lines.setdefault(line, []).extend([application, name, str(epsilon)] for name, epsilon in attributes.items())
    for line, shown_along in lines.items():
        state.set_state(LINE, dataset, line, sorted(shown_along))


def add_account(state: State, account: Stored) -> None:
    """Add an account that is new, or has got its first grant, to the known names and caps."""
    dataset, analyst = account["dataset"], account["analyst"]
    for whose, name in (("", dataset), *([(dataset, analyst)] if analyst != TOTAL else [])):
        for skeleton in sorted(skeletons(name)):
            known = state.state(NAME, whose, skeleton) or []
            if name not in known:
                state.set_state(NAME, whose, skeleton, sorted([*known, name]))
    if analyst != TOTAL and account["granted"] != "0" and state.state(CAPPED, dataset, "") is None:
        state.set_state(CAPPED, dataset, "", True)


def known_alike(state: State, dataset: str, name: str) -> str | None:
    """Return a known name that a new one may be mistaken for; None if there is none, or if the name is known itself.

    With an empty `dataset`, compares names of data sets, else names of its analysts.
    """
    found = [other for one in sorted(skeletons(name)) for other in state.state(NAME, dataset, one) or []]
    return None if name in found else next(iter(found), None)
