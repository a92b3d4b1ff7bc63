"""Released numbers as people read them: the very numbers of the CSV file, with commas between thousands.

One place for all texts (reports, captions, the terminal), so that no two of them round in different ways: the digits
that mean something beside the expected error, and the ends of intervals rounded outwards
(`release/results/value_files.py`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.release.results.value_files import decimals_for, rounded


def number_texts(name: str, numbers: npt.NDArray[np.float64], error: float) -> list[str]:
    """Return a column of numbers as texts; one that is no finite number is empty.

    >>> number_texts("value", np.array([1234.56, -0.2]), error=5.0)
    ['1,235', '0']
    >>> number_texts("lower", np.array([35.46]), error=1.0), number_texts("upper", np.array([35.42]), error=1.0)
    (['35.4'], ['35.5'])
    """
    return [_text(number) for number in rounded(name, np.asarray(numbers, dtype=np.float64), decimals_for(error))]


def number_text(name: str, number: float, error: float) -> str:
    """Return one number of such a column."""
    return number_texts(name, np.array([number]), error)[0]


def with_interval(value: float, lower: float, upper: float, error: float, *, before: str = "") -> str:
    """Return a value with its interval in brackets; an exact one (error 0) stands alone. What is about nobody says so.

    >>> with_interval(12.0, 9.4, 15.1, 2.0, before="95% interval "), with_interval(3.0, 3.0, 3.0, 0.0)
    ('12 (95% interval 9 to 16)', '3')
    """
    if math.isnan(value):
        return "nobody"
    said = number_text("value", value, error)
    if error == 0:
        return said
    return f"{said} ({before}{number_text('lower', lower, error)} to {number_text('upper', upper, error)})"


def _text(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int | float) and math.isfinite(number) else ""
