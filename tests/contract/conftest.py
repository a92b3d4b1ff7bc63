"""Where a ledger may live, and the clinic of the commands."""

import uuid
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from cli.conftest import clinic as clinic


def execute(where: str, *statements: str) -> None:
    """Let a database do something, behind the back of its ledger."""
    engine = create_engine(where.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as db:
        for statement in statements:
            db.execute(text(statement))


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a place without a ledger: a file, or a schema of its own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    uri, schema = request.getfixturevalue("postgres"), f"l{uuid.uuid4().hex}"
    execute(uri, f"CREATE SCHEMA {schema}")
    return f"{uri}&options=-csearch_path%3D{schema}"
