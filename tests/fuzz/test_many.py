"""A million documents with mistakes: policies, jobs, cases, monitors and tables are read and planned, or refused.

`make test` reads a few hundred of each kind, `make audit` 200,000: small documents, most of which are refused by the
first line that is wrong, at less than a millisecond each. Whatever fails says its number: `broken(number, ..)` makes it
again.
"""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fuzz.harness import broken, refusals
from tacit.jobs.job_file import read_job, read_job_or_case
from tacit.jobs.job_run import plan_job
from tacit.jobs.monitor_file import read_monitor_file
from tacit.jobs.table_file import read_table_job
from tacit.plan.questions import count
from tacit.plan.sensitivity.steps import largest_step
from tacit.policy.policy_file import read_policy

FEW = 150  # of each kind
PART = 20_000  # that one worker takes at a time; how many of these follows from what one document takes
MOST_MEMORY = 4 << 30  # bytes of addresses beside what the process has

POLICIES = (
    "domain: {age: {integers: [0, 99], otherwise: clip}, ill: {categories: [flu, hiv, none]}}\n"
    "secrets: {attributes: [ill]}\nknown: [size]\n",
    "name: town\ndomain:\n  place: {grid: {rows: 3, columns: 4, of: [x, y]}}\n"
    "  seen: {items: [gym, cafe], at_most: 1}\nsecrets:\n  - within: {place: 2, metric: l1}\n"
    "  - values: {seen: [1]}\npresence: secret\nperson: who\nper_person: 2\n",
    "domain: {day: {dates: [2024-01-01, 2024-12-31], by: week}, cost: {decimals: [0, 9], step: 0.5}, lit: flag}\n"
    'secrets:\n  - partition: {attribute: day, width: 4}\n  - records: "cost < 3 and lit"\n'
    "  - pairs: [[{lit: true}, {lit: false}]]\n",
    'domain: {v: {integers: [1, 5]}}\nsecrets: everything\nknown: [{count: "v < 3"}, {marginal: [v]}]\n',
)
JOBS = (
    "policy: {domain: {age: {integers: [0, 9]}, ill: {categories: [flu, hiv]}}, secrets: {attributes: [ill]}}\n"
    "rows: people.csv\nbudget: 2\nreleases:\n  - {name: a, query: {histogram: [ill]}, epsilon: 0.1}\n",
    "policy: town.yaml\nrows: people.csv\nbudget: 3\nout: results\nreleases:\n"
    '  - {name: n, query: {count: "age < 3"}, epsilon: 1/3}\n'
    "  - {name: t, query: {total: age}, epsilon: 1, nonnegative: true}\n",
    "policy: town.yaml\nrows: people.csv\nledger: l.db\nbudget: 3\ndataset: d\nreleases:\n"
    "  - {name: c, query: {cumulative: {attribute: age, where: \"ill == 'flu'\"}}, epsilon: 2, consistent: true}\n",
    "policy: town.yaml\nrows: people.csv\nbudget: 3\nreleases:\n"
    "  - {name: r, query: {ranges: {attribute: age, ranges: [[0, 4], [5, 9]]}}, epsilon: 0.5}\n"
    '  - {name: b, query: {below: {where: "age > 3", threshold: 5}}, epsilon: 0.5}\n'
    "  - {name: m, query: {mean: {attribute: age, by: ill}}, epsilon: 0.5}\n",
)
CASES = (
    "policy: {domain: {a: {categories: [late, early]}, b: {categories: [late, early]}}, "
    "secrets: {values: {a: [late]}}}\n"
    "rows: people.csv\nledger: c.db\nbudget: 5\n"
    "dependence: {table: {names: [a, b], cells: [[late, early, 0.2], [late, late, 0.1], [early, early, 0.2], "
    "[early, late, 0.5]]}}\nsensitive: {a: [late]}\napplications: {light: [a], space: [b]}\n"
    "coalitions: {light: [light], both: [light, space]}\nlimit: {light: 0.1, both: 0.2}\n"
    "posterior: 0.9\ncap: 3\nreleases:\n"
    "  - {name: s, query: {true_records: {columns: [a], key: [room], application: light}}, epsilon: planned}\n",
    "policy: {domain: {a: {categories: [x, y]}, b: {categories: [x, y]}}, secrets: {values: {a: [x], b: [x]}}}\n"
    "dependence: {counts: {file: counts.csv, attributes: [a, b], smoothing: 0.05}}\nsensitive: {a: [x]}\n"
    "applications: {one: [b]}\ncoalitions: {one: [one]}\nlimit: {a: 0.15}\nown: false\ncap: 3\nrows: people.csv\n"
    "budget: 6\nreleases:\n"
    "  - {name: s, query: {true_records: {columns: [b], key: [room], application: one}}, epsilon: planned}\n",
)
MONITORS = (
    "name: town\npolicy: {domain: {visited: {items: [gym, cafe, park]}}, secrets: {values: {visited: [1]}}}\n"
    'item: place\nperson: who\ntime: when\nstart: "2024-03-01"\nevery: 1 day\nbatches: events\nmonitors:\n'
    "  - {name: gym, place: gym, threshold: 5, epsilon: 0.5, window: 14, visits_per_person: 2}\n"
    '  - {name: noon, map: all, at: "2024-03-02T12:00", every: 1 hour, threshold: 10, epsilon: 1}\n',
    "policy: venues.yaml\nitem: place\nperson: who\ntime: when\nstart: 2024-03-01\nevery: 6 hours\nbatches: events\n"
    "state: kept\nmonitors:\n  - {name: some, map: [gym, park], threshold: 10, epsilon: 1/3}\n",
)
TABLES = (
    "policy: {domain: {ward: {categories: [n, s]}, ill: {categories: [flu, hiv, none]}, age: {integers: [0, 90]}}, "
    "secrets: {attributes: [ill]}}\nrows: people.csv\nbudget: 2\n"
    "table: {public: [ward], sensitive: ill, retention: 0.5, lam: 0.3, delta: 0.3, method: masked}\n",
    "policy: {domain: {ward: {categories: [n, s]}, ill: {categories: [flu, hiv]}, age: {integers: [0, 90]}}, "
    "secrets: {attributes: [ill]}}\nrows: people.csv\nbudget: 2\n"
    "table: {public: [ward, age], sensitive: [ill], rho: [0.1, 0.5], groups: {age: {0..17: child, 18..90: adult}}}\n",
    "policy: town.yaml\nrows: people.csv\nbudget: 2\ntable:\n  public: [age]\n  sensitive: ill\n  epsilon: 1\n"
    "  lam: 0.2\n  delta: 0.4\n  criterion: chernoff\n  largest_frequency: 0.9\n  again: true\n",
)
WORDS = (
    "", "~", "null", "true", "no", "0", "-1", "1", "2", "01", "1e3", "1_0", "0x1f", "1.5", "0.5", ".inf", "-.inf",
    ".nan", "1e400", "1e-300", "1e-12", "9" * 30, "9" * 400, "-" + "9" * 30, "0." + "9" * 31, "9223372036854775808",
    "1/0", "1/3", "1/" + "9" * 70, "'", '"', "'a", "[", "]", "[]", "{}", "{", "}", "[[]]", "{a: b}", "*a", "&a x",
    "!x", "!!python/object:os.system x", "<<: {a: 1}", "? x", "- x", "|", ">", "---", "...", "#", "@", "`", "\t",
    "\0", "\x07", "\u202e", "\ufeff", "é", "\U0001f600", "a" * 300, "a" * 5000, "../../x", "/etc/passwd", "a/b", "%s",
    "${HOME}", "2024-05-01", "12:30:45", "everything", "attributes", "within", "values", "records", "pairs",
    "partition", "taking_part", "age", "ill", "flu", "hiv", "ward", "place", "seen", "v", "a", "b", "late", "clip",
    "otherwise", "integers", "categories", "items", "grid", "flag", "dates", "decimals", "step", "ordered", "at_most",
    "first", "metric", "linf", "l1", "l2", "width", "blocks", "0..17", "17..0", "size", "marginal", "count",
    "histogram", "cumulative", "ranges", "all", "total", "top_k", "above", "below", "mean", "median", "quantiles",
    "clusters", "rectangles", "true_records", "marginals", "threshold", "where", "ways", "planned", "network",
    "counts", "smoothing", "posterior", "own", "cap", "coalitions", "light", "application", "key", "retention", "lam",
    "delta", "rho", "[0.1, 0.5]", "method", "best", "sample", "masked", "largest_frequency", "groups", "again",
    "secret", "[0, 1000000000]", "[0, 4611686018427387903]", "{integers: [0, 10000000000], otherwise: clip}",
    "{items: 100000000}", "{items: 2000000000}", "{grid: {rows: 100000, columns: 100000}}",
    "{integers: [0, 99999999]}", "{decimals: [0, 1], step: 1e-9}", "{dates: [2010-01-01, 2039-12-31], by: week}",
    "{marginals: {ways: 3}}", "{ranges: {attribute: age, ranges: all}}",
    '{count: "age < 18 and (age > 3 or not age == 7)"}', "{median: age}", "{quantiles: {attribute: age, at: [0.5]}}",
    "{clusters: {attributes: [age], k: 3}}", "{mean: {attribute: age, by: ill}}", "{histogram: [age, ill]}",
    "0 <= age <= 64", "age in [1, 2, 3]", "[[late, early, 0.2]]", "{late: 0.5}", "1 day", "2 weeks", "1 second",
)  # fmt: skip


def policies(_: Path, text: str) -> None:
    """Read it, say it in words, and read what it writes."""
    policy = read_policy(text)
    policy.describe()
    assert read_policy(policy.to_yaml()) == policy
    largest_step(count(), policy)


def jobs(file: Path, text: str) -> None:
    """Read it, and plan what it asks for."""
    plan_job(read_job(_written(file, text)))


def cases(file: Path, text: str) -> None:
    """Read it, and plan its job under its limits."""
    plan_job(read_job_or_case(_written(file, text)))


def monitors(file: Path, text: str) -> None:
    """Read it."""
    read_monitor_file(_written(file, text))


def tables(file: Path, text: str) -> None:
    """Read it, which plans the table."""
    str(read_table_job(_written(file, text)).plan)


def _written(file: Path, text: str) -> Path:
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    return file


KINDS: dict[Callable[[Path, str], None], tuple[str, ...]] = {
    policies: POLICIES,
    jobs: JOBS,
    cases: CASES,
    monitors: MONITORS,
    tables: TABLES,
}
PARTS = {policies: 18, jobs: 10, cases: 1, monitors: 7, tables: 14}  # a million in all


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files that the documents name."""
    made = tmp_path_factory.mktemp("many")
    (made / "people.csv").write_text("age,ill,ward,a,b,room\n1,flu,n,late,early,7\n")
    (made / "counts.csv").write_text("a,b\nx,y\nx,x\ny,y\n")
    (made / "town.yaml").write_text(
        "domain: {age: {integers: [0, 9]}, ill: {categories: [flu, hiv]}}\nsecrets: {attributes: [ill]}\n"
    )
    (made / "venues.yaml").write_text("domain: {venue: {items: [gym, cafe, park]}}\nsecrets: {values: {venue: [1]}}\n")
    (made / "events").mkdir()
    return made


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Let what asks for gigabytes fail, as it would on a small machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MOST_MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def check(read: Callable[[Path, str], None], folder: Path, numbers: range) -> None:
    texts, file = KINDS[read], folder / f"broken-{os.getpid()}.yaml"
    for number in numbers:
        text = broken(number, texts, WORDS)
        try:
            with refusals():
                read(file, text)
        except BaseException as fault:
            fault.add_note(f"{read.__name__} {number}:\n{text[:2000]}")
            raise


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("read", KINDS)
def test_some_broken_documents(folder, read):
    check(read, folder, range(FEW))


@pytest.mark.slow
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(("read", "part"), [(read, part) for read, parts in PARTS.items() for part in range(parts)])
def test_a_million_broken_documents(folder, read, part):
    check(read, folder, range(FEW + part * PART, FEW + (part + 1) * PART))


@pytest.mark.parametrize("read", KINDS)
def test_the_documents_are_valid_before_they_are_broken(folder, read):
    for text in KINDS[read]:
        read(folder / "valid.yaml", text)
