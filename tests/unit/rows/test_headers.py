"""The first line of a file is shown only if it holds names."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.shell import inside
from tacit.draft import draft_policy
from tacit.errors import DataRefused
from tacit.rows.files.headers import known_names, looks_like_a_value

CITIES = ["Berlin", "Bern", "Paris", "Rome"]
ROWS = [(f"Anna Smith {n}", 20 + n % 60, CITIES[n % 4], ["flu", "HIV"][n % 2]) for n in range(200)]
DOUBT = "may hold a person's values instead of column names, so nothing of it is shown"


def written(path: Path, header: list[str] | None, rows: list[tuple[object, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([*([header] if header else []), *rows])
    return path


@pytest.mark.parametrize(
    "header",
    [
        ["name", "age", "city", "disease"],
        ["Full Name", "Age", "City", "Diagnosis"],
        ["firstName", "patientAge", "homeCity", "primary_diagnosis"],
        ["person", "alter", "city", "disease"],
    ],
)
def test_names_are_recognised(header: list[str], tmp_path: Path) -> None:
    text = draft_policy(written(tmp_path / "people.csv", header, ROWS))
    assert f"\n  {header[1]}:\n" in text or f'\n  "{header[1]}":\n' in text


ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]


def test_every_name_of_an_ordinary_table_is_shown() -> None:
    numbers = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
    below = [["12", "30"] if name in numbers else ["Some", "Other"] for name in ADULT]
    assert known_names(ADULT, below, [0] * len(ADULT)) == frozenset(range(len(ADULT)))


@pytest.mark.parametrize(
    "header",
    [
        ["v1", "v2", "v3", "v4"],
        ["", "x", "y", "z"],
        ["wer", "alter", "ort", "krankheit"],
        ["q1_name", "q2", "q3", "q4"],
    ],
)
def test_names_that_a_row_could_hold_have_to_be_affirmed(header: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / "people.csv", header, ROWS)
    with pytest.raises(DataRefused, match="--has-header"):
        draft_policy(path)
    assert f"\n  {header[1]}:\n" in draft_policy(path, has_header=True)


# whoever comes first may have a value that nobody else has, and a name that looks like that of a column
FIRST = [
    ("Zoe Quist", "Elm Road", "syphilis"),
    ("Mary Ward", "Elm Road", "syphilis"),
    ("zoe_quist", "Elm Road", "syphilis"),
    ("zoeQuist", "state street", "syphilis"),
    ("Ward", "Place", "hospital"),
    ("Price Day", "first class", "married"),
    ("student", "home", "other"),
    ("patient_1", "cafe_2", "flu_3"),
]


REST = [(f"{['Ben', 'Anna', 'Dora'][n % 3]} {['Lopez', 'Weber'][n % 2]}", "Oak Lane", "flu") for n in range(60)]
SOME = [(0, 1, 2), (0, 2), (2,), (0,)]


@pytest.mark.parametrize("first", FIRST, ids=str)
@pytest.mark.parametrize("columns", SOME)
def test_a_first_row_with_rare_values_is_not_taken_for_names(first: tuple[str, ...], columns: tuple[int, ...]) -> None:
    below = [[row[place] for row in REST] for place in columns]
    assert known_names([first[place] for place in columns], below, [0] * len(columns)) is None


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("first", "columns"),
    [
        pytest.param(first, columns, marks=() if place % 4 == other else pytest.mark.slow, id=f"{first}-{columns}")
        for place, first in enumerate(FIRST)
        for other, columns in enumerate(SOME)
    ],
)
def test_nothing_is_shown_of_a_first_row_with_rare_values(
    first: tuple[str, ...], columns: tuple[int, ...], tmp_path: Path
) -> None:
    rows = [tuple(row[place] for place in columns) for row in (first, *REST)]
    path = written(tmp_path / "people.csv", None, rows)
    said = inside(tmp_path, "init", path.name)
    assert DOUBT in said.refusal()
    assert not any(cell in said.err for cell in first)


@pytest.mark.parametrize("first", ["HIV", "unknown", "refused", "n.a.", "not known"])
def test_one_word_above_numbers_is_no_header(first: str) -> None:
    assert known_names([first], [["5", "6"]], [0]) is None
    assert known_names(["Zoe", first], [["Ben", "Ann"], ["5", "6"]], [0, 0]) is None
    assert known_names(["Zoe", first, "7"], [["Ben", "Ann"], ["5", "6"], ["8", "9"]], [0, 0, 0]) is None


def test_a_name_that_nothing_speaks_for_is_in_the_draft_and_not_on_the_screen(tmp_path: Path) -> None:
    written(tmp_path / "people.csv", ["name", "age", "zuquist", "disease"], ROWS)
    said = inside(tmp_path, "init", "people.csv")
    assert said.code == 0
    assert "zuquist" not in said.out
    assert "(a column whose name may be a value)" in said.out
    assert "disease" in said.out
    assert "\n  zuquist:\n" in (tmp_path / "policy.yaml").read_text()


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "people.csv", ["age", "age", "who"], [(1, 2, "a"), (3, 4, "b")])
    for affirmed in (False, True):
        with pytest.raises(DataRefused, match="a column name is there twice"):
            draft_policy(path, has_header=affirmed)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("columns", "many"),
    [
        pytest.param(columns, many, marks=() if (place + other) % 2 == 0 else pytest.mark.slow)
        for place, columns in enumerate([(0, 1, 2, 3), (2, 3), (1,), (3, 2, 0), (1, 0), (0,)])
        for other, many in enumerate([1, 2, 30, 200])
    ],
)
def test_a_file_without_a_header_shows_nothing(columns: tuple[int, ...], many: int, tmp_path: Path) -> None:
    rows = [tuple(row[place] for place in columns) for row in ROWS[:many]]
    path = written(tmp_path / "people.csv", None, rows)
    with pytest.raises(DataRefused) as refused:
        draft_policy(path)
    assert DOUBT in str(refused.value)
    said = inside(tmp_path, "init", "people.csv")
    assert DOUBT in said.refusal()
    for cell in ROWS[0]:
        assert str(cell) not in said.err.replace(str(path), "")
    assert [file.name for file in tmp_path.iterdir()] == ["people.csv"]


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), many=st.integers(25, 80))
def test_rows_are_never_taken_for_names(seed: int, many: int) -> None:
    """The first row of a table of made-up people, with any number of columns of several kinds, is no header."""
    draw = random.Random(seed)  # noqa: S311 - made-up people
    kinds = {
        "amount": lambda: f"{draw.uniform(0, 1e5):.2f}",
        "age": lambda: str(draw.randint(0, 99)),
        "day": lambda: f"{draw.randint(1, 28)}.{draw.randint(1, 12)}.{draw.randint(1920, 2020)}",
        "code": lambda: f"P-{draw.randint(0, 9999):04}",
        "mail": lambda: f"{draw.choice(['ann', 'bob', 'eve'])}{draw.randint(0, 999)}@example.org",
        "group": lambda: draw.choice(["alpha", "beta", "gamma"]),
        "flag": lambda: draw.choice(["true", "false"]),
    }
    chosen = draw.sample(sorted(kinds), draw.randint(1, len(kinds)))
    columns = [[kinds[kind]() for _ in range(many)] for kind in chosen]
    names, below = [column[0] for column in columns], [column[1:] for column in columns]
    again = [cells.count(name) for name, cells in zip(names, below, strict=True)]
    assert known_names(names, below, again) is None
    # and with a header of their own the same columns have names
    assert known_names([f"{kind} value" for kind in chosen], columns, [0] * len(chosen)) == set(range(len(chosen)))


def test_somebody_may_affirm_that_they_are_names(tmp_path: Path) -> None:
    path = written(tmp_path / "years.csv", ["city", "2019", "2020"], [(city, 5, 6) for city in CITIES * 10])
    with pytest.raises(DataRefused, match="--has-header"):
        draft_policy(path)
    assert '\n  "2019":\n' in draft_policy(path, has_header=True)
    said = inside(tmp_path, "init", "years.csv", "--has-header")
    assert said.code == 0
    # affirmed, and still not shown: a name that may be a value stays in the draft
    assert "2019" not in said.out
    assert "(a column whose name may be a value) (and " in said.out  # two, named by the lines of the draft
    assert "policy.yaml:" in said.out


@pytest.mark.parametrize(
    "value", ["1", "-2.5", "1,234", "01/02/2020", "12:30", "<=50K", "a@b.org", "+49 30 123456", "?"]
)
def test_values_are_not_names(value: str) -> None:
    assert looks_like_a_value(value)


@pytest.mark.parametrize("name", ["age", "no", "No.", "x1", "hours per week", "a.b", "place_2", "N", "naïve", "q10"])
def test_names_are_not_values(name: str) -> None:
    assert not looks_like_a_value(name)


def test_what_is_printed_is_bounded_and_cannot_redraw_the_terminal(tmp_path: Path) -> None:
    names = [f"column_{n}" for n in range(700)]
    names[3], names[4] = "red\x1b[31m", "long " + "x" * 50_000
    written(tmp_path / "wide.csv", names, [tuple(range(700))] * 30)
    said = inside(tmp_path, "init", "wide.csv", "--has-header")
    assert said.code == 0
    assert len(said.out) < 10_000
    assert "\x1b" not in said.out
    assert "200 more columns" in said.out
    assert max(map(len, (tmp_path / "policy.yaml").read_text().splitlines())) < 2_000
