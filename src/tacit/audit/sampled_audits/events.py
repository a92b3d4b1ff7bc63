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

from tacit.arrays import Bools, Floats, Ints
from tacit.audit.sampled_audits.views import MIXING, BoostedTrees, Columns, Views, columns_of, span

Scorer = Callable[[Columns], Floats]

BINS: Final = 256
MOST_ATOMS: Final = 20_000  # values that are counted one by one
MOST_COLUMNS: Final = 32
MOST_DERIVED: Final = 12  # differences and digits, of which there may be hundreds
FIRST_SIGHT: Final = 20_000  # samples by which columns are compared
OFTEN: Final = 4  # times that a value must come to be looked at by itself among very many
CUTS: Final = 400
CLEARLY: Final = 3  # standard errors that a mean must move by to be used
LARGEST_SHIFT: Final = 1e100  # what is larger stands for something that is missing
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
        if not len(self.values):
            return np.zeros(len(column), dtype=np.int64)
        near = span(self.values) if column.dtype == np.int64 else None
        if near is not None:
            low, high = near
            places = np.full(high - low + 1, len(self.values))
            places[self.values - low] = np.arange(len(self.values))
            return np.where((column < low) | (column > high), len(self.values), places[np.clip(column, *near) - low])
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
    names = _telling_names(hidden[: min(half, FIRST_SIGHT)], cover[: min(half, FIRST_SIGHT)])
    found: list[tuple[float, Event]] = []

    def look(words: Callable[[float], str], scorer: Scorer, weight: float) -> None:
        cut, bound = _best_cut(scorer(choose[0]), scorer(choose[1]), alpha)
        found.append((bound * weight if bound > 0 else bound, Event(words(cut), scorer, cut)))

    single = _single(*learn, names)
    for one in single.values():
        look(one.words, one.score, PLAINER if one.ordered else 1)
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
    values = sign * columns[name].astype(np.float64)
    return np.where(np.isnan(values), -np.inf, values)  # what is no number reaches no cut


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


def _single(hidden: Columns, cover: Columns, names: list[str]) -> dict[str, _Classes]:
    """Return each view of the outputs, cut into classes; of very many numbers also those that come often."""
    found: dict[str, _Classes] = {}
    for name in names:
        found[name] = one = _classes(name, hidden[name], cover[name])
        if one.ends is not None:
            often = _classes(name, hidden[name], cover[name], one_by_one=True)
            if often.values is not None and len(often.values):
                found[f"{name}, values that come often"] = often
    return found


def _several(
    hidden: Views, cover: Views, single: dict[str, _Classes]
) -> Iterator[tuple[Callable[[float], str], Scorer]]:
    """Yield ways to score whole rows of numbers, each with the words for the event that a cut makes of it."""
    outputs = [name for name in hidden if name in single and (name.startswith("output[") or hidden.texts)]
    outputs = [name for name in outputs if hidden[name].dtype.kind in "biuf"]
    if len(outputs) < 2:
        return
    yield (
        lambda cut: f"likelihood ratios of all numbers, multiplied, >= exp({cut:.3g})",
        lambda columns: sum((single[n].score(columns) for n in outputs), np.zeros(1)),
    )
    shift = _shifts(hidden, cover, outputs)
    if shift is not None:
        yield lambda cut: f"shifts of all numbers, added up, >= {cut:.3g}", shift
    if not hidden.texts:
        rows = _row(hidden, outputs), _row(cover, outputs)
        whole = _classes("row", *rows, one_by_one=True)
        if whole.values is not None and len(whole.values):
            yield (
                lambda cut: f"whole outputs with a likelihood ratio >= exp({cut:.3g})",
                lambda columns: whole.score({"row": _row(columns, outputs)}),
            )
    numeric = [one.column for one in single.values() if hidden[one.column].dtype.kind in "biuf"]
    trees = BoostedTrees.trained(*({name: columns[name] for name in numeric} for columns in (hidden, cover)))
    yield lambda cut: f"a classifier's score of the whole output >= {cut:.3g}", trees.score


def _shifts(hidden: Columns, cover: Columns, names: list[str]) -> Scorer | None:
    """Return a score for many numbers each of which moves a little: for few samples, the most telling of all.

    A number counts by how far it lies from one mean towards the other, in units of its spread; beyond either mean it
    says no more, which is the likelihood ratio of Laplace noise.
    """
    parts: list[tuple[str, float, float, float]] = []
    for name in names:
        a, b = (columns[name].astype(np.float64) for columns in (hidden, cover))
        if not (np.abs(a) < LARGEST_SHIFT).all() or not (np.abs(b) < LARGEST_SHIFT).all():
            continue
        spread = float(a.var() + b.var()) / 2
        move = float(a.mean() - b.mean())
        if spread > 0 and abs(move) > CLEARLY * (2 * spread / len(a)) ** 0.5:
            parts.append((name, float(a.mean() + b.mean()) / 2, move / 2, spread**0.5))

    def score(columns: Columns) -> Floats:
        total = np.zeros(1)
        for name, middle, half, spread in parts:
            toward = np.sign(half) * (columns[name].astype(np.float64) - middle)
            total = total + np.clip(np.nan_to_num(toward), -abs(half), abs(half)) / spread
        return total

    return score if len(parts) > 1 else None


def _telling_names(hidden: npt.NDArray[Any], cover: npt.NDArray[Any]) -> list[str]:
    """Return the views that differ most at first sight, where there are too many to look at closely."""
    views = columns_of(hidden), columns_of(cover)
    chosen = []
    for names, most in ((views[0].plain, MOST_COLUMNS), (views[0].derived, MOST_DERIVED)):
        best = names
        if len(names) > most:
            best = sorted(names, key=lambda name: -_distance(views[0][name], views[1][name]))[:most]
        chosen += [name for name in names if name in set(best)]
    return chosen


def _distance(hidden: npt.NDArray[Any], cover: npt.NDArray[Any]) -> float:
    """Return how far apart two samples of a view are: by values where these repeat, else by their order."""
    near = span(hidden, cover)
    if near is not None:
        parts, many = [hidden - near[0], cover - near[0]], near[1] - near[0] + 1
    else:
        values, places = np.unique(np.concatenate([hidden, cover]), return_inverse=True)
        parts, many = np.split(places.reshape(-1), [len(hidden)]), len(values)
    counts = [np.bincount(part, minlength=many) for part in parts]
    gap = counts[0] / len(hidden) - counts[1] / len(cover)
    in_order = float(np.abs(np.cumsum(gap)).max())
    # chance alone moves so much probability from value to value
    by_value = float(np.abs(gap).sum() / 2) - 0.6 * (np.count_nonzero(counts[0] + counts[1]) / len(hidden)) ** 0.5
    return float(max(in_order, by_value))


def _row(columns: Columns, names: list[str]) -> npt.NDArray[Any]:
    """Return one number for each row that differs where rows differ, but for rare collisions (which do no harm)."""
    mixed = np.zeros(len(columns[names[0]]), dtype=np.uint64)
    for name in names:
        bits = np.ascontiguousarray(columns[name].astype(np.float64)).view(np.uint64)
        mixed = (mixed ^ bits) * MIXING
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _classes(name: str, hidden: npt.NDArray[Any], cover: npt.NDArray[Any], *, one_by_one: bool = False) -> _Classes:
    """Cut a view into classes: its values one by one, or quantiles where numbers are too many.

    With `one_by_one`, and for texts, the values that come most often are kept then, and all others are one class.
    """
    both = np.concatenate([hidden, cover])
    near = span(both)
    if near is not None:
        times = np.bincount(both - near[0])
        values = np.flatnonzero(times)
        values, times = values + near[0], times[values]
    else:
        values, times = np.unique(both, return_counts=True)
    ends = None
    if one_by_one or both.dtype.kind not in "biuf":
        if len(values) > MOST_ATOMS:
            often = np.sort(np.argsort(-times, kind="stable")[:MOST_ATOMS])
            values = values[often[times[often] >= OFTEN]]
    elif len(values) > MOST_ATOMS:
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
