"""What a release leaves behind: estimates, their intervals, and a certificate. No rows, no true answers, no noise.

Every number in it was derived from noisy counts and public parameters, so a record may be printed, pickled and
published. Only the maker of frames still knows the rows' engine; it is left out of pickles.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError, Refused
from tacit.plan.choose import AnyPlan, Plan
from tacit.plan.coverage import noise_bounds
from tacit.plan.explain import shown
from tacit.plan.queries import Total

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FINISHED = "certificate.json"  # written last: a folder without it is half written


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReleaseRecord(ABC):
    """The result of a release. `values` are the best estimates, `frame` the same with labels."""

    plan: AnyPlan
    values: Floats
    certificate: dict[str, Any] = field(default_factory=dict)
    _make_frame: Callable[[dict[str, Any]], Any] | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        self.values.flags.writeable = False

    def __repr__(self) -> str:
        plan = self.plan
        said = f"{plan.query}, epsilon {shown(plan.epsilon)}, expected error {plan.rmse:.3g}"
        return f"<release of {said}: {np.array2string(self.values, precision=1, threshold=6)}>"

    @abstractmethod
    def summary(self) -> str:
        """Return what came out in a few words."""

    @abstractmethod
    def labels(self) -> dict[str, Any]:
        """Return the columns that say what each value is about, and what was found out about it in words."""

    @abstractmethod
    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the columns of numbers: the values, and the ends of their intervals where a frame has them."""

    @abstractmethod
    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return lower and upper ends that hold the true answer with at least this probability, each by itself."""

    def __getstate__(self) -> dict[str, Any]:
        # the frame maker belongs to the rows' engine and must not travel with the record
        return {**self.__dict__, "_make_frame": None}

    def reading_order(self) -> Ints:
        """Return the rows in the order in which a reader wants them first."""
        return np.arange(len(self.values))

    def columns(self, level: float = 0.95) -> dict[str, Any]:
        """Return the labels and numbers by column name."""
        return {**self.labels(), **self.numbers(level)}

    @property
    def frame(self) -> Any:
        """The labels and numbers, at 95%, as a frame of the user's own kind."""
        if self._make_frame is None:
            import pandas as pd

            return pd.DataFrame(self.columns())
        return self._make_frame(self.columns())

    def chart(self) -> Any:
        """Return a chart of the values with their intervals."""
        return _draw(self)

    def save(self, folder: str | Path) -> Path:
        """Write the values (CSV) and the certificate to a new folder, all or nothing."""
        target = Path(folder)
        if target.is_symlink():
            raise Refused("must not be a link", key="folder", given=str(target), fix="Name the folder itself.")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            half = target.is_dir() and not (target / FINISHED).exists()
            raise Refused(
                "holds a half-written release" if half else "must not exist yet",
                key="folder",
                given=str(target),
                fix="Remove it after a look." if half else "Choose another name; releases are never overwritten.",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
        try:
            self.write_csv(draft / "values.csv")
            text = json.dumps(self.certificate, indent=2, ensure_ascii=False)
            (draft / FINISHED).write_text(text + "\n", encoding="utf-8")
            draft.chmod(0o755)
            if target.exists():
                target.rmdir()
            os.replace(draft, target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return target

    def write_csv(self, path: Path) -> None:
        """Write the frame as CSV, whatever engine the rows came from."""
        import pandas as pd

        pd.DataFrame(self.columns()).to_csv(path, index=False, float_format="%.6f")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearRecord(ReleaseRecord):
    """The result of a linear question: one value with its interval for each answer."""

    plan: Plan
    _noisy: Floats = field(repr=False)
    _exact: npt.NDArray[np.bool_] | None = field(repr=False, default=None)
    _added: tuple[Ints, Ints] | None = field(repr=False, default=None)  # noisy entries that each answer adds, subtracts

    def __post_init__(self) -> None:
        super().__post_init__()
        self._noisy.flags.writeable = False

    def summary(self) -> str:
        """Return the answer where there is only one."""
        if len(self.values) != 1:
            return "in the report"
        lower, upper = self.interval()
        ends = "" if lower[0] == upper[0] else f" ({lower[0]:,.0f} to {upper[0]:,.0f})"
        return f"{self.values[0]:,.0f}{ends}"

    def labels(self) -> dict[str, Any]:
        """Return the columns that say what each value is about."""
        return self.plan.query.labels(self.plan.policy.domain)

    def numbers(self, level: float = 0.95) -> dict[str, Floats]:
        """Return the values and the ends of their intervals."""
        lower, upper = self.interval(level)
        return {"value": self.values, "lower": lower, "upper": upper}

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return lower and upper ends that hold the true answer with at least this probability, each by itself.

        The ends come from the exact law of the noise. Counts are never negative, so neither are their ends.
        """
        check_level(level)
        lower, upper = _ends(self.plan, self._noisy, self._added, level)
        if not isinstance(self.plan.query, Total):
            lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
        if self._exact is not None:
            lower, upper = np.where(self._exact, self.values, lower), np.where(self._exact, self.values, upper)
        return lower, upper


def check_level(level: float) -> None:
    """Refuse a level that is no probability."""
    if not 0 < level < 1:
        raise PlanError("must lie between 0 and 1", key="level", given=level, fix="Use 0.95.")


def _no_charts(record: ReleaseRecord) -> Any:
    raise RuntimeError(f"no charts for {record.plan.query}: import tacit first")


_draw: Callable[[ReleaseRecord], Any] = _no_charts


def draw_with(chart: Callable[[ReleaseRecord], Any]) -> None:
    """Say how records are drawn; the report stage calls this, since releases must not know about reports."""
    global _draw
    _draw = chart


def _ends(plan: Plan, noisy: Floats, added: tuple[Ints, Ints] | None, level: float) -> tuple[Floats, Floats]:
    """Return the ends for each answer, from its noisy value and how many noisy entries it adds up."""
    if plan.noise is None:
        return noisy, noisy
    if added is None:
        low = plan.per_entry(lambda law: noise_bounds(law, 1, 0, level)[0])
        high = plan.per_entry(lambda law: noise_bounds(law, 1, 0, level)[1])
        return noisy - high, noisy - low
    pairs, which = np.unique(np.stack(added, axis=1), axis=0, return_inverse=True)
    bounds = np.array([noise_bounds(plan.noise, int(p), int(m), level) for p, m in pairs])[which.reshape(-1)]
    return noisy - bounds[:, 1], noisy - bounds[:, 0]
