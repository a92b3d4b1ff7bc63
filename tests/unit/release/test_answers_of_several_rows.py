"""Answers about people who own several rows, held against plain pandas on rows as people have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from cli.shell import inside
from tacit.noise import Keystream, replayed
from tacit.plan.measure.measured import CellCounts, CellSums
from tacit.release.session import open_for

WARDS = ["Surgery", "Cardiology", "Children", "Emergency"]
MEAN = dict(zip(WARDS, (4100, 2200, 700, 450), strict=True))
MONTHS = 24
SIGMAS = 5.0  # of the sampling error of a fair choice: about one false alarm in a million


def visits(people: int = 4000) -> pd.DataFrame:
    """Some visits of each person, in no order, with gaps, misfits and odd dates."""
    luck = np.random.default_rng(20240501)
    who = np.repeat(np.arange(people) * 7 + 10**6, 1 + luck.poisson(3, people))
    luck.shuffle(who)
    rows = pd.DataFrame({"patient": who, "ward": luck.choice(WARDS, len(who), p=[0.25, 0.3, 0.15, 0.3])})
    cost = luck.gamma(2, rows["ward"].map(MEAN) / 2)
    rows["cost"] = (cost.clip(0, 9990) // 10 * 10).astype(object)
    month = pd.Timestamp(2023, 1, 1) + pd.to_timedelta(luck.integers(0, 730, len(who)), unit="D")
    rows["day"] = month.strftime("%Y-%m-%d")
    rows["one"] = 1
    rows.loc[luck.random(len(who)) < 0.05, "cost"] = None
    rows.loc[luck.random(len(who)) < 0.02, "ward"] = "SURGERY "
    odd = luck.random(len(who)) < 0.03
    rows.loc[odd, "day"] = month[odd].strftime("%d.%m.%Y")
    return rows


DOMAIN = tc.Domain(
    {
        "ward": tc.Categories(WARDS),
        "cost": tc.Integers(0, 9990, step=10),
        "day": tc.Dates("2023-01", "2024-12", by="month"),
        "one": tc.Integers(0, 1),
    }
)
SECRETS = {
    "taking part": tc.secrets.taking_part(),
    "cost": tc.secrets.within(100, "cost"),
    "ward": tc.secrets.attributes("ward"),
    "everything": tc.secrets.everything(),
}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return visits()


def fitting(rows: pd.DataFrame) -> pd.DataFrame:
    found = rows[rows["cost"].notna() & rows["ward"].isin(WARDS) & rows["day"].str.match(r"\d{4}-")]
    return found.assign(cost=found["cost"].astype(int), month=found["day"].str.slice(0, 7))


def weights(fit: pd.DataFrame, many: int) -> pd.Series:
    """How likely each row is to count under a fair choice of so many of a person's rows."""
    owned = fit.groupby("patient")["one"].transform("size")
    return (many / owned).clip(upper=1)


@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("secrets", SECRETS)
def test_what_counts_is_a_fair_sample_of_the_rows_that_fit(rows: pd.DataFrame, secrets: str, many: int) -> None:
    """Means near the truth, flat months flat, wards in proportion: within the sampling error of a fair choice."""
    policy = tc.Policy(DOMAIN, SECRETS[secrets], person="patient", per_person=many)
    fit = fitting(rows)
    chance = weights(fit, many)
    opened = open_for(policy, rows)
    asked = [CellSums("cost"), CellSums("one", ("ward",)), CellSums("one", ("day",)), CellSums("one")]
    cost, ward, month, counted = (np.asarray(found, dtype=float) for found in opened.tally(asked))
    assert counted == fit.groupby("patient").size().clip(upper=many).sum() == pytest.approx(chance.sum())
    assert abs(cost - (fit["cost"] * chance).sum()) < SIGMAS * error(fit["cost"], chance)
    for column, found, names in (("ward", ward, WARDS), ("month", month, sorted(set(fit["month"])))):
        for name, rows_found in zip(names, found, strict=True):
            is_there = (fit[column] == name).astype(float)
            assert abs(rows_found - (is_there * chance).sum()) < SIGMAS * error(is_there, chance)
    assert len(month) == MONTHS
    assert np.abs(month / month.mean() - 1).max() < 0.35  # none of them stands out; by content they fell to a third


def error(numbers: pd.Series, chance: pd.Series) -> float:
    """At least the standard deviation of a sum over the rows that count, where each counts with its chance."""
    return float(np.sqrt((numbers.astype(float) ** 2 * chance * (1 - chance)).sum()) + 1e-9)


def test_the_mean_cost_is_near_that_of_one_visit_of_each_patient(rows: pd.DataFrame) -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="patient")
    fit = fitting(rows)
    fair = np.average(fit["cost"], weights=weights(fit, 1))
    cheapest = fit.groupby("patient")["cost"].min().mean()
    with replayed(Keystream(key=bytes(32))):
        found = float(tc.Session(policy, rows, budget=10).release(tc.mean("cost"), epsilon=5).values[0])
    assert abs(found - fair) < 0.1 * fair
    assert abs(found - cheapest) > 0.2 * fair  # what used to be released


@pytest.mark.parametrize("many", [1, 2])
def test_rows_that_do_not_fit_displace_nobody(many: int) -> None:
    """However they are placed: smallest or largest in content, first or last by order."""
    domain = tc.Domain({"a": tc.Integers(0, 9), "b": tc.Integers(0, 9)})
    good = pd.DataFrame([(who, 5, cell, cell) for who in range(100) for cell in (1, 2)], columns=["id", "a", "b", "o"])
    bad = pd.DataFrame(
        [(who, cell, None, order) for who in range(100) for cell, order in ((0, 0), (9, 9), (77, 0))],
        columns=["id", "a", "b", "o"],
    )
    for order in (None, "o"):
        policy = tc.Policy(domain, tc.secrets.taking_part(), person="id", per_person=many, order=order)
        asked = [CellCounts(()), CellCounts(("a", "b")), CellSums("b")]
        clean, dirty = (open_for(policy, table).tally(asked) for table in (good, pd.concat([bad, good, bad])))
        assert all(np.array_equal(one, other) for one, other in zip(clean, dirty, strict=True))
        assert int(clean[0]) == 100


@pytest.mark.parametrize("many", [1, 3])
def test_check_says_how_many_rows_and_people_releases_count(many: int) -> None:
    rows = visits(200)
    dirty = pd.concat([rows, rows.head(50).assign(patient=None), rows.head(9).assign(patient=1, cost=None)])
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="patient", per_person=many)
    checked = tc.check_rows(policy, dirty)
    people, counted = open_for(policy, dirty).tally([CellCounts(()), CellSums("one")])
    assert (checked.remaining, checked.counted) == (int(people), int(counted))
    assert checked.document()["counted"] == checked.counted
    said = f"releases read {checked.counted:,}, of {checked.remaining:,} people."
    assert said in str(checked)
    (named,) = checked.persons
    assert checked.kept - checked.counted >= named.surplus  # rows of nobody are left out, too


def test_what_was_counted_is_said_everywhere_and_does_not_depend_on_the_rows(tmp_path: Path) -> None:
    said = "up to 3 rows that fit the domain count, chosen as at random; other rows are left out"
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="patient", per_person=3)
    policy.save(tmp_path / "p.yaml")
    (tmp_path / "job.yaml").write_text(
        "policy: p.yaml\nrows: r.csv\ndataset: visits\nbudget: 9\n"
        "releases:\n  - {name: wards, query: {histogram: ward}, epsilon: 1}\n"
    )
    plans = []
    for people in (20, 60):
        visits(people).to_csv(tmp_path / "r.csv", index=False)
        plans.append(inside(tmp_path, "plan", "job.yaml"))
    assert plans[0] == plans[1]
    assert said in _flat(inside(tmp_path, "run", "job.yaml").err)
    assert said in _flat(plans[0].err)
    assert said in _flat(str(policy))
    assert said in _flat(str(tc.explain(tc.histogram("ward"), policy, 1)))
    (report,) = tmp_path.rglob("report.html")
    assert said in _flat(report.read_text())


def _flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("query", "words", "label"),
    [
        (tc.count(of="rows"), "Number of rows", "all rows"),
        (tc.histogram("ward", of="rows"), "Rows by ward", "Surgery"),
        (tc.mean("cost", by="ward"), "Mean of cost by ward (rows)", "Surgery"),
        (tc.median("cost"), "Median of cost (rows)", "0.5"),
        (tc.cumulative("day"), "Rows with day up to each value", "2023-01"),
        (tc.top_k("ward", 1, of="rows"), "The 1 most frequent values of ward (rows)", ""),
    ],
    ids=lambda given: getattr(given, "keyword", None),
)
def test_what_is_about_rows_says_so_wherever_it_stands(
    query: Any, words: str, label: str, rows: pd.DataFrame, tmp_path: Path
) -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="patient", per_person=3)
    record = tc.Session(policy, rows, budget=1).release(query, epsilon=1)
    assert record.plan.query.words(DOMAIN) == words
    assert set(record.frame["of"]) == {"rows"}
    assert label in str(record.frame.iloc[0, 0])
    assert record.save(tmp_path / "found").joinpath("values.csv").read_text().count("rows") >= len(record.values)
    assert record.certificate["query"][record.plan.query.word]["of"] == "rows"
    assert record.certificate["protects"].endswith("other rows are left out; every one of them counts)")
    assert "people" not in str(record.chart().to_dict()).replace("everyone", "")
