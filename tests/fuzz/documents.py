"""Valid documents of every kind, and ways to break them: by letters, by lines, by values and by whole branches."""

import copy
from typing import Any

import yaml
from hypothesis import strategies as st

CANARY = "CANARY-7f3a"

POLICY = """\
name: clinic
domain:
  age: {integers: [0, 99], otherwise: clip}
  disease: {categories: [flu, hiv, none]}
  ward: {categories: [north, south], ordered: true, otherwise: north}
  smokes: flag
  place: {grid: {rows: 20, columns: 30, of: [lat, lon]}}
  seen: {items: [gym, cafe, park], at_most: 2}
secrets:
  - within: {age: 5}
  - values: {disease: [hiv]}
  - partition: {attribute: ward, blocks: [[north], [south]]}
  - attributes: [smokes]
  - records: "disease == 'hiv' and age < 30"
  - pairs: [[{disease: hiv}, {disease: flu}]]
known:
  - size: 300
  - count: "age < 20"
presence: public
"""
JOB = """\
name: clinic
policy:
  domain:
    age: {integers: [0, 99]}
    disease: {categories: [flu, hiv, none]}
  secrets:
    - within: {age: 5}
rows: clinic.csv
budget: 10
dataset: clinic
out: results
releases:
  - {name: diseases, query: {histogram: [disease]}, epsilon: 0.1}
  - {name: hiv, query: {count: "disease == 'hiv'"}, epsilon: 0.3}
  - {name: ages, query: {cumulative: {attribute: age, where: "age < 50"}}, epsilon: 1/3, consistent: true}
  - {name: spans, query: {ranges: {attribute: age, ranges: [[0, 9], [10, 19]]}}, epsilon: 0.2}
  - {name: pairs, query: {marginals: {ways: 2}}, epsilon: 0.4, nonnegative: true}
  - {name: sum, query: {total: age}, epsilon: 0.5}
  - {name: few, query: {below: {where: "age > 90", threshold: 5}}, epsilon: 0.5}
"""
TOWN = "{domain: {visited: {items: [gym, cafe, park]}}, secrets: {values: {visited: [1]}}}"
BESIDE_ITS_POLICY = """\
name: town
policy: town.policy.yaml
item: place
person: who
time: when
start: "2024-03-01"
every: 1 day
batches: events
monitors:
  - {name: gym, place: gym, threshold: 5, epsilon: 0.5, window: 14, visits_per_person: 2}
  - {name: noon, map: all, at: "2024-03-02T12:00", every: 1 hour, threshold: 10, epsilon: 1}
  - {name: some, map: [gym, park], threshold: 10, epsilon: 1/3}
"""
MONITOR = BESIDE_ITS_POLICY.replace("town.policy.yaml", TOWN)
WHERE = (
    "age < 18 and disease == 'flu'",
    "disease in ['flu', 'hiv'] or not (age >= 3)",
    "3 <= age <= 9",
    "seen.has('gym') and place.row > 3",
    "`age` != 4 and smokes",
)

# what stands in for a value, whatever was there: of other types, too large, too small, too long, not there
ODD: list[Any] = [
    None, True, -1, 0, 2, 10**9, 10**19, 10**400, 0.5, -0.0, float("inf"), float("nan"), 1e308, "", " ", "a", "age",
    "all", "yes", "1/0", "1e999999999", "../x", "/dev/full", "\0", "\n", "\u202e", "\ud83d\ude00", "a" * 300,
    "%s{}", "=cmd()", "<script>", "-", "--help", [], {}, [[]], [None], [[1]], {"a": 1}, {"age": {}}, ["age", "age"],
    {"integers": [0, 10**18]}, {"items": 10**7}, {"grid": {"rows": 10**6, "columns": 10**6, "of": ["a", "b"]}},
    {"within": {"age": 10**30}}, "everything",
    "age in [" + ", ".join(map(str, range(100))) + "]", "not " * 300 + "smokes", "(" * 200 + "age < 3" + ")" * 200,
]  # fmt: skip
PIECES = [
    ":", "-", "  ", "\n", "\t", "[", "]", "{", "}", ",", "'", '"', "#", "&a", "*a", "<<: *a",
    "!!python/object:os.system", "!!binary", "|", ">", "%", "@", "`", "? ",
    "---\n", "...\n", "0x", "1e", ".inf", ".nan", "~", "yes", "null",
    "2024-01-01", "1:30", "\0", "\ufeff", "\u2028", "\x85", "é", "é" * 50, "<", ">=", "==", "=", "and", "or", "not",
    "in", "lambda x: x", "__import__('os')", ".has(", ".row", "9" * 50, "age", "disease", "'flu'", "hiv", "None",
    "True", "if", "else", "*", "**", "//", "\\", "\\N{BEL}", "f'{age}'", "b'a'", "1j", "...", ":=", "await",
]  # fmt: skip


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(node, dict):
        for key, value in node.items():
            found += _places(value, (*path, key))
    elif isinstance(node, list):
        for place, value in enumerate(node):
            found += _places(value, (*path, place))
    return found


@st.composite
def broken_texts(draw: st.DrawFn, text: str) -> str:
    """Return a text with pieces of it cut out, doubled, exchanged, or put in from elsewhere."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        put = draw(st.sampled_from(["", text[start:end] * 2, *PIECES]) | st.text(max_size=3))
        text = text[:start] + put + text[end:]
    return text


@st.composite
def broken_trees(draw: st.DrawFn, text: str) -> str:
    """Return a document in which values or keys are replaced, moved, doubled or gone; it is still YAML."""
    tree = yaml.safe_load(text)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(_places(tree)))
        if not path:
            continue
        node = tree
        for step in path[:-1]:
            node = node[step]
        action = draw(st.sampled_from(["odd", "odd", "gone", "moved", "key"]))
        if action == "odd":
            node[path[-1]] = copy.deepcopy(draw(st.sampled_from(ODD)))
        elif action == "gone":
            del node[path[-1]]
        elif action == "moved":
            other: Any = tree
            for step in draw(st.sampled_from(_places(tree))):
                other = other[step]
            node[path[-1]] = copy.deepcopy(other)
        elif isinstance(node, dict):
            odd = draw(st.sampled_from([key for key in ODD if not isinstance(key, list | dict)]))
            node[odd] = node.pop(path[-1])
    return str(yaml.safe_dump(tree, allow_unicode=True))


def documents(text: str) -> st.SearchStrategy[str]:
    """Return broken versions of a valid document."""
    return broken_texts(text) | broken_trees(text)


def predicates() -> st.SearchStrategy[str]:
    """Return predicates by their grammar, with names and constants that fit or not, and broken texts of valid ones."""
    name = st.sampled_from(
        ["age", "disease", "ward", "smokes", "place.row", "place", "seen", "`age`", "nothing", "`a b`"]
    )
    constant = st.sampled_from(["3", "-1", "2.5", "1e999", "'flu'", "'x'", "True", "[1, 2]", "['flu', 'hiv']", "10**9"])
    compare = st.builds(
        "{} {} {}".format, name, st.sampled_from(["<", "<=", "==", "!=", ">", "in", "not in", "is"]), constant
    )
    atom = compare | name | st.just("seen.has('gym')") | st.just("3 <= age < 9")
    tree = st.recursive(
        atom,
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or", "&", "if"]), inner)
            | st.builds("not {}".format, inner)
        ),
        max_leaves=12,
    )
    return tree | st.one_of([broken_texts(text) for text in WHERE])
