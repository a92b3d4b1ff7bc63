"""`tacit check POLICY`: what a policy protects and what not, in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.screen import AsJson, show_json, show_wrapped


def check_policy(
    policy: Annotated[Path, typer.Argument(metavar="POLICY.yaml", help="The policy file.")], *, as_json: AsJson = False
) -> None:
    """Read a policy and say in plain words what it protects, what it does not, and what you may not expect."""
    from tacit.policy.describe import describe, protected_examples, protections, public_facts, warnings
    from tacit.policy.file import load_policy

    found = load_policy(policy)
    if not as_json:
        show_wrapped(describe(found))
        return
    show_json(
        {
            "policy": found.document(),
            "fingerprint": found.fingerprint,
            "person": found.person,
            "per_person": found.per_person,
            "protects": protections(found),
            "examples": [example.document() for example in protected_examples(found)],
            "public": public_facts(found),
            "warnings": warnings(found),
        }
    )
