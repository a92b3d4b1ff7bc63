"""`tacit demo`: the first thing that anybody runs."""

import re
import shlex
import shutil
import time
from pathlib import Path

from cli.shell import TACIT, inside, tacit
from tacit import Policy
from tacit.cli.jobs import NO_LEDGER, ONE_ROW_EACH


def test_the_demo_leaves_a_policy_a_job_and_a_report(tmp_path: Path) -> None:
    start = time.perf_counter()
    outcome = tacit(tmp_path, "demo")
    print(f"tacit demo took {time.perf_counter() - start:.1f} s")  # noqa: T201 - to be seen with -s, not asserted
    assert outcome.code == 0
    one_row, no_ledger, check = outcome.err.splitlines()
    assert (one_row, no_ledger) == (ONE_ROW_EACH, NO_LEDGER)
    assert re.fullmatch(r".* look first: `.*tacit check tacit-demo/adult\.policy\.yaml --rows .*adult\.parquet`", check)
    assert f"The report is {Path('tacit-demo', 'report', 'report.html')}" in outcome.out
    assert "Try next:" in outcome.out
    assert "exact" in outcome.out
    demo = tmp_path / "tacit-demo"
    assert [file.name for file in tmp_path.iterdir()] == ["tacit-demo"]
    assert (demo / "report" / "report.html").stat().st_size > 10_000
    assert Policy.load(demo / "adult.policy.yaml").name == "adult"
    # what the demo says to try next works from here, whether or not `tacit` is on the PATH
    check = next(line for line in outcome.out.splitlines() if "tacit check" in line or "tacit' check" in line)
    words = shlex.split(check.partition("  what")[0])
    assert words[0] == ("tacit" if shutil.which("tacit") else str(TACIT))
    assert inside(tmp_path, *words[1:]).code == 0
    plan = inside(tmp_path, "plan", str(Path("tacit-demo", "adult.job.yaml")), "--json").document
    assert plan["fits"]
    gains = {
        release["name"]: release["plain_dp_rmse"] / (release["expected_rmse"] or 1e-9) for release in plan["releases"]
    }
    assert max(gains.values()) > 1e6  # an exact one
    assert sum(gain > 2 for gain in gains.values()) >= 5
    kinds = {next(iter(release["query"])) for release in plan["releases"]}
    assert kinds == {"count", "histogram", "cumulative", "ranges", "total", "marginals"}


def test_the_demo_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "tacit-demo").mkdir()
    (tmp_path / "tacit-demo" / "mine.txt").write_text("mine", encoding="utf-8")
    assert "must be a new or empty folder" in inside(tmp_path, "demo", "--out", "tacit-demo").refusal()
    outcome = inside(tmp_path, "demo", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    said = outcome.document
    assert said["folder"] == str(Path("tacit-demo-2", "report"))
    assert (tmp_path / said["report"]).is_file()
    assert (tmp_path / said["policy_file"]).is_file()
    assert (tmp_path / said["job_file"]).is_file()
    assert [file.name for file in (tmp_path / "tacit-demo").iterdir()] == ["mine.txt"]


def test_no_row_of_the_demo_is_dropped() -> None:
    """Every category of the data is in the policy: the three levels of education add up to all 48,842 people."""
    import duckdb

    import tacit as tc

    data = Path(tc.__file__).parent / "data"
    policy = tc.Policy.load(data / "adult.policy.yaml")
    for name, attribute in policy.domain.attributes:
        found = {row[0] for row in duckdb.sql(f"SELECT DISTINCT {name} FROM '{data / 'adult.parquet'}'").fetchall()}
        if isinstance(attribute, tc.Categories):
            assert found <= set(attribute.values)
        elif name != "capital_loss":  # that one is rounded down on purpose
            assert isinstance(attribute, tc.Integers)
            assert attribute.low <= min(found) <= max(found) <= attribute.high


def test_the_data_say_where_they_come_from() -> None:
    import tacit

    text = (Path(tacit.__file__).parent / "data" / "README.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "UCI Machine Learning Repository" in text
    assert "48,842" in text
