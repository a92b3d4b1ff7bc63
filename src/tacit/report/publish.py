"""From a job to a folder that can be published: values, certificates, charts, the policy and the report.

Guarantee   The folder appears all at once and complete, or not at all; nothing is ever overwritten. Its last file,
            `finished.json`, names every other file with its SHA-256. Names and sizes of files depend on the job, the
            policy and the released values, on nothing else.
Assumes     The draft folder and the target are on one file system, so that renaming is atomic.
Why         Budget is charged before rows are read. Each release is written as soon as it is made, so that a failure
            in the middle costs what was not yet released and never what was already paid for.
Checked by  tests/unit/test_publish.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.plan.explain import Explanation
from tacit.release.job import FINISHED, Job, Progress, check_out, plan_job, run_job
from tacit.release.record import ReleaseRecord
from tacit.report.charts import chart, chart_svg
from tacit.report.html import html_report

PART = ".part"


class PublishError(TacitError):
    """Budget was spent, but the folder could not be finished. Says where the files are; `records` has the releases."""

    def __init__(self, draft: Path, why: str, records: dict[str, ReleaseRecord]) -> None:
        self.draft, self.records = draft, records
        super().__init__(
            f"the results could not be written to the end ({why}). Budget was spent. What was released before that is "
            f"kept in {str(draft)!r}: move it to a safe place before you run the job again, for it is paid for."
        )


def publish(
    job: Job,
    *,
    on_progress: Progress | None = None,
    on_release: Callable[[str, ReleaseRecord], None] | None = None,
) -> Path:
    """Make all releases of a job and write them to its folder, all or nothing; return the folder.

    `on_release` gets each release by name, once its files are written.

    Raises:
        JobError: If the folder is not free, or an earlier run left a half-written one; nothing is charged.
        PublishError: If a release was made and the folder could not be finished; says where the files are.
    """
    steps = len(job.releases) + 1
    check_out(job)
    explanations = plan_job(job)
    draft = _draft(job)
    records: dict[str, ReleaseRecord] = {}
    charts: dict[str, str] = {}

    def keep(name: str, record: ReleaseRecord) -> None:
        records[name] = record
        # what cannot be had again comes first; a chart can be drawn at any time
        record.write_csv(draft / f"{name}.csv")
        _write(draft / f"{name}.certificate.json", _json(record.certificate))
        charts[name] = chart_svg(chart(record))
        _write(draft / f"{name}.svg", charts[name])
        if on_release is not None:
            on_release(name, record)

    def tell(name: str, done: int, of: int) -> None:
        if on_progress is not None and done < of:
            on_progress(name, done, steps)

    try:
        run_job(job, on_progress=tell, on_release=keep)
        tell("report", steps - 1, steps)
        _write_report(draft, job, records, explanations, charts)
        _write_finished(draft, job)
        if job.out.exists():
            job.out.rmdir()  # it was empty when we began; if it is not any more, this refuses
        os.rename(draft, job.out)
    except BaseException as fault:
        _forget_if_empty(draft)
        if not records or not isinstance(fault, Exception):
            raise  # nothing was made that could be lost, or somebody pressed Ctrl-C
        why = str(fault) if isinstance(fault, TacitError) else _reason(fault)
        # the cause may be kept: rows are closed, and faults from open rows come without any detail
        raise PublishError(draft, why.rstrip("."), records) from fault
    if on_progress is not None:
        on_progress("done", steps, steps)
    return job.out


def _draft(job: Job) -> Path:
    """Begin the folder that results are written to first. Its name is fixed, so that two runs cannot both begin."""
    draft = job.out.with_name(job.out.name + PART)
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir()
        return draft
    except OSError as fault:
        why = (fault.strerror or "refused").lower()
    if os.path.lexists(draft):
        raise job.refuse(
            "out",
            f"has {draft.name} beside it, where another run is at work or broke off before its report was written",
            given=str(job.out),
            fix=f"Budget was spent for what is in {str(draft)!r}: look at it, keep what you need, and remove it; then "
            "the job can run again, and is charged again.",
        )
    raise job.refuse("out", f"must be a folder that can be made ({why})", given=str(job.out), fix="Name another.")


def _forget_if_empty(draft: Path) -> None:
    with contextlib.suppress(OSError):
        draft.rmdir()


def _reason(fault: Exception) -> str:
    # a foreign error's own text may be about anything; its kind and the system's reason are enough
    return (fault.strerror or "refused").lower() if isinstance(fault, OSError) else type(fault).__name__


def _write_report(
    draft: Path,
    job: Job,
    records: dict[str, ReleaseRecord],
    explanations: list[Explanation],
    charts: dict[str, str],
) -> None:
    policy = job.about()  # as the certificates have it: with the people whom the job names
    _write(draft / "policy.yaml", policy.to_yaml())
    page = html_report(job.name, policy, records, explanations, budget=job.budget, analyst=job.analyst, charts=charts)
    _write(draft / "report.html", page)


def _write_finished(draft: Path, job: Job) -> None:
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(draft.iterdir())}
    _write(draft / FINISHED, _json({"job": job.name, "sha256": files}))


def _json(said: Any) -> str:
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, text: str) -> None:
    # no newline translation: the hashes must be the same on every system
    path.write_text(text, encoding="utf-8", newline="\n")
