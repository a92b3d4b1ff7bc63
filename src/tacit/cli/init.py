"""`tacit init DATA`: a first draft of a policy, for the publisher's eyes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.screen import AsJson, command, plain_text, show, show_json
from tacit.errors import PolicyError

if TYPE_CHECKING:
    from tacit.draft import DraftedLine, PolicyDraft

MOST_SHOWN = 40  # columns of each list; the draft itself has all of them
WITHHELD = "(a column whose name may be a value)"


def draft(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="POLICY.yaml", help="The file to write.")] = Path("policy.yaml"),
    has_header: Annotated[
        bool,
        typer.Option("--has-header", help="The first line holds names, also where they look like values."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draft a policy from column names, types and a random sample of the rows, and say what needs review.

    The draft holds values from the data, so it is not public before somebody has gone through it. What is printed
    here names columns only, and none whose name may itself be a value. Nothing is fetched from the network.
    """
    from tacit.draft import draft as drafted

    if out.exists():
        raise _exists(out)
    made = drafted(data, has_header=has_header)
    _write(out, made.text)
    if as_json:
        show_json(_document(out, made))
        return
    show(
        f"Wrote {out}: a draft. It holds values read from the data, so keep it to yourself until you have reviewed it."
    )
    if made.review:
        show("\nReview: write what is possible, not what happens to occur.")
        _list(out, made.review)
    if made.left_out:
        show("\nLeft out, because they cannot be declared as they are:")
        _list(out, made.left_out)
    if made.columns_left:
        show(f"\nThe data have {made.columns_left:,} more columns, which the draft does not reach.")
    says = f"`{command('check', out)}` says what they protect."
    show(f"\nThen choose the secrets; in the draft that is ordinary differential privacy. {says}")
    show(f"`{command('check', out, '--rows', data)}` shows you, and nobody else, which cells do not fit.")


def _document(out: Path, made: PolicyDraft) -> dict[str, Any]:
    return {
        "policy_file": str(out),
        "review": [{"line": line.number, "column": line.column} for line in made.review],
        "undeclared": [{"line": one.number, "column": one.column, "reason": one.reason} for one in made.left_out],
        "columns_not_reached": made.columns_left,
    }


def _list(out: Path, lines: Sequence[DraftedLine]) -> None:
    for line in lines[:MOST_SHOWN]:
        name = WITHHELD if line.column is None else plain_text(line.column)
        show(f"  {out}:{line.number}  {name}{': ' if line.reason else ''}{plain_text(line.reason, longest=200)}")
    if len(lines) > MOST_SHOWN:
        show(f"  and {len(lines) - MOST_SHOWN:,} more in {out}")


def _write(out: Path, text: str) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:  # x: never over a file that came into being meanwhile
            file.write(text)
    except FileExistsError:
        refusal = _exists(out)
    except OSError as fault:
        reason = (fault.strerror or "not possible").lower()
        refusal = PolicyError(
            f"must be a file that can be written ({reason})", key="--out", given=str(out), fix="Name another."
        )
    else:
        return
    raise refusal


def _exists(out: Path) -> PolicyError:
    return PolicyError(
        "must not exist yet", key="--out", given=str(out), fix="Name another with --out; nothing is overwritten."
    )
