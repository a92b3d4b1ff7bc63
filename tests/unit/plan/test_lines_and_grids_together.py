"""Ranges, rectangles and weighted sums where they meet the rest: jobs, what is known, tiny epsilons, explanations."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.cli import main

JOB = """\
policy:
  domain:
    loss: {integers: [0, 1499]}
    place: {grid: {rows: 12, columns: 10}}
  secrets:
    - within: {loss: 100}
    - within: {place: 3}
  known: [size]
rows: people.csv
budget: 2
releases:
  - {name: losses, query: {ranges: {attribute: loss, ranges: all}}, epsilon: 0.5}
  - {name: map, query: {rectangles: {attributes: place, rectangles: all}}, epsilon: 0.5}
"""
NEAR = tc.Policy(tc.Domain({"place": tc.Grid(12, 10)}), tc.secrets.within(3, "place"), [tc.known.size(200)])


def test_a_job_with_more_ranges_than_can_be_listed_and_a_map_of_known_size_ends_with_a_report(
    tmp_path, monkeypatch, capsys
):
    luck = np.random.default_rng(4)
    people = {"loss": luck.integers(0, 1500, 50), "row": luck.integers(0, 12, 50), "column": luck.integers(0, 10, 50)}
    pd.DataFrame(people).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "job.yaml").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "job.yaml", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned
    assert main(["run", "job.yaml"]) == 0, capsys.readouterr().err
    report = (tmp_path / "job-release" / "report.html").read_text(encoding="utf-8")
    assert "Up to" in report


def test_what_is_known_is_explained_for_rectangles_too():
    said = tc.explain(tc.rectangles("place", "all"), NEAR, 0.5)
    assert said.knowledge == ()
    assert said.candidates[said.chosen] == min(said.candidates.values())
    text = str(said)
    times = float(re.search(r"at least ([0-9.]+) times", text)[1])
    others = [mse for name, mse in said.candidates.items() if name != said.chosen]
    assert times == pytest.approx(min(others) / said.expected_mse, rel=0.01)
    assert re.search(rf"{re.escape(said.chosen)} .* chosen", text)


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-15", "1e-25"])
def test_noise_that_cannot_be_drawn_is_never_made_smaller(epsilon):
    domain = tc.Domain({"a": tc.Integers(0, 9), "b": tc.Integers(0, 9), "c": tc.Flag()})
    policy = tc.Policy(domain, tc.secrets.everything())
    for query in (
        tc.rectangles("a", "b", "all"),
        tc.rectangles("a", "b", [[0, 3, 0, 3]]),
        tc.marginals(sets=[["a", "b"], ["c"]]),
    ):
        with pytest.raises(tc.PlanError, match="above the largest that can be drawn"):
            tc.explain(query, policy, epsilon)


def test_tables_that_need_too_much_noise_one_by_one_share_theirs():
    domain = tc.Domain({"a": tc.Integers(0, 9), "b": tc.Integers(0, 9), "c": tc.Flag()})
    policy = tc.Policy(domain, tc.secrets.everything())
    plan = tc.explain(tc.marginals(sets=[["a", "b"], ["c"]]), policy, "1e-11").plan
    assert plan.proven_loss() <= plan.epsilon


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("secrets", "presence"),
    [(tc.secrets.taking_part(), None), (tc.secrets.within(3, "a"), "secret"), (tc.secrets.within(3, "a"), None)],
)
@pytest.mark.parametrize("size", [8, 74])
def test_shares_of_a_drawn_tree_add_up_to_epsilon(secrets, presence, size):
    policy = tc.Policy(tc.Domain({"a": tc.Integers(0, size - 1)}), secrets, presence=presence)
    drawn = tc.explain(tc.ranges("a", "all"), policy, 0.5).plan.drawing
    shares = [int(re.search(r"(\d+)% of epsilon", line)[1]) for line in drawn]
    assert sum(shares) == pytest.approx(100, abs=len(shares))


@pytest.mark.parametrize(
    ("people", "priors", "said"),
    [
        (0, None, "people must be a whole number from 1"),
        (1.5, None, "people must be a whole number from 1"),
        (pd.DataFrame(), None, "people must be a whole number from 1"),
        (2, "none", "priors must be a list of mappings"),
        (2, [{}], "priors must have one mapping for each of 2 people"),
        (1, [{(True,): -1.0}], "priors must hold no negative probabilities"),
    ],
    ids=str,
)
def test_odds_are_about_people_and_probabilities(people, priors, said):
    policy = tc.Policy(tc.Domain({"sick": tc.Flag()}), tc.secrets.everything())
    with pytest.raises(tc.PlanError, match=said):
        tc.audit.posterior_odds(tc.histogram("sick"), policy, 1, people=people, priors=priors)


def test_a_weighted_sum_that_would_be_cut_is_refused_before_it_is_charged():
    domain = tc.Domain({"a": tc.Integers(0, 4 * 10**12), "b": tc.Integers(0, 999), "s": tc.Flag()})
    policy = tc.Policy(domain, tc.secrets.attributes("s"))
    made = tc.Session(policy, pd.DataFrame({"a": [4 * 10**12] * 4, "b": [999] * 4, "s": [True] * 4}), budget=1)
    with pytest.raises(tc.PlanError, match=r"total\.weight must be a product of at most 4\.4e\+12 units"):
        made.release(tc.total("a", weight="b"), 1)
    assert made.remaining == 1
