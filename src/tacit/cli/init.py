"""`tacit init DATA`: a first draft of a policy, for the publisher's eyes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.screen import AsJson, command, show, show_json
from tacit.errors import PolicyError


def draft(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="POLICY.yaml", help="The file to write.")] = Path("policy.yaml"),
    as_json: AsJson = False,
) -> None:
    """Draft a policy from column names, types and the first rows, and say what needs review.

    The draft holds values from the data, so it is not public before somebody has gone through it. What is printed
    here names columns only.
    """
    from tacit.release.draft import draft_policy

    if out.exists():
        raise _exists(out)
    text = draft_policy(data)
    _write(out, text)
    review, undeclared = _to_review(text)
    if as_json:
        show_json({"policy_file": str(out), "review": review, "undeclared": undeclared})
        return
    show(
        f"Wrote {out}: a draft. It holds values read from the data, so keep it to yourself until you have reviewed it."
    )
    if review:
        show("\nReview: write what is possible, not what happens to occur.")
        show(*(f"  {out}:{found['line']}  {found['column']}" for found in review))
    if undeclared:
        show("\nLeft out, because they cannot be declared as they are:")
        show(*(f"  {out}:{found['line']}  {found['reason']}" for found in undeclared))
    show(f"\nThen choose the secrets in it; at first everything is. `{command('check', out)}` says what they protect.")


def _to_review(text: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the lines of a draft that hold values from the data, and the columns that it leaves out."""
    review: list[dict[str, Any]] = []
    undeclared: list[dict[str, Any]] = []
    column, in_domain = "", False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith(" "):
            in_domain = line.startswith("domain:") or (in_domain and not line)
            continue
        if not in_domain:
            continue
        if line.startswith("  # "):
            undeclared.append({"line": number, "reason": line.removeprefix("  # ")})
            continue
        if key := re.match(r"  (\"(?:[^\"\\]|\\.)*\"|[^\s:]+):", line):
            column = key[1]
        if "# REVIEW" in line:
            review.append({"line": number, "column": column})
    return review, undeclared


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
