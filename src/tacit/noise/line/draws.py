"""Draws of noise on a line: anchors from left to right, then halves of halves.

Guarantee   Given the tables, noise follows their law (`line_tables`) up to 2^-190 in total variation. The result is the
            same function of the random words, however many pieces are worked on at once.
Assumes     Uniform words from the keystream; exact splits (`line_splits`).
Why         Each anchor is drawn given the one before, so a line would take as many rounds as it has anchors. Instead,
            pieces start at a guess, all at once; then the pieces whose guess was wrong are drawn again from the true
            start, with the words that belong to their anchors, until they meet what they had before. From there on, the
            same words give the same anchors, so that nothing would change. All words of an anchor are its own.
            At most 2^23 draws, each within 2^-220, make 2^-190 with room to spare.
Reference   Propp, Wilson, Exact Sampling with Coupled Markov Chains (1996), for chains that share their random words.
Checked by  tests/unit/noise/test_line_draws.py, tests/statistical/test_line_noise.py.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tacit.arrays import Ints
from tacit.noise.keystream import Keystream
from tacit.noise.line.splits import CumulativeRows, SplitDraws, Words
from tacit.noise.line.tables import AnchorChain, LineTables
from tacit.noise.tables import chunks

_AT_ONCE: Final = 1 << 20  # anchors whose words are kept
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
        for part in chunks(near, max(1, _AT_ONCE // many)):
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
        """Return the words of a round, for all anchors."""
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
    """Draw the next anchor of each piece."""
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
