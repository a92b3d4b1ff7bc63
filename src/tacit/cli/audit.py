"""`tacit audit`: test whether mechanisms keep their promise; `tacit plan leakage`: which epsilons to choose."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from tacit.cli.screen import (
    AsJson,
    OnProgress,
    SetVariables,
    command,
    note,
    plain_document,
    progress,
    show,
    show_json,
    show_wrapped,
    write_chart,
)
from tacit.errors import PlanError, Refused, nearest

if TYPE_CHECKING:
    from rich.table import Table

    from tacit.audit.case_audit import CaseAudit
    from tacit.audit.sampled_audits.subjects import AuditRow
    from tacit.audit.selfcheck.attacked_tables import AttackRow
    from tacit.jobs.case_file import Case

Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", metavar="FOLDER", help="Also write a page and the data to this new folder.")
]
CaseFile = Annotated[Path, typer.Argument(metavar="CASE.yaml", help="The case file.")]


def audit_exclusion(
    case: CaseFile,
    *,
    output: Output = None,
    variables: SetVariables = None,
    as_json: AsJson = False,
) -> None:
    """Show what each application and coalition of a case could learn about protected values, on average and at worst.

    Spends nothing. Opens private rows only if the case says `unprotected: true`. Epsilons are those of the case, or
    those planned under its limit.
    """
    from tacit.audit.case_audit import HEADINGS, audit_case
    from tacit.jobs.case_file import read_case
    from tacit.jobs.variables import read_variables

    _check_output(output)
    found = audit_case(read_case(case, read_variables(variables)))
    written = [] if output is None else _write(found, output)
    if as_json:
        show_json({**found.document(), "files": [str(file) for file in written]})
        return
    from rich.table import Table

    table = Table(title=f"{found.case.name}: what could be learned")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("who", "about", "after") else "right", overflow="fold")
    for row in found.rows:
        table.add_row(*row.cells())
    show(*found.case.dependence.marks, table)
    for name, each in found.epsilon.items():
        show(f"{name} is shown {', '.join(f'{one} at epsilon {epsilon:.6g}' for one, epsilon in each.items())}.")
    show(*found.remarks, *(f"Written: {file}" for file in written))


def plan_leakage(case: Path, *, variables: Mapping[str, str], as_json: bool) -> int:
    """Show the epsilons that release the most under the limit of a case, with a bound on what could be better."""
    from tacit.jobs.case_file import read_case
    from tacit.plan.leakage.leakage_plan import METHODS

    found = read_case(case, variables)
    plan = found.plan()
    refused = "" if found.job is None else _refusal(found)
    if as_json:
        show_json({"case": found.name, "run_refused": refused or None, **plan.document()})
        return 1 if refused else 0
    opened = "private rows were counted for the dependence" if plan.unprotected else "no private row was opened"
    show(str(plan), f"Found by {METHODS[plan.method]}. Nothing was spent; {opened}.")
    if found.job is not None:
        show(f"`{command('run', case)}` {'would be refused.' if refused else 'makes the releases.'}")
    note(*filter(None, [refused]))
    return 1 if refused else 0


def _refusal(case: Case) -> str:
    """Return the sentence with which a run of the case would be refused for what it tells, or nothing."""
    from tacit.jobs.job_run import plan_job, refusals

    try:
        plan = plan_job(case.to_run())
    except Refused as refusal:
        return str(refusal)
    return str(refusals(plan.job, plan.plans).get("leakage", ""))


def _write(audit: CaseAudit, folder: Path) -> list[Path]:
    from tacit.report.audit_page import leakage_page
    from tacit.report.charts.audit_charts import leakage_charts
    from tacit.report.charts.release_charts import chart_png

    charts = leakage_charts(audit)
    files = _files(folder, "exclusion", leakage_page(audit, charts), audit.document())
    return _written({folder / f"{name}.png": chart_png(chart) for name, chart in charts.items()} | files)


def _check_output(folder: Path | None) -> None:
    """Refuse a folder that is there already, before anything is audited."""
    if folder is not None and folder.exists():
        raise PlanError("must not exist yet", key="--output", given=str(folder), fix="Name a new folder.")


def _files(folder: Path, name: str, page: str, document: Mapping[str, Any]) -> dict[Path, bytes]:
    """Return an audit as a page and as data."""
    data = json.dumps(plain_document(document), indent=2)
    return {folder / f"{name}.html": page.encode(), folder / f"{name}.json": data.encode()}


def _written(files: Mapping[Path, bytes]) -> list[Path]:
    next(iter(files)).parent.mkdir(parents=True)
    for file, content in files.items():
        file.write_bytes(content)
    return list(files)


app = typer.Typer(no_args_is_help=True, help="Check what a mechanism promises.", rich_markup_mode=None)

Samples = Annotated[
    int, typer.Option("--samples", min=1_000, help="How many outputs of each of the two data sets to draw.")
]
Alpha = Annotated[float, typer.Option("--alpha", help="The probability of a false alarm.")]
NEVER = "NONE_FOUND proves nothing by itself: a leak may be too rare or too small for this many samples."


@app.command("list", short_help="List everything that can be audited without a policy.")
def show_names(*, as_json: AsJson = False) -> None:
    """List the mechanisms of the package, the planted leaks, and the tables under attack."""
    from tacit.audit.selfcheck.attacked_tables import attacked_tables
    from tacit.audit.selfcheck.planted import planted
    from tacit.audit.selfcheck.registry import MECHANISMS

    leaks = {name: leak.mistake for name, leak in planted.items()}
    tables = {name: table.what for name, table in attacked_tables.items()}
    if as_json:
        show_json({"mechanisms": list(MECHANISMS), "planted": leaks, "tables": tables})
        return
    show("Mechanisms:", *(f"  {name}" for name in MECHANISMS), "", "Planted leaks:")
    show(*(f"  {name}: {mistake}" for name, mistake in leaks.items()), "", "Tables under attack, right and wrong ones:")
    show(*(f"  {name}: {what}" for name, what in tables.items()))


@app.command("mechanism", short_help="Audit one mechanism, on a policy of yours or on its own example.")
def audit_mechanism(
    name: Annotated[str, typer.Argument(help="With --policy a kind of question, such as histogram; else see `list`.")],
    *,
    policy: Annotated[Path | None, typer.Option("--policy", metavar="P.yaml", help="The policy file.")] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", help="With --policy: the epsilon that is claimed; 1 if not given.")
    ] = None,
    ask: Annotated[
        str | None, typer.Option("--ask", help="With --policy: the question as a job writes it, 'histogram: [age]'.")
    ] = None,
    samples: Samples = 1_000_000,
    alpha: Alpha = 1e-6,
    as_json: AsJson = False,
) -> int:
    """Audit what a session would do for a question of this kind, exactly and by samples, on the worst secret edges.

    Exit code 1 if a leak is found.
    """
    if policy is None:
        for option, given in (("--epsilon", epsilon), ("--ask", ask)):
            if given is not None:
                raise PlanError("needs a policy", key=option, given=given, fix="Say --policy P.yaml as well.")
        rows = [lambda on: _named(name, samples, alpha, on)]
    else:
        rows = [lambda on: _asked(name, ask, policy, epsilon or "1", samples, alpha, on)]
    return _report(rows, [name], as_json=as_json, say_witness=True)


@app.command("job", short_help="Audit every release of a job, on neighbouring data sets made up from its policy.")
def audit_job(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file, or a case file.")],
    *,
    samples: Samples = 1_000_000,
    alpha: Alpha = 1e-6,
    output: Output = None,
    variables: SetVariables = None,
    as_json: AsJson = False,
) -> int:
    """Audit each mechanism of a job by itself, and each release as a whole, from rows to record.

    If several releases show true records with a key, these are also audited together, one after the other. Opens no row
    of the job and spends nothing: neighbouring data sets are made up from the policy.
    """
    from tacit.audit.sampled_audits.releases import WholeRelease, seconds_each
    from tacit.audit.sampled_audits.sampled_audit import check_power
    from tacit.audit.sampled_audits.subjects import audit_subject, audit_whole, records_subject, subject_of
    from tacit.jobs.job_file import read_job_or_case
    from tacit.jobs.job_run import plan_releases
    from tacit.jobs.variables import read_variables

    _check_output(output)
    found = read_job_or_case(job, read_variables(variables))
    _, plans = plan_releases(found)
    check_power(samples, alpha, max(release.epsilon for release in found.releases))
    seconds = seconds_each(len(found.releases))
    rows: list[Any] = []
    names: list[str] = []
    for release in found.releases:
        name, plan = release.name, plans[release.name]
        whole = WholeRelease(found.about(), release.query, release.epsilon, release.consistent, release.nonnegative)
        names += [name, f"{name}, whole"]
        rows.append(lambda on, n=name, p=plan: audit_subject(subject_of(n, p), samples, alpha, on))
        rows.append(lambda on, n=names[-1], w=whole: audit_whole(n, w, samples, alpha, on, seconds))
    shown = [plans[release.name].records for release in found.releases]
    asked = [plan for plan in shown if plan is not None and plan.naming]
    if len(asked) > 1:
        names.append("true records, one after the other")
        rows.append(lambda on: audit_subject(records_subject(names[-1], asked), samples, alpha, on))

    def write(done: list[Any]) -> None:
        if output is not None:
            from tacit.report.audit_page import losses_page

            document = {"audits": [row.document() for row in done]}
            _written(_files(output, "audit", losses_page(found.name, done, [NEVER]), document))

    return _report(rows, names, as_json=as_json, say_witness=True, then=write)


app.command("exclusion", short_help="Show what applications of a case could learn from missing values.")(
    audit_exclusion
)


@app.command(
    "disclosure", short_help="Show what a job would disclose about groups; reads private data, for the curator."
)
def audit_disclosure(
    job: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job file.")],
    *,
    curator: Annotated[
        bool, typer.Option("--curator", help="Confirm that you may see the rows: this audit opens them.")
    ] = False,
    public: Annotated[
        list[str] | None,
        typer.Option("--public", metavar="NAME", help="What a reader may know; by default what is not secret."),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", metavar="NAME", help="What must not be disclosed; by default what is secret."),
    ] = None,
    tau: Annotated[float, typer.Option("--tau", help="How far off a guess may be, as a share of the truth.")] = 0.2,
    closeness: Annotated[float, typer.Option("--closeness", help="How likely a guess must be that close.")] = 0.7,
    jump: Annotated[
        float, typer.Option("--jump", help="How many times larger the share must be than among all people.")
    ] = 3.0,
    chart: Annotated[Path | None, typer.Option("--chart", metavar="FILE.svg", help="Also draw the chart here.")] = None,
    output: Output = None,
    variables: SetVariables = None,
    as_json: AsJson = False,
) -> None:
    """Show in which groups the answers of a job would disclose a sensitive value, before it is run. Spends nothing.

    This reads private data and shows what it finds. It is for whoever holds the rows, who confirms it with --curator.
    """
    from tacit.audit.disclosure_audits.disclosures import disclosure
    from tacit.jobs.job_file import read_job
    from tacit.jobs.job_run import check_rows, plan_releases
    from tacit.jobs.variables import read_variables

    if not curator:
        rule = "must be given: this audit opens the rows and shows true counts, for whoever holds them"
        raise PlanError(rule, key="--curator", fix="Say --curator if you are that person, and publish nothing of it.")
    if chart is not None and chart.suffix.lower() not in (".svg", ".png"):
        fix = "Use one of these endings."
        raise PlanError("must be an .svg or a .png file", key="--chart", given=chart.name, fix=fix)
    if chart is not None and (chart.exists() or not chart.parent.is_dir()):
        fix = "Name another."
        raise PlanError("must be a new file in a folder that exists", key="--chart", given=str(chart), fix=fix)
    _check_output(output)
    found = read_job(job, read_variables(variables))
    check_rows(found)
    _, plans = plan_releases(found)
    audited = disclosure(
        found.source,
        plan=list(plans.values()),
        public=public or None,
        sensitive=sensitive or None,
        tau=tau,
        closeness=closeness,
        jump=jump,
    )
    if chart is not None:
        write_chart(audited.chart(), chart)
    if output is not None:
        from tacit.report.audit_page import disclosure_page

        page = disclosure_page(found.name, audited, {"disclosures": audited.chart()})
        _written(_files(output, "disclosure", page, audited.document()))
    if as_json:
        show_json(audited.document())
    else:
        show_wrapped(str(audited).splitlines())


@app.command("all", short_help="Audit every mechanism of the package and every planted leak.")
def audit_everything(
    *,
    samples: Samples = 1_000_000,
    alpha: Alpha = 1e-6,
    write: Annotated[Path | None, typer.Option("--write", metavar="FILE.md", help="Also write the table here.")] = None,
    as_json: AsJson = False,
) -> int:
    """Audit everything. Exit code 1 unless every planted leak is found and no mechanism of ours leaks."""
    from tacit.audit.sampled_audits.sampled_audit import check_power
    from tacit.audit.selfcheck.registry import as_markdown, audit_named, claimed_by, names

    if write is not None and (write.is_dir() or not write.parent.is_dir()):
        fix = "Make the folder."
        raise PlanError("must be a file in a folder that exists", key="--write", given=str(write), fix=fix)
    check_power(samples, alpha, max(claimed_by(name) or 0 for name in names()))
    rows = [lambda on, n=name: audit_named(n, samples, alpha, on) for name in names()]
    return _report(
        rows,
        names(),
        as_json=as_json,
        then=lambda done: write and write.write_text(as_markdown(done), encoding="utf-8"),
    )


def _named(name: str, samples: int, alpha: float, on: Callable[[float], None]) -> AuditRow | AttackRow:
    from tacit.audit.sampled_audits.sampled_audit import check_power
    from tacit.audit.selfcheck.registry import audit_named, claimed_by, names
    from tacit.plan.questions.written import KEYWORDS

    if name not in names():
        is_question = name in KEYWORDS
        fix = "Add --policy P.yaml: it is a kind of question." if is_question else nearest(name, names())
        raise PlanError("must be a name from `tacit audit list`", key="mechanism", given=name, fix=fix)
    epsilon = claimed_by(name)
    if epsilon is not None:
        check_power(samples, alpha, epsilon)
    return audit_named(name, samples, alpha, on)


def _asked(
    name: str, ask: str | None, policy: Path, epsilon: str, samples: int, alpha: float, on: Callable[[float], None]
) -> AuditRow:
    from tacit.audit.sampled_audits.sampled_audit import check_power
    from tacit.audit.sampled_audits.subjects import audit_subject, subject_of
    from tacit.plan.questions.written import example
    from tacit.policy.policy import Policy
    from tacit.release.planner import Planner

    found = Policy.load(policy)
    query = example(name, found) if ask is None else _question(ask, name)
    plan = Planner(found).plan(query, epsilon)
    check_power(samples, alpha, plan.epsilon)
    return audit_subject(subject_of(str(plan.query), plan), samples, alpha, on)


def _question(text: str, keyword: str) -> Any:
    """Return the question of this kind that is written as in a job file: `histogram: [age]`."""
    import yaml

    from tacit.plan.questions.written import from_document

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        document = None
    if document is None:
        raise PlanError("must be a question", key="ask", given=text, fix="For instance 'histogram: [age]'.")
    query = from_document(document)
    if keyword not in (document if isinstance(document, Mapping) else [document]):
        rule = f"must be a question of the kind {keyword}"
        raise PlanError(rule, key="ask", given=text, fix="Name that kind instead.")
    return query


def _report(
    rows: Iterable[Callable[[Callable[[float], None]], AuditRow | AttackRow]],
    names: list[str],
    *,
    as_json: bool,
    say_witness: bool = False,
    then: Callable[[list[AuditRow | AttackRow]], Any] = lambda done: None,
) -> int:
    """Audit one after the other, show the tables, and say whether all is as expected."""
    from tacit.audit.sampled_audits.subjects import HEADINGS

    done: list[AuditRow | AttackRow] = []
    with progress("auditing", as_json=as_json) as on_progress:
        for at, (name, row) in enumerate(zip(names, rows, strict=True)):
            done.append(row(_share(on_progress, name, at, len(names))))
    then(done)
    wrong = [row for row in done if not row.as_expected]
    audits = [row for row in done if row.headings == HEADINGS]
    tables = [row for row in done if row.headings != HEADINGS]
    if as_json:
        documents = {"audits": [row.document() for row in audits], "tables": [row.document() for row in tables]}
        show_json({**documents, "as_expected": not wrong})
    else:
        for some in (audits, tables):
            if some:
                show(_table(some))
        if say_witness:
            show(*(f"{row.name}: {row.found}" for row in done))
        if wrong:
            show(f"Not as expected: {', '.join(row.name for row in wrong)}.")
        if any(row.found.verdict == "NONE_FOUND" for row in done):
            note(NEVER)
    # a planted leak that is found on request is as expected, and still a leak
    leaks = say_witness and any(row.found.verdict == "LEAK_FOUND" for row in done)
    return 1 if wrong or leaks else 0


def _share(on_progress: OnProgress, name: str, at: int, many: int) -> Callable[[float], None]:
    on_progress(name, 100 * at, 100 * many)
    return lambda share: on_progress(name, int(100 * (at + share)), 100 * many)


def _table(rows: Sequence[AuditRow | AttackRow]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in rows[0].headings:
        # a name is there to be copied, so it is never cut; headings may take two lines
        is_text = heading in ("mechanism", "table", "verdict")
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=is_text)
    for row in rows:
        table.add_row(*row.cells())
    return table
