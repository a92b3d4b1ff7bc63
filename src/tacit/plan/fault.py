"""A fault of our own while a question is planned: nothing is charged for it and no row is looked at, and it says so."""

from __future__ import annotations

import traceback
from pathlib import Path

from tacit.errors import InternalError, TacitError


class PlanningFault(InternalError):
    """A fault of Tacit itself while a question was planned. No row has a part in it, so it says where it was."""

    def __init__(self, cause: str) -> None:
        TacitError.__init__(
            self,
            f"internal fault while a question was planned ({cause}); nothing was charged for it and no row was looked "
            "at. Please report it.",
        )


def fault_of(failure: Exception) -> PlanningFault:
    """Return what is said of a failure that nobody thought of: its type and our line, and nothing of its text."""
    places = [Path(frame.filename).name + f":{frame.lineno}" for frame in traceback.extract_tb(failure.__traceback__)]
    return PlanningFault(f"{type(failure).__name__} in {places[-1] if places else 'no line'}")
