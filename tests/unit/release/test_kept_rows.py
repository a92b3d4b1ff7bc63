"""What the curator sees of rows that do not count, held against plain pandas."""

import json
from pathlib import Path

import pandas as pd
import pytest

import tacit as tc
from cli.shell import inside
from tacit.release.curator import PRIVATE
from tacit.release.curator.kept_rows import ENOUGH, proposed

DOMAIN = tc.Domain({"ward": tc.Categories(["A", "B"]), "cost": tc.Integers(0, 100), "change": tc.Integers(-5, 5)})
OWNED = {1: 40, 2: 30, 4: 20, 7: 10}  # how many people have so many rows


def visits() -> pd.DataFrame:
    """People with 1 to 7 visits; what each visit costs is how many its person has."""
    owners = [many for many, people in OWNED.items() for _ in range(people)]
    rows = [(number, many) for number, many in enumerate(owners) for _ in range(many)]
    table = pd.DataFrame(rows, columns=["id", "cost"]).assign(ward="A", change=1)
    return pd.concat([table, pd.DataFrame({"id": [0, None], "cost": [-9, 3], "ward": "A", "change": 1})])


@pytest.mark.parametrize("order", [None, "cost"])
def test_shares_are_those_of_the_rows_that_count(order: str | None) -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="id", per_person=4, order=order)
    found = tc.check_rows(policy, visits()).kept_by
    assert [one.per_person for one in found] == [1, 2, 3, 4, 5, 8]
    rows = sum(many * people for many, people in OWNED.items())
    total = sum(many**2 * people for many, people in OWNED.items())
    for one in found:
        assert one.rows == sum(min(many, one.per_person) * people for many, people in OWNED.items()) / rows
        kept = sum(many * min(many, one.per_person) * people for many, people in OWNED.items())
        assert dict(one.totals) == {"cost": kept / total}  # a total that may be negative has no share
    best = proposed(found)
    assert best
    assert best.per_person == 8
    assert proposed(found[:-1]) is None
    assert found[-2].least < ENOUGH


def test_the_check_lists_them_and_proposes_one() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.taking_part(), person="id")
    checked = tc.check_rows(policy, visits())
    said = str(checked)
    assert "  - per_person 1: 40.0% of the rows, 25.8% of cost" in said
    assert "per_person: 8 is the smallest of these that keeps 95% of the rows and of each total." in said
    assert checked.document()["kept_by"][0] == {"per_person": 1, "rows": 0.4, "totals": {"cost": 250 / 970}}
    assert not tc.check_rows(policy, visits().drop_duplicates("id")).kept_by
    assert not tc.check_rows(tc.Policy(DOMAIN, tc.secrets.taking_part()), visits()).kept_by


def test_a_plan_shows_errors_beside_what_counts(tmp_path: Path) -> None:
    visits().to_csv(tmp_path / "visits.csv", index=False)
    job = """
policy:
  domain: {ward: {categories: [A, B]}, cost: {integers: [0, 100]}}
  secrets: taking_part
  person: id
rows: visits.csv
budget: 1
releases:
  - {name: visits, query: {count: {of: rows}}, epsilon: 0.5}
  - {name: mean, query: {mean: cost}, epsilon: 0.5}
"""
    (tmp_path / "job.yaml").write_text(job, encoding="utf-8")
    outcome = inside(tmp_path, "plan", "job.yaml", "--kept", "--json")
    found = json.loads(outcome.out)["kept"]
    assert found["private"] == PRIVATE
    assert [one["per_person"] for one in found["rows_per_person"]] == [1, 2, 3, 5, 8]
    errors = [one["expected_rmse"]["visits"] for one in found["rows_per_person"]]
    assert errors == sorted(errors)
    assert errors[-1] > 7 * errors[0]
    said = inside(tmp_path, "plan", "job.yaml", "--kept").out
    assert "per_person 1: 40.0% of the rows, 25.8% of cost; errors: visits " in " ".join(said.split())
    assert PRIVATE not in inside(tmp_path, "plan", "job.yaml").out
    (tmp_path / "job.yaml").write_text(job.replace("  person: id\n", ""), encoding="utf-8")
    assert "no person column is named" in inside(tmp_path, "plan", "job.yaml", "--kept").err
