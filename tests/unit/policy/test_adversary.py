"""A weaker adversary stands in the policy, and whatever is promised under it says so."""

import pandas as pd
import pytest

import tacit as tc
from tacit.policy.policy_file import policy_schema
from tacit.release.certificate import against_in_words
from tacit.report.html import promise_in_words

DOMAIN = tc.Domain({"age": tc.Integers(0, 3), "ward": tc.Categories(["A", "B", "C"]), "ill": tc.Flag()})
KNOWN = [tc.known.marginal("age"), tc.known.marginal("ward")]
FILE = """
domain: {age: {integers: [0, 3]}, ward: {categories: [A, B, C]}, ill: flag}
secrets: everything
known: [{marginal: [age]}, {marginal: [ward]}]
"""


def policy(adversary=None, known=KNOWN):
    return tc.Policy(DOMAIN, tc.secrets.everything(), known, adversary=adversary)


@pytest.mark.parametrize("adversary", ["alike", {"group": 4}])
def test_it_is_read_written_and_part_of_the_fingerprint(adversary):
    made = policy(adversary)
    assert tc.Policy.from_yaml(f"{FILE}adversary: {adversary}".replace("'", "")).fingerprint == made.fingerprint
    assert tc.Policy.from_yaml(made.to_yaml()) == made
    assert made.document()["adversary"] == adversary
    assert made.fingerprint != policy().fingerprint
    assert policy("independent").document() == policy().document()  # and an older fingerprint stays as it is
    assert "adversary" in policy_schema()["properties"]


@pytest.mark.parametrize(
    ("adversary", "known", "says"),
    [
        (
            "alike",
            [],
            "adversary needs something that is known, which ties people together; got 'alike'. Leave it out.",
        ),
        ("alikes", KNOWN, "adversary must be independent, alike or a group; got 'alikes'. Did you mean 'alike'?"),
        ({"group": 1}, KNOWN, "adversary.group must be a whole number from 2; got 1."),
        ({"group": True}, KNOWN, "adversary.group must be a whole number from 2"),
        ({"crowd": 4}, KNOWN, "adversary must be independent, alike or {group: ..}"),
        (4, KNOWN, "adversary must be independent, alike or {group: ..}"),
        ("group", KNOWN, "adversary must say of how many people, for a group alone"),
        # facts that contradict each other
        (
            {"group": 4},
            [*KNOWN, tc.known.size(3)],
            "adversary must not be a larger group than all people, of whom 3",
        ),
        (
            None,
            [tc.known.size(3), tc.known.size(4)],
            "known must not say two sizes; got [3, 4]. Keep one of them.",
        ),
    ],
)
def test_what_is_no_adversary_is_refused(adversary, known, says):
    with pytest.raises(tc.PolicyError) as refusal:
        policy(adversary, known)
    assert says in str(refusal.value)


def test_a_file_is_refused_with_its_line():
    for text in ("{group: 1}", "alikes", "{group: [2]}", "{}", "{group: 2, more: 1}"):
        with pytest.raises(tc.PolicyError, match=r"^policy:5: adversary"):
            tc.Policy.from_yaml(f"{FILE}adversary: {text}")
    contradiction = FILE.replace("known: [", "known: [{size: 3}, {size: 4}, ")
    with pytest.raises(tc.PolicyError, match=r"^policy:4: known must not say two sizes"):
        tc.Policy.from_yaml(contradiction)
    with pytest.raises(tc.PolicyError, match=r"^policy:5: adversary must not be a larger group"):
        tc.Policy.from_yaml(f"{FILE.replace('known: [', 'known: [{size: 3}, ')}adversary: {{group: 4}}")


def test_descriptions_certificates_and_reports_say_against_whom():
    rows = pd.DataFrame({"age": [0, 1, 2, 3] * 3, "ward": list("ABC") * 4, "ill": [True, False] * 6})
    words = {}
    for adversary in (None, "alike", {"group": 4}):
        session = tc.Session(policy(adversary), rows, budget=2)
        found = session.release(tc.count("ill == True and age == 1"), epsilon=1) if adversary else None
        said = [policy(adversary).describe().replace("\n    ", " ")]
        if found is not None:
            said += [found.certificate["guarantee"], promise_in_words({"ill": found})]
            assert found.certificate["policy"]["adversary"] == adversary
        words[str(adversary)] = said
    assert all("independent draws from one law" in text for text in words["alike"])
    assert all("all but 4 people" in text for text in words["{'group': 4}"])
    assert not any("adversary" in text for text in words["None"])
    assert against_in_words(policy()) == ""
    assert "Somebody who tells people apart" in words["alike"][0]
    assert "Somebody who tells people apart" in words["alike"][1]
    assert "even to a reader who knows the data of everybody else" not in words["alike"][2]


def test_accounts_of_different_adversaries_take_no_charges_of_each_other(tmp_path):
    kinds = [policy(), policy("alike"), policy({"group": 3}), policy({"group": 4})]
    assert [[a.covers(b) for b in kinds] for a in kinds] == [[a is b for b in kinds] for a in kinds]
    with tc.Ledger(tmp_path / "ledger.db") as ledger:
        for at, one in enumerate(kinds):
            name = f"clinic {at}"
            ledger.grant(dataset=name, epsilon=4, policy=one)
            ledger.charge(dataset=name, epsilon=1, policy=one)
            for other in kinds:
                if other is not one:
                    with pytest.raises(tc.LedgerError, match="polic"):
                        ledger.charge(dataset=name, epsilon=1, policy=other)
            said = ledger.statement(dataset=name)
            assert said.epsilon == 1
            assert one.adversary.words()[0] in said.text
            assert ("Against" in said.text) == one.adversary.is_named
