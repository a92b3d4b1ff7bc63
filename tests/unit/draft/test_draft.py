"""Drafts of policy files: what is read off the data is marked, what cannot be declared is a comment with the reason."""

from __future__ import annotations

import datetime

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

from tacit.draft import REVIEW, draft_policy
from tacit.errors import DataRefused
from tacit.policy.attributes import Categories, Dates, Decimals, Flag, Integers, Items, Times
from tacit.policy.policy_file import read_policy
from tacit.policy.secrets import TakingPart
from tacit.rows.files.sample import sample_of

N = 30
TABLE = {
    "age": [20 + i % 9 for i in range(N)],
    "disease": ["flu", "hiv", "no"] * 10,
    'who is "it"': [f"person {i}" for i in range(N)],
    "a.b": [True, False] * 15,
    "two words": [0, 1] * 15,
    "income": [1.5 + i for i in range(N)],
    "day": [datetime.date(2020, 1, 1 + i % 9) for i in range(N)],
}
FRAMES = {
    "pandas": lambda: pd.DataFrame(TABLE),
    "polars": lambda: pl.DataFrame(TABLE),
    "polars lazy": lambda: pl.LazyFrame(TABLE),
    "pyarrow": lambda: pa.table(TABLE),
}


def is_the_drafted_policy(text):
    policy = read_policy(text)
    assert policy.domain["age"] == Integers(20, 28, otherwise="clip")
    assert policy.domain["disease"] == Categories(["flu", "hiv", "no", "other"], otherwise="other")
    assert policy.domain["a.b"] == Flag()
    assert policy.domain["two words"] == Flag()
    assert policy.domain["income"] == Decimals(1.5, 30.5, step=0.1, otherwise="clip")
    assert policy.domain["day"] == Dates("2020-01-01", "2020-01-09", otherwise="clip")
    assert set(policy.domain) == {"age", "disease", "a.b", "two words", "income", "day"}
    assert policy.secrets == TakingPart()
    assert policy.presence == "secret"
    return True


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_gives_the_same_draft(kind):
    assert is_the_drafted_policy(draft_policy(FRAMES[kind]()))


def test_csv_and_parquet_files_give_the_same_draft(tmp_path):
    pl.DataFrame(TABLE).write_csv(tmp_path / "clinic data.csv")
    pl.DataFrame(TABLE).write_parquet(tmp_path / "clinic.parquet")
    from_csv = draft_policy(tmp_path / "clinic data.csv")
    assert is_the_drafted_policy(from_csv)
    assert is_the_drafted_policy(draft_policy(str(tmp_path / "clinic.parquet")))
    assert read_policy(from_csv).name == "clinic_data"


def test_every_line_with_values_from_the_data_is_marked():
    for line in draft_policy(pd.DataFrame(TABLE)).splitlines():
        if any(
            seen in line for seen in ("flu", "hiv", "28", "two words", "1.5", "30.5", "0.1", "2020-")
        ) and not line.startswith("#"):
            assert line.endswith(f"  {REVIEW}"), line


def test_a_draft_says_why_a_column_is_left_out():
    text = draft_policy(pd.DataFrame(TABLE))
    unwrapped = " ".join(line.strip().lstrip("# ") for line in text.splitlines())
    assert (
        '"who is \\"it\\"": looks like an identifier: leave it out of the domain and name it as `person:` if one '
        'person may own several rows, person: "who is \\"it\\""'
    ) in unwrapped
    assert "person 7" not in text


@pytest.mark.parametrize("name", ["x[1]", "line\nbreak", "back`tick", "", "para\u2029graph"])
def test_names_that_a_domain_does_not_allow_are_comments(name):
    text = draft_policy(pl.DataFrame({name: [1, 2], "age": [3, 4]}))
    assert list(read_policy(text).domain) == ["age"]
    assert "must be a text without brackets, backticks or line breaks. Rename the column first." in " ".join(
        line.strip().lstrip("# ") for line in text.splitlines()
    )


@pytest.mark.parametrize(
    "name", ["yes", "1e3", "2020-01-01", "a: b", "# no", "a.b", "'", '"', "😀", " x ", "007", "-", "{"]
)
def test_names_that_yaml_would_change_come_back(name):
    assert list(read_policy(draft_policy(pl.DataFrame({name: [3, 4]}))).domain) == [name]


@pytest.mark.parametrize(
    "value", ["no", "01234", "2020-01-01", "#", "a: b", "😀", "\u2028", "'\"", "\\", "~", "1e3", ""]
)
def test_categories_that_yaml_would_change_come_back(value):
    drafted = read_policy(draft_policy(pl.DataFrame({"x": [value, "b"]}))).domain["x"]
    assert set(drafted.values) == {value, "b", "other"}


def test_codes_with_leading_zeros_stay_texts(tmp_path):
    (tmp_path / "codes.csv").write_text("zip,n\n01234,1\n10000,2\n")
    domain = read_policy(draft_policy(tmp_path / "codes.csv")).domain
    assert domain["zip"].values == ("01234", "10000", "other")
    assert domain["n"] == Integers(1, 2, otherwise="clip")


def test_sets_of_items_are_recognised():
    text = draft_policy(pl.DataFrame({"bought": [["bread"], ["milk", "bread"]]}))
    assert read_policy(text).domain["bought"] == Items(["bread", "milk"])


def test_a_table_without_usable_columns_still_gives_a_file_that_reads():
    text = draft_policy(pd.DataFrame({"x": [datetime.time(1)], "empty": [None], 5: ["a"]}))
    assert list(read_policy(text).domain) == ["replace_me"]


SORTED = {"category": ["train"] * 5000 + ["test"] * 5000, "n": list(range(10_000))}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("kind", ["pandas", "polars", "polars lazy", "pyarrow", "duckdb", "ibis", "csv", "parquet"])
def test_a_sample_of_the_whole_table_is_looked_at(kind, tmp_path):
    """Not of its first rows: what comes late in a sorted table is as likely to be seen as what comes first."""
    frame = pl.DataFrame(SORTED)
    made = {
        "pandas": lambda: pd.DataFrame(SORTED),
        "polars": lambda: frame,
        "polars lazy": lambda: frame.lazy(),
        "pyarrow": lambda: frame.to_arrow(),
        "duckdb": lambda: duckdb.from_arrow(frame.to_arrow()),
        "ibis": lambda: ibis.memtable(frame.to_arrow()),
        "csv": lambda: frame.write_csv(tmp_path / "x.csv") or tmp_path / "x.csv",
        "parquet": lambda: frame.write_parquet(tmp_path / "x.parquet") or tmp_path / "x.parquet",
    }[kind]()
    sample = sample_of(made, 100)
    (_, splits), (_, seen) = sample.columns
    numbers = [int(number) for number in seen]
    assert (len(splits), sample.rows) == (100, 10_000)
    assert set(splits) == {"train", "test"}  # all of one half: a chance of 2^-99
    assert len(set(numbers)) == 100
    assert min(numbers) < 2_500  # each misses with a chance of 3/4 to the power of 100
    assert max(numbers) >= 7_500
    text = draft_policy(made, rows_to_look_at=100)
    assert "[test, train, other]" in text
    assert '"n": looks like an identifier' in text  # 1, 2, 3, .., of which a hundred were seen
    assert "a random sample of 100 rows at most" in text


def test_how_a_connection_hands_out_arrow_changes_no_draft():
    drafts = []
    for lossless in ("false", "true"):
        connection = duckdb.connect()
        connection.execute(f"SET arrow_lossless_conversion = {lossless}")
        drafts.append(
            draft_policy(connection.sql('SELECT i % 2 = 0 AS ill, i % 3::HUGEINT AS "so many" FROM range(9) r(i)'))
        )
    assert drafts[0] == drafts[1]
    assert list(read_policy(drafts[1]).domain) == ["ill", "so many"]


def test_every_row_is_equally_likely_to_be_seen():
    counts = np.zeros(50)
    for _ in range(400):
        ((_, seen),) = sample_of(pd.DataFrame({"n": range(50)}), 10).columns
        counts[seen] += 1
    assert counts.sum() == 4000
    # 80 expected each, standard deviation 8: six of them is a chance of 1e-7 for all fifty together
    assert abs(counts - 80).max() < 48


def test_whole_numbers_with_gaps_are_whole_numbers():
    assert read_policy(draft_policy(pd.DataFrame({"x": [5.0, None, 9.0]}))).domain["x"].low == 5


def test_coordinates_get_a_suggestion():
    text = draft_policy(pd.DataFrame({"latitude": [1.5], "longitude": [2.5], "n": [3]}))
    assert '  # place: {grid: {rows: 100, columns: 100, of: ["latitude", "longitude"], low: [-90, -180],' in text


def test_an_unreadable_file_is_refused_without_the_readers_words(tmp_path):
    (tmp_path / "bad.parquet").write_text("CANARY")
    with pytest.raises(DataRefused) as refused:
        draft_policy(tmp_path / "bad.parquet")
    assert "CANARY" not in str(refused.value)
    assert refused.value.__context__ is None


def test_two_columns_of_one_name_and_things_that_are_no_table_are_refused():
    for frame in (pd.DataFrame([[1, 2]], columns=["a", "a"]), 5, None, pd.DataFrame()):
        with pytest.raises(DataRefused, match="the data must"):
            draft_policy(frame)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient_id", [1 + i // 3 for i in range(N)]),  # ids that repeat
        ("id", [f"p{i // 3}" for i in range(N)]),
        ("user", [100 + 7 * (i // 2) for i in range(N)]),
        ("patientID", [i * 37 for i in range(N)]),
        ("Patient ID", [i // 2 for i in range(N)]),
        ("case_number", [i * i for i in range(N)]),
        ("counter", list(range(1, N + 1))),  # 1, 2, 3, .. whatever it is called
    ],
)
def test_identifiers_are_left_out_and_named_as_the_person(name, values):
    text = draft_policy(pl.DataFrame({name: values, "age": [3, 4, 5] * 10}))
    assert list(read_policy(text).domain) == ["age"]
    unwrapped = " ".join(line.strip().lstrip("# ") for line in text.splitlines())
    assert "looks like an identifier: leave it out of the domain and name it as `person:`" in unwrapped
    shown = name if name.isidentifier() else f'"{name}"'
    assert f"\n# person: {shown}\n" in text
    assert read_policy(text.replace("# person:", "person:").replace("# per_person: 1", "per_person: 1")).person == name


@pytest.mark.parametrize("name", ["ward_id", "income", "year", "idea"])
def test_groups_and_amounts_are_not_identifiers(name):
    text = draft_policy(pl.DataFrame({name: [1000 * (i % 4) for i in range(N)]}))
    assert list(read_policy(text).domain) == [name]
    assert "\n# person: patient_id\n" in text


def test_a_clip_says_that_missing_values_are_dropped():
    lines = [
        line for line in draft_policy(pd.DataFrame(TABLE)).splitlines() if line.strip().startswith("otherwise: clip")
    ]
    assert lines
    assert all(line.endswith("  # rows with a missing or unreadable value are still dropped") for line in lines)


def test_categories_that_are_nearly_the_same_are_marked():
    text = draft_policy(pl.DataFrame({"dx": ["hiv", "HIV", "flu", "H.I.V. ", "cold"]}))
    marked = [line for line in text.splitlines() if "nearly the same" in line]
    assert marked == [f'    # nearly the same, is it one value? ["H.I.V. ", HIV, hiv]  {REVIEW}']
    assert "HIV" in read_policy(text).domain["dx"].values


@pytest.mark.parametrize(
    "values", [["hiv", "flu", "+", "-"], ["<=50K", ">50K"], ["A+", "A-", "A"], ["1.5", "15", "1-5"]]
)
def test_signs_that_mean_something_tell_values_apart(values):
    assert "nearly the same" not in draft_policy(pl.DataFrame({"dx": [*values, "other"]}))


def test_free_text_is_left_out():
    notes = [f"the patient number {i} said something" for i in range(N)]
    often = [f"remark {i % 20}" for i in range(N)]
    text = draft_policy(pl.DataFrame({"notes": notes, "often": often, "age": [3, 4, 5] * 10}))
    assert list(read_policy(text).domain) == ["age"]
    assert text.count(": nearly free text") == 2
    assert "said" not in text
    assert "remark" not in text


@pytest.mark.parametrize("spelled", [str, lambda number: f" {number} "])
def test_a_column_of_which_most_texts_spell_numbers_is_one_of_numbers(spelled, tmp_path):
    cells = [spelled(20 + number % 40) if number % 10 else "n/a" for number in range(200)]
    frame = pl.DataFrame({"age": cells})
    frame.write_csv(tmp_path / "people.csv")
    for source in (frame, tmp_path / "people.csv"):
        text = draft_policy(source)
        assert read_policy(text).domain["age"] == Integers(21, 59, otherwise="clip")
        assert "# some cells are no numbers: their rows are dropped unless `otherwise` is a value" in text
        assert "n/a" not in text


def test_texts_that_spell_every_number_have_no_note():
    text = draft_policy(pl.DataFrame({"age": [str(20 + number % 40) for number in range(200)]}))
    assert read_policy(text).domain["age"] == Integers(20, 59, otherwise="clip")
    assert "are no numbers" not in text


@pytest.mark.parametrize("cells", [["1", "2", "3A", "3B", "4C"] * 20, ["007", "008", "x"] * 20])
def test_codes_of_which_some_spell_numbers_stay_categories(cells):
    policy = read_policy(draft_policy(pl.DataFrame({"code": cells})))
    assert policy.domain["code"] == Categories([*sorted(set(cells)), "other"], otherwise="other")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["1,500", "2,250", "n/a", "3,000"], "numbers with a comma, before decimals or between thousands"),
        (["2020-01-31", "31.1.2020", "1/31/20", "unknown"], "dates or times, not all in one form"),
        (["11/01/2020", "01/02/2020", "n/a", "5/2/2020"], "dates of which day and month could be mixed up"),
        (["10:30", "11:45", "", "9:05"], "times of day, or durations"),
        (["10:30:05", "11:45:00 pm", "23:59:59.5", "9:05"], "times of day, or durations"),
        (["2024-02-30", "2023-02-29", "2024-13-01", "2024-00-00"], "no date to go by"),
    ],
)
def test_decimal_commas_and_mixed_dates_are_called_so(cells, said):
    text = draft_policy(pl.DataFrame({"x": cells * 10, "age": [3, 4, 5, 6] * 10}))
    assert list(read_policy(text).domain) == ["age"]
    assert f'"x": {said}' in text


@pytest.mark.parametrize(
    "table",
    [{"sex": ["f", "m"] * 15}, {"years": [20, 30, 40] * 10}, {"x": [True, False]}, {"when": [datetime.date.max]}],
)
def test_suggested_secrets_name_columns_that_exist(table):
    text = draft_policy(pl.DataFrame(table))
    names = set(read_policy(text).domain)
    block = text[text.index("# secrets:") : text.index("# What is public")].replace("# ", "", 1).replace("\n#", "\n")
    for said in yaml.safe_load(block)["secrets"]:
        ((family, about),) = said.items()
        if family == "attributes":
            assert set(about) <= names
        elif family == "within":
            assert set(about["attributes"]) <= names
        elif family == "partition":
            assert about["attribute"] in names
        elif family == "values":
            assert set(about) <= names


def drafted(cells, tmp_path):
    """Return what is drafted of a column of a frame and of a CSV file: the same."""
    frame = pd.DataFrame({"x": cells, "age": ([3, 4, 5] * len(cells))[: len(cells)]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    texts = [draft_policy(frame), draft_policy(tmp_path / "x.csv", has_header=True)]
    ((first, second), lines) = [read_policy(text).domain["x"] for text in texts], texts[0].splitlines()
    assert first == second
    for line in lines:
        if line.strip().startswith(("decimals:", "dates:", "times:", "step:")) and "step: hour" not in line:
            assert line.endswith(REVIEW)
    return first, texts[0]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([36.6, 37.25, 36.0], Decimals(36, "37.25", step="0.01", otherwise="clip")),
        ([36.6, 36.6 + 0.2, 36.0 + 0.1], Decimals("36.1", "36.8", step="0.1", otherwise="clip")),
        ([0.0038, 0.0041], Decimals("0.0038", "0.0041", step="0.0001", otherwise="clip")),
        ([-1.5, 2.0, None], Decimals("-1.5", 2, step="0.1", otherwise="clip")),
        ([1e-5, 3.5e-5], Decimals("0.00001", "0.000035", step="0.000001", otherwise="clip")),
        ([0.5, 0.5], Decimals("0.5", "0.5", step="0.1", otherwise="clip")),
    ],
)
def test_decimals_are_drafted_with_the_digits_that_they_have(cells, expected, tmp_path):
    found, text = drafted(cells, tmp_path)
    assert found == expected
    assert "coarser" not in text


def test_decimals_as_fine_as_a_computer_goes_get_a_coarser_step(tmp_path):
    found, text = drafted([1 / 3, 2 / 3, 5 + 1 / 7], tmp_path)
    assert found == Decimals("0.333", "5.143", step="0.001", otherwise="clip")
    assert "step: 0.001  # coarser than the cells, which are rounded down" in text


@pytest.mark.parametrize(
    "cells", [[1e300, 0.5], [1e-300, 0.5e17], [float("inf"), float("-inf")], [5e-324, 1.5], [1.7e308, -1.7e308, 0.1]]
)
def test_decimals_of_any_size_give_a_draft_that_reads(cells):
    text = draft_policy(pl.DataFrame({"x": cells, "age": [3, 4, 5][: len(cells)]}))
    assert "age" in read_policy(text).domain


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([datetime.date(2024, 5, 1), datetime.date(2023, 1, 31)], ("2023-01-31", "2024-05-01")),
        ([pd.Timestamp("2024-05-01"), pd.NaT], ("2024-05-01", "2024-05-01")),
        (["2024-05-01", "2024-05-09"], ("2024-05-01", "2024-05-09")),
        (["2024-05-01T00:00:00", "2024-05-02 00:00:00"], ("2024-05-01", "2024-05-02")),
    ],
)
def test_dates_and_midnights_are_drafted_by_day(cells, expected, tmp_path):
    found, text = drafted(cells, tmp_path)
    assert found == Dates(*expected, otherwise="clip")
    assert "    by: day  # or week, month, quarter, year" in text


@pytest.mark.parametrize(
    ("cells", "first", "last", "zone"),
    [
        ([pd.Timestamp("2024-05-01 23:30"), pd.NaT], "2024-05-01", "2024-05-01", None),
        ([pd.Timestamp("2024-05-01 23:30", tz="America/New_York")] * 2, "2024-05-02", "2024-05-02", "UTC"),
        (["2024-05-01T23:30:00-05:00", "2024-05-01 10:00"], "2024-05-01", "2024-05-02", "UTC"),
        (["2024-05-01T10:00:00Z", "2024-05-03T10:00:00.123Z"], "2024-05-01", "2024-05-03", "UTC"),
    ],
)
def test_moments_are_drafted_by_the_hour(cells, first, last, zone, tmp_path):
    found, text = drafted(cells, tmp_path)
    assert found == Times(first, last, zone=zone, otherwise="clip")
    assert "    step: hour  # or 15 minutes, 1 day" in text


@pytest.mark.parametrize(
    ("cells", "said"),
    [(["2024-05-01", "2024-05-02", "unknown"], "no dates"), (["1.5", "2.25", "unknown"], "no numbers")],
)
def test_a_column_of_which_most_texts_are_dates_or_decimals_says_what_becomes_of_the_others(cells, said, tmp_path):
    _, text = drafted(cells * 10, tmp_path)
    assert f"    # some cells are {said}: their rows are dropped unless `otherwise` is a value of the range" in text
    assert "unknown" not in text
