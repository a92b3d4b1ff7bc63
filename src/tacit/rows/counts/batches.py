"""Columns of a source in batches, each row's cells together, and threads that work on them.

A source is a list of pieces that may be read at the same time; what comes of a batch must not depend on which piece it
was in, nor on the batches before it. All columns of a batch are read together: no two readings are put side by side.

When work fails or is interrupted, every thread ends before the failure goes on: at the next batch, or at once where
the engine is told to stop.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

BATCH: Final = 2**18  # rows: what is made of a column of them fits into a processor's cache
_FEW: Final = 2**15  # rows that are not worth a thread
_MOST_THREADS: Final = 8


class Batch(NamedTuple):
    """Some rows: how many, and their columns."""

    rows: int
    columns: Mapping[str, pa.Array]


Piece = Callable[[], Iterator[Batch]]


def threads() -> int:
    """Return how many threads work on batches."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(available, _MOST_THREADS)


def of_columns(columns: Mapping[str, pa.ChunkedArray], rows: int) -> list[Piece]:
    """Return the pieces of columns in memory: enough of them for every thread."""
    step = max(_FEW, min(BATCH, -(-rows // (2 * threads()))))

    def piece(start: int) -> Iterator[Batch]:
        stop = min(start + step, rows)
        yield Batch(stop - start, {name: joined(column.slice(start, stop - start)) for name, column in columns.items()})

    return [lambda start=start: piece(start) for start in range(0, rows, step)]  # type: ignore[misc]


def shared(opened: Callable[[], Iterator[Any]], made: Callable[[Any], Batch] = lambda batch: batch) -> list[Piece]:
    """Return the pieces of a stream: whoever is free takes the next part of it, and makes a batch of that."""
    lock = threading.Lock()
    stream: list[Iterator[Any]] = []

    def piece() -> Iterator[Batch]:
        while True:
            with lock:
                if not stream:
                    stream.append(opened())
                part = next(stream[0], None)
            if part is None:
                return
            yield made(part)

    return [piece] * threads()


def of_reader(opened: Callable[[], Any]) -> list[Piece]:
    """Return the pieces of one of Arrow's readers."""

    def made(part: pa.RecordBatch) -> Batch:
        return Batch(part.num_rows, dict(zip(part.schema.names, part.columns, strict=True)))

    return shared(lambda: iter(opened()), made)


def of_parquet(paths: Sequence[Path], columns: Mapping[str, str], texts: frozenset[str]) -> list[Piece]:
    """Return the row groups of Parquet files (new name -> raw name); `texts` are read as dictionaries.

    The columns must have the same types in all files. No file is mapped into memory: one that is cut off while it is
    read would end the process.
    """
    import pyarrow.parquet as pq

    raw = list(dict.fromkeys(columns.values()))

    def piece(path: Path, group: int) -> Iterator[Batch]:
        with pq.ParquetFile(path, read_dictionary=sorted(texts)) as file:
            for batch in file.iter_batches(BATCH, row_groups=[group], columns=raw, use_threads=False):
                yield Batch(batch.num_rows, {new: batch.column(name) for new, name in columns.items()})

    found = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            found += [(path, group) for group in range(file.metadata.num_row_groups)]
    return [lambda path=path, group=group: piece(path, group) for path, group in found]  # type: ignore[misc]


def joined(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, whatever is in its chunks."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        return _one_dictionary(column.chunks, column.type)
    return pa.concat_arrays([roomy(chunk) for chunk in column.chunks] or [pa.array([], type=column.type)])


def _one_dictionary(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """Put chunks that have dictionaries of their own together, with the entries that are used.

    Arrow's own way fails where entries are more than the type of the indices can count, and where one is missing: what
    is in a cell would decide. Here an entry may be there twice, and the indices are wide.
    """
    entries = [roomy(pa.array([], type=kind.value_type))]
    indices = [pa.array([], type=pa.int64())]
    start = 0
    for chunk in chunks:
        there = np.asarray(chunk.indices.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        used, numbers = np.unique(chunk.indices.drop_null().to_numpy(zero_copy_only=False), return_inverse=True)
        places = np.zeros(len(chunk), dtype=np.int64)
        places[there] = numbers + start
        entries.append(roomy(chunk.dictionary).take(pa.array(used.astype(np.int64))))
        indices.append(pa.array(places, mask=~there))
        start += len(used)
    return pa.DictionaryArray.from_arrays(pa.concat_arrays(indices), pa.concat_arrays(entries))


def roomy(cells: pa.Array) -> pa.Array:
    """Return texts in the one type that has room for any number of them, of any length; other cells as they are."""
    return cells.cast(pa.large_string()) if is_text(cells.type) else cells


def plain(cells: pa.Array) -> pa.Array:
    """Return cells without the dictionary that they may be stored with; texts have one type however they came."""
    return roomy(cells.dictionary).take(cells.indices) if pa.types.is_dictionary(cells.type) else roomy(cells)


def is_text(kind: pa.DataType) -> bool:
    """Say whether cells of this type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


class Workers:
    """Threads that go through pieces and do some work on each batch."""

    def __init__(self, pieces: Sequence[Piece], work: Callable[[Batch], Any]) -> None:
        self._pieces = iter(pieces)
        self._work = work
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._done: queue.Queue[Any] | None = None
        self._threads = [
            threading.Thread(target=self._run, daemon=True) for _ in range(max(1, min(threads(), len(pieces))))
        ]

    def finish(self) -> None:
        """Do the work on every batch; its results are dropped."""
        with self._running():
            for thread in self._threads:
                while thread.is_alive():
                    thread.join(0.2)  # so that signals are heard in between
        self._raise_failure()

    def results(self) -> Iterator[Any]:
        """Do the work on every batch and hand out its results, in any order."""
        self._done = queue.Queue(maxsize=2 * len(self._threads))
        with self._running():
            working = len(self._threads)
            while working and not self._stop.is_set():
                with contextlib.suppress(queue.Empty):
                    found = self._done.get(timeout=0.2)
                    if found is None:
                        working -= 1
                    else:
                        yield found
        self._raise_failure()

    def stop(self) -> None:
        """End the work at the next batch."""
        self._stop.set()

    def end(self) -> None:
        """End the work, and wait until every thread has ended."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        try:
            for thread in self._threads:
                thread.start()
            yield
        finally:
            self.end()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    piece = next(self._pieces, None)
                if piece is None:
                    break
                for batch in piece():
                    if self._stop.is_set():
                        break
                    self._hand_out(self._work(batch))
        except BaseException as failure:  # raised where the work was asked for
            self._failure = self._failure or failure
            self._stop.set()
        self._hand_out(None)

    def _hand_out(self, found: Any) -> None:
        if self._done is None:
            return
        while True:
            try:
                self._done.put(found, timeout=0.1)
            except queue.Full:
                if self._stop.is_set():
                    return  # nobody takes it any more
            else:
                return

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
