"""Run a job: all releases are paid for at once and made in order.

Guarantee   Everything that can be refused is refused before anything is charged: all plans are made, the sum of all
            costs is compared with what remains, the folder for the results must be free, and the rows must be there.
            Then all releases are charged in one transaction: a job is paid as a whole or not at all, whoever else wants
            what is left.
Assumes     `jobs/job_file.py` for what a job says.
Why         A job that stops in the middle has spent budget for results that nobody asked for by themselves.
Checked by  tests/unit/jobs/test_job.py, tests/unit/report/test_publish.py, tests/contract/test_job_races.py.
"""

from __future__ import annotations

from collections.abc import Callable

from tacit.errors import DataRefused
from tacit.jobs.job_file import Job
from tacit.jobs.job_plan import JobPlan, check_cost, check_limits_kept, check_out, check_rows, planned
from tacit.release.results.record import ReleaseRecord
from tacit.release.session import Session

Progress = Callable[[str, int, int], None]


def run_job(
    job: Job | JobPlan,
    *,
    on_progress: Progress | None = None,
    on_paid: Callable[[], None] | None = None,
    on_release: Callable[[str, ReleaseRecord], None] | None = None,
    run: str | None = None,
) -> dict[str, ReleaseRecord]:
    """Pay for all releases of a job at once, make them in order, and return them by name.

    A job that was planned is executed as it was planned; any other is planned here. `on_progress` is told the name of
    the release that comes next, how many are done, and how many there are. `on_paid` is called once everything is
    charged and before any row is opened. `on_release` gets each release as soon as it is made, so that what was paid
    for can be kept if a later one fails. `run` is the name under which the ledger keeps that this run is under way;
    whoever gives it says when it has ended.
    """
    plan = planned(job, check_out, check_cost)
    job = plan.job
    check_limits_kept(job, plan.plans)
    check_rows(job)
    session = session_of(job)
    session.adopt(plan.planner)
    reserved = session.reserve(plan.plans, run=run, job=job.name)
    if on_paid is not None:
        on_paid()
    made: dict[str, ReleaseRecord] = {}
    for done, (name, paid) in enumerate(zip(plan.explanations, reserved, strict=True)):
        if on_progress is not None:
            on_progress(name, done, len(reserved))
        made[name] = paid.make()
        if on_release is not None:
            on_release(name, made[name])
    if on_progress is not None:
        on_progress("done", len(reserved), len(reserved))
    return made


def session_of(job: Job) -> Session:
    """Open the rows and the ledger. Nothing is charged yet, and a refusal of the rows says so."""
    try:
        return Session(
            job.policy,
            list(job.rows),
            job.budget,
            ledger=job.ledger,
            analyst=job.analyst,
            dataset=job.dataset,
            person=job.person,
            per_person=job.per_person,
            order=job.order,
            item=job.item,
            leakage=job.leakage,
        )
    except DataRefused as refused:
        fix = f"{refused.fix} Nothing was charged.".lstrip()
        refusal = DataRefused(refused.rule, column=refused.column, fix=fix)
    raise refusal
