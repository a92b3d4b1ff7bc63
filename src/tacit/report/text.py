"""Tables for the terminal: plans, releases and the ledger. What users wrote is shown as text, never as markup."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from tacit.plan.explain import Explanation, shown
from tacit.release.ledger import Account
from tacit.release.record import ReleaseRecord


def plan_table(explanations: Mapping[str, Explanation] | Sequence[Explanation]) -> Table:
    """Return what each release would cost, how wrong it would be, and what would remain after it."""
    is_named = isinstance(explanations, Mapping)
    table = Table(title="What it would cost, and how wrong it would be")
    if is_named:
        table.add_column("release")
    table.add_column("question", overflow="fold")
    for name in ("answers", "epsilon", "expected error", "plain DP", "times better", "remains"):
        table.add_column(name, justify="right")
    named = explanations.items() if isinstance(explanations, Mapping) else (("", said) for said in explanations)
    for name, said in named:
        fits = said.remaining is None or said.remaining >= 0
        row = [
            *([_text(name)] if is_named else []),
            _text(str(said.plan.query)),
            Text(f"{said.plan.answers:,}"),
            Text(shown(said.plan.epsilon)),
            Text(_error(said.plan.rmse)),
            Text(_error(said.plain.rmse)),
            Text("exact" if said.gain == math.inf else f"{said.gain:.3g}"),
            Text("" if said.remaining is None else shown(said.remaining) if fits else "exceeded"),
        ]
        table.add_row(*row, style=None if fits else "red")
    return table


def release_table(records: Mapping[str, ReleaseRecord], explanations: Mapping[str, Explanation] | None = None) -> Table:
    """Return what was released: each question with its cost, and the answer where there is only one.

    With the explanations of the same names, also the error under plain differential privacy.
    """
    table = Table(title="Released: what it cost, and how wrong it may be")
    table.add_column("release")
    table.add_column("question", overflow="fold")
    for name in ("answers", "epsilon", "expected error", *(["plain DP"] if explanations is not None else [])):
        table.add_column(name, justify="right")
    table.add_column("answer (95% interval)", justify="right", no_wrap=True)
    for name, record in records.items():
        row = [
            _text(name),
            _text(str(record.plan.query)),
            Text(f"{record.plan.answers:,}"),
            Text(shown(record.plan.epsilon)),
            Text(_error(record.plan.rmse)),
            *([Text(_error(explanations[name].plain.rmse))] if explanations is not None else []),
            Text(record.summary(), style="" if len(record.values) == 1 else "dim"),
        ]
        table.add_row(*row)
    return table


def ledger_table(accounts: Iterable[Account]) -> Table:
    """Return the budgets of a ledger: each data set's total, and below it the caps of its analysts."""
    table = Table(title="Budgets")
    for name in ("data set", "analyst"):
        table.add_column(name, overflow="fold")
    for name in ("granted", "spent", "remains"):
        table.add_column(name, justify="right")
    table.add_column("policy")
    for account in accounts:
        table.add_row(
            _text(account.dataset),
            Text("everyone", style="dim") if account.analyst is None else _text(account.analyst),
            Text(shown(account.granted)),
            Text(shown(account.spent)),
            Text(shown(account.remaining), style="red" if account.remaining <= 0 else ""),
            Text("any", style="dim") if account.policy is None else Text(account.policy[:12]),
        )
    return table


def _error(rmse: float) -> str:
    return "exact" if rmse == 0 else f"{rmse:,.3g}" if rmse < 1000 else f"{rmse:,.0f}"


def _text(said: str) -> Text:
    """Return what a user wrote, without the control characters that could move the cursor or colour the terminal."""
    return Text("".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in said))
