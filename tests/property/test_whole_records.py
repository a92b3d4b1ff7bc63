"""True records whose key is a secret, against the definition: all data sets of up to three records, all coins."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import tacit as tc
from brute_force import edges_of, every_record
from tacit.audit.exact_audit import plan_loss
from tacit.noise.kept_coins import name_of_number
from tacit.plan.plans.visible_records import showing
from tacit.release.results import shown_records as released

DOMAIN = tc.Domain({"room": tc.Categories(["A", "B"]), "day": tc.Integers(1, 2), "arrival": tc.Flag()})
QUESTION = tc.true_records(["room", "arrival"], key=["room", "day"])
KEYS = list(product(["A", "B"], [1, 2]))
KEPT = 1 - math.exp(-1)


class Rows:
    """Rows in the order in which they are given."""

    def __init__(self, records):
        self._cells = {
            name: np.array([attribute.position(record[at]) for record in records], dtype=np.uint8)
            for at, (name, attribute) in enumerate(DOMAIN.items())
        }
        self._many = len(records)

    def records(self, names, key, work):
        yield work({name: self._cells[name] for name in names}, {}, self._many)


def published(plan, records, kept, monkeypatch):
    """Everything that a release publishes, where these keys have kept their coins."""
    coins = {name.tobytes(): key in kept for name, key in zip(name_of_number(np.arange(4)), KEYS, strict=True)}

    def coin_of(secret, numbers, each):
        return np.array([coins[name.tobytes()] for name in name_of_number(numbers)], np.bool_)

    monkeypatch.setattr(released, "remembered_by_number", coin_of)
    found = released.show_records(plan, Rows(records), lambda line: b"secret")
    table = {name: tuple(column) for name, column in found.columns().items()}
    return found.rows, tuple(found.values.tolist()), tuple(table.items())


def law(plan, records, monkeypatch):
    """The law of what is published: keys that no record has make no difference, but are gone through all the same."""
    table = Counter()
    for coins in product([True, False], repeat=len(KEYS)):
        kept = {key for key, coin in zip(KEYS, coins, strict=True) if coin}
        chance = math.prod(KEPT if coin else 1 - KEPT for coin in coins)
        table[published(plan, records, kept, monkeypatch)] += chance
    return table


def unique_keys(records):
    return len({record[:2] for record in records}) == len(records)


def worst_loss(plan, policy, monkeypatch, most=3):
    """The worst loss over all edges of one record, between data sets in which all keys are different."""
    laws, worst = {}, 0.0
    records, edges = every_record(DOMAIN), edges_of(policy)

    def of(people):
        people = tuple(sorted(people))
        if people not in laws:
            laws[people] = law(plan, people, monkeypatch)
        return laws[people]

    for others in range(most):
        for rest in combinations(records, others):
            for hidden, cover in edges:
                if unique_keys([*rest, hidden]) and unique_keys([*rest, cover]):
                    before, after = of((*rest, hidden)), of((*rest, cover))
                    losses = [math.log(p / after[out]) if after[out] else math.inf for out, p in before.items()]
                    worst = max(worst, *losses)
    return worst


SECRETS = {
    "records": tc.secrets.records("arrival == True"),
    "the key alone": tc.secrets.attributes("room", where="room == 'A'"),
    "some of the key": tc.secrets.attributes("room", "arrival", where="arrival == True"),
}


@pytest.mark.parametrize("secrets", SECRETS.values(), ids=SECRETS)
def test_the_worst_loss_between_data_sets_of_different_keys_is_epsilon(secrets, monkeypatch):
    policy = tc.Policy(DOMAIN, secrets)
    plan = QUESTION.plan(policy, Fraction(1))
    assert plan.is_whole
    most = 3 if secrets is SECRETS["records"] else 2
    assert worst_loss(plan, policy, monkeypatch, most) == pytest.approx(1.0, abs=1e-9)
    exact = plan_loss(plan)
    assert exact.complete
    assert exact.forward.low <= 1 <= exact.forward.high
    assert exact.forward.high == pytest.approx(1.0)


def test_rows_of_gaps_under_a_key_that_is_a_secret_would_tell_it(monkeypatch):
    """The enumeration sees what the plan avoids."""
    policy = tc.Policy(DOMAIN, SECRETS["records"])
    plan = QUESTION.plan(policy, Fraction(1))
    gaps = replace(plan, showing=showing(("arrival",), policy, keyed=True))
    assert worst_loss(gaps, policy, monkeypatch, most=1) == math.inf
