"""The tables of people that document 004 works with, or those that stand in for them.

Adult is the paper's own. Its tables OCC, EDU and SALARY (500,000 rows of the US census) are not public; the census
survey stands in for them, resampled by its weights to as many rows. It has no salary in 50 classes, so the table that
stands in for SALARY has the six public attributes of that one, and occupations.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit import noise
from tacit.errors import JobError

CENSUS: Final = "census_income_kdd/census_income_kdd.parquet"
ROWS: Final = 500_000
FEW_ROWS: Final = 100_000
_FOUR: Final = {"sex": "Gender", "education": "Education", "marital_status": "Marital", "race": "Race"}
_MORE: Final = {
    "class_of_worker": "Work-class",
    "country_of_birth": "Country",
    "occupation_recode": "Occupation",
    "age": "Age",
}


@dataclass(frozen=True, eq=False)
class PeopleTable:
    """Rows of people: which attributes are public, which is sensitive, and what the paper calls the table."""

    name: str
    rows: pd.DataFrame
    public: tuple[str, ...]
    sensitive: str


def read_adult() -> pd.DataFrame:
    """Return the Adult data, which are part of the package, without rows that miss a value: 45,222."""
    with resources.as_file(resources.files("tacit") / "data" / "adult.parquet") as bundled:
        frame = pd.read_parquet(bundled)
    whole = ~(frame.astype(str) == "?").any(axis=1)
    return frame[whole].reset_index(drop=True)


def adult_table() -> PeopleTable:
    """Return the Adult data as Example 2 and chapter 4 use them."""
    return PeopleTable("ADULT", read_adult(), ("education", "occupation", "race", "sex"), "income")


def workers_of(folder: Path | None) -> str:
    """Say who stands in for the people of the census tables."""
    return "made-up workers" if folder is None else "workers of the census survey, drawn by their weights"


def census_workers(folder: Path | None, rows: int) -> pd.DataFrame:
    """Return workers of the census survey, drawn by their weights with replacement; without a folder, made-up ones.

    The draw takes the noise of the part that it is in, so it is the same for everybody.
    """
    workers = _made_up(20_000) if folder is None else _read(folder)
    weights = np.cumsum(np.rint(100 * workers.pop("weight").to_numpy(np.float64)).astype(np.int64))
    drawn = noise.uniform_below(int(weights[-1]), rows)
    return workers.iloc[np.searchsorted(weights, drawn, side="right")].reset_index(drop=True)


def census_tables(folder: Path | None, rows: int) -> tuple[PeopleTable, ...]:
    """Return what stands in for EDU, OCC and SALARY."""
    people = census_workers(folder, rows)
    four = tuple(_FOUR.values())
    edu = ("Gender", "Occupation", "Marital", "Race")
    return (
        PeopleTable("EDU", people, edu, "Education"),
        PeopleTable("OCC", people, four, "Occupation"),
        PeopleTable("SALARY", people, (*four, "Work-class", "Country"), "Occupation"),
    )


def _read(folder: Path) -> pd.DataFrame:
    file = folder / CENSUS
    if not file.is_file():
        raise JobError("is not there", key=CENSUS, fix="See the README of the data sets for its source.")
    named = {**_FOUR, **_MORE, "instance_weight": "weight"}
    frame = pd.read_parquet(file, columns=list(named))
    return frame[frame["occupation_recode"] > 0].rename(columns=named).reset_index(drop=True)


def _made_up(people: int) -> pd.DataFrame:
    """Return workers of whom some groups have an occupation nearly by themselves."""
    sizes = {"Gender": 2, "Education": 17, "Marital": 7, "Race": 5, "Work-class": 9, "Country": 43}
    found = {name: _skewed(size, people) for name, size in sizes.items()}
    own = (3 * found["Education"] + found["Gender"]) % 46
    found["Occupation"] = np.where(noise.uniform_below(10, people) < 6, own, _skewed(46, people)) + 1
    found["Age"] = 15 + noise.uniform_below(50, people)
    return pd.DataFrame({**found, "weight": np.ones(people)})


def _skewed(size: int, people: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(size * (noise.uniform_below(10**6, people) / 10**6) ** 2, dtype=np.int64)
