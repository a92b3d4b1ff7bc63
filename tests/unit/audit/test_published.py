"""What readers see of confidences: closeness from plans, against releases that are really made."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit import noise
from tacit.audit.disclosure_audits.confidences import ConfidenceColumns, Confidences, OneScale, Planned
from tacit.noise.cube import Cube
from tacit.release.curator.private_counts import counts_under

RUNS = 10_000
SURE = 5.0  # standard errors: fewer than one false alarm in a million numbers
DOMAIN = tc.Domain({"ward": tc.Categories(["A", "B", "C"]), "disease": tc.Categories(["flu", "hiv", "other"])})
COUNTS = {("A", "flu"): 6, ("A", "hiv"): 9, ("A", "other"): 5, ("B", "flu"): 12, ("B", "other"): 3, ("C", "hiv"): 1}
SECRETS = {
    "attributes": tc.secrets.attributes("disease"),
    "everything": tc.secrets.everything(),
    "values": tc.secrets.values({"disease": ["hiv"]}),
}


@cache
def people() -> pd.DataFrame:
    rows = [cell for cell, many in COUNTS.items() for _ in range(many)]
    return pd.DataFrame(rows, columns=["ward", "disease"])


def planned(secret: str, *questions: Any) -> Planned:
    session = tc.Session(tc.Policy(DOMAIN, SECRETS[secret]), people(), budget=100)
    return Planned(tuple(session.plan(question, epsilon) for question, epsilon in questions))


def confidences(shown: Planned, *known: str) -> Confidences:
    columns = ConfidenceColumns(known, "disease")
    return Confidences.of(columns, counts_under(shown.policy, people(), [columns.table]))


def released(shown: Planned, which: int) -> np.ndarray:
    """Return the estimates of many releases of one plan, flat, in the order of its cells.

    Each cell has the noise of its law, less its mean; what sums of cells are off by, where they are exact, is taken
    off their cells in proportion to the variances.
    """
    plan: Any = shown.plans[which]
    names = plan.query.tables(DOMAIN)[0]
    truth = counts_under(shown.policy, people(), [names]).tables[names].reshape(-1)
    error, variance = np.zeros((RUNS, len(truth))), np.zeros(len(truth))
    with noise.replayed(noise.Keystream(key=bytes([which]) * 32)):
        for law, entries in plan.laws():
            error[:, entries] = law.draw_for(error[:, entries].shape) - law.mean()
            variance[entries] = law.variance()
    for group in [] if plan.groups is None else range(int(plan.groups[0].max()) + 1):
        mine = plan.groups[0] == group
        if variance[mine].any():
            error[:, mine] -= error[:, mine].sum(axis=1, keepdims=True) * variance[mine] / variance[mine].sum()
    return truth + error


def share_close(of: Confidences, cells: np.ndarray, sizes: np.ndarray, tau: float) -> np.ndarray:
    """Return how often the guesses of the groups with people are close."""
    with np.errstate(divide="ignore", invalid="ignore"):
        guesses = cells / sizes[:, :, None]
    truth = of.cells / np.maximum(of.cells.sum(axis=1), 1)[:, None]
    close = np.abs(guesses - truth) <= tau * truth + 1e-9
    return np.asarray(close.mean(axis=0))[of.places]


def agree(found: np.ndarray, measured: np.ndarray) -> None:
    error = np.sqrt(np.maximum(found * (1 - found), 1 / RUNS) / RUNS)
    assert (np.abs(found - measured) < SURE * error).all(), np.abs(found - measured).max()


def check(shown: Planned, of: Confidences, sizes: np.ndarray | None = None) -> np.ndarray:
    cells = released(shown, 0).reshape(RUNS, 3, 3)
    picked = np.nonzero(of.theta)
    found = shown.closeness(of, 0.25, picked)
    agree(found, share_close(of, cells, cells.sum(axis=2) if sizes is None else sizes, 0.25)[picked])
    return found


def test_sizes_that_no_secret_edge_changes_are_exact() -> None:
    shown = planned("attributes", (tc.histogram("ward", "disease"), 1))
    of = confidences(shown, "ward")
    found = check(shown, of)
    # less noise than the counts by themselves have: they were made to add up
    alone = OneScale(2.0, "two-sided", 2).closeness(of, 0.25, np.nonzero(of.theta))
    assert found.mean() > alone.mean()


def test_the_order_of_the_attributes_does_not_matter() -> None:
    one = planned("attributes", (tc.histogram("ward", "disease"), 1))
    other = planned("attributes", (tc.histogram("disease", "ward"), 1))
    of = confidences(one, "ward")
    picked = np.nonzero(of.theta)
    assert one.closeness(of, 0.2, picked).tolist() == other.closeness(of, 0.2, picked).tolist()


def test_sizes_are_added_up_where_nothing_else_is_known() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.everything() | tc.secrets.taking_part())
    plan = tc.Session(policy, people(), budget=9).plan(tc.histogram("ward", "disease"), 1)
    assert plan.groups is None
    shown = Planned((plan,))
    check(shown, confidences(shown, "ward"))


def test_cells_lean_on_an_exact_total_of_everybody() -> None:
    shown = planned("everything", (tc.histogram("ward", "disease"), 1))
    of = confidences(shown, "ward")
    found = check(shown, of)
    policy = tc.Policy(DOMAIN, tc.secrets.everything() | tc.secrets.taking_part())
    alone = Planned((tc.Session(policy, people(), budget=9).plan(tc.histogram("ward", "disease"), 1),))
    assert np.abs(found - alone.closeness(of, 0.25, np.nonzero(of.theta))).max() > 0.03


@pytest.mark.parametrize("also", [None, tc.secrets.taking_part()], ids=["fitted", "summed"])
def test_cells_that_share_a_radius(also: Any) -> None:
    domain = tc.Domain({"ward": tc.Flag(), "disease": tc.Flag()})
    rows = pd.DataFrame({"ward": [0] * 9 + [1] * 7, "disease": [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1]})
    policy = tc.Policy(domain, SECRETS["attributes"] if also is None else SECRETS["everything"] | also)
    plan: Any = tc.Session(policy, rows, budget=9).plan(tc.histogram("ward", "disease"), 1)
    plan = replace(plan, noise=Cube(Fraction(1), 4, "both"))  # which four cells would have, were it not a little worse
    shown = Planned((plan,))
    of = Confidences.of(ConfidenceColumns(("ward",), "disease"), counts_under(policy, rows, [("ward", "disease")]))
    with noise.replayed(noise.Keystream(key=bytes(32))):
        error = plan.noise.draw_for((RUNS, 4)).reshape(RUNS, 2, 2).astype(float)
    if plan.groups is not None:
        error -= error.mean(axis=2, keepdims=True)
    cells = of.cells + error
    picked = np.nonzero(of.theta)
    agree(shown.closeness(of, 0.25, picked), share_close(of, cells, cells.sum(axis=2), 0.25)[picked])


@pytest.mark.slow
@pytest.mark.parametrize("secret", ["attributes", "values"])
def test_whole_releases_say_the_same(secret: str) -> None:
    """The estimates above are those of the pipeline: counted, measured and inferred."""
    session = tc.Session(tc.Policy(DOMAIN, SECRETS[secret]), people(), budget=1_000)
    plan = session.plan(tc.histogram("ward", "disease"), "1/4")
    shown = Planned((plan,))
    of = confidences(shown, "ward")
    with noise.replayed(noise.Keystream(key=bytes(32))):
        cells = np.stack([session.release(plan).values for _ in range(4_000)]).reshape(-1, 3, 3)
    picked = np.nonzero(of.theta)
    found, measured = shown.closeness(of, 0.25, picked), share_close(of, cells, cells.sum(axis=2), 0.25)[picked]
    assert (np.abs(found - measured) < SURE * 0.5 / np.sqrt(4_000)).all()


def test_one_sided_noise() -> None:
    shown = planned("values", (tc.histogram("ward", "disease"), 1))
    assert len(list(shown.plans[0].laws())) > 1
    check(shown, confidences(shown, "ward"))


def test_a_published_size_is_taken_if_it_is_surer_than_the_sum() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.everything() | tc.secrets.taking_part())
    session = tc.Session(policy, people(), budget=9)
    shown = Planned((session.plan(tc.histogram("ward", "disease"), 1), session.plan(tc.histogram("ward"), 2)))
    of = confidences(shown, "ward")
    found = check(shown, of, released(shown, 1))
    picked = np.nonzero(of.theta)
    assert found.tolist() != Planned(shown.plans[:1]).closeness(of, 0.25, picked).tolist()


def test_answers_that_are_exact_are_always_close() -> None:
    policy = tc.Policy(DOMAIN, tc.secrets.attributes("ward"))
    plan = tc.Session(policy, people(), budget=9).plan(tc.marginals(sets=[["disease"], ["ward", "disease"]]), 1)
    shown = Planned((plan,))
    of = Confidences.of(ConfidenceColumns(("ward",), "disease"), counts_under(policy, people(), [("ward", "disease")]))
    assert (shown.closeness(of, 0.2, np.nonzero(of.theta)) > 0).all()
    exact = tc.Policy(tc.Domain({**DOMAIN, "age": tc.Integers(0, 9)}), tc.secrets.within(1, "age"))
    rows = people().assign(age=3)
    plan = tc.Session(exact, rows, budget=9).plan(tc.histogram("ward", "disease"), 1)
    assert plan.noise is None
    of = Confidences.of(ConfidenceColumns(("ward",), "disease"), counts_under(exact, rows, [("ward", "disease")]))
    assert set(Planned((plan,)).closeness(of, 0.2, np.nonzero(of.theta)).tolist()) == {1.0}


def test_errors_are_those_of_releases() -> None:
    for secret in ("attributes", "values"):
        shown = planned(secret, (tc.histogram("ward", "disease"), 1))
        of = confidences(shown, "ward")
        ((errors, counts),) = shown.errors(of)
        assert counts.tolist() == of.cells.reshape(-1).tolist()
        measured = np.abs(released(shown, 0) - counts).mean(axis=0)
        assert errors == pytest.approx(measured, rel=0.12)  # in proportion to the standard deviation


def test_plans_without_tables_are_named() -> None:
    shown = planned("attributes", (tc.histogram("ward", "disease"), 1), (tc.count("ward == 'A'"), 1))
    assert len(shown.left_out) <= 1
    restricted = planned("attributes", (tc.histogram("ward", "disease", where="ward == 'A'"), 1))
    assert restricted.left_out == (str(restricted.plans[0].query),)
    assert restricted.columns(("ward",), ("disease",)) == []


def test_another_cost_has_other_plans() -> None:
    shown = planned("attributes", (tc.histogram("ward", "disease"), 1), (tc.histogram("ward"), "0.5"))
    assert shown.epsilon == 1.5
    assert [float(plan.epsilon) for plan in shown.at(3).plans] == [2.0, 1.0]
    assert OneScale(48.0, "laplace", 24).epsilon == 0.5
    assert OneScale(48.0, "laplace", 24).at(1).scale == 24
