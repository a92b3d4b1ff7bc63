"""Who looks at true counts outside of a release: one door, and the audits that go through it say whom they are for."""

from __future__ import annotations

import ast
from pathlib import Path

import tacit

SRC = Path(tacit.__file__).parent
DOOR = "release/curator/private_counts.py"
TABLES = "publish/groups.py"


def text_of(name: str) -> str:
    return (SRC / name).read_text(encoding="utf-8")


def importers(module: str) -> set[str]:
    """Return the modules that import another, anywhere in them."""
    found = set()
    for file in SRC.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if module in text else ():
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if module in names:
                found.add(file.relative_to(SRC).as_posix())
    return found


def test_rows_are_grouped_without_a_domain_behind_two_doors() -> None:
    """True counts for the holder of the rows, and the groups of a table that is perturbed before anybody sees it."""
    assert importers("tacit.rows.counts.groups") == {DOOR, TABLES}
    asking = {file for file in importers("tacit.publish.groups") if "personal_groups" in text_of(file)}
    assert asking == {
        "publish/generalise.py",  # says that it is not protected
        "publish/paid_tables.py",
        "audit/reconstruction_audit.py",
    }


def test_only_audits_ask_for_true_counts() -> None:
    """Never a release, a monitor, a ledger or a report: what they hold may leave the house."""
    asking = importers("tacit.release.curator.private_counts")
    assert asking
    assert {name.split("/")[0] for name in asking} == {"audit"}


def test_every_audit_that_asks_is_marked() -> None:
    """Modules that make a result of true counts carry the sentence that says whom it is for; it is written once."""
    entries = {
        "audit/disclosure_audits/disclosures.py",
        "audit/disclosure_audits/yardsticks.py",
        "audit/reconstruction_audit.py",
        "release/curator/row_check.py",
    }
    assert all("private: str = field(default=PRIVATE" in text_of(name) for name in entries)
    assert entries == importers("tacit.release.curator")


def test_one_module_announces_what_a_session_hands_true_counts_to() -> None:
    """A session publishes whatever was announced: who may announce has proved what it loses."""
    assert importers("tacit.release.publication") == {"release/session.py", "publish/paid_tables.py"}
