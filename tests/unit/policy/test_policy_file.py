"""Policy files: what they mean, and what is said, word for word, about those that mean nothing."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction

import jsonschema
import pytest
import yaml

from tacit.errors import PolicyError
from tacit.policy import knowledge, secrets, yaml_entries
from tacit.policy.attributes import Categories, Dates, Decimals, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.policy import Policy
from tacit.policy.policy_file import load_policy, policy_document, policy_schema, read_policy, write_policy

CLINIC = """\
name: clinic
domain:
  age: {integers: [17, 90]}
  height: {low: 100, high: 220, step: 5, otherwise: clip}
  disease: {categories: [flu, hiv, other], otherwise: other}
  stage: {categories: [early, late], ordered: true}
  smoker: flag
  place: {grid: {rows: 400, columns: 300, of: [lat, lon], low: [30, -125], high: [50, -110]}}
  clicked: {items: 41270}
secrets:
  - within: {theta: 5, attributes: [age]}
  - within: {height: 2.5}
  - within: {place: 3, metric: linf}
  - attributes: [disease]
  - values: {clicked: [1]}
  - partition: {attribute: age, width: 10}
  - partition: {attribute: disease, blocks: [[flu, hiv], [other]]}
  - records: "age < 18"
  - pairs: [[{disease: hiv}, {disease: flu}]]
  - everything
known: [size, {marginal: [disease]}, {count: "age < 18"}]
presence: public
"""
DOMAIN = """\
domain:
  age: {integers: [17, 90]}
  disease: {categories: [flu, hiv]}
  smoker: flag
  clicked: {items: 10}
"""


def test_every_form_means_what_it_says():
    expected = Policy(
        Domain(
            {
                "age": Integers(17, 90),
                "height": Integers(100, 220, 5, otherwise="clip"),
                "disease": Categories(["flu", "hiv", "other"], otherwise="other"),
                "stage": Categories(["early", "late"], ordered=True),
                "smoker": Flag(),
                "place": Grid(400, 300, of=("lat", "lon"), low=(30, -125), high=(50, -110)),
                "clicked": Items(41270),
            }
        ),
        secrets.within(5, "age")
        | secrets.within(Fraction(5, 2), "height")
        | secrets.within(3, "place", metric="linf")
        | secrets.attributes("disease")
        | secrets.values({"clicked": [1]})
        | secrets.partition("age", width=10)
        | secrets.partition("disease", blocks=[["flu", "hiv"], ["other"]])
        | secrets.records("age < 18")
        | secrets.pairs([({"disease": "hiv"}, {"disease": "flu"})])
        | secrets.everything(),
        [knowledge.size(), knowledge.marginal("disease"), knowledge.count("age < 18")],
        "public",
        "clinic",
    )
    assert read_policy(CLINIC) == expected
    assert read_policy(write_policy(expected)) == expected
    assert json.loads(json.dumps(policy_document(expected))) == policy_document(expected)


def attribute(text):
    return read_policy(f"domain: {{x: {text}}}\nsecrets: everything").domain["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{integers: {low: 0, high: 9, step: 3}}", Integers(0, 9, 3)),
        ("{integers: [-5, 1_000], otherwise: 7}", Integers(-5, 1000, otherwise=7)),
        ("{low: 1, high: 2}", Integers(1, 2)),
        ("{categories: ['no', \"01\", '2020-01-01', '1e3', '']}", Categories(["no", "01", "2020-01-01", "1e3", ""])),
        ("{categories: [1, 2], ordered: yes}", Categories([1, 2], ordered=True)),
        ("{categories: [true, false]}", Categories([True, False])),
        ("{flag: {otherwise: no}}", Flag(False)),
        ("{flag: , otherwise: true}", Flag(True)),
        ("{grid: {rows: 2, columns: 3}, otherwise: clip}", Grid(2, 3, otherwise="clip")),
        ("{grid: {rows: 2, columns: 3, otherwise: [1, 2]}}", Grid(2, 3, otherwise=(1, 2))),
        ("{items: 5, first: 1, at_most: 2}", Items(5, first=1, at_most=2)),
        ("{items: [bread, milk]}", Items(["bread", "milk"])),
        ("{dates: [2024-01-01, 2024-12-31]}", Dates("2024-01-01", "2024-12-31")),
        ("{dates: ['2024-01-01', 2024-12-31], by: month}", Dates("2024-01", "2024-12", by="month")),
        ("{dates: [2019, 2024], by: year, otherwise: 2020}", Dates("2019", "2024", by="year", otherwise="2020")),
        ("{dates: [2024-W01, 2024-W52], by: week, otherwise: clip}", Dates("2024-W01", "2024-W52", "week", "clip")),
        ("{decimals: [0, 1], step: 0.1}", Decimals(0, 1, Decimal("0.1"))),
        ("{decimals: [-1.5, 1_000], step: 0.5, otherwise: 2.5}", Decimals(-1.5, 1000, "0.5", otherwise=2.5)),
        ("{decimals: [0, 0.00002], step: 1.0e-6, otherwise: clip}", Decimals(0, 2e-5, 1e-6, "clip")),
    ],
)
def test_attributes_have_several_forms(text, expected):
    assert attribute(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("everything", secrets.everything()),
        ("everything: ", secrets.everything()),
        ("attributes: age", secrets.attributes("age")),
        ("within: {age: 5/2}", secrets.within(Fraction(5, 2), "age")),
        ("within: {theta: 0.1, attributes: age, metric: l2}", secrets.within(Fraction(1, 10), "age", metric="l2")),
        ("values: {smoker: [yes]}", secrets.values({"smoker": [True]})),
        ("values: {age: [20, 21], disease: [hiv]}", secrets.values({"age": [20, 21], "disease": ["hiv"]})),
        (
            "partition: {attribute: age, blocks: [17..30, [31, 32]]}",
            secrets.partition("age", blocks=["17..30", [31, 32]]),
        ),
        ("records: smoker and not age < 30", secrets.records("smoker and not age < 30")),
    ],
)
def test_families_have_short_forms(text, expected):
    written = f"{{{text}}}" if ":" in text else text
    assert read_policy(f"{DOMAIN}secrets: {written}").secrets == expected


def test_a_policy_says_about_whom_it_is():
    policy = read_policy(f"{DOMAIN}secrets: everything\nperson: patient_id\nper_person: 3\n")
    assert (policy.person, policy.per_person) == ("patient_id", 3)
    text = write_policy(policy)
    person = "# Whose row it is: all rows with the same value here are one person.\nperson: patient_id\n"
    assert text.endswith(f"\n{person}per_person: 3\n")
    assert read_policy(text) == policy
    alone = read_policy(f"{DOMAIN}secrets: everything\n")
    assert "person" not in policy_document(alone)
    assert "per_person" not in policy_document(alone)
    one = read_policy(f"{DOMAIN}secrets: everything\nperson: patient_id\n")
    assert policy_document(one)["person"] == "patient_id"
    assert len({policy.fingerprint, alone.fingerprint, one.fingerprint}) == 3
    schema = jsonschema.Draft202012Validator(policy_schema())
    schema.validate(policy_document(policy))
    assert not schema.is_valid({**policy_document(alone), "per_person": 2})
    assert not schema.is_valid({**policy_document(alone), "order": "day"})
    for key in ("person", "order", "item"):
        assert not schema.is_valid({**policy_document(one), key: ""})


def test_a_policy_says_which_rows_count_and_where_items_are():
    text = f"{DOMAIN}secrets: everything\nperson: patient_id\n"
    said = [read_policy(text + more) for more in ("", "order: day\n", "order: week\n", "item: thing\n")]
    assert [policy.order for policy in said] == [None, "day", "week", None]
    assert [policy.item for policy in said] == [None, None, None, "thing"]
    assert len({policy.fingerprint for policy in said}) == len(said)
    assert not {"order", "item"} & set(policy_document(said[0]))
    schema = jsonschema.Draft202012Validator(policy_schema())
    for policy in said:
        assert read_policy(write_policy(policy)) == policy
        assert (policy.plain().order, policy.plain().item) == (policy.order, policy.item)
        schema.validate(policy_document(policy))


def test_the_fingerprint_of_a_policy_that_says_nothing_of_order_and_item_stays():
    policy = read_policy("{domain: {age: {integers: [0, 9]}}, secrets: everything, person: id, per_person: 2}")
    assert policy.fingerprint == "a7d2c2de166545df1ceef22879796b58"


def test_the_column_of_a_set_that_is_called_like_it_is_no_other_policy():
    policy = read_policy("{domain: {clicked: {items: 3}}, secrets: everything, person: id}")
    assert policy.about(item="clicked") == policy
    assert policy.about(item="link").about(item="clicked") == policy
    assert policy.about(item="link") != policy


def test_what_stands_beside_a_policy_comes_first():
    policy = read_policy(f"{DOMAIN}secrets: everything\nperson: id\nper_person: 3\norder: day\nitem: thing\n")

    def about(**given):
        found = policy.about(**given)
        return found.person, found.per_person, found.order, found.item

    assert policy.about() is policy
    assert about(order="week") == ("id", 3, "week", "thing")
    assert about(item="place") == ("id", 3, "day", "place")
    assert about(person="household") == ("household", 1, "day", "thing")
    assert policy.owned_by(None, 1).order is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"order": "day"}, "order needs a person column; got 'day'. Say person='id'."),
        ({"person": "id", "order": ""}, "order must be the name of a column; got ''."),
        ({"person": "id", "order": 3}, "order must be the name of a column; got 3."),
        ({"item": ["thing"]}, "item must be the name of a column; got a list."),
        ({"item": ""}, "item must be the name of a column; got ''."),
    ],
)
def test_a_column_that_is_none_is_refused(given, sentence):
    with pytest.raises(PolicyError, match=f"^{sentence}"):
        Policy(read_policy("{domain: {age: flag}, secrets: everything}").domain, secrets.everything(), **given)


def test_pairs_may_be_records_values_or_parts():
    as_lists = read_policy("{domain: {a: flag, b: {items: 3}}, secrets: {pairs: [[[yes, [1]], [no, []]]]}}")
    as_parts = read_policy("{domain: {a: flag, b: {items: 3}}, secrets: {pairs: [[{b: [1], a: 1}, {a: 0, b: []}]]}}")
    assert as_lists == as_parts
    assert as_lists.has_edge((True, {1}), (False, set()))
    assert read_policy("{domain: {a: {integers: [1, 9]}}, secrets: {pairs: [[1, 2]]}}").has_edge(1, 2)


def test_an_attribute_may_be_called_like_a_key():
    domain = "{theta: {integers: [0, 9]}, metric: {integers: [0, 9]}}"
    policy = read_policy(f"{{domain: {domain}, secrets: [within: {{theta: 2}}, within: {{metric: 3}}]}}")
    assert policy.secrets == secrets.within(2, "theta") | secrets.within(3, "metric")
    assert read_policy(write_policy(policy)) == policy


def test_anchors_and_merges_are_followed():
    text = "{a: &range {low: 0, high: 9, otherwise: clip}, b: *range, c: {<<: *range, high: 19}}"
    domain = read_policy(f"{{domain: {text}, secrets: everything}}").domain
    assert domain["a"] == domain["b"] == Integers(0, 9, otherwise="clip")
    assert domain["c"] == Integers(0, 19, otherwise="clip")


WRITTEN = """\
# A Tacit policy: what must stay secret, about whom, and what the world already knows.
# Everything in this file is public. `tacit check` says in plain words what it protects and what not.
name: clinic

# The values that a person's record may have. Declared here, never read off the data.
domain:
  age: {integers: [17, 90]}
  disease: {categories: [flu, hiv]}
  smoker: flag
  clicked: {items: 10}

# What a release must not give away.
secrets:
- within: {theta: 5, attributes: [age]}
- attributes: [disease]

# What is public about the data set anyway.
known: []

# Whether it is secret who is in the data: public or secret.
presence: public
"""


def test_a_written_policy_reads_like_one_written_by_hand():
    text = f"{DOMAIN}secrets: [within: {{age: 5}}, attributes: [disease]]\nname: clinic"
    assert write_policy(read_policy(text)) == WRITTEN


FLAG = "domain: {a: flag}\n"
TABLE = (
    "the policy must be YAML; this looks like a table, not a policy. `tacit init clinic.yaml` drafts a policy for it."
)
ONE_KIND = "must have exactly one of integers, decimals, dates, times, categories, flag, grid and items;"
OF_FILES = [  # what is wrong with a file as a whole, and with its keys
    ("", ": the policy must not be empty. Draft one with `tacit init DATA`."),
    ("# nothing yet\n", ": the policy must not be empty. Draft one with `tacit init DATA`."),
    ("- domain\n- secrets\n", ":1: the policy must be a mapping. Start with `domain:` and `secrets:`, without a dash."),
    ("hello\n", ":1: the policy must be a mapping; got 'hello'. Start with `domain:` and `secrets:`, without a dash."),
    ("age,sex\n30,CANARY\n", f":1: {TABLE}"),
    ("age;'sex\n30;CANARY: x: y\n", f": {TABLE}"),
    ("CANARY\nCANARY\n", ":1: the policy must be a mapping. Start with `domain:` and `secrets:`, without a dash."),
    ("domain:\n\tage: flag\n", ":2: the policy must be indented with spaces, not tabs. Replace the tab."),
    (FLAG + "secrets: everything\n---\na: 1\n", ":3: the policy must be one document. Remove the `---`."),
    (FLAG + "secrets: *all\n", ":2: the policy must be YAML: found undefined alias"),
    (FLAG + "secrets: \x07\n", ":2: the policy must not contain control characters. Remove them."),
    ("[" * 100_000, ":1: the policy must not be nested deeper than 40 levels. Remove brackets."),
    ("domain: &a {x: *a}\nsecrets: everything\n", ":1: the policy must not be nested deeper than 40 levels."),
    (DOMAIN + "secret: everything\n", ":6: secret is not a key that may stand here. Did you mean 'secrets'?"),
    (FLAG, ":1: the policy must have the key secrets; got ['domain']. Add `secrets: ..`."),
    ("? [a, b]\n: 1\n", ":1: the policy must have texts as keys. Write name: value."),
]
OF_DOMAINS = [  # of what stands below the word domain
    ("\n  a: flag\n  a: flag", ":3: domain.a must not be given twice. Remove one of the two; the first is in line 2."),
    (" {no: flag}", ':1: domain key must be quoted: YAML reads no as true or false. Write "no".'),
    (
        " {a: !!python/object/apply:os.system [ls]}",
        ":1: domain.a must not have the tag !!python/object/apply:os.system. Remove it.",
    ),
    (" {a: !cell flag}", ":1: domain.a must not have the tag !cell. Remove it."),
    ("\n  a:\n    integers: [9, 1]", ":3: domain.a.integers[0] must not be above high; got (9, 1). Swap the two."),
    (
        "\n  a:\n    low: 0\n    high: 10\n    step: 3",
        ":4: domain.a.high must be a whole number of steps above low; got 10. Use 9.",
    ),
    (
        "\n  a:\n    categories: [x]\n    otherwise: y",
        ":4: domain.a.otherwise must be one of the categories; got 'y'. Add 'y' to the list, or leave `otherwise` "
        "out to drop rows with unexpected values.",
    ),
    (
        "\n  'a[1]': flag",
        ":2: domain[\"a[1]\"] must be a text without brackets, backticks or line breaks; got 'a[1]'. Rename the "
        "column first.",
    ),
    (" {p: {grid: {rows: 2}}}", ":1: domain.p must have the key columns; got ['rows']. Add `columns: ..` to the grid."),
    (
        " {p: {grid: {rows: 2, columns: 3, low: [1, .inf], high: [2, 3]}}}",
        ":1: domain.p.grid.low[1] must be a finite number; got '.inf'. Write a number.",
    ),
    (" {p: {items: [a, b], first: 1}}", ":1: domain.p.first must not be given for items with names. Remove it."),
    (" {p: {items: 3, at_most: 4}}", ":1: domain.p.at_most must be from 1 to 3; got 4. Leave it out for no bound."),
]
OF_FAMILIES = [  # of what stands below the word secrets, in line 6
    (
        "\n  - within:\n      theta: -1\n      attributes: [age]",
        ":8: secrets[0].within.theta must be positive; got -1. Raise it.",
    ),
    (
        "\n  - everything\n  - attributes: [age,\n      disaese]",
        ":9: secrets[1].attributes[1] must be an attribute of the domain; got 'disaese'. Did you mean 'disease'?",
    ),
    (" attributes", ":6: secrets must say more; got 'attributes'. For instance {attributes: [disease]}."),
    (
        "\n  attributes: [age]\n  within: {age: 5}",
        ":7: secrets must have exactly one key in each entry; got ['attributes', 'within']. Start each on a line of "
        "its own with a dash.",
    ),
    (" evrything", ":6: secrets is not a word that may stand here; got 'evrything'. Did you mean 'everything'?"),
    (" []", ":6: secrets must protect something; got []. Write everything, or a list of families."),
    ("", ":6: secrets must protect something; got None. Write everything, or a list of families."),
    (
        "\n  - pairs:\n    - [{disease: hiv}, {disease: flu}]\n    - [{disease: hiv}, {disease: hiv}]",
        ":9: secrets[0].pairs[1] must differ; got a list. Remove the pair.",
    ),
    (
        "\n  - pairs:\n    - [{disease: hiv}, {disease: cold}]",
        ":8: secrets[0].pairs[0][1].disease must be one of the categories; got 'cold'. Known: flu, hiv.",
    ),
]
OF_ATTRIBUTES = [  # of an attribute a in line 2
    ("{integer: [0, 1]}", f" {ONE_KIND} got ['integer']. Did you mean 'integers'?"),
    ("text", " must say what the values are; got 'text'. Texts are listed: write {categories: [a, b, other]}."),
    (
        "{timestamps: [2020, 2024]}",
        f" {ONE_KIND} got ['timestamps']. Write {{times: [2024-01-01, 2024-12-31], step: hour}}.",
    ),
    ("{integers: [0, 9], otherwise: Clip}", ".otherwise must be a value or clip; got 'Clip'. Did you mean clip?"),
    (
        "{grid: {rows: 2, columns: 2, otherwise: clipped}}",
        ".grid.otherwise must be a value or clip; got 'clipped'. Did you mean clip?",
    ),
    (
        "sometimes",
        " must say what the values are; got 'sometimes'. For instance {integers: [0, 99]}, {decimals: [0, 1], step: "
        "0.1}, {dates: [2024-01-01, 2024-12-31]}, {times: [2024-01-01, 2024-12-31], step: hour}, {categories: [a, b]}, "
        "flag, {grid: ..} or {items: 1000}.",
    ),
    ("{low: 0, high: 9, stpe: 3}", ".stpe is not a key that may stand here. Did you mean 'step'?"),
]
OF_SECRETS = [  # of a family in line 7
    ("within: age 7", ".within must say the distance; got 'age 7'. Write within: {age: 7}."),
    ("within: [age]", ".within must say the distance; got ['age']. Write within: {age: 5}."),
    (
        "within: [age, smoker]",
        ".within must say the distance; got ['age', 'smoker']. Write within: {theta: 5, attributes: [age, smoker]}.",
    ),
    (
        "partition: age",
        ".partition must say how wide the blocks are, or list them; got 'age'. Write partition: {attribute: age, "
        "width: 10}, or blocks: [[a, b], ..] instead of width.",
    ),
    ("within: {age: far}", ".within.age must be a number; got 'far'. Write 5."),
    ("within: {age: 1e999999999}", ".within.age must be a number; got '1e999999999'. Write 5."),
    (
        "within: {age: 5, clicked: 2}",
        ".within must say one distance for all attributes together; got a dict. Write {theta: 5, attributes: [age, "
        "clicked]}, or one entry for each.",
    ),
    ("atributes: [age]", ".atributes is not a key that may stand here. Did you mean 'attributes'?"),
    ("values: {disease: hiv}", ".values.disease must be a list; got 'hiv'. Write [a, b, ..]."),
    (
        "values: {disease: [hiv, cold]}",
        ".values.disease[1] must be one of the categories; got 'cold'. Known: flu, hiv.",
    ),
    (
        "values: {clicked: [2]}",
        ".values.clicked must be 1 (has the item) or 0 (has it not); got 2. Write [1], [0] or [0, 1].",
    ),
    (
        "partition: {attribute: age}",
        ".partition must have either width or blocks; got ['attribute']. Give one of the two.",
    ),
    ("records: agee < 18", ".records must be an attribute of the domain; got 'agee'. Did you mean 'age'?"),
    (
        "records: \"__import__('os')\"",
        ".records must compare attributes with constants, joined by and, or, not; got \"__import__('os')\". For "
        "instance: age < 18 and disease in ['flu', 'hiv'], or clicked.has(7).",
    ),
]
OF_OTHERS = [  # of what stands below the secrets, from line 7
    ("known: [sise]", ":7: known[0] is not a word that may stand here; got 'sise'. Did you mean 'size'?"),
    ("known:\n  - marginal: [clicked]", ":8: known[0].marginal must not be a set of items; got 'clicked'. Use count."),
    ("presence: hidden", ":7: presence must be public or secret; got 'hidden'."),
    ("person: 5", ':7: person must be quoted: YAML reads 5 as a number. Write "5".'),
    ("person: ''", ":7: person must be the name of a column; got ''."),
    ("person: id\nper_person: 0", ":8: per_person must be at least 1; got 0."),
    ("person: id\nper_person: many", ":8: per_person must be a whole number; got 'many'."),
    ("person: id\norder: ''", ":8: order must be the name of a column; got ''."),
    ("person: id\nitem: [a]", ":8: item must be"),
    ("order: day", ":7: order needs the key person; got 'day'. Name the column"),
    (
        "per_person: 3",
        ":7: per_person needs the key person; got 3. Name the column that says whose row it is, for instance person: "
        "patient_id.",
    ),
    ("presence: yes", ":7: presence must be public or secret; got True."),
    ("name: 2020", ':7: name must be quoted: YAML reads 2020 as a number. Write "2020".'),
]
REFUSED = [
    *OF_FILES,
    *((f"domain:{text}\nsecrets: everything\n", sentence) for text, sentence in OF_DOMAINS),
    *((f"{DOMAIN}secrets:{text}\n", sentence) for text, sentence in OF_FAMILIES),
    *((f"domain:\n  a: {text}\nsecrets: everything\n", f":2: domain.a{rest}") for text, rest in OF_ATTRIBUTES),
    *((f"{DOMAIN}secrets:\n  - {text}\n", f":7: secrets[0]{rest}") for text, rest in OF_SECRETS),
    *((f"{DOMAIN}secrets: everything\n{text}\n", sentence) for text, sentence in OF_OTHERS),
]


@pytest.mark.one_in(16)
@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml_entries._LOADER], ids=["python", "c"])
@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_a_refusal_names_file_line_key_rule_value_and_fix(text, sentence, loader, monkeypatch):
    monkeypatch.setattr(yaml_entries, "_LOADER", loader)
    with pytest.raises(PolicyError) as refused:
        read_policy(text, file="clinic.yaml")
    assert str(refused.value).startswith(f"clinic.yaml{sentence}")
    assert "CANARY" not in str(refused.value)
    if sentence.endswith("."):
        assert sentence in str(refused.value)
    assert "yaml." not in str(refused.value).replace("clinic.yaml", "")


@pytest.mark.parametrize(
    ("written", "read_as", "number"),
    [
        *((word, "true or false", "") for word in ("no", "ON")),
        ("2020-01-01", "a date", ""),
        *((number, "another number", "") for number in ("01234", "12:30", "0x1F", "1_000")),
        ("1.5", "a fraction", ""),
        *((word, "nothing", "") for word in ("null", "~")),
        ("1e3", "a text, other readers as a number", " for the text, or 1000 for the number"),
        ("08", "a text, other readers as a number", " for the text, or 8 for the number"),
    ],
)
def test_what_yaml_would_change_in_a_list_of_categories_must_be_quoted(written, read_as, number):
    with pytest.raises(PolicyError) as refused:
        attribute(f"{{categories: [a, {written}]}}")
    sentence = f'must be quoted: YAML reads {written} as {read_as}. Write "{written}"{number}.'
    assert str(refused.value) == f"policy:1: domain.x.categories[1] {sentence}"
    assert attribute(f"{{categories: [a, '{written}']}}") == Categories(["a", written])


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ("1e3", "must be a whole number; got '1e3'. Write 1000."),
        ("1.5", "must be a whole number; got 1.5. Round it, or declare decimals: {decimals: [0, 1], step: 0.1}."),
        ("9.0", "must be a whole number; got 9.0. Write 9."),
        ("'9'", "must be a whole number; got '9'. Write 9."),
        ("010", "must be a decimal number without leading zeros: YAML reads 010 as 8. Write it out."),
        ("yes", "must be a whole number; got True. Write it without a fraction, a quote or an exponent."),
        ("9" * 5000, "must fit into 62 bits. Use a smaller number."),
        ("[]", "must be a whole number; got []. Write it without a fraction, a quote or an exponent."),
    ],
)
def test_a_whole_number_must_be_one(written, sentence):
    with pytest.raises(PolicyError) as refused:
        attribute(f"{{integers: [0, {written}]}}")
    assert str(refused.value) == f"policy:1: domain.x.integers[1] {sentence}"


def test_a_small_file_that_stands_for_billions_of_values_is_refused():
    lines = ["a: &k0 [x, x]"] + [f"b{i}: &k{i} [*k{i - 1}, *k{i - 1}]" for i in range(1, 36)]
    with pytest.raises(PolicyError, match="must not repeat anchors inside anchors"):
        read_policy("\n".join(lines))


def test_files_are_loaded_by_path_and_named_after_it(tmp_path):
    path = tmp_path / "ward.yaml"
    path.write_bytes(b"\xef\xbb\xbfdomain: {a: flag}\r\nsecrets: everything\r\n")
    assert load_policy(path).name == "ward"
    assert Policy.load(str(path)) == load_policy(path)
    policy = Policy(Domain({"é": Categories(["naïve", "😀"])}), secrets.everything(), name="ünï")
    policy.save(path)
    assert load_policy(path) == policy


def test_files_that_cannot_be_read_are_refused(tmp_path):
    missing = tmp_path / "no.yaml"
    with pytest.raises(PolicyError) as refused:
        load_policy(missing)
    assert str(refused.value) == f"{missing} must exist. Check the path, or draft one: `tacit init DATA`."
    with pytest.raises(PolicyError, match=r"must be a readable file \(is a directory\)"):
        load_policy(tmp_path)
    with pytest.raises(PolicyError, match=r"must be the path of a policy file, not a text"):
        load_policy("a\0b")
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"domain: {a: flag}\nname: caf\xe9\n")
    with pytest.raises(PolicyError) as refused:
        load_policy(path)
    assert str(refused.value) == "latin.yaml:2: the policy must be a text in UTF-8. Save the file as UTF-8."
    path.write_bytes(b"#" * 10_000_001)
    with pytest.raises(PolicyError, match="the policy must not be larger than 10 MB"):
        load_policy(path)


def test_no_refusal_carries_a_yaml_traceback():
    with pytest.raises(PolicyError) as refused:
        read_policy("domain: [")
    assert refused.value.__context__ is None
    assert refused.value.__cause__ is None


# ---- the schema -----------------------------------------------------------------------------------------------------

VALIDATOR = jsonschema.Draft202012Validator(policy_schema())

ACCEPTED = [
    CLINIC,
    "{domain: {x: flag}, secrets: everything}",
    "{domain: {x: {flag: {otherwise: false}}}, secrets: [everything], known: size}",
    "{domain: {x: {flag: , otherwise: true}}, secrets: [everything], known: []}",
    "{domain: {x: {integers: {low: 0, high: 9}}}, secrets: {within: {x: 5}}, known: }",
    "{domain: {x: {low: 0, high: 9}}, secrets: {within: {x: 2.5, metric: l2}}, presence: secret}",
    "{domain: {x: {low: 0, high: 9}}, secrets: {within: {x: 5/2}}, known: [{size: 5}]}",
    "{domain: {x: {low: 0, high: 9}}, secrets: {pairs: [[1, 2]]}}",
    "{domain: {x: {low: 0, high: 9}}, secrets: {partition: {attribute: x, blocks: [0..4, [5, 6]]}}}",
    "{domain: {x: {grid: {rows: 2, columns: 2}, otherwise: clip}}, secrets: {values: {x: [[0, 1]]}}}",
    "{domain: {x: {grid: {rows: 2, columns: 2}}}, secrets: {partition: {attribute: x, width: [1, 2]}}}",
    "{domain: {x: {items: [a, b], at_most: 1}}, secrets: {pairs: [[{x: [a]}, {x: []}]]}}",
    "{domain: {x: {items: 5, first: 1}}, secrets: {attributes: x}, known: [{count: x.has(1)}]}",
]
WRONG_FAMILIES = {
    "attributes": ["[]", "[x, x]", "[x], values: {x: [1]}"],
    "records": ["5"],
    "values": ["{x: 1}", "{}", "{x: []}"],
    "pairs": ["[]", "[[{x: 1}]]"],
    "partition": [
        f"{{attribute: x{rest}}}" for rest in ("", ", width: 0", ", width: 1, blocks: [[1]]", ", blocks: []")
    ],
    "within": [
        "{x: 0}",
        "{x: far}",
        *(f"{{theta: 5, attributes: [x], {rest}}}" for rest in ("metric: l65", "more: 1")),
    ],
}
WRONG_ATTRIBUTES = {
    "integers": ["[0]", "[0, 1.5]", "[0, 9], step: 0", "[0, 9], otherwise: clap"],
    "low": ["0"],
    "categories": ["[]", "[a, a]", "[1.5]", "[a], order: true"],
    "grid": ["{rows: 2}", "{rows: 2, columns: 2, of: [a]}"],
    "items": ["0", "[a], first: 1", "5, at_most: 0"],
    "flag": ["yes"],
}
REFUSED_BY_SHAPE = [
    "[]",
    "{}",
    "{domain: {x: flag}}",
    "{secrets: everything}",
    "{domain: {}, secrets: everything}",
    "{domain: [x], secrets: everything}",
    "{domain: {'x[1]': flag}, secrets: everything}",
    "{domain: {x: text}, secrets: everything}",
    *(
        f"{{domain: {{x: {{{word}: {rest}}}}}, secrets: everything}}"
        for word, wrong in WRONG_ATTRIBUTES.items()
        for rest in wrong
    ),
    *(
        f"{{domain: {{x: flag}}, secrets: {secret}}}"
        for secret in ("[]", "", "evrything", "attributes", "[[everything]]")
    ),
    *(
        f"{{domain: {{x: flag}}, secrets: {{{word}: {rest}}}}}"
        for word, wrong in WRONG_FAMILIES.items()
        for rest in wrong
    ),
    *(
        f"{{domain: {{x: flag}}, secrets: everything, {more}}}"
        for more in ("secret: everything", "presence: hidden", "known: [sise]", "known: [{size: -1}]", "name: 5")
    ),
]


def test_the_schema_is_a_schema_with_descriptions():
    jsonschema.Draft202012Validator.check_schema(policy_schema())
    assert json.loads(json.dumps(policy_schema())) == policy_schema()
    assert all("description" in part for part in policy_schema()["properties"].values())


@pytest.mark.parametrize("text", ACCEPTED)
def test_the_schema_accepts_what_the_reader_accepts(text):
    read_policy(text)
    VALIDATOR.validate(yaml.safe_load(text))


@pytest.mark.parametrize("text", REFUSED_BY_SHAPE)
def test_the_schema_refuses_what_the_reader_refuses(text):
    with pytest.raises(PolicyError):
        read_policy(text)
    assert not VALIDATOR.is_valid(yaml.safe_load(text))


@pytest.mark.parametrize("name", ["d.csv", "D.CSV", "d.parquet"])
def test_a_table_is_refused_by_its_name_before_it_is_read(name, tmp_path):
    (tmp_path / name).write_text("domain: CANARY\n", encoding="utf-8")
    with pytest.raises(PolicyError) as refused:
        load_policy(tmp_path / name)
    assert str(refused.value) == (
        f"{tmp_path / name} looks like a table, not a policy. `tacit init {tmp_path / name}` drafts a policy for it."
    )


def test_a_table_under_another_name_is_not_repeated(tmp_path):
    (tmp_path / "d.yaml").write_text("name,age\nCANARY,3\nCANARY,4\n", encoding="utf-8")
    with pytest.raises(PolicyError, match="this looks like a table, not a policy") as refused:
        load_policy(tmp_path / "d.yaml")
    assert "CANARY" not in str(refused.value)
    assert "name,age" not in str(refused.value)


def refusal_of(domain="{dates: [2023-01, 2024-12], by: month}", secrets="everything"):
    with pytest.raises(PolicyError) as refused:
        read_policy(f"domain:\n  x: {domain}\nsecrets: {secrets}\n")
    return str(refused.value)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "{integers: [0.5, 10]}",
            "domain.x.integers[0] must be a whole number; got 0.5. Round it, or declare decimals:",
        ),
        ("{integers: [0, 10], step: 0.5}", "domain.x.step must be a whole number; got 0.5. Round it, or declare dec"),
        ("{integers: [0, 10], otherwise: 50}", "domain.x.otherwise must be a whole number from 0 to 10; got 50."),
        ("{integers: [0, 10], step: 3}", "domain.x.integers[1] must be a whole number of steps above low; got 10."),
        ("{decimals: [42, 35], step: 0.1}", "domain.x.decimals[0] must not be above high"),
        ("{decimals: [0, 10], step: 0.3}", "domain.x.decimals[1] must be a whole number of steps above low; got 10."),
        ("{decimals: [0, 10], step: 0}", "domain.x.step must be positive"),
        ("{decimals: [35, 42], step: 0.1, otherwise: 50}", "domain.x.otherwise must be a number from 35 to 42"),
        ("{decimals: [0, 1000000000000], step: 0.00001}", "domain.x.decimals must have at most 15 digits"),
        ("{dates: [2024-12-31, 2024-01-01]}", "domain.x.dates must not end before it starts"),
        ("{dates: [2024-01-01, 2024-12-31], otherwise: 2025-01-01}", "domain.x.otherwise must be a day from"),
        ("{categories: [1, 2, true]}", "domain.x.categories must not repeat a value; got True"),
        ("{dates: 2024}", "domain.x.dates must be [from, to]; got 2024"),
        ("{dates: [2024-01-01]}", "domain.x.dates must have two parts"),
        (
            "{dates: [2024-01, 2024-12-31]}",
            "domain.x.dates[0] must be a date such as 2024-03-01; got '2024-01'. Write year, "
            "month and day, or say `by: month`.",
        ),
        ("{dates: [2024-01-01, soon]}", "domain.x.dates[1] must be a date such as 2024-03-01; got 'soon'"),
        ("{dates: [2024-01-01, 2024-02-01], by: moon}", "domain.x.by must be day, week, month, quarter or year"),
        ("{decimals: [0, 1]}", "domain.x must be [low, high], with a step"),
        ("{decimals: [0, 1], step: '0,1'}", "domain.x.step must be a finite number"),
        ("date", "domain.x must say what the values are; got 'date'. Write {dates: [2024-01-01, 2024-12-31]}."),
        ("float", "domain.x must say what the values are; got 'float'. Write {decimals: [0, 1], step: 0.1}."),
    ],
)
def test_a_refusal_of_an_attribute_names_the_key_that_is_wrong(said, sentence):
    assert f":2: {sentence}" in refusal_of(said)


@pytest.mark.parametrize(
    ("by", "written", "sentence"),
    [
        ("day", "2024-02-30", "There is no such day: 2024-02 has 29."),
        ("day", "2023-13-01", "There is no such day."),
        ("day", "2024-04-00", "There is no such day."),
        ("day", "0000-01-01", "There is no such day."),
        ("week", "2024-W53", "There is no such week: 2024 has 52."),
        ("week", "2020-W54", "There is no such week: 2020 has 53."),
        ("week", "2024-W00", "There is no such week."),
        ("month", "2024-13", "There is no such month."),
        ("month", "2024-02-30", "There is no such day: 2024-02 has 29."),
        ("year", "0000", "There is no such year."),
        ("month", "2024", "Write year, month and day."),
    ],
)
def test_dates_that_are_in_no_calendar_are_called_so(by, written, sentence):
    assert refusal_of(f'{{dates: ["{written}", 2030-12-31], by: {by}}}').endswith(sentence)
    compared = refusal_of(f"{{dates: [2001-01-01, 2030-12-31], by: {by}}}", f"{{records: \"x >= '{written}'\"}}")
    is_like_it = sentence.startswith(f"There is no such {by}")
    assert compared.endswith(sentence if is_like_it else "In quotes, for instance '2024-03'.")


@pytest.mark.parametrize("written", ["2024-03", "2024-12", "2024-03-01", "2024-12-11", "2024-Q1", "2024-W10"])
def test_a_date_without_quotes_in_a_predicate_is_to_be_quoted(written):
    assert refusal_of(secrets=f'{{records: "x >= {written}"}}').endswith(f"Put dates in quotes: '{written}'.")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("{within: {x: 2 months}}", "got '2 months'. Write the number of months alone, for instance 2."),
        ("{within: {x: 3 weeks}}", "got '3 weeks'. Write the number of months alone, for instance 2."),
        ("{within: {theta: 7 days, attributes: [x]}}", "got '7 days'. Write 7."),
        (
            "{partition: {attribute: x, width: quarter}}",
            "width must be a number of months; got 'quarter'. Write the number alone, for instance 2. Blocks of "
            "different lengths, such as months, are listed: blocks: [2023-01..2023-12, 2024-01..2024-12].",
        ),
        ("{partition: {attribute: x, width: 0.5}}", "width must be a number of months; got 0.5. Write"),
    ],
)
def test_a_distance_or_width_of_dates_is_a_number(said, sentence):
    assert sentence in refusal_of(secrets=said)


def test_the_blocks_that_a_refusal_suggests_can_be_written():
    said = refusal_of(secrets="{partition: {attribute: x, width: quarter}}")
    blocks = said[said.index("[") : said.rindex("]") + 1]
    text = "domain:\n  x: {dates: [2023-01, 2024-12], by: month}\n"
    text += f"secrets: {{partition: {{attribute: x, blocks: {blocks}}}}}\n"
    assert read_policy(text).has_edge({"x": "2023-01"}, {"x": "2023-12"})
