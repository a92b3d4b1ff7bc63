"""Files that ask for a published table: which rows, under which policy, at what cost, how.

Guarantee   The whole file is read and checked before anything is charged; then the session charges, and only then rows
            are opened. What is written appears under its name all at once.
Assumes     The file is trusted as much as the command that runs it: it names files to read and a folder to write.
Why         A table is made by `perturbed` or `reconstruction_private` through a session, as anybody would call them.
            All files are written to a hidden folder beside, which gets its name when they are complete.
Reference   `release/job_file.py`, for jobs of questions.
Checked by  tests/cli/test_tables.py.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from tacit.errors import JobError
from tacit.ledger.input import checked_name
from tacit.policy.file import policy_below
from tacit.policy.policy import Policy
from tacit.policy.yaml_entries import Entry, Source
from tacit.publish.estimates import reconstruct
from tacit.publish.perturbed_table import perturbed
from tacit.publish.private_tables import reconstruction_private
from tacit.publish.table import PublishedTable
from tacit.release.session import Session
from tacit.release.table_file import write_table

_FINE: Final = 1e-3  # numbers are written with four decimals: parts of a record are sixteenths
_KEYS: Final = ("policy", "rows", "person", "order", "dataset", "analyst", "budget", "ledger", "out", "table")
_NUMBERS: Final = ("retention", "epsilon", "lam", "delta", "largest_frequency")
_TABLE_KEYS: Final = ("public", "sensitive", *_NUMBERS, "rho", "criterion", "method", "groups")


@dataclass(frozen=True)
class TableJob:
    """What a file says. `asked` are the arguments of `perturbed`, or of `reconstruction_private` if it has `lam`."""

    policy: Policy
    rows: str
    dataset: str
    out: Path
    asked: Mapping[str, Any]
    budget: str | None = None
    ledger: str | None = None
    analyst: str | None = None

    def make(self) -> PublishedTable:
        """Charge the budget, open the rows and make the table."""
        session = Session(
            self.policy, self.rows, self.budget, ledger=self.ledger, analyst=self.analyst, dataset=self.dataset
        )
        return (reconstruction_private if "lam" in self.asked else perturbed)(session, **self.asked)


def read_table_job(path: str | Path) -> TableJob:
    """Read a file that asks for a table, or refuse it with the line that is wrong."""
    file = Path(path)
    top = Source.open(
        path,
        file=str(path),
        whole="the job",
        refusal=JobError,
        kind="a job file",
        if_table="Name the job file; the table belongs into it, below `rows:`.",
        if_missing="Check the path of the job file.",
    ).read()
    if not top.is_mapping:
        raise top.refuse("must be a mapping", fix="Start with `policy:`, without a dash.")
    fields = top.fields(_KEYS, required=("policy", "rows", "table"))
    folder, rows = file.resolve().parent, fields["rows"].text()
    if "budget" not in fields and "ledger" not in fields:
        raise top.refuse("must have the key budget or the key ledger", given=sorted(fields), fix="Add `budget: 1.0`.")
    policy = policy_below(fields["policy"], file.parent)
    with top.blamed(fields):
        person, order = (fields[key].text() if key in fields else None for key in ("person", "order"))
        policy = policy.about(person=person, order=order)
        dataset = checked_name(
            fields["dataset"].text() if "dataset" in fields else Path(rows).stem, key="dataset", file=""
        )
    out = folder / (fields["out"].text() if "out" in fields else f"{file.stem}-table")
    if out.exists():
        raise top.refuse(
            "must name a folder that does not exist yet", given=out.name, fix="Remove it, or name another."
        )
    ledger = fields["ledger"].text() if "ledger" in fields else None
    return TableJob(
        policy=policy,
        rows=str(folder / rows),
        dataset=dataset,
        out=out,
        asked=_asked(fields["table"]),
        budget=fields["budget"].amount() if "budget" in fields else None,
        ledger=ledger if ledger is None or "://" in ledger else str(folder / ledger),
        analyst=fields["analyst"].text() if "analyst" in fields else None,
    )


def _asked(entry: Entry) -> dict[str, Any]:
    fields = entry.fields(_TABLE_KEYS, required=("public", "sensitive"))
    if ("lam" in fields) != ("delta" in fields):
        raise entry.refuse(
            "must have lam and delta together", given=sorted(fields), fix="Leave both out for perturbation."
        )
    private = ("criterion", "method", "largest_frequency")
    if "lam" not in fields and any(key in fields for key in private):
        raise entry.refuse("needs lam and delta", given=sorted(fields), fix="Add `lam: 0.3` and `delta: 0.3`.")
    found: dict[str, Any] = {
        "public": [one.text() for one in fields["public"].one_or_more()],
        "sensitive": [one.text() for one in fields["sensitive"].one_or_more()],
    }
    found |= {key: fields[key].amount() for key in _NUMBERS if key in fields}
    found |= {key: fields[key].text() for key in ("criterion", "method") if key in fields}
    if "rho" in fields:
        found["rho"] = [one.amount() for one in fields["rho"].listed()]
    if "groups" in fields:
        maps = fields["groups"].mapping()
        found["groups"] = {name: {value: one.text() for value, one in maps[name].mapping().items()} for name in maps}
    return found


def save_table(table: PublishedTable, folder: Path) -> None:
    """Write a table, its certificate and its report to a new folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        labels = {
            **table.groups.group_labels(lines=len(table.values)),
            **table.groups.columns.value_labels(len(table.sizes)),
        }
        counts = np.asarray(table.published.ravel() * float(table.method.unit), np.float64)
        numbers = {"count": counts, "estimate": table.estimates.ravel()}
        write_table(draft, "table", counts.size, labels, numbers, error=_FINE)
        (draft / "certificate.json").write_text(json.dumps(table.certificate, indent=2) + "\n", encoding="utf-8")
        (draft / "report.txt").write_text("\n".join(report_lines(table)) + "\n", encoding="utf-8")
        draft.chmod(0o755)
        os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def report_lines(table: PublishedTable, most: int = 20) -> list[str]:
    """Return in words what a table promises, and how accurate the best reconstructions from it are."""
    lines = [str(table), "", "estimates among all people, with 95% intervals:"]
    for value in table.values[:most]:
        found = reconstruct(table, value=value)
        low, high = found.interval(0.95)
        lines.append(f"  {value}: {found.count:,.1f} ({low:,.1f} to {high:,.1f}), {found.frequency:.2%}")
    errors = table.personal_errors[table.estimates >= 1]
    low, middle, high = np.quantile(errors, [0.1, 0.5, 0.9]) if errors.size else (0.0, 0.0, 0.0)
    return [
        *lines,
        *([f"  and {len(table.values) - most} more values"] if len(table.values) > most else []),
        "",
        f"estimates of single counts of personal groups are wrong by about {middle:.0%} (root mean square, the middle "
        f"one; a tenth by less than {low:.0%}, a tenth by more than {high:.0%})",
    ]
