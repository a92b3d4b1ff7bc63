"""`tacit check POLICY`: what a policy protects and what not.

With `--pair`, how far apart two records are; with `--rows`, which cells do not fit the domain.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.screen import AsJson, show_json, show_wrapped
from tacit.errors import PolicyError

if TYPE_CHECKING:
    from tacit.policy.policy import Policy

_Column = Annotated[str | None, typer.Option(metavar="COLUMN", help="With --rows: as in a job file.")]


def check_policy(
    policy: Annotated[Path, typer.Argument(metavar="POLICY.yaml", help="The policy file.")],
    *,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            metavar="DATA",
            help="Instead, count which cells of these files do not fit the domain, for you alone; may be repeated.",
        ),
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--pair",
            metavar="X Y",
            help="Instead, say how many secret edges lead from one record to another, as in age=30,sex=F age=42; "
            "absent is somebody not in the data.",
        ),
    ] = None,
    person: _Column = None,
    per_person: Annotated[int | None, typer.Option(min=1, help="With --rows: as in a job file.")] = None,
    order: _Column = None,
    item: _Column = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="COLUMN", help="With --rows: also count keys of true records that repeat; may be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read a policy and say in plain words what it protects, what is public, and what it does not protect.

    With --pair, say instead how far apart two records are, and what a release promises about them. What Y leaves out is
    as in X, what both leave out is an ordinary value, which is shown. Items and cells of a map are lists:
    visited=[park,pub], place=[2,3].

    With --rows, count instead how many cells of each column are unexpected, and of what kind, and how many rows and
    people would remain; with --key also whether these columns name every row once. These are true counts, for whoever
    holds the data: they are written nowhere and are part of no release.
    """
    from tacit.policy.policy_file import load_policy

    found = load_policy(policy)
    if pair and rows:
        raise PolicyError("must stand alone", key="--pair", fix="Leave out --rows.")
    if rows:
        from tacit.release.curator.row_check import check_rows

        checked = check_rows(found, rows, person=person, per_person=per_person, order=order, item=item, key=key or ())
        if as_json:
            show_json(checked.document())
        else:
            show_wrapped(str(checked).splitlines())
        return
    for name, given in (("person", person), ("per-person", per_person), ("order", order), ("item", item), ("key", key)):
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
    from tacit.policy.describe import (
        Section,
        description,
        protected_examples,
        protections,
        public_facts,
        warnings,
    )

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
            "public": public_facts(found),
            "warnings": warnings(found),
            "knowledge": [cost.document() for cost in costs],
        }
    )
