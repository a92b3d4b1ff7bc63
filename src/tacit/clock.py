"""The clock by which entries of a ledger and certificates are dated, and applications end: UTC."""

from __future__ import annotations

import datetime


def now() -> datetime.datetime:
    """Return the time."""
    return datetime.datetime.now(datetime.UTC)
