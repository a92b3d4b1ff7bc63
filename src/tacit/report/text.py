"""Tables for the terminal: plans, releases and the ledger. What users wrote is shown as text, never as markup."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.table import Table
from rich.text import Text

from tacit.amounts import error_text, rough, shown
from tacit.errors import printable
from tacit.plan.plans.plan import Plan
from tacit.plan.question import Query

if TYPE_CHECKING:  # a table of plans needs no ledger and no release
    from tacit.ledger.ledger import Account, LedgerEntry
    from tacit.plan.choose import Explanation
    from tacit.release.results.record import ReleaseRecord


WITHIN: Final = "95% within"


def plan_table(explanations: Mapping[str, Explanation] | Sequence[Explanation]) -> Table:
    """Return what each release would cost, how wrong it would be, and what would remain after it."""
    names = list(explanations) if isinstance(explanations, Mapping) else None
    listed = list(explanations.values() if isinstance(explanations, Mapping) else explanations)
    texts = ["question"] if names is None else ["release", "question"]
    numbers = ("answers", "epsilon", "expected error", WITHIN, "plain DP", "times better", "remains")
    table = _table("What it would cost, and how wrong it would be", texts, numbers)
    for at, explained in enumerate(listed):
        fits = explained.remaining is None or explained.remaining >= 0
        row = [
            *([] if names is None else [_text(names[at])]),
            _text(str(explained.plan.query)),
            Text(f"{explained.plan.answers:,}"),
            Text(shown(explained.plan.epsilon)),
            Text(_error(explained.plan.rmse)),
            Text(_within(explained.plan)),
            Text(_error(explained.plain_rmse)),
            Text(_times(explained.gain)),
            Text("" if explained.remaining is None else shown(explained.remaining) if fits else "exceeded"),
        ]
        table.add_row(*row, style=None if fits else "red")
    return _fit_columns(table, [explained.plan for explained in listed], _none(listed))


def sweep_table(name: str, explanations: Sequence[Explanation]) -> Table:
    """Return the error of one release at several epsilons, beside plain differential privacy."""
    table = plan_table(explanations)
    table.title = printable(f"{name}: {explanations[0].plan.query}") if explanations else printable(name)
    table.columns = [column for column in table.columns if column.header not in ("question", "answers", "remains")]
    return table


def release_table(
    records: Mapping[str, ReleaseRecord], explanations: Mapping[str, Explanation] | None = None, *, narrow: bool = False
) -> Table:
    """Return what was released: each question with its cost, and the answer where there is only one.

    With the explanations of the same names, also the error under plain differential privacy. `narrow` puts intervals
    below their answers.
    """
    compared = [] if explanations is None else ["plain DP"]
    numbers = ("answers", "epsilon", "expected error", *compared, "answer (95% interval)")
    table = _table("Released: what it cost, and how wrong it may be", ("release", "question"), numbers)
    explained = None
    if explanations is not None:
        explained = {name: explanations[name].after(record.done) for name, record in records.items()}
    for name, record in records.items():
        row = [
            _text(name),
            _text(str(record.plan.query)),
            Text(f"{record.plan.answers:,}"),
            Text(shown(record.plan.epsilon)),
            Text(_error(record.done.rmse)),
            *([Text(_error(explained[name].plain_rmse))] if explained is not None else []),
            Text(
                record.summary().replace(" (", "\n(") if narrow else record.summary(),
                style="" if len(record.values) == 1 else "dim",
            ),
        ]
        table.add_row(*row)
    none = [] if explained is None else _none(list(explained.values()))
    return _fit_columns(table, [record.done for record in records.values()], none)


def ledger_table(accounts: Iterable[Account]) -> Table:
    """Return the budgets of a ledger: each data set's total, and below it the caps of its analysts."""
    table = _table("Budgets", ("data set", "analyst"), ("granted", "spent", "remains"))
    table.add_column("policy")
    for account in accounts:
        table.add_row(
            _text(account.dataset),
            Text("everyone", style="dim") if account.analyst is None else _text(account.analyst),
            Text(shown(account.granted)),
            Text(shown(account.spent)),
            Text(shown(account.remaining), style="red" if account.remaining <= 0 else ""),
            _policy(account),
        )
    return _fit_columns(table)


def _policy(account: Account) -> Text:
    if account.policy is not None:
        return Text(account.policy[:12])
    return Text("the first charge's" if account.analyst is None else "the total's", style="dim")


def entries_table(entries: Iterable[LedgerEntry]) -> Table:
    """Return who was granted or charged how much, when and for what; fits into 80 columns."""
    listed = list(entries)
    several = len({entry.dataset for entry in listed}) > 1
    table = Table(title="Entries (times in UTC)")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("when", no_wrap=True)
    if several:
        table.add_column("data set", overflow="fold")
    table.add_column("who", overflow="fold")
    table.add_column("epsilon", justify="right", overflow="fold")
    table.add_column("what", overflow="fold", ratio=1)
    for entry in listed:
        is_grant = entry.kind == "grant"
        table.add_row(
            Text(str(entry.number)),
            _text(entry.time[:16].replace("T", " ")),
            *([_text(entry.dataset)] if several else []),
            Text("everyone" if is_grant else "nobody named", style="dim")
            if entry.analyst is None
            else _text(entry.analyst),
            # what applications may learn, and were shown, moves no sum
            Text(f"{'+' if is_grant else ''}{shown(entry.epsilon)}" if entry.epsilon else ""),
            Text("granted", style="dim") if is_grant else _text(entry.what),
        )
    return table


def _table(title: str, texts: Iterable[str], numbers: Iterable[str]) -> Table:
    table = Table(title=title)
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _none(explanations: Sequence[Explanation]) -> list[str]:
    """Say what it means that plain differential privacy has no error."""
    refused = dict.fromkeys(each.plain_refused for each in explanations if each.plain_refused)
    return [f"plain DP none: it {why}" for why in refused]


def _fit_columns(table: Table, plans: Sequence[Plan] = (), notes: Sequence[str] = ()) -> Table:
    """Give columns of numbers the room that they need: on a narrow terminal texts are broken, and numbers never cut."""
    for column in table.columns:
        if column.justify == "right":
            lines = [line for cell in column.cells for line in str(cell).splitlines()]
            words = str(column.header).split()
            column.width = max(map(len, [*lines, *words]), default=1)
    notes = [*notes, *dict.fromkeys(f"exact: {plan.about}" for plan in plans if plan.rmse == 0)]
    assumed = list(dict.fromkeys(plan.assumption for plan in plans if plan.assumption))
    if assumed:
        notes.append(f"errors of means, quantiles and clusters are for {' or '.join(assumed)}")
    notes += dict.fromkeys(
        f"error of {plan.query.keyword}: that of {plan.query.error_of}"
        for plan in plans
        if plan.query.error_of != Query.error_of
    )
    notes += dict.fromkeys(caution for plan in plans for caution in plan.cautions)
    table.caption = "\n".join(notes) or None
    return table


def _error(rmse: float | None) -> str:
    return "none" if rmse is None else error_text(rmse)


def _within(plan: Plan) -> str:
    """Return how far off an answer may be, with 95%; a dash where that is not known before the release."""
    within = plan.half_width()
    return "–" if within is None else error_text(within)


def _times(gain: float) -> str:
    """Return how many times better it is; a dash where there is nothing to compare with."""
    return "–" if math.isnan(gain) else "exact" if gain == math.inf else rough(gain, 3)


def _text(words: str) -> Text:
    """Return what a user wrote, without the control characters that could move the cursor or colour the terminal."""
    return Text(printable(words))
