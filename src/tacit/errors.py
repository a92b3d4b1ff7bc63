"""What Tacit says when it refuses: one sentence with the place, the rule, the value given and the fix.

Two families, kept apart on purpose:

* **Rows closed** (`PolicyError`, `PlanError`, `JobError`, `LedgerError`, `BudgetExceeded`): everything that is
  mentioned was written by the user, so the value given may be repeated.
* **Rows open** (`DataRefused`, `InternalError`): only a rule code and column names, both public before the
  rows were opened. No cell, row number, count or text of a reader ever enters these.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

_NOTHING = object()


class TacitError(Exception):
    """Anything that Tacit refuses. `exit_code` is what the command line returns."""

    exit_code = 1


class Refused(TacitError):
    """A refusal before any row was opened: names the place, the rule, the value given and the fix."""

    def __init__(
        self,
        rule: str,
        *,
        key: str = "",
        given: Any = _NOTHING,
        fix: str = "",
        file: str = "",
        line: int | None = None,
    ) -> None:
        self.rule, self.key, self.fix, self.file, self.line = rule, key, fix, file, line
        self._has_given = given is not _NOTHING
        # a frame that was given by mistake must not hang on the exception
        self.given = None if not self._has_given else given if _is_plain(given) else _shown(given)
        self._shown = _shown(given) if self._has_given else ""
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """Return the whole message, in the form `file:line: key rule; got value. Fix`."""
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        subject = f"{self.key} " if self.key else ""
        given = f"; got {self._shown}" if self._has_given else ""
        fix = f" {self.fix}" if self.fix else ""
        return f"{place}{subject}{self.rule}{given}.{fix}"

    def located(self, *, file: str = "", line: int | None = None, key: str = "") -> Refused:
        """Return the same refusal with the place filled in where it was not known before."""
        found = type(self)(self.rule, key=key or self.key, fix=self.fix, file=self.file or file, line=self.line or line)
        found.given, found._has_given, found._shown = self.given, self._has_given, self._shown
        found.args = (found.sentence(),)
        return found


class PolicyError(Refused):
    """The policy cannot mean anything, or not what it says."""


class PlanError(Refused):
    """The query cannot be answered under this policy, or its cost cannot be proved."""


class JobError(Refused):
    """The job file asks for something that does not exist."""


class LedgerError(Refused):
    """The ledger is damaged, half written, or not the one that was asked for."""


class BudgetExceeded(Refused):
    """The release would cost more than what remains. Nothing was charged and no row was opened."""


class DataRefused(TacitError):
    """The rows cannot be used. Says a rule and a column, never anything about a row."""

    def __init__(self, rule: str, *, column: str = "", fix: str = "") -> None:
        self.rule, self.column, self.fix = rule, column, fix
        subject = f"column {column!r} " if column else ""
        super().__init__(f"{subject}{rule}.{' ' + fix if fix else ''}")


class InternalError(TacitError):
    """A fault of Tacit itself while rows were open. Says where, never what it was looking at."""

    def __init__(self, stage: str) -> None:
        super().__init__(
            f"internal fault while {stage}; what was charged stays charged. No detail is shown because rows were "
            "open: run the same job on made-up rows to see the full error."
        )


def nearest(name: str, known: list[str] | tuple[str, ...]) -> str:
    """Return the sentence that points to the nearest known name.

    >>> nearest("epsilom", ["epsilon", "query"])
    "Did you mean 'epsilon'?"
    >>> nearest("zzz", ["epsilon", "query"])
    'Known: epsilon, query.'
    """
    match = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"Did you mean {match[0]!r}?" if match else f"Known: {', '.join(known)}."


def _shown(value: Any) -> str:
    """Return a value as it may be repeated: plain values only, since anything else may hold people's rows."""
    if isinstance(value, str) and not _is_plain(value):
        return "a text of several lines"
    text = repr(value) if _is_plain(value) else f"a {type(value).__module__.split('.')[0]} {type(value).__name__}"
    return text if len(text) <= 120 else text[:117] + "..."


def _is_plain(value: Any, *, depth: int = 2) -> bool:
    if value is None or type(value) in (str, int, float, bool, Fraction, Decimal):
        return not (isinstance(value, str) and "\n" in value)
    if type(value) in (list, tuple, set, frozenset) and depth and len(value) <= 20:
        return all(_is_plain(part, depth=depth - 1) for part in value)
    if type(value) is dict and depth and len(value) <= 20:
        return all(_is_plain(part, depth=depth - 1) for pair in value.items() for part in pair)
    return isinstance(value, date)
