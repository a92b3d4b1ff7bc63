"""`tacit init|check|schema`: draft a policy, say what it protects and which cells do not fit, schemas of the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.screen import AsJson, command, plain_text, show, show_json, show_wrapped
from tacit.errors import PolicyError

if TYPE_CHECKING:
    from tacit.draft import DraftedLine, PolicyDraft
    from tacit.policy.policy import Policy

_Decimal = Annotated[str, typer.Option(metavar="SIGN", help="As `decimal` in a job file: , for decimal commas.")]
_Format = Annotated[str, typer.Option("--format", metavar="FORM", help="As in a job file, such as DD.MM.YYYY.")]
_Encoding = Annotated[str, typer.Option(metavar="NAME", help="As in a job file, such as cp1252.")]
_Column = Annotated[str | None, typer.Option(metavar="COLUMN", help="With --rows: as in a job file.")]


def check_policy(
    policy: Annotated[Path, typer.Argument(metavar="POLICY.yaml", help="The policy file.")],
    *,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            metavar="DATA",
            help="Instead, count the cells of these files that do not fit the domain. May be repeated.",
        ),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--pair",
            metavar="X Y",
            help="Instead, say how many secret edges lead from one record to another, as in age=30,sex=F age=42; "
            "`absent` is somebody who is not in the data.",
        ),
    ] = None,
    person: _Column = None,
    per_person: Annotated[int | None, typer.Option(min=1, help="With --rows: as in a job file.")] = None,
    order: _Column = None,
    item: _Column = None,
    decimal: _Decimal = ".",
    form: _Format = "",
    encoding: _Encoding = "utf-8",
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="COLUMN", help="With --rows: a column of a key, to count duplicate keys. May be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a policy and say in plain words what it protects, what is public, and what it does not protect.

    With --pair, say instead how far apart two records are, and what a release promises about them. Attributes that Y
    leaves out are as in X; attributes that both leave out get an ordinary value, which is shown. Items and cells of a
    map are lists: visited=[park,pub], place=[2,3].

    With --rows, count instead the unexpected cells of each column by kind, and the rows and people that would remain;
    with --key also duplicate keys. These are true counts, for whoever holds the data: they are not stored anywhere and
    are part of no release.
    """
    from tacit.policy.policy_file import load_policy
    from tacit.rows.files.written import Written

    found = load_policy(policy)
    if pair and rows:
        raise PolicyError("must stand alone", key="--pair", fix="Leave out --rows.")
    if rows:
        from tacit.release.curator.row_check import check_rows

        source = Written(rows, decimal, form, encoding)
        checked = check_rows(found, source, person=person, per_person=per_person, order=order, item=item, key=key or ())
        if as_json:
            show_json(checked.document())
        else:
            show_wrapped(str(checked).splitlines())
        return
    columns = {"person": person, "per-person": per_person, "order": order, "item": item, "key": key}
    for name, given in {**columns, **Written(None, decimal, form, encoding).keys}.items():
        if given is not None:
            raise PolicyError("needs --rows", key=f"--{name}", given=given, fix="Name the files of rows.")
    if pair:
        from tacit.policy.pair import check_pair

        named = check_pair(found, *pair)
        if as_json:
            show_json(named.document())
        else:
            show_wrapped(named.lines)
        return
    _describe(found, as_json=as_json)


def _describe(found: Policy, *, as_json: bool) -> None:
    from tacit.plan.sensitivity.fact_cost import costs_for_tables
    from tacit.policy.describe import Section, description, protected_examples, protections, public_facts, warnings

    costs = costs_for_tables(found)
    if not as_json:
        heading = "What it costs that this is known (in a histogram of all attributes)"
        known = Section(heading, tuple(cost.words for cost in costs), warns=True)
        for number, section in enumerate([*description(found), *([known] if costs else [])]):
            show_wrapped([*([""] if number else []), *section.lines])
        return
    show_json(
        {
            "policy": found.document(),
            "fingerprint": found.fingerprint,
            "person": found.person,
            "per_person": found.per_person,
            "order": found.order,
            "item": found.item,
            "protects": protections(found),
            "examples": [example.document() for example in protected_examples(found)],
            **({"against": found.adversary.words()[0]} if found.adversary.is_named else {}),
            "public": public_facts(found),
            "warnings": warnings(found),
            "knowledge": [cost.document() for cost in costs],
        }
    )


MOST_SHOWN = 40  # columns of each list; the draft itself has all of them
WITHHELD = "(a column whose name may be a value)"


def draft(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A CSV or Parquet file; a workbook (.xlsx) or a database (DuckDB, SQLite, a PostgreSQL address), of "
            "which a table is copied into a CSV file; or a description of a table: a data package or CSVW (.json).",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="POLICY.yaml", help="The file to write.")] = Path("policy.yaml"),
    job: Annotated[Path, typer.Option("--job", metavar="JOB.yaml", help="The job file to write.")] = Path("job.yaml"),
    table: Annotated[str | None, typer.Option(metavar="NAME", help="The sheet or table, if there are several.")] = None,
    decimal: _Decimal = ".",
    form: _Format = "",
    encoding: _Encoding = "utf-8",
    has_header: Annotated[
        bool, typer.Option("--has-header", help="The first line contains names, even if they look like values.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Draft a policy and a job from column names, types and a random sample of the rows, and say what needs review.

    The drafts contain values from the data, so keep them private until somebody has reviewed them. The terminal shows
    names of columns only, and no name that may itself be a value. What a description of the table says is taken as
    public. Decimal commas, forms of dates and encodings that leave no doubt are found; others are options.
    """
    from tacit.draft import draft as drafted
    from tacit.draft.metadata import read_description
    from tacit.rows.files.copied_tables import copied_table, is_other_table
    from tacit.rows.files.written import Written

    told = Written(None, decimal, form, encoding)
    for key, file in (("--out", out), ("--job", job)):
        if file.exists():
            raise _exists(file, key)
    description = read_description(Path(data), table) if data.lower().endswith(".json") else None
    if description is not None:
        data = str(description.rows)
    copied = is_other_table(data)
    if table is not None and description is None and not copied:
        raise PolicyError(
            "needs a workbook, a database or a description", key="--table", given=table, fix="Leave it out."
        )
    if encoding != "utf-8" and copied:
        raise PolicyError("needs a CSV file", key="--encoding", given=encoding, fix="Leave it out.")
    if copied:
        data = str(copied_table(data, table, out.parent))
    made = drafted(replace(told, rows=data), has_header=has_header or copied, description=description)
    _write(out, made.text, "--out")
    folder = job.absolute().parent
    try:
        _write(job, made.job(*(os.path.relpath(Path(path).absolute(), folder) for path in (out, data))), "--job")
    except PolicyError:
        out.unlink(missing_ok=True)
        raise
    if as_json:
        show_json(_document(out, job, data, made))
        return
    if copied:
        show(f"Wrote {data}: the rows, as they are. Nothing protects them there.")
    show(
        f"Wrote {out} and {job}: drafts. They contain values of the data, so keep them to yourself until you have "
        "reviewed them."
    )
    if made.way.keys:
        show("\nThe texts are written in another way, which the job declares; look whether it is so:")
        for key, value in made.way.keys.items():
            show(f"  {key}: {value}")
    for question in made.questions:
        show(f"\nAnswer: {plain_text(question, longest=400)}")
    if made.review:
        show("\nReview: write what is possible, not what happens to occur.")
        _list(out, made.review)
    if made.left_out:
        show("\nLeft out, because they cannot be declared as they are:")
        _list(out, made.left_out)
    if made.columns_left:
        show(f"\nThe data have {made.columns_left:,} more columns, which the draft does not reach.")
    says = f"`{command('check', out)}` says what they protect."
    show(f"\nThen choose the secrets; the draft begins with ordinary differential privacy. {says}")
    words = [word for key, value in made.way.keys.items() for word in (f"--{key}", value)]
    check = command("check", out, "--rows", data, *words)
    show(f"`{check}` shows you, and nobody else, which cells do not fit.")
    show(f"Then choose the questions; `{command('plan', job)}` says how wrong the answers will be.")


def _document(out: Path, job: Path, data: str, made: PolicyDraft) -> dict[str, Any]:
    return {
        "policy_file": str(out),
        "job_file": str(job),
        "rows": data,
        "written": made.way.keys,
        "questions": list(made.questions),
        "review": [{"line": line.number, "column": line.column} for line in made.review],
        "undeclared": [{"line": one.number, "column": one.column, "reason": one.reason} for one in made.left_out],
        "columns_not_reached": made.columns_left,
    }


def _list(out: Path, lines: Sequence[DraftedLine]) -> None:
    places: dict[tuple[str, str], list[int]] = {}  # one line for each column; those without a name are told together
    for line in lines:
        name = WITHHELD if line.column is None else plain_text(line.column)
        places.setdefault((name, plain_text(line.reason, longest=200)), []).append(line.number)
    for (name, reason), numbers in list(places.items())[:MOST_SHOWN]:
        also = f" (and {', '.join(map(str, numbers[1:]))})" if numbers[1:] else ""
        show(f"  {out}:{numbers[0]}  {name}{also}{': ' if reason else ''}{reason}")
    if len(places) > MOST_SHOWN:
        show(f"  and {len(places) - MOST_SHOWN:,} more columns in {out}")


def _write(out: Path, text: str, key: str) -> None:
    try:
        with out.open("x", encoding="utf-8") as file:  # x: never over a file that came into being meanwhile
            file.write(text)
    except FileExistsError:
        refusal = _exists(out, key)
    except OSError as fault:
        reason = (fault.strerror or "not possible").lower()
        refusal = PolicyError(
            f"must be a file that can be written ({reason})", key=key, given=str(out), fix="Name another."
        )
    else:
        return
    raise refusal


def _exists(out: Path, key: str) -> PolicyError:
    fix = f"Name another with {key}; nothing is overwritten."
    return PolicyError("must not exist yet", key=key, given=str(out), fix=fix)


File = StrEnum("File", ["policy", "job", "case", "table"])


def show_schema(file: Annotated[File, typer.Argument(help="Which file.")], *, as_json: AsJson = False) -> None:
    """Print the JSON schema of policy, job, case or table files; editors use it to complete and check them."""
    room = "policy" if file == File.policy else "jobs"
    module = import_module(f"tacit.{room}.{file.value}_file")
    show_json(getattr(module, f"{file.value}_schema")())  # a schema is JSON with or without --json
