"""Outputs of a mechanism under audit, drawn many at a time, in a form in which events can be found.

Numbers of one kind in rows of equal length stay numbers. Everything else (rows of different lengths, names, nothing at
all) becomes its canonical text with some features, which depend on the output alone and not on what else was drawn.

A call returns many outputs at once. The kind of an array, the names of a frame's columns or the fill value of a masked
array belong to all of them together: they say something about one output only if it was drawn alone. What stands in a
list belongs to each output by itself. Where a mechanism raises, or where what belongs to a call is not always the same,
every draw is made alone: then an exception, a kind of array or a column's name is an output like any other.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from enum import IntEnum
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.audit.sampled_audits.canonical import MOST_FEATURES, Canonical, canonical, taken_apart
from tacit.errors import PlanError

Array = npt.NDArray[Any]
_FRAMES: Final = ("pandas", "polars", "pyarrow", "duckdb", "_duckdb")


def check_length(outputs: Any, size: int) -> None:
    """Refuse anything but so many outputs."""
    listed = isinstance(outputs, Sequence) or bool(getattr(outputs, "ndim", False)) or _package(outputs) in _FRAMES
    given = len(outputs) if listed and hasattr(outputs, "__len__") else None
    if given != size or isinstance(outputs, str | bytes):
        raise PlanError(
            f"must return {size:,} outputs, one along the first axis for each draw",
            key="release",
            given=f"{type(outputs).__name__}{'' if given is None else f' of {given:,}'}",
            fix="For instance truth + noise.geometric(2, size).",
        )


def package_of(outputs: Any) -> str:
    """Return what belongs to a call as a whole: the kind of its container, of its array, of its columns."""
    kind = f"{type(outputs).__module__}.{type(outputs).__qualname__}"
    if isinstance(outputs, np.ndarray):
        # the room for texts is that of the longest
        said = outputs.dtype.kind if outputs.dtype.kind in "US" else str(outputs.dtype.descr)
        filling = canonical(outputs.fill_value) if isinstance(outputs, np.ma.MaskedArray) else ""
        return f"{kind} {said} {filling}"
    match _package(outputs):
        case "pandas":
            index = outputs.index if hasattr(outputs, "index") else outputs
            columns = outputs.columns if hasattr(outputs, "columns") else [getattr(outputs, "name", None)]
            kinds = [str(one) for one in np.atleast_1d(np.asarray(outputs.dtypes, dtype=object))]
            names = [*index.names, *getattr(columns, "names", ())]
            return f"{kind} {canonical(list(columns))} {kinds} {canonical(names)} {index.dtype} {_is_counted(index)}"
        case "polars" | "pyarrow" | "duckdb" | "_duckdb":
            return f"{kind} {canonical(outputs[:0] if hasattr(outputs, '__getitem__') else outputs.limit(0))}"
    return kind


def numbers_of(outputs: Any) -> Array | None:
    """Return outputs as rows of int64 or of doubles, or None where these would not tell all of them apart."""
    array = _array(outputs)
    if array is None or not array.size:
        return None
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "biumM":
        return array.astype(np.int64)
    if kind == "f" and size <= 8:
        return array.astype(np.float64)
    if kind == "c" and size <= 16:
        return np.stack([array.real, array.imag], axis=-1).astype(np.float64)
    return None


def _array(outputs: Any) -> Array | None:
    if type(outputs) is np.ndarray:
        return outputs
    if _package(outputs) == "pandas":
        kinds = np.atleast_1d(np.asarray(getattr(outputs, "dtypes", None), dtype=object))
        alike = len({str(one) for one in kinds}) == 1 and isinstance(kinds[0], np.dtype)
        return np.asarray(outputs) if alike and _is_counted(getattr(outputs, "index", None)) else None
    if type(outputs) not in (list, tuple) or not outputs:
        return None
    kind = _kind(outputs[0])
    if kind is None or any(_kind(one) != kind for one in outputs):
        return None
    array = np.asarray(outputs)
    return array if array.dtype.kind in "biufcmM" else None


def _kind(output: Any) -> Any:
    """Return what kind of number or row of numbers this is, or None for anything else."""
    kind = type(output)
    if kind in (int, float, bool):
        return kind
    if isinstance(output, np.generic):
        return output.dtype.str
    if kind is np.ndarray:
        return "array", output.dtype.str, output.shape
    if kind in (list, tuple):
        parts = tuple(_kind(one) for one in output)
        # numbers of several kinds would become one kind, in which they may look alike
        return (kind.__name__, len(parts), parts[0]) if parts and None not in parts and len(set(parts)) == 1 else None
    return None


def number_kind(outputs: Any) -> str:
    """Return of which kind the numbers in a list are: it belongs to each of them."""
    return str(_kind(outputs[0])) if type(outputs) in (list, tuple) and outputs else ""


def listed(outputs: Any) -> list[Any]:
    """Return the outputs of a call, one by one."""
    if isinstance(outputs, np.ma.MaskedArray):
        return list(zip(np.asarray(outputs.data), np.ma.getmaskarray(outputs), strict=True))
    if isinstance(outputs, np.ndarray):
        return list(outputs.tolist() if outputs.ndim == 1 and outputs.dtype.kind in "OUSbiu" else outputs)
    match _package(outputs), type(outputs).__name__:
        case "pandas", "DataFrame":
            return list(outputs.itertuples(index=not _is_counted(outputs.index), name=None))
        case "pandas", "Series":
            cells = outputs.tolist()
            return cells if _is_counted(outputs.index) else list(zip(outputs.index.tolist(), cells, strict=True))
        case "polars", "DataFrame":
            return list(outputs.rows())
        case "pyarrow", "Table" | "RecordBatch":
            return list(zip(*(column.to_pylist() for column in outputs.columns), strict=True))
        case "pyarrow", _:
            return list(outputs.to_pylist())
        case "duckdb" | "_duckdb", _:
            return list(outputs.fetchall())
    return list(outputs)


def _is_counted(index: Any) -> bool:
    """Say whether rows are only numbered from 0 on, which says nothing about them."""
    is_range = type(index).__name__ == "RangeIndex"
    return is_range and (index.start, index.step, index.name) == (0, 1, None)


def _package(outputs: Any) -> str:
    return type(outputs).__module__.partition(".")[0]


Release = Callable[[Any, int], Any]
Progress = Callable[[float], None]

RAISES: Final = "raises "
TEXT: Final = "text of the output"
FORM: Final = "form of the output"
CHUNK: Final = 1 << 17  # outputs that are asked for at once ..
CHUNK_OF_TEXTS: Final = 1 << 13  # .. where nobody knows how large they were
MOST_NUMBERS: Final = 1 << 23  # numbers that are asked for at once
MOST_KEPT: Final = 1 << 24  # numbers of either side that are kept at once
NUMBERS_OF_A_TEXT: Final = 60  # that take as much room
MOST_REMEMBERED: Final = 1 << 16  # texts that need not be taken apart again
LONGEST_TEXT: Final = 160  # letters; of the rest a digest is kept
SECONDS_ALONE: Final = 10  # for a mechanism that raises, so that every draw must be made alone
MISSING: Final = -(2.0**200)  # stands where an output lacks a feature that others have
FEWEST: Final = 1_000
FIRST_LOOK: Final = 16
LOOK_AT_TEXTS: Final = 50  # outputs of either side by which features are named


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


class OutputSource:
    """Draws outputs of two data sets, in chunks, one thread for each."""

    def __init__(
        self,
        release: Release,
        data: tuple[Any, Any],
        samples: int,
        workers: int,
        progress: Progress | None,
        seconds_alone: float = SECONDS_ALONE,
    ) -> None:
        self._release, self._data, self._progress = release, data, progress
        self.samples, self._done, self._reported = samples, 0, 0.0
        self._seconds_alone = seconds_alone
        # a replayed stream belongs to this thread, and two threads would share it in an order that varies
        self._threads = workers > 1 and not noise.is_replayed()
        self._package = self._kind = ""
        self._texts = Texts([])
        self.form, self._shape = self._first_look()
        self.start_over(self.form)

    def _first_look(self) -> tuple[Form, tuple[int, ...]]:
        """Draw a few, to see whether it raises, how large an output is, and whether both sides look alike."""
        try:
            calls = [self._called(data, FIRST_LOOK) for data in self._data]
        except FormChanged as change:
            return change.form, ()
        if len({package_of(call) for call in calls}) > 1:
            return Form.ALONE, ()
        self._package = package_of(calls[0])
        rows = [row for row in map(numbers_of, calls) if row is not None]
        kinds = {number_kind(call) for call in calls}
        if len({row.shape for row in rows}) != 1 or len(rows) < len(calls) or len(kinds) > 1:
            return Form.TEXTS, ()  # a shape that depends on the data is an output as well
        (self._kind,) = kinds
        floats = any(row.dtype.kind == "f" for row in rows)
        return Form.NUMBERS if floats else Form.WHOLE_NUMBERS, rows[0].shape[1:]

    @property
    def alone(self) -> bool:
        """Whether every draw is made alone, because the mechanism raises or hands over in different ways."""
        return self.form == Form.ALONE

    def start_over(self, form: Form) -> None:
        """Go on with another form, from the first sample."""
        self.form, self._done = form, 0
        if self.alone:
            self._time_a_draw()
        elif form == Form.TEXTS:
            looks = [one for data in self._data for one in listed(self._called(data, LOOK_AT_TEXTS))]
            self._texts = Texts([taken_apart(one) for one in looks])

    @property
    def most_kept(self) -> int:
        """How many outputs of either side may be kept at once."""
        return max(FEWEST // 2, MOST_KEPT // self._numbers_each)

    @property
    def _numbers_each(self) -> int:
        if self.form >= Form.TEXTS:
            return NUMBERS_OF_A_TEXT + len(self._texts.names)
        return max(1, prod(self._shape))

    @property
    def _chunk(self) -> int:
        if self.form >= Form.TEXTS:
            return 1_000 if self.alone else CHUNK_OF_TEXTS
        return max(64, min(CHUNK, MOST_NUMBERS // self._numbers_each))

    def _time_a_draw(self) -> None:
        """Make as many single draws as time allows."""
        start = time.perf_counter()
        looks = [self._one(data) for data in self._data for _ in range(LOOK_AT_TEXTS)]
        seen = {one.text for one in looks}
        if len(seen) == 1 and next(iter(seen)).startswith(RAISES):
            raise PlanError(
                f"must return outputs; it {shorten(next(iter(seen)))}, whichever data set it is given",
                key="release",
                fix="It is called as release(data, size) and returns `size` outputs.",
            )
        self._texts = Texts(looks)
        each = (time.perf_counter() - start) / len(looks)
        self.samples = max(FEWEST, min(self.samples, int(self._seconds_alone / max(each, 1e-7) / 2)))

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
            return self._texts.rows([self._one(data) for _ in range(size)])
        outputs = self._called(data, size)
        if package_of(outputs) != self._package:
            raise FormChanged(Form.ALONE)
        if self.form == Form.TEXTS:
            return self._texts.read(listed(outputs))
        numbers = numbers_of(outputs)
        if numbers is None or numbers.shape[1:] != self._shape or number_kind(outputs) != self._kind:
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
        check_length(outputs, size)
        return outputs

    def _one(self, data: Any) -> Canonical:
        """Return one output with everything that belongs to it: the way in which it is handed over, or an exception."""
        found = Canonical()
        try:
            outputs = self._release(data, 1)
        except Exception as error:
            found.say(RAISES)
            return found.joined(taken_apart(error))
        check_length(outputs, 1)
        return taken_apart(outputs)


class Texts:
    """Turns outputs into rows: their text, their form, and the features that some outputs were seen to have."""

    def __init__(self, looks: list[Canonical]) -> None:
        seen = Counter(name for look in looks for name in look.names)
        self.names = [name for name, _ in seen.most_common(MOST_FEATURES)]
        columns = [(TEXT, "O"), (FORM, "O"), *((name, "f8") for name in self.names)]
        self._dtype = np.dtype([(name, kind) for name, kind in columns])
        self._places = {name: place for place, name in enumerate(self.names)}
        self._remembered: dict[str, Any] = {}

    def read(self, outputs: list[Any]) -> Array:
        """Return a row for each output."""
        return np.array([self._row_of(one) for one in outputs], dtype=self._dtype)

    def rows(self, outputs: list[Canonical]) -> Array:
        """Return a row for each output that was taken apart already."""
        return np.array([self._row(one) for one in outputs], dtype=self._dtype)

    def _row_of(self, output: Any) -> Any:
        if type(output) is not str:
            return self._row(taken_apart(output))
        row = self._remembered.get(output)
        if row is None:
            row = self._row(taken_apart(output))
            if len(self._remembered) < MOST_REMEMBERED:
                self._remembered[output] = row
        return row

    def _row(self, output: Canonical) -> Any:
        values = output.features
        if output.names != self.names:
            values = [MISSING] * len(self.names)
            for name, value in zip(output.names, output.features, strict=True):
                place = self._places.get(name)
                if place is not None:
                    values[place] = value
        return (shorten(output.text), shorten(output.form), *values)


def shorten(text: str) -> str:
    """Return a text that is short enough to keep many of, and differs where the whole text does."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT - 20]}.. {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
