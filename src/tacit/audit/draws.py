"""Outputs of a mechanism under audit, drawn many at a time, in a form in which events can be found.

Numbers in rows of equal length stay numbers. Everything else (rows of different lengths, names, nothing at all) becomes
a text that depends on the output alone and not on what else was drawn with it. Where a mechanism raises, every draw is
made alone, and the exception is an output like any other.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from enum import IntEnum
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanError
from tacit.mechanism import noise

Array = npt.NDArray[Any]
Release = Callable[[Any, int], Any]
Progress = Callable[[float], None]

RAISES: Final = "raises "
CHUNK: Final = 1 << 17  # outputs that are asked for at once ..
CHUNK_OF_TEXTS: Final = 1 << 13  # .. where nobody knows how large they were
MOST_NUMBERS: Final = 1 << 23  # numbers that are asked for at once
MOST_KEPT: Final = 1 << 24  # numbers of either side that are kept at once
NUMBERS_OF_A_TEXT: Final = 80  # that take as much room
LONGEST_TEXT: Final = 160  # letters; of the rest a digest is kept
SECONDS_ALONE: Final = 10  # for a mechanism that raises, so that every draw must be made alone
ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
FEWEST: Final = 1_000
FIRST_LOOK: Final = 16


class Form(IntEnum):
    """What outputs are turned into. A mechanism may turn out to need a later one, never an earlier one."""

    WHOLE_NUMBERS = 0
    NUMBERS = 1
    TEXTS = 2
    ALONE = 3


class FormChanged(Exception):
    """Outputs do not fit the form in which they were drawn so far: whoever drew them has to start over."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self.form = form


class Source:
    """Draws outputs of two data sets, in chunks, one thread for each."""

    def __init__(
        self, release: Release, data: tuple[Any, Any], samples: int, workers: int, progress: Progress | None
    ) -> None:
        self._release, self._data, self._progress = release, data, progress
        self.samples, self._done, self._reported = samples, 0, 0.0
        # a replayed stream belongs to this thread, and two threads would share it in an order that varies
        self._threads = workers > 1 and not noise.is_replayed()
        self.form, self._shape = self._first_look()
        self.start_over(self.form)

    def _first_look(self) -> tuple[Form, tuple[int, ...]]:
        """Draw a few, to see whether it raises, how large an output is, and whether both sides look alike."""
        try:
            looks = [numbers_of(self._called(data, FIRST_LOOK)) for data in self._data]
        except FormChanged as change:
            return change.form, ()
        rows = [look for look in looks if look is not None]
        if len({row.shape for row in rows}) != 1 or len(rows) < len(looks):
            return Form.TEXTS, ()  # a shape that depends on the data is an output as well
        floats = any(row.dtype.kind == "f" for row in rows)
        return Form.NUMBERS if floats else Form.WHOLE_NUMBERS, rows[0].shape[1:]

    @property
    def alone(self) -> bool:
        """Whether every draw is made alone, because the mechanism raises."""
        return self.form == Form.ALONE

    def start_over(self, form: Form) -> None:
        """Go on with another form, from the first sample."""
        self.form, self._done = form, 0
        if self.alone:
            self._time_a_draw()

    @property
    def most_kept(self) -> int:
        """How many outputs of either side may be kept at once."""
        return max(FEWEST // 2, MOST_KEPT // self._numbers_each)

    @property
    def _numbers_each(self) -> int:
        return NUMBERS_OF_A_TEXT if self.form >= Form.TEXTS else max(1, prod(self._shape))

    @property
    def _chunk(self) -> int:
        if self.form >= Form.TEXTS:
            return 1_000 if self.alone else CHUNK_OF_TEXTS
        return max(64, min(CHUNK, MOST_NUMBERS // self._numbers_each))

    def _time_a_draw(self) -> None:
        """Make as many single draws as time allows."""
        start = time.perf_counter()
        seen = {text for data in self._data for text in self._alone_outputs(data, 50).tolist()}
        if len(seen) == 1 and next(iter(seen)).startswith(RAISES):
            raise PlanError(
                f"must return outputs; it {next(iter(seen))}, whichever data set it is given",
                key="release",
                fix="It is called as release(data, size) and returns `size` outputs.",
            )
        each = (time.perf_counter() - start) / 100
        self.samples = max(FEWEST, min(self.samples, int(SECONDS_ALONE / max(each, 1e-7) / 2)))

    def draw(self, count: int) -> tuple[Array, Array]:
        """Return so many outputs of hidden and of cover."""
        parts: tuple[list[Any], list[Any]] = ([], [])
        for side, outputs in self.chunks(count):
            parts[side].append(outputs)
        return np.concatenate(parts[0]), np.concatenate(parts[1])

    def chunks(self, count: int) -> Iterator[tuple[int, Array]]:
        """Yield outputs with the side that they belong to: 0 for hidden, 1 for cover."""
        with ThreadPoolExecutor(2) if self._threads else nullcontext() as pool:
            for start in range(0, count, self._chunk):
                sizes = [min(self._chunk, count - start)] * 2
                yield from enumerate((map if pool is None else pool.map)(self._outputs, self._data, sizes))
                self._done += sizes[0]
                self._report(self._done / self.samples)

    def _report(self, share: float) -> None:
        self._reported = max(self._reported, share)  # also after starting over
        if self._progress is not None:
            self._progress(self._reported)

    def _outputs(self, data: Any, size: int) -> Array:
        if self.alone:
            return self._alone_outputs(data, size)
        outputs = self._called(data, size)
        if self.form == Form.TEXTS:
            return texts_of(outputs)
        numbers = numbers_of(outputs)
        if numbers is None or numbers.shape[1:] != self._shape:
            raise FormChanged(Form.TEXTS)
        if self.form == Form.NUMBERS:
            return numbers.astype(np.float64, copy=False)
        if numbers.dtype.kind == "f":
            raise FormChanged(Form.NUMBERS)
        return numbers

    def _called(self, data: Any, size: int) -> Any:
        """Return what the mechanism returns; an exception of it is not passed on, since it may be all that leaks."""
        failed = False
        try:
            outputs = self._release(data, size)
        except Exception:
            failed = True
        if failed:
            raise FormChanged(Form.ALONE)
        _check_length(outputs, size)
        return outputs

    def _alone_outputs(self, data: Any, size: int) -> Array:
        return np.array([self._one(data) for _ in range(size)])

    def _one(self, data: Any) -> str:
        try:
            outputs = self._release(data, 1)
        except Exception as error:
            return shortened(f"{RAISES}{type(error).__name__}: {error}")
        _check_length(outputs, 1)
        return str(texts_of(outputs)[0])


def numbers_of(outputs: Any) -> Array | None:
    """Return outputs as rows of int64 or of doubles, or None where they are something else."""
    try:
        array = np.asarray(outputs)
    except ValueError:  # rows of different lengths
        return None
    kind = array.dtype.kind
    if not array.size:
        return None
    if kind in "biu":
        return array.astype(np.int64)
    if kind == "f":
        return array.astype(np.float64)
    if kind == "c":
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return array.astype(np.int64) if kind in "mM" else None


def texts_of(outputs: Any) -> Array:
    """Return outputs as texts, one for each."""
    listed = np.asarray(outputs).tolist() if hasattr(outputs, "ndim") else list(outputs)
    return np.array([shortened(output if isinstance(output, str) else _said(output)) for output in listed])


def _said(output: Any) -> str:
    """Return the value of an output: 2, 2.0 and True are shown differently only by how they were drawn."""
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, list | tuple):
        return f"[{', '.join(map(_said, output))}]"
    whole = isinstance(output, bool) or (isinstance(output, float) and output.is_integer())
    return repr(int(output)) if whole else repr(output)


def shortened(text: str) -> str:
    """Return a text that is short enough to keep many of, and differs where the whole text does, but for addresses."""
    text = ADDRESS.sub("", text)  # where an object lies in memory is no output
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - 20]}.. {hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def _check_length(outputs: Any, size: int) -> None:
    listed = isinstance(outputs, Sequence) or bool(getattr(outputs, "ndim", False))
    given = len(outputs) if listed else None
    if given != size or isinstance(outputs, str | bytes):
        raise PlanError(
            f"must return {size:,} outputs, one along the first axis for each draw",
            key="release",
            given=f"{type(outputs).__name__}{'' if given is None else f' of {given:,}'}",
            fix="For instance truth + noise.geometric(2, size).",
        )
