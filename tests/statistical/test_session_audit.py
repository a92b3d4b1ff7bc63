"""The sampled audit of whole sessions, rows included: a wrong wire between plan, rows and noise would show here.

Each release is made on its own, so samples are few; the mechanisms alone are audited with many (`tacit audit all`).
"""

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.plan.choose import choose
from tacit.release.estimate.infer import infer
from tacit.release.estimate.measure import measure, true_answers
from tacit.rows.rows import open_rows

pytestmark = pytest.mark.slow

DOMAIN = tc.Domain({"age": tc.Integers(0, 3), "disease": tc.Categories(["flu", "hiv", "none"])})
ONE_WAY = tc.Policy(DOMAIN, tc.secrets.values({"disease": ["hiv"]}))
NEAR = tc.Policy(DOMAIN, tc.secrets.within(1, "age"))
OTHERS = [(0, "flu"), (1, "none"), (2, "hiv"), (3, "none")]


CASES = {
    "count": (ONE_WAY, tc.count("disease == 'hiv'"), (1, "hiv"), (1, "flu")),
    "histogram": (ONE_WAY, tc.histogram("disease"), (1, "hiv"), (1, "flu")),
    "histogram where": (ONE_WAY, tc.histogram("disease", where="age < 2"), (1, "hiv"), (1, "none")),
    "cumulative": (NEAR, tc.cumulative("age"), (1, "flu"), (2, "flu")),
    "ranges": (NEAR, tc.ranges("age", "all"), (1, "flu"), (0, "flu")),
    "total": (NEAR, tc.total("age"), (2, "flu"), (3, "flu")),
}


def released(policy, query, epsilon=1):
    """Return a mechanism that counts rows as a session does, and then finishes a release for each output."""
    plan = choose(query, policy, epsilon)

    def release(people, size):
        rows = open_rows(pd.DataFrame(people, columns=list(policy.domain)), policy.domain)
        truth = true_answers(plan.base, rows, policy)
        return np.array([infer(measure(plan, truth)).values for _ in range(size)])

    return release


@pytest.mark.parametrize("case", CASES)
def test_a_whole_session_keeps_its_promise_and_wastes_little(case):
    policy, query, hidden, cover = CASES[case]
    found = tc.audit.sampled(
        released(policy, query),
        [*OTHERS, hidden],
        [*OTHERS, cover],
        1,
        samples=8_000,
        alpha=1e-6,
        policy=policy,
        workers=1,
    )
    assert found.verdict == "NONE_FOUND", str(found)
    # 4,000 samples for the verdict at alpha 1e-6 leave about a fifth of the loss unseen
    assert found.lower_bound > 0.5, str(found)


def test_a_session_that_spends_more_than_it_says_is_found():
    policy, query, hidden, cover = CASES["count"]
    release = released(policy, query, epsilon=2)
    found = tc.audit.sampled(release, [*OTHERS, hidden], [*OTHERS, cover], 1, samples=8_000, alpha=1e-6, workers=1)
    assert found.verdict == "LEAK_FOUND", str(found)
