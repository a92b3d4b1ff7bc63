"""What a release leaves behind: estimates, their intervals, and a certificate. No rows, no true answers, no noise.

Every number in it was derived from noisy counts and public parameters, so a record may be printed, pickled and
published. Only the maker of frames still knows the rows' engine; it is left out of pickles.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from tacit.amounts import shown
from tacit.arrays import Bools, Floats, Ints
from tacit.drawing import Held, draw
from tacit.errors import PlanError, Refused, kind_of
from tacit.plan.error_laws import AnySpread
from tacit.plan.plans.derived import DerivedPlan
from tacit.plan.plans.linear import LinearPlan
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.rank_plan import RankPlan
from tacit.plan.question import Labels
from tacit.plan.sums_of_cells import spread_of_sums
from tacit.release.certificate import Certificate
from tacit.release.results.value_files import side_by_side, with_interval, write_csv, write_table

if TYPE_CHECKING:
    from tacit.ledger.coins import CoinState
    from tacit.rows.rows import Rows

CERTIFICATE_FILE: Final = "certificate.json"  # written last: a folder without it is half written


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReleaseRecord(Held, ABC):
    """The result of a release. `values` are the best estimates, `frame` the same with labels."""

    plan: Plan
    values: Floats
    promise: Certificate | None = None
    _make_frame: Callable[[dict[str, Any]], Any] | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        for found in vars(self).values():
            for array in found.values() if isinstance(found, dict) else [found]:
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False

    def __repr__(self) -> str:
        return f"<release of {self.plan.query}, epsilon {shown(self.plan.epsilon)}: {self.summary()}>"

    @property
    def done(self) -> Plan:
        """What came of the plan, which certificate and report speak of: the plan, unless released numbers led on."""
        return self.plan

    no_number: ClassVar[str] = ""  # what stands for a value that there is none of

    @property
    def digits_for(self) -> float:
        """The error beside which the digits of the published numbers mean something."""
        return self.plan.rmse

    @abstractmethod
    def summary(self) -> str:
        """Return what came out in a few words."""

    @abstractmethod
    def labels(self) -> dict[str, Any]:
        """Return the columns that say what each value is about, and what was found out about it in words."""

    def filed_labels(self) -> dict[str, Any]:
        """Return the labels as frames and files have them: with what was counted, people or rows, if that is said."""
        labels, of = self.labels(), self.plan.query.of
        return (
            labels if of is None else side_by_side(labels, {"of": Labels([of], np.zeros(len(self.values), np.int64))})
        )

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the columns of numbers: the values, and the ends of their intervals where a frame has them."""
        lower, upper = self.interval(level)
        return {"value": self.values, "lower": lower, "upper": upper}

    @abstractmethod
    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of intervals that contain the true answer with at least this probability, one at a time."""

    def __getstate__(self) -> dict[str, Any]:
        # the frame maker belongs to the rows' engine and must not travel with the record
        return {**self.__dict__, "_make_frame": None}

    @property
    def certificate(self) -> dict[str, Any]:
        """What is promised about this release, as plain data."""
        return {} if self.promise is None else self.promise.document()

    def reading_order(self) -> Ints:
        """Return the rows in the order in which a reader wants them first."""
        return np.arange(len(self.values))

    def columns(self, level: float = 0.95) -> dict[str, Any]:
        """Return the labels and numbers by column name; a number is renamed where an attribute has its name."""
        return side_by_side(self.filed_labels(), self.numbers(level))

    @property
    def frame(self) -> Any:
        """The labels and numbers, at 95%, as a frame of the user's own kind."""
        if self._make_frame is None:
            from tacit.rows.sources.frames import as_pandas

            return as_pandas(self.columns())
        return self._make_frame(self.columns())

    def chart(self) -> Any:
        """Return a chart of the values with their intervals."""
        return draw("release", self)

    def save(self, folder: str | Path) -> Path:
        """Write the values (CSV; large tables Parquet) and the certificate to a new folder, all or nothing."""
        if not isinstance(folder, str | Path):
            raise Refused(f"must be the path of a new folder, not {kind_of(folder)}", key="folder", fix="Name one.")
        target = Path(folder)
        if target.is_symlink():
            raise Refused("must not be a link", key="folder", given=str(target), fix="Name the folder itself.")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            half = target.is_dir() and not (target / CERTIFICATE_FILE).exists()
            raise Refused(
                "holds a half-written release" if half else "must not exist yet",
                key="folder",
                given=str(target),
                fix="Remove it after a look." if half else "Choose another name; releases are never overwritten.",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
        try:
            self.write_values(draft, "values")
            text = json.dumps(self.certificate, indent=2, ensure_ascii=False)
            (draft / CERTIFICATE_FILE).write_text(text + "\n", encoding="utf-8")
            draft.chmod(0o755)
            if target.exists():
                target.rmdir()
            os.replace(draft, target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return target

    def write_csv(self, path: Path) -> None:
        """Write the frame as CSV, whatever engine the rows came from: safe in spreadsheets, with digits that count."""
        write_csv(path, self.filed_labels(), self.numbers(), error=self.digits_for)

    def write_values(self, folder: Path, name: str) -> str:
        """Write the frame to a file of this name, CSV or (a large table) Parquet; return what the file is called."""
        labels, numbers = self.filed_labels(), self.numbers()
        return write_table(folder, name, self.plan.answers, labels, numbers, error=self.digits_for)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NumbersRecord(ReleaseRecord):
    """The result of a question whose answers are numbers: one value with its interval for each."""

    plan: LinearPlan | DerivedPlan | RankPlan
    _ends: tuple[float, Floats, Floats] | None = field(repr=False, init=False, default=None)  # of the last level

    def __repr__(self) -> str:
        plan = self.done
        about = f"{plan.query}, epsilon {shown(plan.epsilon)}, expected error {plan.rmse:.3g}{plan.assumed_words}"
        return f"<release of {about}: {np.array2string(self.values, precision=1, threshold=6)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_ends": None}

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Return lower and upper ends that contain the true answer with at least this probability, taken one at a time.

        They contain the published value as well.
        """
        check_level(level)
        if self._ends is None or self._ends[0] != level:
            lower, upper = self.ends(level)
            lower, upper = np.minimum(lower, self.values), np.maximum(upper, self.values)
            lower.flags.writeable = upper.flags.writeable = False  # files, charts and reports all want them
            object.__setattr__(self, "_ends", (level, lower, upper))
        assert self._ends is not None  # noqa: S101 - set above
        return self._ends[1:]

    @abstractmethod
    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals, which need not contain the published values."""

    def summary(self) -> str:
        if len(self.values) != 1:
            return "in the report"
        lower, upper = self.interval()
        return with_interval(self.values[0], lower[0], upper[0], self.digits_for)

    def labels(self) -> dict[str, Any]:
        return self.plan.query.labels(self.plan.policy.domain)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearRecord(NumbersRecord):
    """The result of a linear question: one value with its interval for each answer."""

    plan: LinearPlan
    _centre: Floats = field(repr=False)  # estimates whose law is known
    _spread: AnySpread | None = field(repr=False, default=None)  # that law; None where all answers are exact
    _unit: float = field(repr=False, default=1.0)  # what one unit of that law is worth
    _floor: Floats | None = field(repr=False, default=None)  # no true answer is smaller,
    _ceiling: Floats | None = field(repr=False, default=None)  # and none larger

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Which values have no noise."""
        return self.plan.spread.exact()

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """Return ends from the law of the estimate, cut to what a true answer can be.

        No count is negative, and none above an exact total that it is part of.
        """
        if self._spread is None:
            return self.values, self.values
        low, high = self._spread.bounds(level)
        lower, upper = self._centre - high * self._unit, self._centre - low * self._unit
        for end in (lower, upper):
            np.clip(end, self._floor, self._ceiling, out=end)
        return lower, upper

    def sums(self, table: int, which: Ints, level: float = 0.95) -> tuple[Floats, Floats, Floats, Bools]:
        """Return sums of cells of one of the tables, the ends of their intervals (NaN: not known), and which are exact.

        `which` has for each cell the number of the sum that it goes to.
        """
        check_level(level)
        domain = self.plan.policy.domain
        sizes = [math.prod(domain[name].cells for name in names) for names in self.plan.query.tables(domain)]
        cells = slice(sum(sizes[:table]), sum(sizes[: table + 1]))
        many = int(which.max(initial=-1)) + 1
        values: Floats = np.bincount(which, self.values[cells], many).astype(np.float64)
        centre: Floats = np.bincount(which, self._centre[cells], many).astype(np.float64)
        spread = spread_of_sums(self.plan, table, which)
        if spread is None:
            return values, np.full(many, np.nan), np.full(many, np.nan), np.zeros(many, np.bool_)
        exact = spread.exact()  # whole numbers, which sums of estimates may miss by a rounding
        values, centre = (np.where(exact, np.rint(each / self._unit) * self._unit, each) for each in (values, centre))
        low, high = spread.bounds(level)
        lower, upper = centre - high * self._unit, centre - low * self._unit
        if self.plan.query.counts_people:
            lower = np.maximum(lower, 0.0)
        return values, np.minimum(lower, values), np.maximum(upper, values), exact


def check_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not isinstance(level, int | float) or not 0 < level < 1:
        raise PlanError("must lie strictly between 0 and 1", key="level", given=level, fix="Use 0.95.")


@singledispatch
def draw_record(plan: Plan, truths: Sequence[Ints], rows: Rows, coins: CoinState) -> Callable[[], ReleaseRecord]:
    """Add noise to true answers, which live in this frame and below it, and return what makes a record of the noisy.

    Each kind of plan registers where its record is.
    """
    raise TypeError(type(plan))
