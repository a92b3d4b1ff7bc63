"""Draws of noise on a line: anchors from left to right, then halves of halves.

Guarantee   A split, x given the whole with weight own(x) * other(whole - x), follows the law in which both tables,
            doubles, are read as exact fractions, up to 2^-220 in total variation, given uniform words. Given the
            tables, noise follows their law (`noise/line/tables.py`) up to 2^-190. The result is the same function of
            the random words, however many pieces are worked on at once.
Assumes     Uniform words from the keystream. Tables are even, positive and normal (no denormal numbers).
Why         Splits: the value is the first whose cumulative weight exceeds U times the sum of all, with a 253-bit
            uniform U. The 53 leading bits decide, in doubles, unless they are within BAND of a tie. All errors of the
            doubles together are smaller: 2^15 columns added up (2^-38), products and divisions (2^-51), the number of
            the row, up to 2^11, in front of a cumulative weight (2^-41). Near a tie, whole numbers decide, with 200
            more bits. Wide tables: columns are blocks of `width` values, with weights max own * max other in the block;
            the place in the block is uniform, and own(x) * other(whole - x) / (max own * max other) is the chance to
            accept it: what is accepted has the right law. That coin has 240 bits, 40 of which usually decide.
            Lines: each anchor is drawn given the one before, so a line would take as many rounds as it has anchors.
            Instead, pieces start at a guess, all at once; then the pieces whose guess was wrong are drawn again from
            the true start, with the words that belong to their anchors, until they meet what they had before. From
            there on, the same words give the same anchors, so that nothing would change. All words of an anchor are its
            own. At most 2^23 draws, each within 2^-220, make 2^-190 with room to spare.
Reference   Devroye, Non-Uniform Random Variate Generation (1986), chapters II.3 and III.2; Propp, Wilson, Exact
            Sampling with Coupled Markov Chains (1996), for chains that share their random words.
Checked by  tests/unit/noise/test_line_draws.py, tests/statistical/test_line_noise.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ints
from tacit.errors import PlanError
from tacit.noise.draws import chunks
from tacit.noise.keystream import Keystream

if TYPE_CHECKING:
    from tacit.noise.line.tables import AnchorChain, LineTables

Words = NDArray[np.uint64]
More = Callable[[int, int], int]  # which draw, which of its two numbers -> 200 further bits

BAND: Final = 2.0**-34
WIDEST: Final = 1 << 20  # values in a block
_MOST_COLUMNS: Final = 1 << 15
_MOST_ROWS: Final = 1 << 11
_MOST_ENTRIES: Final = 1 << 22
_SPLITS_AT_ONCE: Final = 1 << 18
_MORE_BITS: Final = 200
_COIN_BITS: Final = 40
_PLACE_BITS: Final = 64 - _COIN_BITS
_SMALLEST: Final = 2.0**-1000  # entry of a table
_TOO_SMALL: Final = 1e-290  # below, doubles lose digits, and whole numbers decide


@dataclass(frozen=True, eq=False)
class CumulativeRows:
    """Cumulative weights of the columns, for some wholes (in blocks): entry row * columns + column is row + share."""

    flat: Floats
    row: Ints  # of each block of wholes, from `first` on
    first: int
    unsure: NDArray[np.bool_]  # rows that only whole numbers can decide


def width_of_one_part(reach: int, width: int) -> int:
    """Return the least width, from this one on, at which the cumulative weights of all wholes up to reach are one part.

    Numbers that are drawn one after the other need all of them at once; wider blocks are accepted a little less often.
    """
    while width < WIDEST:
        columns = 2 * (-(-reach // width) + 1)  # as many as rows at least
        if columns <= _MOST_ROWS and columns * columns <= _MOST_ENTRIES:
            break
        width *= 2
    return width


def check_split(own: Floats, other: Floats, width: int) -> None:
    """Refuse tables that no split is made of, without making it."""
    if min(own.min(), other.min()) < _SMALLEST or 2 * _blocks(own, width) > _MOST_COLUMNS:
        raise PlanError(
            "needs tables that go too far out",
            key="noise on a line",
            fix="Take rates that are less different from each other, or all of them smaller.",
        )


class SplitDraws:
    """Draws of x given the whole, with weight own(x) * other(whole - x); tables hold x = 0, 1, .. and are even."""

    def __init__(self, own: Floats, other: Floats, width: int, *, band: float = BAND) -> None:
        if not 1 <= width <= WIDEST or width & (width - 1):
            message = "a block has a power of two of values"
            raise ValueError(message)
        check_split(own, other, width)
        self.width, self._band = width, band
        self._own_blocks, self._own = _in_blocks(own, width)
        self._other_blocks, self._other = _in_blocks(other, width)
        self._own_most = self._own.reshape(-1, width).max(axis=1)
        inside = self._other.reshape(-1, width)
        # whole - x lies in the block of the difference of their blocks, or in the one before (not at its first place)
        self._other_most = inside.max(axis=1)
        if width > 1:
            before = np.concatenate([[0.0], inside[:-1, 1:].max(axis=1)])
            self._other_most = np.maximum(self._other_most, before)
        self._columns = np.arange(-self._own_blocks, self._own_blocks)

    @property
    def columns(self) -> int:
        """How many blocks of values there are."""
        return int(self._columns.size)

    def rows(self, wholes: Ints) -> list[CumulativeRows]:
        """Return the cumulative weights for these wholes; in parts, where there are many."""
        blocks = wholes // self.width
        first = int(blocks.min())
        present = np.flatnonzero(np.bincount(blocks - first))
        most = max(1, min(_MOST_ROWS, _MOST_ENTRIES // self.columns))
        return [self._some_rows(present[part], first) for part in chunks(present.size, most)]

    def _some_rows(self, present: Ints, first: int) -> CumulativeRows:
        weights = self._own_most * self._difference_most((present + first)[:, np.newaxis] - self._columns)
        sums = np.cumsum(weights, axis=1)
        unsure = sums[:, -1] < _TOO_SMALL
        sums[unsure] = 1.0
        sums /= sums[:, -1:]
        sums += np.arange(present.size)[:, np.newaxis]
        row = np.full(int(present[-1]) + 1, -1, np.int64)
        row[present] = np.arange(present.size)
        return CumulativeRows(sums.ravel(), row, first, unsure)

    def _difference_most(self, difference: Ints) -> Floats:
        at = difference + self._other_blocks
        inside = (at >= 0) & (at < self._other_most.size)
        return np.where(inside, self._other_most[np.where(inside, at, 0)], 0.0)

    def propose(
        self, wholes: Ints, rows: CumulativeRows, first: Words, second: Words | None, more: More
    ) -> tuple[Ints, NDArray[np.bool_]]:
        """Return one proposal for each whole, from one or two words each, and whether it is accepted."""
        blocks = wholes // self.width
        row = rows.row[blocks - rows.first]
        uniform = (first >> np.uint64(11)).astype(np.float64) * 2.0**-53
        wanted = row + uniform
        found = np.searchsorted(rows.flat, wanted, "right")
        begin = row * self.columns
        above = rows.flat[np.minimum(found, rows.flat.size - 1)]
        below = np.where(found > begin, rows.flat[np.maximum(found - 1, 0)], row)
        column = found - begin
        unsure = (above - wanted < self._band) | (wanted - below < self._band)
        unsure |= (column >= self.columns) | rows.unsure[row]
        for i in np.flatnonzero(unsure):
            bits = (int(first[i]) >> 11 << _MORE_BITS) | more(int(i), 0)
            column[i] = self._exact_column(int(blocks[i]), bits)
        values = self._columns[column] * self.width
        if second is None:
            return values, np.ones(values.size, np.bool_)
        values += (second & np.uint64(self.width - 1)).astype(np.int64)
        return values, self._accepted(wholes, values, column, second, more)

    def _accepted(self, wholes: Ints, values: Ints, column: Ints, second: Words, more: More) -> NDArray[np.bool_]:
        at = wholes - values + self._other_blocks * self.width
        inside = (at >= 0) & (at < self._other.size)
        own = self._own[values + self._own_blocks * self.width]
        other = np.where(inside, self._other[np.where(inside, at, 0)], 0.0)
        own_most = self._own_most[column]
        other_most = self._difference_most(wholes // self.width - self._columns[column])
        coin = (second >> np.uint64(_PLACE_BITS)).astype(np.float64) * 2.0**-_COIN_BITS
        most, weight = own_most * other_most, own * other
        accepted = coin * most < weight
        for i in np.flatnonzero((np.abs(coin * most - weight) <= self._band * most) | (most < _TOO_SMALL)):
            bits = (int(second[i]) >> _PLACE_BITS << _MORE_BITS) | more(int(i), 1)
            bound = _whole(own_most[i]) * _whole(other_most[i])
            accepted[i] = bits * bound < _whole(own[i]) * _whole(other[i]) << (_COIN_BITS + _MORE_BITS)
        return np.asarray(accepted)

    def _exact_column(self, block: int, bits: int) -> int:
        """Return the first column whose cumulative weight exceeds bits / 2^253 of the sum, in whole numbers."""
        others = self._difference_most(block - self._columns)
        weights = [_whole(own) * _whole(other) for own, other in zip(self._own_most, others, strict=True)]
        wanted, reached = bits * sum(weights), 0
        for column, weight in enumerate(weights):
            reached += weight
            if wanted < reached << (53 + _MORE_BITS):
                return column
        message = "the bits are below 2^253, so that some column is the first"
        raise AssertionError(message)

    def draw(self, stream: Keystream, wholes: Ints) -> Ints:
        """Return one draw for each whole, all independent."""
        out = np.zeros(wholes.size, np.int64)
        if not wholes.size:
            return out

        def more(_which: int, _kind: int) -> int:
            return stream.bits(256) >> (256 - _MORE_BITS)

        parts = self.rows(wholes)
        for rows in parts:
            everywhere = slice(None) if len(parts) == 1 else np.flatnonzero(_has_row(wholes // self.width, rows))
            given = wholes[everywhere]
            into = np.empty(given.size, np.int64)
            for part in chunks(given.size, _SPLITS_AT_ONCE):
                missing = np.arange(part.start, part.stop)
                while missing.size:
                    first = stream.words(np.uint64, missing.size)
                    second = stream.words(np.uint64, missing.size) if self.width > 1 else None
                    values, accepted = self.propose(given[missing], rows, first, second, more)
                    into[missing[accepted]] = values[accepted]
                    missing = missing[~accepted]
            out[everywhere] = into
        return out

    def log_share(self, whole: int, value: int) -> float:
        """Return the logarithm of the probability of a value, for tests and for the law of all noise at once."""
        x = np.arange(-self._own_blocks * self.width, self._own_blocks * self.width)
        at = whole - x + self._other_blocks * self.width
        inside = (at >= 0) & (at < self._other.size)
        weights = self._own * np.where(inside, self._other[np.where(inside, at, 0)], 0.0)
        with np.errstate(divide="ignore"):
            return float(np.log(weights[value + self._own_blocks * self.width] / weights.sum()))


def _has_row(blocks: Ints, rows: CumulativeRows) -> NDArray[np.bool_]:
    at = blocks - rows.first
    inside = at < rows.row.size
    return inside & (rows.row[np.where(inside, at, 0)] >= 0)


def _blocks(half: Floats, width: int) -> int:
    return -(-(half.size - 1) // width) + 1


def _in_blocks(half: Floats, width: int) -> tuple[int, Floats]:
    """Return an even table in blocks, with zeros around it, and how many blocks there are on either side of zero."""
    reach, blocks = half.size - 1, _blocks(half, width)
    table = np.zeros(2 * blocks * width)
    middle = blocks * width
    table[middle : middle + reach + 1] = half
    table[middle - reach : middle + 1] = half[::-1]
    return blocks, table


def _whole(number: float) -> int:
    """Return number * 2^1074, which is a whole number for every double."""
    numerator, denominator = float(number).as_integer_ratio()
    return numerator * ((1 << 1074) // denominator)


_ANCHORS_AT_ONCE: Final = 1 << 20  # anchors whose words are kept
_LANES: Final = 1 << 12  # pieces that are worked on at once
_SHORTEST: Final = 64  # piece: about how long it takes two of them to meet
_ENTRIES: Final = 1 << 22  # numbers that are drawn together


def draw_segments(tables: LineTables, chain: AnchorChain, stream: Keystream, many: int) -> Ints:
    """Return noise on the running counts of that many segments of one kind, one in each row."""
    out = np.empty((many, chain.length), np.int64)
    for part in chunks(many, max(1, _ENTRIES // chain.length)):
        out[part] = _some_segments(tables, chain, stream, part.stop - part.start)
    return out


def _some_segments(tables: LineTables, chain: AnchorChain, stream: Keystream, many: int) -> Ints:
    anchors = np.zeros((many, chain.anchors + 2), np.int64)  # between a zero and the end
    _draw_anchors(chain, stream, anchors[:, :-1])
    if chain.end is not None:
        anchors[:, -1] = chain.end.draw(stream, np.ascontiguousarray(anchors[:, -2]))
    blocks = np.diff(anchors, axis=1)
    cells = blocks[:, :-1] if chain.is_cut else blocks
    rest = blocks[:, -1]
    starts = dict(chain.parts)
    for level, half in enumerate(tables.halves, start=1):
        flat = np.ascontiguousarray(cells).ravel()
        left = half.draw(stream, flat)
        halves = np.empty((flat.size, 2), np.int64)
        halves[:, 0] = left
        np.subtract(flat, left, out=halves[:, 1])
        cells = halves.reshape(many, -1)
        if level in starts:
            split = starts[level]
            behind = np.zeros_like(rest) if split is None else split.draw(stream, rest)
            cells = np.concatenate([cells, (rest - behind)[:, np.newaxis]], axis=1)
            rest = behind
    return np.cumsum(cells, axis=1)


def _draw_anchors(chain: AnchorChain, stream: Keystream, anchors: Ints) -> None:
    """Fill in the anchors, from left to right; the first column is zero."""
    many, near = anchors.shape[0], chain.near
    if chain.steady is not None:
        rows = chain.steady_rows
        for part in chunks(near, max(1, _ANCHORS_AT_ONCE // many)):
            if rows is not None:
                _draw_steady(chain.steady, rows, stream, anchors[:, part.start : part.stop + 1])
            else:
                for k in range(part.start, part.stop):
                    anchors[:, k + 1] = chain.steady.draw(stream, anchors[:, k])
    for k in range(near + 1, chain.anchors + 1):
        anchors[:, k] = chain.split(k).draw(stream, np.ascontiguousarray(anchors[:, k - 1]))


class _KeptWords:
    """The random words of many anchors: for each anchor and round its own, made when first asked for."""

    def __init__(self, stream: Keystream, anchors: int, *, two: bool) -> None:
        self._stream, self._anchors, self._two = stream, anchors, two
        self._rounds: list[tuple[Words, Words | None]] = []
        self._more: dict[tuple[int, int, int], int] = {}

    def of_round(self, number: int) -> tuple[Words, Words | None]:
        while len(self._rounds) <= number:
            first = self._stream.words(np.uint64, self._anchors)
            self._rounds.append((first, self._stream.words(np.uint64, self._anchors) if self._two else None))
        return self._rounds[number]

    def more(self, number: int, anchor: int, kind: int) -> int:
        """Return 200 further bits for a number that ties."""
        key = number, anchor, kind
        if key not in self._more:
            self._more[key] = self._stream.bits(256) >> 56
        return self._more[key]


def _draw_steady(split: SplitDraws, rows: CumulativeRows, stream: Keystream, anchors: Ints) -> None:
    """Fill in all columns but the first, which is given."""
    many, length = anchors.shape[0], anchors.shape[1] - 1
    words = _KeptWords(stream, many * length, two=split.width > 1)
    piece = max(_SHORTEST, -(-many * length // _LANES))
    begins = np.arange(0, length, piece)
    lane = np.repeat(np.arange(many), begins.size)
    begin = np.tile(begins, many)
    start = np.where(begin == 0, anchors[lane, 0], 0)
    redo = np.arange(lane.size)
    is_first = True
    while redo.size:
        _walk(split, rows, words, anchors, lane[redo], begin[redo], start[redo], piece, is_first=is_first)
        true = anchors[lane, begin]
        redo = np.flatnonzero(true != start)
        start, is_first = true, False


def _walk(
    split: SplitDraws,
    rows: CumulativeRows,
    words: _KeptWords,
    anchors: Ints,
    lane: Ints,
    begin: Ints,
    start: Ints,
    piece: int,
    *,
    is_first: bool,
) -> None:
    """Draw pieces from their starts, each to its end or until it meets what it had before."""
    length = anchors.shape[1] - 1
    now, offset = start, 0
    while lane.size and offset < piece:
        at = begin + offset
        goes_on = at < length
        if not goes_on.all():
            lane, begin, now, at = lane[goes_on], begin[goes_on], now[goes_on], at[goes_on]
            if not lane.size:
                return
        now = _step(split, rows, words, lane * length + at, now)
        if is_first:
            anchors[lane, at + 1] = now
        else:
            differs = anchors[lane, at + 1] != now
            anchors[lane, at + 1] = now
            lane, begin, now = lane[differs], begin[differs], now[differs]
        offset += 1


def _step(split: SplitDraws, rows: CumulativeRows, words: _KeptWords, which: Ints, before: Ints) -> Ints:
    out = np.empty(which.size, np.int64)
    missing = np.arange(which.size)
    number = 0
    while missing.size:
        first, second = words.of_round(number)
        ids = which[missing]

        def more(i: int, kind: int, number: int = number, ids: Ints = ids) -> int:
            return words.more(number, int(ids[i]), kind)

        chosen = None if second is None else second[ids]
        values, accepted = split.propose(before[missing], rows, first[ids], chosen, more)
        if second is None:
            return values
        out[missing[accepted]] = values[accepted]
        missing = missing[~accepted]
        number += 1
    return out
