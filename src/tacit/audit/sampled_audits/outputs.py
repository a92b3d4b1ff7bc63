"""How outputs are handed over: what belongs to a call as a whole, and what to each of its outputs.

A call returns many outputs at once. The kind of an array, the names of a frame's columns or the fill value of a masked
array belong to all of them together, and may hang on what else was drawn: they say something about one output only if
it was drawn alone. What stands in a list belongs to each output by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit.audit.sampled_audits.canonical import canonical
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
