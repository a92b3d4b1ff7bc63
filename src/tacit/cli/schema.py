"""`tacit schema policy|job|case|table`: the JSON schema of the files, for editors and other tools."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tacit.cli.screen import AsJson, show_json


class File(StrEnum):
    """The files that people write."""

    policy = "policy"
    job = "job"
    case = "case"
    table = "table"


def show_schema(
    file: Annotated[File, typer.Argument(help="Which file.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Print the JSON schema of policy, job, case or table files; editors complete and check with it."""
    # A schema is JSON with or without --json.
    if file is File.policy:
        from tacit.policy.policy_file import policy_schema

        show_json(policy_schema())
    elif file is File.case:
        from tacit.jobs.case_file import case_schema

        show_json(case_schema())
    elif file is File.table:
        from tacit.jobs.table_file import table_schema

        show_json(table_schema())
    else:
        from tacit.jobs.job_file import job_schema

        show_json(job_schema())
