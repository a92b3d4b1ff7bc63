"""What a job would do and cost, whether it could run, and running it.

Guarantee   Everything that can be refused is refused before anything is charged and before any row is opened: all plans
            are made, the sum of all costs is compared with what remains, the folder for the results must be free, and
            the rows must be there. Then all releases are charged in one transaction: a job is paid as a whole or not at
            all, whoever else wants what is left.
Assumes     `jobs/job_file.py` for what a job says. What planning finds may change before the job runs, so running it
            checks again.
Why         A job that stops in the middle has spent budget for results that are not complete. Planning charges nothing
            and opens no row: plans are made of the policy, what remains is read from the ledger, and of the rows only
            the names of files and columns are looked at.
Checked by  tests/unit/jobs/test_job.py, tests/unit/release/test_plans.py, tests/unit/report/test_publish.py,
            tests/cli/test_startup.py, tests/contract/test_job_races.py.
"""

from __future__ import annotations

import glob
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.amounts import shown
from tacit.errors import BudgetExceeded, DataRefused, Exit, JobError, PlanError, Refused, TacitError
from tacit.jobs.job_file import RELEASES, Job, JobRelease
from tacit.jobs.results_folder import check_out
from tacit.plan.accuracy import Accuracy, cost_or_accuracy
from tacit.plan.choose import Explanation, explain
from tacit.plan.plans.plan import Plan
from tacit.policy.policy_file import attribute_line
from tacit.release.planner import Planner
from tacit.rows.files.headers import known_columns
from tacit.rows.files.identity import FileContents
from tacit.rows.files.table_files import column_names, is_file, source_files, source_name

if TYPE_CHECKING:
    from tacit.ledger.applications import Applications
    from tacit.ledger.clauses import TableNote
    from tacit.ledger.ledger import Ledger
    from tacit.release.budget import Purse
    from tacit.release.results.record import ReleaseRecord
    from tacit.release.session import Session

SWEPT: Final = tuple(map(Fraction, ("0.01", "0.03", "0.1", "0.3", "1", "3", "10")))

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class JobPlan:
    """What a job will do: the plan of each release by name, made once, and what explains it."""

    job: Job
    planner: Planner = field(repr=False)
    explanations: Mapping[str, Explanation]
    cost: Fraction  # less than all epsilons where something was paid for before

    @property
    def plans(self) -> list[Plan]:
        """The plans, in the order of the job."""
        return [explanation.plan for explanation in self.explanations.values()]


def plan_job(job: Job) -> JobPlan:
    """Plan each release of a job: what it would cost, how wrong it would be and what would remain after it.

    Nothing is charged and no row is opened. What remains falls below zero from the release on that does not fit.
    """
    left = start = remaining(job)
    planner, plans = plan_releases(job)
    reached: Mapping[str, Fraction] = {}
    if lines := [line for plan in plans.values() for line in plan.coin_lines]:
        with _purse(job) as purse:
            reached = {} if purse is None else purse.reached(lines)
    found = {}
    for name, plan in plans.items():
        left -= plan.cost(reached)
        reached = {**reached, **{line: max(at, reached.get(line, at)) for line, at in plan.coin_lines.items()}}
        found[name] = explain(plan, remaining=left)
    return JobPlan(job, planner, found, start - left)


def planned(job: Job | JobPlan, *checks: Callable[[Job], None]) -> JobPlan:
    """Return a job as it was planned, or plan it; first it is refused for whatever these checks find."""
    for check in checks:
        check(job.job if isinstance(job, JobPlan) else job)
    return job if isinstance(job, JobPlan) else plan_job(job)


def plan_releases(job: Job) -> tuple[Planner, dict[str, Plan]]:
    """Return the plan of each release of a job by name, whatever remains, and who made them."""
    planner = Planner(job.about())
    return planner, {release.name: _planned(job, planner, release, release.epsilon) for release in job.releases}


def with_accuracy(job: Job, wanted: Accuracy) -> Job:
    """Return the job with the smallest epsilons that make every release as accurate, whatever remains."""
    planner = Planner(job.about())
    costs = {release.name: _planned(job, planner, release, wanted).epsilon for release in job.releases}
    return replace(job, releases=tuple(replace(release, epsilon=costs[release.name]) for release in job.releases))


def sweep(job: Job, on_progress: Progress | None = None) -> dict[str, list[Explanation]]:
    """Return each release of a job at the epsilons of `SWEPT`, beside plain privacy; without those that are refused."""
    planner = Planner(job.about())
    found: dict[str, list[Explanation]] = {}
    for done, release in enumerate(job.releases):
        if on_progress is not None:
            on_progress(release.name, done, len(job.releases))
        plans = []
        for epsilon in SWEPT:
            try:
                plans.append(_planned(job, planner, release, epsilon))
            except PlanError as refused:
                if not refused.key.endswith("epsilon"):  # it needs more noise than can be drawn
                    raise
        found[release.name] = [explain(plan) for plan in plans]
    return found


def _planned(job: Job, planner: Planner, release: JobRelease, cost: Fraction | Accuracy) -> Plan:
    with _name_in_refusals(job, release):
        options = {"consistent": release.consistent, "nonnegative": release.nonnegative}
        return planner.plan(release.query, cost, **options, application=release.application)
    raise AssertionError  # the refusal was raised


def remaining(job: Job) -> Fraction:
    """Return what the job may spend: what its ledger has left for the data set, and never more than its budget."""
    with _begun_ledger(job) as ledger:
        if ledger is not None and (
            job.budget is None or any(account.dataset == job.dataset for account in ledger.accounts())
        ):
            left = ledger.remaining(dataset=job.dataset, analyst=job.analyst)
            return left if job.budget is None else min(left, job.budget)
    if job.budget is None:
        # here, not above: a database takes long to load
        from tacit.ledger.input import address_of, grant_command

        grant = grant_command(address_of(job.ledger or "ledger.db").name, job.dataset, shown(job.cost or Fraction(1)))
        fix = f"Add `budget: 1.0`, or grant a budget: {grant}."
        raise JobError("must be given, since the ledger is new", key="budget", file=job.file, fix=fix)
    return job.budget


def refusals(job: Job, plans: Sequence[Plan] = (), table: TableNote | None = None) -> Mapping[str, TacitError]:
    """Return what would refuse to pay for a job, by what it is about; nothing is charged.

    It is a dry run of paying, with the sentences that the run would give: `policy`, `table`, `leakage`, `files`.
    """
    try:
        check_limits_kept(job, plans)
        with _purse(job, job.leakage) as purse:
            return {} if purse is None else purse.refusals(plans, opening=True, table=table)
    except Refused as refused:  # the limits themselves
        return {"leakage": refused}


def check_paying(job: Job, table: TableNote | None = None) -> None:
    """Refuse a job with the first sentence that paying for it would give. Nothing is charged."""
    for refused in refusals(job, table=table).values():
        raise refused


def check_limits_kept(job: Job, plans: Sequence[Plan]) -> None:
    """Refuse limits on what applications learn where no ledger keeps the coins and what was shown.

    Another run would toss new coins, and nobody would know of the first: both together tell more than a limit.
    """
    if job.leakage is not None and job.ledger is None and any(one.records and one.records.shows for one in plans):
        raise JobError(
            "must be given where a limit holds: without one, coins are forgotten after the run, and another run would "
            "show more than the limit allows",
            key="ledger",
            file=job.file,
            fix="Add `ledger: ledger.db`, and always the same for the same rows. Nothing was charged.",
        )


@contextmanager
def _purse(job: Job, leakage: Applications | None = None) -> Iterator[Purse | None]:
    """Open the purse that a run of the job would pay from; None without a ledger, which alone remembers anything."""
    if job.ledger is None:
        yield None
        return
    # here, not above: a database takes long to load
    from tacit.release.budget import LeakageWatch, Purse

    files = source_files(job.source)
    content = FileContents(files) if all(is_file(file) for file in files) else None
    whose: dict[str, Any] = {"dataset": job.dataset, "analyst": job.analyst, "source": source_name(job.source)}
    policy = job.about()
    with _begun_ledger(job) as ledger:
        yield Purse(policy, job.budget, ledger, LeakageWatch(leakage, policy), **whose, content=content)


@contextmanager
def _begun_ledger(job: Job) -> Iterator[Ledger | None]:
    """Open the ledger of a job, if there is one to look at: the first release begins a file that is not there yet."""
    if job.ledger is None:
        yield None
        return
    # here, not above: a database takes long to load, and a job that has none is planned without
    from tacit.ledger.input import address_of
    from tacit.ledger.ledger import Ledger

    file = address_of(job.ledger).file
    if (
        file is not None
        and file.parent.is_dir()
        and (not file.exists() or (file.is_file() and not file.stat().st_size))
    ):
        yield None
        return
    with Ledger(job.ledger, create=False) as ledger:
        yield ledger


@contextmanager
def _name_in_refusals(job: Job, release: JobRelease) -> Iterator[None]:
    try:
        yield
    except Refused as refusal:
        located = refusal.located(file=job.file, key=f"release {release.name!r}: {refusal.key}")
    else:
        return
    raise located


# ---- what must be so ------------------------------------------------------------------------------------------------


def check_cost(job: Job) -> None:
    """Refuse a job that costs more than what remains."""
    left = remaining(job)
    if any(release.query.remembers for release in job.releases):
        return  # what was paid before is known once the ledger is charged, which refuses before rows are opened
    if job.cost > left:
        _check_accuracy(job, left)
        raise BudgetExceeded(
            f"must not cost more in all than what remains, {shown(left)}",
            key=RELEASES if job.releases else "table",
            given=job.cost,
            file=job.file,
            fix="Ask for less, or grant more budget. Nothing was charged.",
        )


def _check_accuracy(job: Job, left: Fraction) -> None:
    """Refuse a release whose accuracy costs more than the ledger has left beside the others; say what is reached."""
    planner = Planner(job.about())
    for release in job.releases:
        if release.error is None and release.within is None:
            continue
        wanted = cost_or_accuracy(None, release.error, release.within, release.level)
        its_share = partial(operator.sub, left, job.cost - release.epsilon)
        with _name_in_refusals(job, release):
            planner.plan(
                release.query,
                wanted,
                its_share,
                consistent=release.consistent,
                nonnegative=release.nonnegative,
                application=release.application,
            )


def check_rows(job: Job) -> None:
    """Refuse files of rows that do not exist, are no tables, or lack a column; no row is opened."""
    for path in job.rows:
        if Path(path).is_file() or any(Path(match).is_file() for match in glob.iglob(path, recursive=True)):
            continue
        is_pattern = glob.has_magic(job.places.get(path, (0, path))[1])
        raise job.refuse(
            "rows",
            "must match a file" if is_pattern else "must be a file that exists",
            given=path,
            fix="Check the path; it is relative to the job file.",
            place=path,
            exit_code=Exit.UNREACHABLE,
        )
    _check_columns(job)


def _check_columns(job: Job) -> None:
    policy = job.about()
    declared = {
        column: name for name, attribute in policy.domain.items() for column in attribute.read_from(name, policy.item)
    }
    named = {key: column for key, column in (("person", policy.person), ("order", policy.order)) if column is not None}
    names: list[str] = []
    refusal = None
    try:
        names = column_names(job.source, {*declared, *named.values()})
    except DataRefused as refused:
        refusal = refused
    if refusal is not None:
        line, _ = job.places.get(job.rows[0], (None, ""))
        rule, code = f"cannot be read: {refusal.rule}", refusal.exit_code
        raise JobError(rule, key="rows", file=job.file, line=line, fix=refusal.fix, exit_code=code)

    def fix() -> str:
        return known_columns(names, declared) or "Check the name in the header of the file."

    for column, name in declared.items():
        if column not in names:
            file, line = _declared_at(job, name)
            key = f"domain.{name}" if column == name else f"domain.{name}: {column}"
            rule = "must be a column of the rows"
            raise JobError(rule, key=key, file=file, line=line, fix=fix(), exit_code=Exit.DATA_CHANGED)
    for key, wanted in named.items():
        if wanted not in names:
            rule = "must be a column of the rows"
            raise job.refuse(key, rule, given=wanted, fix=fix(), exit_code=Exit.DATA_CHANGED)


def _declared_at(job: Job, name: str) -> tuple[str, int | None]:
    policy = job.places.get("policy", (0, ""))[1]
    file = Path(job.file).parent / policy if policy else Path(job.file)
    try:
        text = file.read_text(encoding="utf-8-sig")
        return policy or job.file, attribute_line(text, name, below="" if policy else "policy")
    except (OSError, UnicodeDecodeError, Refused):  # it was read before, and may have changed
        return policy or job.file, None


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
    reserved = session.reserve(plan.plans, run=run, job=job.label)
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
    # here, not above: engines take long to load, and most jobs are only planned
    from tacit.release.session import Session

    try:
        return Session(
            job.policy,
            job.source,
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
        refusal = DataRefused(refused.rule, column=refused.column, fix=fix, exit_code=refused.exit_code)
    raise refusal
