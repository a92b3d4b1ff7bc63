"""`tacit ledger show|verify|grant|rotate LEDGER`: look at budgets, check that nobody edited them, grant, new coins."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.amounts import shown
from tacit.cli.screen import AsJson, show, show_json, show_wrapped
from tacit.errors import LedgerError

if TYPE_CHECKING:
    from tacit.ledger.ledger import Account, LedgerEntry, Run

ledger_app = typer.Typer(
    help="Look at a budget ledger, check that nobody edited it, grant budget, or rotate the coins of true records.",
    rich_markup_mode=None,
)
Where = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger: a file, or a database URL.")]


@ledger_app.command("show", short_help="Show what was granted, spent and remains.")
def show_ledger(
    ledger: Where,
    *,
    dataset: Annotated[str | None, typer.Option(help="Show only this data set.")] = None,
    last: Annotated[int, typer.Option(min=0, help="How many of the newest entries to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show what was granted, spent and remains for each data set and each analyst with a cap, and the newest entries.

    Then follow what all releases from a data set promise together, what coalitions of applications could learn from the
    single records that they were shown, and runs that were paid for and did not finish. --json has all entries.
    """
    from tacit.ledger.ledger import Ledger

    with Ledger(ledger, create=False) as opened:
        accounts = [account for account in opened.accounts() if dataset in (None, account.dataset)]
        entries = opened.entries(dataset)
        charged = {entry.number: entry.dataset for entry in entries}
        unreadable = ""
        try:
            open_runs = [run for run in opened.runs() if run.state != "finished" and run.first in charged]
            paid = {name for name in {charged[run.first] for run in open_runs} if opened.coin_lines(dataset=name)}
        except LedgerError as damage:  # budgets are shown all the same: they do not depend on the notes of runs
            open_runs, paid, unreadable = [], set(), str(damage)
        totals = [account.dataset for account in accounts if account.analyst is None]
        statements = [opened.statement(dataset=name) for name in totals]
        leakage = {name: opened.leakage(dataset=name) for name in totals}
    if as_json:
        show_json(
            {
                "accounts": [_document(account) for account in accounts],
                "entries": [_document(entry) for entry in entries],
                "statements": [statement.document() for statement in statements],
                "leakage": {name: [one.document() for one in stands] for name, stands in leakage.items() if stands},
                "unfinished_runs": None if unreadable else [asdict(run) for run in open_runs],
            }
        )
    elif accounts:
        from tacit.report.text import entries_table, ledger_table

        show(ledger_table(accounts))
        if last and entries:
            show(entries_table(entries[-last:]))
        if len(entries) > last > 0:
            show(f"{len(entries) - last:,} earlier: --last {len(entries)}, or --json.")
        show_wrapped([statement.text for statement in statements if statement.epsilon])
        show_wrapped([f"  - {stands}" for several in leakage.values() for stands in several])
        unfinished = [_unfinished(run, entries, has_coins=charged[run.first] in paid) for run in open_runs]
        show(*unfinished, *filter(None, [unreadable]))
    else:
        show("No budget was granted yet." if dataset is None else f"No budget was granted to {dataset} yet.")


@ledger_app.command("verify", short_help="Check that nobody edited the ledger.")
def verify_ledger(ledger: Where, *, as_json: AsJson = False) -> int:
    """Check the chain of entries, all sums and all seals. Exit code 1 if anything does not fit."""
    from tacit.ledger.ledger import Ledger

    with Ledger(ledger, create=False) as opened:
        verdict = opened.verify()
    if as_json:
        show_json({key: None if value == "" else value for key, value in asdict(verdict).items()})
    elif verdict.ok:
        many = "1 entry" if verdict.entries == 1 else f"{verdict.entries:,} entries"
        show(f"Sound: {many}, the last with hash {verdict.head}.")
        if verdict.unknown:
            show_wrapped([f"Not known: {verdict.unknown}."])
    else:
        fix = "Put the last good copy back; nothing may be charged to this one."
        if str(verdict.problem).startswith("wrong key"):
            fix = "Set TACIT_LEDGER_KEY to the key that the ledger was begun with, or unset it if there was none."
        show(f"NOT sound: {verdict.problem}. {fix}")
    return 0 if verdict.ok else 1


@ledger_app.command("grant", short_help="Add budget to a data set.")
def grant_budget(
    ledger: Where,
    *,
    dataset: Annotated[str, typer.Option(help="The data set that gets the budget.")],
    epsilon: Annotated[str, typer.Option(help="How much is added, exactly as written: 1, 0.5 or 1/3.")],
    analyst: Annotated[
        str | None, typer.Option(help="Raise the cap of this analyst within the total, not the total.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="POLICY.yaml", help="The policy that the budget is counted under.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add budget to a data set; a ledger that does not exist yet is begun."""
    from tacit.ledger.ledger import Ledger
    from tacit.policy.policy_file import load_policy

    counted_under = None if policy is None else load_policy(policy)
    with Ledger(ledger) as opened:
        entry = opened.grant(dataset=dataset, epsilon=epsilon, analyst=analyst, policy=counted_under)
        # a cap may be granted before the total, and then there is nothing to say yet
        remaining = shown(opened.remaining(dataset=dataset)) if analyst is None else None
    if as_json:
        show_json({"granted": _document(entry), "remaining": remaining})
        return
    to = f"the total of {entry.dataset}" if analyst is None else f"the cap of {entry.analyst} in {entry.dataset}"
    left = "" if remaining is None else f" {remaining} may be spent now."
    show(f"Granted {shown(entry.epsilon)} to {to} (entry {entry.number}).{left}")


@ledger_app.command("rotate", short_help="Forget the coins of true records.")
def rotate_coins(
    ledger: Where,
    *,
    dataset: Annotated[str, typer.Option(help="The data set whose coins are forgotten.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this, only say what it means.")] = False,
    as_json: AsJson = False,
) -> int:
    """Forget the coins of a data set, for instance because the same keys have new values.

    Afterwards true records are shown by new coins, and every line is charged again. Whoever sees a record by the old
    and by the new coins has seen it twice, and both count. This cannot be undone. Without --yes the command explains
    this, changes nothing and exits with code 1.
    """
    from tacit.ledger.ledger import Ledger

    with Ledger(ledger, create=False) as opened:
        remaining = opened.remaining(dataset=dataset)
        lines = opened.coin_lines(dataset=dataset)
        if yes:
            opened.rotate_coins(dataset=dataset)
    if as_json:
        show_json({"dataset": dataset, "rotated": yes, "lines": len(lines), "remaining": str(remaining)})
        return 0 if yes else 1
    lost = "no line was" if not lines else "1 line was" if len(lines) == 1 else f"{len(lines)} lines were"
    show_wrapped(
        [
            f"{dataset}: {lost} paid for with the coins that it has, up to epsilon "
            f"{shown(max(lines, default=Fraction(0)))}; {shown(remaining)} remains of the budget.",
            "With new coins, records that were shown may be hidden and hidden ones shown. Whoever holds the earlier "
            "release and sees the new one learns from both: each is charged in full, and limits on what applications "
            "learn count both. Nothing that was charged is given back, and the old coins cannot be had again.",
        ]
    )
    show("The coins were rotated." if yes else "Nothing was changed. Say --yes to rotate them.")
    return 0 if yes else 1


def _unfinished(run: Run, entries: list[LedgerEntry], *, has_coins: bool) -> str:
    """Return what became of a run that was paid for and whose results were not published as a whole."""
    cost = shown(sum((e.epsilon for e in entries if run.first <= e.number <= run.last), Fraction(0)))
    what = f"Run {run.run} of job {run.job!r} paid {cost} (entries {run.first} to {run.last})"
    # which of its entries were for true records nobody noted
    coins = ", except for true records: another run shows them by the same coins and costs no more" if has_coins else ""
    if run.state == "lost":
        return f"{what} and broke off: what it had not written is lost{coins}."
    return (
        f"{what} and has not ended: it is still at work, or it was killed and what it had not written is lost{coins}."
    )


def _document(found: Account | LedgerEntry) -> dict[str, Any]:
    """Return an account or an entry as plain data, without the text of its policy."""
    return {key: value for key, value in asdict(found).items() if key not in ("policy_text", "previous")}
