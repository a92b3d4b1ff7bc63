"""Which sizes of cells and blocks are best: from first guesses on, one size after the other is moved while it helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tacit.plan.measure.lines.layout import LineLayout
from tacit.plan.measure.lines.weights import RatedLayout, RateSearch

Sizes = tuple[int, ...]
_FACTORS: Final = (1.5, 1.2, 1.08)  # by which sizes are moved, from coarse to fine
_PROMISING: Final = 2  # guesses that are followed


def best_sizes(
    weighing: RateSearch, layout_of: Callable[[Sizes], LineLayout | None], guesses: Iterable[Sizes]
) -> RatedLayout | None:
    """Return the best layout near the guesses; None where none of them is a layout."""
    seen: dict[Sizes, RatedLayout | None] = {}

    def at(sizes: Sizes, like: RatedLayout | None = None) -> RatedLayout | None:
        if sizes not in seen:
            layout = layout_of(sizes)
            start = None if like is None else like.rates
            seen[sizes] = None if layout is None else weighing.best(layout, start, rounds=5 if like is None else 2)
        return seen[sizes]

    first = [(sizes, found) for sizes in dict.fromkeys(guesses) if (found := at(sizes)) is not None]
    first.sort(key=lambda each: each[1].error)
    ends = [_improved(at, *each) for each in first[:_PROMISING]]
    if not ends:
        return None
    best = min(ends, key=lambda each: each.error)
    return weighing.best(best.layout, best.rates, rounds=12)


def _improved(
    at: Callable[[Sizes, RatedLayout | None], RatedLayout | None], here: Sizes, best: RatedLayout
) -> RatedLayout:
    """Return the layout from which moving no single size leads to a smaller error, and all of whose sizes help."""
    for factor in _FACTORS:
        moved = True
        while moved:
            moved = False
            for place in range(len(here)):
                sizes = (*here[:place], *here[place + 1 :])
                found = at(sizes, None)
                if found is not None and found.error < best.error * 1.0005:
                    here, best, moved = sizes, found, True
                    break
                for size in (round(here[place] * factor), round(here[place] / factor)):
                    sizes = (*here[:place], size, *here[place + 1 :])
                    found = at(sizes, best)
                    if found is not None and found.error < best.error * 0.9995:
                        here, best, moved = sizes, found, True
                        break
    return best
