"""A fault of our own while a question is planned: nothing is charged for it and no row is looked at, and it says so."""

from __future__ import annotations

from tacit.errors import InternalError, TacitError


class PlanningFault(InternalError):
    """A fault of Tacit itself while a question was planned. No row has a part in it, so it says where it was."""

    def __init__(self, cause: str) -> None:
        self.stage, self.cause = "a question was planned", cause
        TacitError.__init__(
            self,
            f"internal fault while {self.stage} ({cause}); nothing was charged for it and no row was looked "
            "at. Please report it.",
        )
