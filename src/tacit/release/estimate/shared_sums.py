"""Which sums tables share, and how many are too many to be made to agree (`release/estimate/agree.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final

from tacit.errors import PlanError

Names = tuple[str, ...]
LARGEST_FIT: Final = 2_000_000  # cells of tables that are made to agree
MOST_TABLES: Final = 4_000  # all pairs of them are looked at
MOST_SUMMED: Final = 32_000_000  # cells of all sums that must agree: about 1 GB while they are laid out


@lru_cache(maxsize=8)
def shared_names(tables: tuple[Names, ...]) -> tuple[Names, ...]:
    """Return every combination of attributes that two of the tables share, and no more."""
    return tuple(sorted({tuple(sorted(set(a) & set(b))) for a, b in combinations(tables, 2)}))


def check_agreement(tables: Sequence[Names], sizes: Sequence[int]) -> None:
    """Refuse tables of so many cells that cannot be made to agree in bounded memory and time."""
    fix = "Ask for fewer or smaller tables, or leave it out."
    cells = sum(sizes)
    if cells > LARGEST_FIT:
        rule = f"is for tables of {LARGEST_FIT:,} cells at most, and these have {cells:,}"
        raise PlanError(rule, key="consistent", fix=fix)
    if len(tables) > MOST_TABLES:
        rule = f"is for {MOST_TABLES:,} tables at most, and these are {len(tables):,}"
        raise PlanError(rule, key="consistent", fix=fix)
    holders = [frozenset(names) for names in tables]
    wanted = [frozenset(names) for names in shared_names(tuple(tables))]
    summed = cells + sum(size for names in wanted for held, size in zip(holders, sizes, strict=True) if names <= held)
    if summed > MOST_SUMMED:
        rule = f"is for sums of {MOST_SUMMED:,} cells in all at most, and these tables share sums of {summed:,}"
        raise PlanError(rule, key="consistent", fix=fix)
