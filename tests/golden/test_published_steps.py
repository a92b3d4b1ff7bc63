"""Sensitivities of the published documents: kept where right, repaired where wrong. All values are exact integers."""

import pytest

import tacit as tc


def line(size):
    return tc.Domain({"x": tc.Integers(0, size - 1)})


def table(*sizes):
    return tc.Domain({f"A{i + 1}": tc.Integers(0, size - 1) for i, size in enumerate(sizes)})


def everything(domain, *known):
    return tc.Policy(domain, tc.secrets.everything(), known)


# quantity, policy, query, expected l1, source
ROWS = [
    ("histogram", everything(line(4)), tc.histogram("x"), 2, "differential privacy, replace one record"),
    (
        "histogram, one known count",
        everything(line(4), tc.known.count("x >= 2")),
        tc.histogram("x"),
        4,
        "Blowfish Cor. 8.3 says 2; the true step for 3 people is 4 = 2(|Q|+1)",
    ),
    (
        "histogram, one known marginal of 3 cells",
        everything(table(3, 2), tc.known.marginal("A1")),
        tc.histogram("A1", "A2"),
        6,
        "Blowfish Thm. 8.4: 2 size(C)",
    ),
    (
        "histogram, marginal of 4 cells",
        everything(table(2, 2, 3), tc.known.marginal("A1", "A2")),
        tc.histogram("A1", "A2", "A3"),
        8,
        "Blowfish Example 8.3: 8, attained",
    ),
    (
        "histogram, two known marginals, attribute secrets",
        tc.Policy(
            table(2, 2, 2), tc.secrets.attributes("A1", "A2", "A3"), [tc.known.marginal("A1"), tc.known.marginal("A2")]
        ),
        tc.histogram("A1", "A2", "A3"),
        8,
        "Blowfish Thm. 8.5 says 4; 6 is attained by 3 people, 8 by 4",
    ),
    (
        "histogram, three disjoint known ranges, line with theta 1",
        tc.Policy(
            line(9),
            tc.secrets.within(1, "x"),
            [tc.known.count("x <= 1"), tc.known.count("x in [3, 4]"), tc.known.count("x in [6, 7]")],
        ),
        tc.histogram("x"),
        8,
        "Blowfish Thm. 8.6 says 4; right is 2(p+1)",
    ),
    (
        "histogram, two known ranges that tile the line",
        tc.Policy(line(4), tc.secrets.within(1, "x"), [tc.known.count("x <= 1"), tc.known.count("x >= 2")]),
        tc.histogram("x"),
        4,
        "Blowfish Thm. 8.6 says 6; right is 2p where the ranges tile the domain",
    ),
    (
        "histogram, knowledge that no secret edge touches",
        tc.Policy(table(3, 2), tc.secrets.attributes("A2"), [tc.known.marginal("A1")]),
        tc.histogram("A1", "A2"),
        2,
        "if no secret edge touches what is known, the step stays 2",
    ),
    *(
        (
            f"histogram of {cells} cells, sums of neighbouring cells known",
            everything(line(cells), *(tc.known.count(f"x in [{at}, {at + 1}]") for at in range(cells - 1))),
            tc.histogram("x"),
            step,
            "Blowfish section 3.2, averaging attack: as many as there are cells, 0 if that is odd",
        )
        for cells, step in ((4, 4), (5, 0), (6, 6), (12, 12))
    ),
    ("known histogram", everything(line(4), tc.known.marginal("x")), tc.histogram("x"), 0, "what is known is free"),
    (
        "cumulative counts",
        tc.Policy(line(100), tc.secrets.within(7, "x")),
        tc.cumulative("x"),
        7,
        "Blowfish section 7.1: theta",
    ),
    (
        "linear sum",
        tc.Policy(line(100), tc.secrets.within(7, "x")),
        tc.total("x"),
        7,
        "Blowfish section 5: theta times the largest weight",
    ),
    (
        "histogram of blocks",
        tc.Policy(tc.Domain({"x": tc.Integers(0, 9)}), tc.secrets.partition("x", width=5)),
        tc.ranges("x", [(0, 4), (5, 9)]),
        0,
        "Blowfish section 5: partition counts are free without constraints",
    ),
    (
        "item counts",
        tc.Policy(tc.Domain({"v": tc.Items(5)}), tc.secrets.values({"v": [1]})),
        tc.histogram("v"),
        5,
        "asymmetric DP: a record may lose any subset of its items",
    ),
]


@pytest.mark.parametrize(("what", "policy", "query", "l1", "source"), ROWS, ids=[row[0] for row in ROWS])
def test_published_sensitivity(what, policy, query, l1, source):
    assert tc.largest_step(query, policy).l1 == l1, (what, source)


def test_asymmetric_counts_only_fall():
    """Asymmetric DP, Example 5: counts of visitors are monotonically decreasing."""
    policy = tc.Policy(tc.Domain({"visited": tc.Items(10)}), tc.secrets.values({"visited": [1]}))
    step = tc.largest_step(tc.count(tc.col("visited").has(3)), policy)
    assert (step.up, step.down) == (0, 1)
    assert step.monotone == "falling"


def test_partition_counts_are_not_free_once_something_is_known():
    """Blowfish section 4: with a known count that cuts across blocks, the block histogram moves by 2 (n = 3)."""
    domain = line(4)
    free = tc.Policy(domain, tc.secrets.partition("x", width=2))
    known = tc.Policy(domain, tc.secrets.partition("x", width=2), [tc.known.count("x in [1, 2]")])
    blocks = tc.ranges("x", [(0, 1), (2, 3)])
    assert tc.largest_step(blocks, free).l1 == 0
    assert tc.largest_step(blocks, known).l1 >= 2


def test_a_step_that_cannot_be_proved_is_refused_and_can_be_bounded_by_the_size():
    sizes = {f"A{i}": tc.Integers(0, 4) for i in range(3)}
    facts = [tc.known.marginal("A0", "A1"), tc.known.marginal("A1", "A2")]
    query = tc.histogram("A0", "A1", "A2")
    with pytest.raises(tc.PlanError, match="no proven bound"):
        tc.largest_step(query, tc.Policy(tc.Domain(sizes), tc.secrets.everything(), facts))
    sized = tc.Policy(tc.Domain(sizes), tc.secrets.everything(), [*facts, tc.known.size(50)])
    assert tc.largest_step(query, sized).l1 == 100
