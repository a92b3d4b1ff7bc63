"""Events that tell two samples of outputs apart, found on one part of the samples and tried on another.

An event is a set of outputs. The best ones collect the outputs that are likelier at `hidden` than at `cover`, so each
*view* of the outputs (one coordinate, a difference, the whole row, a trained classifier) is turned into classes, the
classes are ordered by their likelihood ratio, and the first ones of that order make an event. Where to cut is decided
on samples that the order was not learned from; how likely the event is, on samples that neither was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from tacit.audit.trees import BoostedTrees
from tacit.audit.views import Columns, columns_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Scorer = Callable[[Columns], Floats]

BINS: Final = 256
MOST_ATOMS: Final = 20_000  # values that are counted one by one
MOST_COLUMNS: Final = 32
FIRST_SIGHT: Final = 50_000  # samples by which columns are compared
CUTS: Final = 400
PLAINER: Final = 0.99  # of the best bound is as good, if the event is easier to understand


@dataclass(frozen=True)
class Event:
    """A set of outputs: those whose score reaches the cut."""

    words: str
    score: Scorer
    cut: float

    def holds(self, columns: Columns) -> Bools:
        """Return which outputs are in the event."""
        return self.score(columns) >= self.cut


@dataclass(frozen=True)
class _Classes:
    """How one column is cut into classes, and how telling each class is (log ratio)."""

    column: str
    ends: npt.NDArray[Any] | None  # quantiles, or None where values are counted one by one
    values: npt.NDArray[Any] | None
    log_ratio: Floats  # one more than values: the last is for what was never seen

    def score(self, columns: Columns) -> Floats:
        return self.log_ratio[self.codes(columns[self.column])]

    def codes(self, column: npt.NDArray[Any]) -> Ints:
        if self.ends is not None:
            return np.searchsorted(self.ends, column, side="right")
        assert self.values is not None  # noqa: S101 - one of the two is there
        at = np.minimum(np.searchsorted(self.values, column), len(self.values) - 1)
        return np.where(self.values[at] == column, at, len(self.values))

    def words(self, cut: float) -> str:
        """Say which values reach the cut."""
        chosen = np.flatnonzero(self.log_ratio[: len(self.log_ratio) - (self.ends is None)] >= cut)
        classes = len(self.log_ratio) - (self.ends is None)
        if not len(chosen):
            return f"{self.column}: nothing that was seen"
        first, last = int(chosen[0]), int(chosen[-1])
        in_a_row = len(chosen) == last - first + 1
        low, high = self._ends(first)[0], self._ends(last)[1]
        if in_a_row and first == last and self.values is not None:
            return f"{self.column} = {low}"
        if in_a_row and last == classes - 1 and self.ordered:
            return f"{self.column} >= {low}"
        if in_a_row and first == 0 and self.ordered:
            return f"{self.column} {'<=' if self.values is not None else '<'} {high}"
        if in_a_row and self.ordered:
            return f"{self.column} from {low} to {high}"
        some = [str(self._ends(int(at))[0]) for at in chosen[:3]]
        return f"{self.column} one of {len(chosen)} values such as {', '.join(some)}"

    @property
    def ordered(self) -> bool:
        """Whether its values are numbers."""
        return self.ends is not None or (self.values is not None and self.values.dtype.kind in "iuf")

    def _ends(self, at: int) -> tuple[Any, Any]:
        if self.values is not None:
            return self.values[at], self.values[at]
        assert self.ends is not None  # noqa: S101 - one of the two is there
        return self.ends[max(at - 1, 0)], self.ends[min(at, len(self.ends) - 1)]


def find_events(hidden: npt.NDArray[Any], cover: npt.NDArray[Any], alpha: float, most: int) -> list[Event]:
    """Return the most telling events for `hidden` against `cover`, at most so many."""
    half = len(hidden) // 2
    learn = columns_of(hidden[:half]), columns_of(cover[:half])
    choose = columns_of(hidden[half:]), columns_of(cover[half:])
    found: list[tuple[float, Event]] = []

    def look(words: Callable[[float], str], scorer: Scorer, weight: float) -> None:
        cut, bound = _best_cut(scorer(choose[0]), scorer(choose[1]), alpha)
        found.append((bound * weight if bound > 0 else bound, Event(words(cut), scorer, cut)))

    single = _single(*learn)
    for one in single.values():
        look(one.words, one.score, PLAINER)
    best = sorted(zip(found, single.values(), strict=True), key=lambda pair: -pair[0][0])[:most]
    for _, one in best:
        if one.ordered:
            look(partial(_at_least, one.column), partial(_signed, one.column, 1), 1)
            look(partial(_at_most, one.column), partial(_signed, one.column, -1), 1)
    for words, scorer in _several(*learn, single):
        look(words, scorer, PLAINER)
    found.sort(key=lambda pair: -pair[0])
    return [event for _, event in found[:most]]


def _signed(name: str, sign: int, columns: Columns) -> Floats:
    return sign * columns[name].astype(np.float64)


def _at_least(name: str, cut: float) -> str:
    return f"{name} >= {cut:.10g}"


def _at_most(name: str, cut: float) -> str:
    return f"{name} <= {-cut:.10g}"


def lower_bound(hits_hidden: Any, hits_cover: Any, hidden: Any, cover: Any, alpha: float) -> Any:
    """Return a bound that ln(p_hidden / p_cover) exceeds with confidence 1 - alpha (Clopper and Pearson, twice)."""
    a, b = np.asarray(hits_hidden, dtype=np.float64), np.asarray(hits_cover, dtype=np.float64)
    with np.errstate(divide="ignore"):
        low = np.where(a > 0, betaincinv(np.maximum(a, 1), hidden - np.maximum(a, 1) + 1, alpha / 2), 0.0)
        high = np.where(b < cover, 1 - betaincinv(np.maximum(cover - b, 1), b + 1, alpha / 2), 1.0)
        return np.where(low > 0, np.log(low) - np.log(high), -np.inf)


def _single(hidden: Columns, cover: Columns) -> dict[str, _Classes]:
    """Return each view of the outputs, cut into classes."""
    return {name: _classes(name, hidden[name], cover[name]) for name in _most_telling(hidden, cover)}


def _several(
    hidden: Columns, cover: Columns, single: dict[str, _Classes]
) -> Iterator[tuple[Callable[[float], str], Scorer]]:
    """Yield ways to score whole rows of numbers, each with the words for the event that a cut makes of it."""
    outputs = [name for name in single if name.startswith("output[")]
    if len(outputs) < 2:
        return
    yield (
        lambda cut: f"likelihood ratios of all numbers, multiplied, >= exp({cut:.3g})",
        lambda columns: sum((single[n].score(columns) for n in outputs), np.zeros(1)),
    )
    rows = {"row": _row(hidden, outputs)}, {"row": _row(cover, outputs)}
    if len(np.unique(np.concatenate([rows[0]["row"], rows[1]["row"]])[: 4 * MOST_ATOMS])) <= MOST_ATOMS:
        whole = _classes("row", rows[0]["row"], rows[1]["row"])
        yield (
            lambda cut: f"whole outputs with a likelihood ratio >= exp({cut:.3g})",
            lambda columns: whole.score({"row": _row(columns, outputs)}),
        )
    trees = BoostedTrees.trained(*({name: columns[name] for name in single} for columns in (hidden, cover)))
    yield lambda cut: f"a classifier's score of the whole output >= {cut:.3g}", trees.score


def _most_telling(hidden: Columns, cover: Columns) -> list[str]:
    """Return the columns that differ most at first sight, where there are too many to look at closely."""
    if len(hidden) <= MOST_COLUMNS:
        return list(hidden)

    def distance(name: str) -> float:
        a, b = np.sort(hidden[name][:FIRST_SIGHT]), np.sort(cover[name][:FIRST_SIGHT])
        both = np.concatenate([a, b])
        gap = np.searchsorted(a, both, side="right") / len(a) - np.searchsorted(b, both, side="right") / len(b)
        return float(np.abs(gap).max())

    best = sorted(hidden, key=distance, reverse=True)[:MOST_COLUMNS]
    return [name for name in hidden if name in best]


def _row(columns: Columns, names: list[str]) -> npt.NDArray[Any]:
    """Return one number for each row that differs where rows differ, but for rare collisions (which do no harm)."""
    mixed = np.zeros(len(columns[names[0]]), dtype=np.uint64)
    for name in names:
        bits = np.ascontiguousarray(columns[name].astype(np.float64)).view(np.uint64)
        mixed = (mixed ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _classes(name: str, hidden: npt.NDArray[Any], cover: npt.NDArray[Any]) -> _Classes:
    both = np.concatenate([hidden, cover])
    values = np.unique(both)
    ends = None
    if len(values) > MOST_ATOMS and both.dtype.kind in "iuf":
        ends = np.unique(np.quantile(both[np.isfinite(both)], np.linspace(0, 1, BINS + 1)[1:-1], method="nearest"))
    made = _Classes(name, ends, None if ends is not None else values, np.zeros(0))
    size = len(ends) + 1 if ends is not None else len(values) + 1
    counts = [np.bincount(made.codes(part), minlength=size) for part in (hidden, cover)]
    # half a person on either side: a class that was seen once says little
    ratio = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)
    return _Classes(name, made.ends, made.values, ratio)


def _best_cut(hidden: Floats, cover: Floats, alpha: float) -> tuple[float, float]:
    """Return where to cut the scores for the best bound, and that bound on these samples."""
    cuts = np.unique(np.concatenate([hidden, cover]))
    if len(cuts) > CUTS:
        # evenly in the number of outputs above the cut, finer for the rarest
        spread = np.concatenate([np.linspace(0, 1, CUTS // 2), 1 - np.geomspace(1e-4, 1, CUTS // 2)])
        cuts = np.unique(np.quantile(hidden, spread, method="nearest"))
    above = [len(part) - np.searchsorted(np.sort(part), cuts, side="left") for part in (hidden, cover)]
    bounds = lower_bound(above[0], above[1], len(hidden), len(cover), alpha)
    best = int(np.argmax(bounds))
    return float(cuts[best]), float(bounds[best])
