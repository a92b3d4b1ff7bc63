"""Tables that noise on a line is drawn with, made so that rounding and cut tails stay within what is paid for.

Guarantee   The law drawn with these tables (`noise/line/draws.py`) is exp(-g(z)) times a factor. Along a step that the
            stated rates charge with d, g and the factor together change by at most d, unless some number stands at the
            end of its table, or of its box, which has a probability below 2^-151 in each of the two worlds.
Assumes     Rates are positive doubles; draws are exact for the doubles in the tables.
Why         Tables are made at `DRAWN` = 1 - 2^-16 of the stated rates, so a share 2^-16 of d may go to the factor.
            Write T for tables, N(s) for the sum over x of what a draw given s is proportional to. A draw of all z
            multiplies T_phi(z_k) T_0(z_k - z_(k-1)) / N_k(z_(k-1)) over the anchors and T(x) T(s-x) / N(s) over the
            cells. Sorted by the place they belong to, these are exp(-v |z_k|) rho_k(z_k) with rho_k = T_phi e^(v|z|) /
            N_(k+1), and exp(-w_l |x|) rho_l(x) with rho_l = T_l e^(w_l|x|) / N_(l+1); were tables exact, each rho would
            be constant. If entries have a relative error of at most eta, rho is off by a factor within e^(+-eta) (eta
            counts all errors in T_l and N), so one place that moves changes log rho by at most 2 eta. A step that
            changes a number of unit cells changes at most as many cells on each level: the sum over levels of 2 eta_l
            must stay below 2^-17 of the rate of a unit cell. An anchor's 2 eta must stay below 2^-17 of its own rate,
            or of an even share of a unit cell's. Both are checked when tables are made, from bounds on every operation
            (`noise/line/messages.py`). Far from the end all anchors have the same message, as soon as the next one
            differs by less than half of that in slope: then rho is the ratio of the two.
            Tails: all factors are even and log-concave, and so are all marginals; P(|x| = reach) is at most
            2 p(reach) / sum p for the message p of the place, because what the rest of the line adds falls with |x|.
            The sum over all places is kept below 2^-152; likewise for leaving a box inside of a table. Entries that
            are zero as doubles are left out: one step multiplies by exp(-`_STEEPEST`) at least, so the last that stays
            is far below that. N_(l+1)(s) misses what lies beyond the next table: that share, largest at the end of the
            box, is below 2^-53 and counted in eta.
Reference   Pearl, Probabilistic Reasoning in Intelligent Systems (1988), chapter 4, for messages on trees.
Checked by  tests/unit/noise/test_line_draws.py, tests/property/test_line_noise.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, log2
from typing import Final

import numpy as np

from tacit.arrays import Floats
from tacit.errors import PlanError
from tacit.noise.line.draws import WIDEST, CumulativeRows, SplitDraws, check_split, width_of_one_part
from tacit.noise.line.messages import (
    FARTHEST,
    UNIT,
    Message,
    Rates,
    cut_levels,
    cut_messages,
    kinds_of,
    level_messages,
    smoothed,
    smoothing_error,
)

SLACK: Final = 2.0**-16
_TAIL: Final = 2.0**-154  # for the anchors, for the ends, and for the cells of all levels
_WIDTH: Final = 0.35  # of a block of values, in units of 1 / rate: 0.74 to 0.9 of the proposals are accepted
MOST_WORK: Final = 2.5e8  # running sums of entries, for the messages of the anchors of one kind of segment
_COARSE: Final = 0.3  # rate of a block at which it is found out how much work there will be
_LOOKED_AT: Final = 512  # places of a message that are looked at to find out how far its table must go
_SPARE: Final = 8.0  # orders (of e) that are left for what is seen only in the whole table
MOST_ENTRIES: Final = 2e8  # terms that the tables of all levels may be added up from
MOST_KEPT: Final = 8e6  # entries of messages that may be kept
MOST_SPLIT: Final = 1e6  # entries on either side of zero of splits that are kept
_STEEPEST: Final = 300.0  # sum of all rates: doubles end at exp(-745), and a table needs an entry beside zero


@dataclass(frozen=True, eq=False)
class AnchorChain:
    """The anchors of a kind of segment, its end if that is free, and the parts of a last block that is cut short."""

    length: int
    anchors: int
    reach: int
    steady: SplitDraws | None  # of all anchors that are far from the end
    messages: tuple[Floats, ...]  # of the anchors nearest to the end, the last one first; then that of all others
    step: Floats  # message of a block between two anchors
    width: int
    end: SplitDraws | None
    parts: tuple[
        tuple[int, SplitDraws | None], ...
    ]  # level of each whole cell of the last block; what remains behind it

    def split(self, number: int) -> SplitDraws:
        """Return how an anchor is drawn, by its number, given the one before; made when it is asked for."""
        behind = self.anchors - number
        if self.steady is not None and behind >= len(self.messages) - 1:
            return self.steady
        found = self._splits.get(behind)
        if found is None:
            found = SplitDraws(self.messages[behind], self.step, self.width)
            if len(self._splits) * (self.reach + len(self.step)) < MOST_SPLIT:
                self._splits[behind] = found
        return found

    @cached_property
    def _splits(self) -> dict[int, SplitDraws]:
        """The first ones that were asked for: many draws ask for the same."""
        return {}

    @cached_property
    def steady_rows(self) -> CumulativeRows | None:
        """The cumulative weights for every value that an anchor far from the end may follow, unless they are too many.

        They are made once for all draws: one draw looks at few of them, and takes a tenth of the time.
        """
        if self.steady is None:
            return None
        rows = self.steady.rows(np.arange(-self.reach, self.reach + 1, dtype=np.int64))
        return rows[0] if len(rows) == 1 else None

    @property
    def near(self) -> int:
        """How many anchors are far enough from the end to be alike."""
        return 0 if self.steady is None else self.anchors - len(self.messages) + 1

    @property
    def is_cut(self) -> bool:
        """Whether the last block has fewer values than the others."""
        return bool(self.parts)


@dataclass(frozen=True, eq=False)
class LineTables:
    """Everything that is drawn with: a chain for each kind of segment, and how cells are halved on each level."""

    rates: Rates
    chains: dict[int, AnchorChain]  # by kind: `messages.kinds_of`
    halves: tuple[SplitDraws, ...]


def make_tables(lengths: tuple[int, ...], rates: Rates) -> LineTables:
    """Return the tables for segments of these lengths, of which the last has a free end if there is a rate for it."""
    levels = _checked_levels(rates)
    blocks = sum(-(-length // rates.block) for length in lengths)
    drafts = {
        key: _anchor_messages(key, rates, levels, _TAIL / blocks)
        for key in np.unique(kinds_of(lengths, rates)).tolist()
    }
    whole = max(draft.farthest for draft in drafts.values())
    cells = _level_tables(whole, rates, levels, blocks)
    chains = {key: _chain(key, draft, rates, levels, cells) for key, draft in drafts.items()}
    halves = tuple(SplitDraws(table, table, block_width(levels[level].rate)) for level, table in cells.items())
    return LineTables(rates, chains, halves)


def block_width(rate: float) -> int:
    """Return how many values are proposed together where weights fall at this rate."""
    return 1 << min(int(log2(WIDEST)), max(0, int(log2(max(1.0, _WIDTH / rate)))))


@dataclass(frozen=True, eq=False)
class _AnchorMessages:
    """Messages of the anchors of a segment, from the last one on, for 0..reach, and of the blocks between them."""

    reach: int
    messages: tuple[Floats, ...]
    steady: bool
    step: Floats  # of a block between two anchors
    last_step: Floats  # of the last block, where the end is free
    last_block: Message
    cut: dict[int, Message]

    @property
    def farthest(self) -> int:
        """How far from zero the sum of a block can be."""
        last = len(self.messages[0]) if self.messages and len(self.last_step) == 1 else 1
        return max(len(self.step), len(self.last_step), last) - 1


def _anchor_messages(key: int, rates: Rates, levels: tuple[Message, ...], tail: float) -> _AnchorMessages:
    length, free = abs(key), key < 0
    anchors = -(-length // rates.block) - 1
    cut = cut_messages(length % rates.block, rates.cells, levels)
    last_block = cut.get(0, levels[0])
    if not anchors and not free:
        return _AnchorMessages(0, (), False, np.ones(1), np.ones(1), last_block, cut)
    reach = _first_reach(rates, last_block, tail, anchors=bool(anchors), free=free)
    if anchors and 0 < levels[0].rate < _COARSE / 2:
        reach = max(reach, _expected(key, rates, levels, tail)[0])
    while True:
        found = _messages_within(reach, anchors, rates, levels[0], last_block, tail, free=free)
        if found is not None:
            return _AnchorMessages(reach, *found, last_block, cut)
        reach = int(reach * 1.15) + 1


def _expected(key: int, rates: Rates, levels: tuple[Message, ...], tail: float) -> tuple[int, int]:
    """Return about how far anchors and the sums of blocks go, found at a scale with fewer values.

    What would take too long, or too much memory, is refused.
    """
    by = max(1.0, _COARSE / levels[0].rate) if levels[0].rate else 1.0
    coarse = rates.times(by)
    draft = _anchor_messages(key, coarse, level_messages(coarse.cells), tail)
    reach = int(draft.reach * by * 1.04) + 2
    many = len(draft.messages)
    if many * (2 * reach + 1) * len(levels[0].weights) > MOST_WORK or many * reach > MOST_KEPT:
        raise _too_wide()
    return reach, int(draft.farthest * by * 1.04)


def check_size(lengths: tuple[int, ...], rates: Rates) -> None:
    """Refuse tables that would be too large or too fine, without making them."""
    levels = _checked_levels(rates)
    blocks = sum(-(-length // rates.block) for length in lengths)
    whole = max(
        _expected(key, rates, levels, _TAIL / blocks)[1] for key in np.unique(kinds_of(lengths, rates)).tolist()
    )
    _level_reaches(whole, rates, levels, blocks)


def _first_reach(rates: Rates, last_block: Message, tail: float, *, anchors: bool, free: bool) -> int:
    """Return a reach that is about enough for the message of the last anchor, and enough for the end."""
    wanted = -log(tail) + 6
    found = 1.0
    if free:
        found = (wanted + log(2)) / (rates.end or 1.0)
    if anchors:
        # e^(-v x) nb(x): the mixture falls more slowly than its rate says; its mean is where it begins to fall
        mean = float(np.dot(last_block.weights, np.arange(1, len(last_block.weights) + 1)))
        found = max(found, (wanted + mean) / (rates.anchor + last_block.rate))
    return int(found) + 2


def _messages_within(
    reach: int, anchors: int, rates: Rates, block: Message, last_block: Message, tail: float, *, free: bool
) -> tuple[tuple[Floats, ...], bool, Floats, Floats] | None:
    """Return the messages of anchors, whether the last is that of all others, and the blocks; None if cut too soon."""
    entries = 2 * reach + 1
    if entries > MOST_KEPT:
        raise _too_wide()
    away = np.abs(np.arange(-reach, reach + 1, dtype=np.float64))
    falling = np.exp(-rates.anchor * away)
    last_step = np.ones(1)
    if free:
        end = rates.end or 0.0
        at_end = np.exp(-end * away)
        if 2 * at_end[0] > tail * at_end.sum():
            return None
        if 8 * (end * reach + 2) * UNIT > SLACK / 2 * end:
            raise _too_fine()
        reached = smoothed(last_block, at_end)
        lowest = reached[reach] if not anchors else reached.min()
        last_step = _block_table(last_block, 2 * reach if anchors else reach, lowest / at_end.sum(), tail)
        now = falling * reached
    else:
        half = last_block.table(min(reach, _farthest(last_block)))
        half = half[: _enough(half * np.exp(-rates.anchor * away[reach : reach + len(half)]), tail) + 1]
        now = np.zeros(entries)
        now[reach : reach + len(half)] = half
        now[reach - len(half) + 1 : reach + 1] = half[::-1]
        now *= falling
    if not anchors:
        return (), False, np.ones(1), last_step
    # an anchor's error may cost 2^-17 of its rate, or of its share of a unit cell's: half for rounding, half for the
    # difference to the steady message
    allowed = SLACK / 4 * max(rates.anchor, rates.cells[-1] / anchors)
    rounding = max(smoothing_error(one, entries) for one in (block, last_block))
    rounding += UNIT * (2 * rates.anchor * reach + 20) + 2 * max(block.rounding, last_block.rounding) + 2 * UNIT
    if 2 * rounding > allowed:
        raise _too_fine()
    work = entries * len(block.weights)
    messages: list[Floats] = []
    lowest, steady = 1.0, False
    while True:
        now = now / now.max()
        if 2 * now[0] > tail * now.sum():
            return None
        messages.append(now[reach : reach + int(np.count_nonzero(now[reach:]))].copy())
        reached = smoothed(block, now)
        if len(messages) == anchors:  # the first anchor: the one before it is zero
            lowest = min(lowest, reached[reach] / now.sum())
            break
        lowest = min(lowest, reached.min() / now.sum())
        if len(messages) * reach > MOST_KEPT or len(messages) * work > 2 * MOST_WORK:
            raise _too_wide()
        following = falling * reached
        scaled = following / following.max()
        if min(now[0], scaled[0]) > 0:
            slope = np.abs(np.diff(np.log(scaled) - np.log(now)))
            if slope.max() < allowed / 2:
                steady = True
                break
        now = following
    return tuple(messages), steady, _block_table(block, 2 * reach, lowest, tail), last_step


def _block_table(block: Message, reach: int, lowest: float, tail: float) -> Floats:
    """Return the table of a block's message, up to where nothing is left of it.

    A sum over x of f(x) p(s - x) misses at most p(reach) * sum of f, and is at least `lowest` times the sum of f.
    """
    if block.rate == 0:
        return block.table(reach)
    table = block.table(min(reach, _farthest(block)))
    enough = (table < UNIT * lowest) & (2 * table < tail * table.sum())
    if enough.any():
        table = table[: int(np.argmax(enough)) + 1]
    elif reach > _farthest(block):
        raise _too_wide()
    return _scaled(table)


def _farthest(message: Message) -> int:
    return int(FARTHEST / message.rate) if message.rate else 1 << 62


def _enough(half: Floats, tail: float) -> int:
    """Return where the tail of an even table can be cut."""
    small = 4 * half < tail * half.sum()
    return int(np.argmax(small)) if small.any() else len(half) - 1


def _level_reaches(
    whole: int, rates: Rates, levels: tuple[Message, ...], blocks: int
) -> dict[int, tuple[int, int, int]]:
    """Return for each level below the block: the box of the cells around, its own, and how far its table goes.

    A cell lies outside of its box with a probability below `_tail`; the table goes on until what it lacks for the
    halves of any cell inside the box is lost in rounding.
    """
    found: dict[int, tuple[int, int, int]] = {}
    before, terms = whole, 0
    for level in range(1, rates.levels + 1):
        message = levels[level]
        places = np.unique(np.linspace(0, _farthest(message) - 1, _LOOKED_AT).astype(np.int64)).astype(np.float64)
        logs = np.log(message.at(places))
        small = logs < logs[0] + log(_tail(level, rates, blocks)) - _SPARE
        # the halves of a whole weigh at least what two equal ones do
        further = places[places + before < _farthest(message)]
        middle = log(float(message.at(np.array([float(before // 2)]))[0]))
        both = np.log(message.at(further + before)) + logs[: further.size]
        beyond = both < 2 * middle + log(UNIT) - _SPARE
        if not small.any() or not beyond.any():
            raise _too_wide()
        box = int(places[np.argmax(small)])
        reach = max(box, before + int(further[np.argmax(beyond)]))
        found[level] = before, box, reach
        before, terms = box, terms + reach * len(message.weights)
    if terms > MOST_ENTRIES:
        raise _too_wide()
    return found


def _tail(level: int, rates: Rates, blocks: int) -> float:
    return _TAIL / rates.levels / (blocks << level)


def _level_tables(whole: int, rates: Rates, levels: tuple[Message, ...], blocks: int) -> dict[int, Floats]:
    """Return the table of each level below the block, up to where it is needed."""
    found: dict[int, Floats] = {}
    for level, (before, box, reach) in _level_reaches(whole, rates, levels, blocks).items():
        table = levels[level].table(reach + 1)
        # all this is log-concave, so that tails are at most geometric
        outside = table[box] / (1 - table[box + 1] / table[box])
        lacking = table[reach] * table[reach - before]
        lacking /= 1 - table[reach + 1] * table[reach + 1 - before] / lacking
        inside = float(np.dot(table[: before + 1], table[before::-1]))
        if not (2 * outside <= _tail(level, rates, blocks) * table.sum() and 2 * lacking <= UNIT * inside):
            raise _too_wide()
        found[level] = _scaled(table[:-1])
    return found


def _checked_levels(rates: Rates) -> tuple[Message, ...]:
    """Return the messages of whole cells; refuse tables that end at zero, or whose rounding could cost too much."""
    if rates.anchor + sum(rates.cells) + (rates.end or 0.0) > _STEEPEST:
        raise PlanError("has rates so large that it would always be zero", key="noise on a line", fix="Lower them.")
    levels = level_messages(rates.cells)
    _check_cells(rates, levels)
    return levels


def _check_cells(rates: Rates, levels: tuple[Message, ...]) -> None:
    """Refuse tables whose rounding could cost more than what is set aside for it."""
    if rates.cells[-1] == 0:
        return
    total = 0.0
    for level, message in enumerate(levels):
        eta = message.rounding + UNIT
        if level < rates.levels:
            inner = levels[level + 1]
            eta += 2 * (inner.rounding + inner.derivation) + message.derivation + 4 * UNIT
        total += 2 * eta
    # sums of rates are rounded too: that is a slope
    total += 4 * UNIT * rates.levels * sum(rates.cells)
    if total > SLACK / 2 * rates.cells[-1]:
        raise _too_fine()


def _chain(
    key: int, draft: _AnchorMessages, rates: Rates, levels: tuple[Message, ...], cells: dict[int, Floats]
) -> AnchorChain:
    length, free = abs(key), key < 0
    anchors = -(-length // rates.block) - 1
    rest = length % rates.block
    width = width_of_one_part(draft.reach, block_width(levels[0].rate + rates.anchor)) if anchors else 1
    for message in draft.messages:  # a draw comes after the charge: what it makes then is known to fit
        check_split(message, draft.step, width)
    steady = SplitDraws(draft.messages[-1], draft.step, width) if draft.steady else None
    end = None
    if free:
        rate = rates.end or 0.0
        falling = np.exp(-rate * np.arange(draft.reach + 1, dtype=np.float64))
        end = SplitDraws(falling, draft.last_step, block_width(rate + draft.last_block.rate))
    parts: list[tuple[int, SplitDraws | None]] = []
    whole_cells = cut_levels(rest, rates.levels)
    for level in whole_cells:
        behind = None
        if level != whole_cells[-1]:
            own = _scaled(draft.cut[level].table(len(cells[level]) - 1))
            behind = SplitDraws(own, cells[level], block_width(levels[level].rate))
        parts.append((level, behind))
    return AnchorChain(length, anchors, draft.reach, steady, draft.messages, draft.step, width, end, tuple(parts))


def log_at_zero(tables: LineTables, lengths: tuple[int, ...]) -> float:
    """Return the logarithm of the probability that all noise is zero."""
    halved = [half.log_share(0, 0) for half in tables.halves]
    each = {kind: _segment_at_zero(chain, tables.rates, halved) for kind, chain in tables.chains.items()}
    return sum((each[kind] for kind in kinds_of(lengths, tables.rates).tolist()), 0.0)


def _segment_at_zero(chain: AnchorChain, rates: Rates, halved: list[float]) -> float:
    found = sum(chain.split(number).log_share(0, 0) for number in range(chain.near + 1, chain.anchors + 1))
    if chain.steady is not None:
        found += chain.near * chain.steady.log_share(0, 0)
    if chain.end is not None:
        found += chain.end.log_share(0, 0)
    cells = chain.length // rates.block
    starts = dict(chain.parts)
    for level in range(1, rates.levels + 1):
        found += cells * halved[level - 1]
        cells *= 2
        if level in starts:
            behind = starts[level]
            found += 0.0 if behind is None else behind.log_share(0, 0)
            cells += 1
    return found


def _scaled(table: Floats) -> Floats:
    return np.asarray(table / table[0])


def _too_wide() -> PlanError:
    return PlanError(
        "needs tables that are too large",
        key="noise on a line",
        fix="Spend more epsilon, or take a smaller block or a larger rate for its ends.",
    )


def _too_fine() -> PlanError:
    return PlanError(
        "has rates so small that rounding in its tables would cost more than what is set aside for it",
        key="noise on a line",
        fix="Spend more epsilon.",
    )
