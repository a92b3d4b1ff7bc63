"""Ledgers as the Tacit before this one wrote them: no seal over rows that are no entries, and no sums of them."""

from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from tacit.ledger.chain import Seal


def as_older(where: str, key: str | None = None, *, version: int = 2) -> None:
    """Take out of a ledger what an older Tacit did not write; `where` is the address of its database."""
    engine = create_engine(where.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    with engine.begin() as db:
        for table in ("tacit_state", "tacit_seals"):
            db.execute(text(f"DROP TABLE {table}"))
        count, head = db.execute(text("SELECT count, head FROM tacit_head")).one()
        seal = Seal(None if key is None else key.encode()).of({"ledger": "head", "count": count, "head": head})
        db.execute(text("UPDATE tacit_head SET version = :version, seal = :seal"), {"version": version, "seal": seal})
