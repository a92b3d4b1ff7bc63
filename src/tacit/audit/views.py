"""Views of outputs, in which a leak may show: coordinates, sums, differences, last digits, the form of a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Columns = Mapping[str, npt.NDArray[Any]]

MOST_PAIRS: Final = 6  # coordinates of which all differences are looked at


class _Views(Columns):
    """Views of outputs by name, each made when it is first looked at."""

    def __init__(self, makers: Mapping[str, Callable[[], npt.NDArray[Any]]]) -> None:
        self._makers, self._made = makers, dict[str, npt.NDArray[Any]]()

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._made:
            with np.errstate(invalid="ignore", over="ignore"):
                self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def columns_of(outputs: npt.NDArray[Any]) -> Columns:
    """Return the views of an array of outputs: its coordinates, and what is telling about several together."""
    if outputs.dtype.kind == "U":
        return _Views({"output": lambda: outputs, "output without its digits": lambda: _without_digits(outputs)})
    flat = outputs.reshape(len(outputs), -1)
    names = ["output"] if flat.shape[1] == 1 else [f"output[{i}]" for i in range(flat.shape[1])]
    makers = {name: partial(_column, flat, i) for i, name in enumerate(names)}
    if flat.dtype.kind == "f":
        makers |= {f"lowest binary digit of {name}": partial(_lowest_digit, flat, i) for i, name in enumerate(names)}
        makers["numbers that are not finite"] = partial(_not_finite, flat)
    if flat.shape[1] > 1:
        makers |= _together(flat, names)
    return _Views(makers)


def _column(flat: npt.NDArray[Any], at: int) -> npt.NDArray[Any]:
    return flat[:, at]


def _together(flat: npt.NDArray[Any], names: list[str]) -> dict[str, Any]:
    many = flat.shape[1]
    pairs = (
        [(i, j) for i in range(many) for j in range(i)] if many <= MOST_PAIRS else [(i, i - 1) for i in range(1, many)]
    )
    return {
        "sum": partial(flat.sum, axis=1),
        "largest": partial(flat.max, axis=1),
        "smallest": partial(flat.min, axis=1),
        "place of the largest": partial(flat.argmax, axis=1),
        **{f"{names[i]} - {names[j]}": partial(_difference, flat, i, j) for i, j in pairs[: 4 * MOST_PAIRS]},
    }


def _difference(flat: npt.NDArray[Any], i: int, j: int) -> npt.NDArray[Any]:
    return np.asarray(flat[:, i] - flat[:, j])


def _without_digits(texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the texts with `#` for every number: their form, where no text comes twice."""
    values, places = np.unique(texts, return_inverse=True)
    return np.array([re.sub(r"\d+", "#", text) for text in values.tolist()])[places]


def _not_finite(flat: Floats) -> Ints:
    """Return one number for how many numbers of a row are none, infinite, or infinite and negative."""
    parts = (np.isnan(flat), np.isposinf(flat), np.isneginf(flat))
    return sum((part.sum(axis=1) * 10 ** (6 * i) for i, part in enumerate(parts)), np.zeros(len(flat), np.int64))


def _lowest_digit(flat: Floats, at: int) -> Ints:
    """Return the largest j for which a value is a multiple of 2^j: where the noise was rounded."""
    values = flat[:, at]
    finite = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    mantissa, exponent = np.frexp(finite)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    return np.where(whole == 0, 2000, exponent - 53 + np.log2(lowest).astype(np.int64)).astype(np.int64)
