"""From a job to a folder that can be published: values, certificates, charts, the policy and the report.

Guarantee   The folder appears all at once and complete, or not at all; nothing is ever overwritten. It is on disk
            before it has its name. Its last file, `finished.json`, names every other file with its SHA-256. Names and
            sizes of files depend on the job, the policy and the released values, on nothing else.
            A run that is refused leaves nothing behind. A run that was paid for and breaks off is lost as far as its
            files were not written: nothing is drawn again without being paid for again. A run whose files are all
            written is never called lost, wherever it breaks off.
Assumes     The draft folder and the target are on one file system, so that renaming is atomic.
Why         Budget is charged before rows are read, for the whole job at once. What a killed run had drawn may have been
            seen (its files, the terminal), and a second draw of the same release would tell more than was paid for;
            so a run is never resumed. What it had written is kept: it is paid for.
Checked by  tests/unit/report/test_publish.py, tests/contract/test_job_races.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tacit.amounts import shown
from tacit.errors import DataRefused, Exit, TacitError
from tacit.jobs.job_file import Job
from tacit.jobs.job_run import JobPlan, Progress, planned, run_job
from tacit.jobs.results_folder import FINISHED, MARK, check_out
from tacit.ledger.ledger import Ledger
from tacit.release.results.record import ReleaseRecord
from tacit.report.charts.release_charts import chart, chart_svg
from tacit.report.csv_tables import write_release
from tacit.report.draft_folder import UnfinishedFolder, begin_draft, is_complete, synced
from tacit.report.html import html_report, promise_in_words
from tacit.report.workbook import WORKBOOK, check_workbook, write_releases
from tacit.rows.guard import charges


class PublishError(TacitError):
    """Budget was spent, but the folder could not be finished. Says where the files are; `records` has the releases."""

    exit_code = Exit.FAULT

    def __init__(self, draft: Path, fault: Exception, records: Mapping[str, Any], *, job: Job) -> None:
        self.draft, self.records = draft, records
        # the cause may be told: rows are closed, and faults from open rows come without any detail
        why = (str(fault) if isinstance(fault, TacitError) else _reason(fault)).rstrip(".")
        failed = "rows could not be read" if isinstance(fault, DataRefused) else "results could not be written"
        super().__init__(f"the {failed} to the end ({why}). {_what_became_of_it(draft, job, is_begun=bool(records))}")


def _what_became_of_it(draft: Path, job: Job, *, is_begun: bool) -> str:
    """Say what was paid for and released, and what another run costs."""
    spent = f"Budget was spent for the whole job ({shown(job.cost)} in all)"
    if is_complete(draft):
        return f"{spent}. All of it was released and is complete in {str(draft)!r}: move it to a safe place."
    remembered = [release.query.remembers and job.ledger is not None for release in job.releases]
    kept = (
        f"What was released before that is kept in {str(draft)!r}: move it to a safe place before you run the job again"
    )
    if remembered and all(remembered):
        nothing_lost = (
            "The ledger remembers that all of it is paid for: nothing is lost, and another run costs no more."
        )
        return f"{kept}. {nothing_lost}" if is_begun else f"Nothing was released. {nothing_lost}"
    if is_begun:
        return f"{spent}. {kept}, for it is paid for; the rest is lost."
    except_for = ", except for true records by the same key, whose coins stay paid for" if any(remembered) else ""
    return f"{spent} and is lost: nothing was released. Run again, it is charged again{except_for}."


def publish(
    job: Job | JobPlan,
    *,
    on_progress: Progress | None = None,
    on_release: Callable[[str, ReleaseRecord], None] | None = None,
) -> Path:
    """Make all releases of a job and write them to its folder, all or nothing; return the folder.

    A job that was planned is executed as it was planned; any other is planned here. `on_release` gets each release by
    name, once its files are written.

    Raises:
        JobError: If the folder is not free, or an earlier run left a half-written one; nothing is charged.
        PublishError: If the job was paid for and the folder could not be finished; says where the files are.
    """
    plan = planned(job, check_out, check_workbook)
    for explained in plan.explanations.values():
        explained.document()  # the report needs it: what cannot be told is refused before anything is paid for
    job = plan.job
    steps = len(job.releases) + 1
    records: dict[str, ReleaseRecord] = {}
    charts: dict[str, str] = {}
    tables: dict[str, list[str]] = {}

    def tell(name: str, done: int, of: int) -> None:
        if on_progress is not None and done < of:
            on_progress(name, done, steps)

    def fill(folder: Path, run: str, pay: Callable[[], None]) -> None:
        def keep(name: str, record: ReleaseRecord) -> None:
            records[name] = record
            # what cannot be had again comes first; a chart can be drawn at any time
            tables[name] = write_release(folder, name, record)
            for table in tables[name]:
                synced(folder / table)
            write_text(folder / f"{name}.certificate.json", _json(record.certificate))
            charts[name] = chart_svg(chart(record))
            write_text(folder / f"{name}.svg", charts[name])
            if on_release is not None:
                on_release(name, record)

        run_job(plan, on_progress=tell, on_paid=pay, on_release=keep, run=run)
        tell("report", steps - 1, steps)
        policy = plan.planner.policy  # as the certificates have it: with the people whom the job names
        write_text(folder / "policy.yaml", policy.to_yaml())
        page = html_report(
            job.name,
            policy,
            records,
            plan.explanations,
            budget=job.budget,
            analyst=job.analyst,
            charts=charts,
            tables=tables,
            learned=_learned(job),
            workbook=WORKBOOK if job.xlsx else "",
        )
        write_text(folder / "report.html", page)
        if job.xlsx:
            write_releases(folder / WORKBOOK, promise_in_words(records), records)
            synced(folder / WORKBOOK)

    written(job, fill, records)
    if on_progress is not None:
        on_progress("done", steps, steps)
    return job.out


def written(job: Job, fill: Callable[[Path, str, Callable[[], None]], None], records: Mapping[str, Any]) -> Path:
    """Fill the folder of a job, all or nothing, and return it.

    `fill` gets the folder, the name of the run, and what it calls once it has paid; `records` are what it has made by
    then, for whoever catches the error.
    """
    draft = begin_draft(job)
    folder = draft.folder
    paid = False

    def pay() -> None:
        nonlocal paid
        paid = True

    try:
        fill(folder, draft.run, pay)
        _write_finished(folder, job)
        # from here on nothing can be lost: a complete draft needs its name and nothing else
        _note_end(job, draft, lost=False)
        _put_in_place(draft, job)
    except BaseException as fault:
        in_place = not folder.exists() and (job.out / FINISHED).exists()
        if not in_place:
            draft.give_up(keep=bool(records))
        if paid or not isinstance(fault, Exception):  # an interrupt may come between the charge and the word of it
            _note_end(job, draft, lost=not in_place and not is_complete(folder))
        charges.kept = _say_where_kept(job, folder, in_place=in_place)
        if not paid or not isinstance(fault, Exception):
            raise  # nothing was paid for that could be lost, or somebody pressed Ctrl-C
        raise PublishError(folder, fault, records, job=job) from fault
    return job.out


def _put_in_place(draft: UnfinishedFolder, job: Job) -> None:
    """Give the complete folder its name, so that a power cut leaves it whole or not there."""
    if job.out.exists():
        job.out.rmdir()  # it was empty when we began; if it is not any more, this refuses
    draft.unmark()
    synced(draft.folder)
    os.rename(draft.folder, job.out)
    with contextlib.suppress(OSError):  # all is done; after a power cut it would at worst have its old name
        synced(job.out.parent)


def _say_where_kept(job: Job, draft: Path, *, in_place: bool) -> str:
    """Say where the files of a run that broke off are, if there are any."""
    if in_place:
        return f"The results are complete in {str(job.out)!r}."
    if not draft.exists():
        return ""
    if is_complete(draft):
        return f"The results are complete in {str(draft)!r}: rename it."
    return f"What was released before that is kept in {str(draft)!r}; the rest is lost."


def _note_end(job: Job, draft: UnfinishedFolder, *, lost: bool) -> None:
    """Tell the ledger how the run ended. Nothing depends on it but what `tacit ledger show` says of the run."""
    if job.ledger is not None:
        with contextlib.suppress(TacitError), Ledger(job.ledger, create=False) as ledger:
            ledger.ended(draft.run, lost=lost)


def _reason(fault: Exception) -> str:
    # a foreign error's own text may be about anything; its kind and the system's reason are enough
    return (fault.strerror or "refused").lower() if isinstance(fault, OSError) else type(fault).__name__


def _learned(job: Job) -> list[str]:
    """Return where everybody stands once the releases are made; nothing where no limit holds."""
    found: list[str] = []
    if job.leakage is None or job.ledger is None:
        return found
    # all is paid for and written by now: a ledger that cannot be read any more must not cost the report
    with contextlib.suppress(TacitError), Ledger(job.ledger, create=False) as ledger:
        found = [str(stands) for stands in ledger.leakage(dataset=job.dataset)]
    left_out = "The limits leave out what the release of an attribute says about that attribute itself."
    return found + ([left_out] if found and not job.leakage.own else [])


def _write_finished(draft: Path, job: Job) -> None:
    written = sorted(file for file in draft.iterdir() if file.name != MARK)
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in written}
    write_text(draft / FINISHED, _json({"job": job.name, "asked": job.asked, "sha256": files}))


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write a file and return when it is on the disk, with the same bytes on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")
    synced(path)
