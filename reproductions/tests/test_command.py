"""`tacit reproduce` makes up data where there are none, refuses what is missing, writes whole files; `tacit bench`."""

import ast
import json
import os
import shutil
from dataclasses import replace
from fractions import Fraction
from operator import eq, ge, gt, le, lt
from pathlib import Path

import pytest

from cli.shell import inside
from tacit.cli import main
from tacit.cli.reproduce import Benchmark
from tacit_reproductions.command import BENCHMARKS
from tacit_reproductions.document_001 import figures as figures_001
from tacit_reproductions.document_002.figures import QUICK
from tacit_reproductions.document_003 import figures as figures_003

COMPARED = {"below": lt, "at most": le, "is": eq, "at least": ge, "above": gt}


def assert_every_verdict_is_carried(claims):
    """The verdict of each claim follows from its own numbers, reckoned here once more; or it says why there is none."""
    for claim in claims:
        assert all(claim[name] for name in ("figure", "what", "run", "claim", "ours")), claim
        assert "|" not in str(claim)  # it would break the table of the page
        met = []
        for check in claim["checks"]:
            limits = check["limits"] * (len(check["found"]) if len(check["limits"]) == 1 else 1)
            met += [COMPARED[check["relation"]](*pair) for pair in zip(check["found"], limits, strict=True)]
        assert bool(met) != bool(claim["unjudged"]), claim
        word = "yes" if all(met) else "partly" if any(met) else "no"
        assert claim["holds"] == (word if met else "not judged"), claim


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)


FEWER = replace(  # the same figures, from fewer draws and of fewer lists
    QUICK,
    grid=replace(QUICK.grid, epsilons=QUICK.grid.goal_epsilons, lengths=QUICK.grid.goal_lengths),
    runs=2,
    baseline_runs=8,
    map_runs=2,
    decisions=10**5,
    samples=4_000,
)


@pytest.fixture(scope="module", params=[FEWER, pytest.param(QUICK, marks=pytest.mark.slow)], ids=["fewer", "quick"])
def made_up(request, tmp_path_factory):
    """Run the whole command once, in a folder without data sets."""
    folder = tmp_path_factory.mktemp("empty") / "inside"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TACIT_DATA", raising=False)
        patch.setattr("tacit_reproductions.document_002.figures.QUICK", request.param)
        return folder, inside(folder, "reproduce", "002", "--quick", "--json", "--output", "out")


def test_quick_goes_on_without_data_and_says_so(made_up):
    _, done = made_up
    assert done.code == 0, done
    assert "made up" in done.document["how"][0]
    assert done.document["quick"] is True


def test_every_figure_has_a_claim_a_number_and_a_verdict(made_up):
    claims = made_up[1].document["claims"]
    figures = " ".join(claim["figure"] for claim in claims)
    assert all(number in figures for number in "1234567")
    assert all(f"Theorem {number}" in figures for number in (3, 8, 9, 12, 13, 14, 15))
    algorithms = [claim["run"] for claim in claims if claim["figure"].startswith(("2,", "3,"))]
    assert all("repaired" in run for run in algorithms)
    assert_every_verdict_is_carried(claims)


def test_every_cell_has_its_standard_error(made_up):
    document = made_up[1].document
    assert len(document["cells"]) == 4
    for cell in document["cells"]:
        for goal in document["goals"]:
            assert set(cell[goal["key"]]) == {"value", "standard_error"}
    assert len(document["verdicts"]) == len(document["goals"])


def test_page_and_charts_are_written(made_up):
    folder, done = made_up
    files = sorted(file.name for file in (folder / "out").iterdir())
    assert sorted(name.rsplit("/")[-1] for name in done.document["files"]) == files
    assert "reproduced-002.md" in files
    for name in done.document["charts"]:
        assert (folder / "out" / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg")
        assert (folder / "out" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "out" / "reproduced-002.md").read_text(encoding="utf-8")
    assert "| figure | what | run on | the paper's claim | our number | holds? |" in page
    assert all(claim["ours"] in page for claim in done.document["claims"])


FEW_RUNS = replace(  # the same figures of document 003, from fewer draws
    figures_003.QUICK,
    ranges=replace(figures_003.QUICK.ranges, epsilons=(Fraction(1),), ranges=1_000, runs=1, baseline_runs=3),
    thetas=(1, 10),
    distances=(5,),
    clusters=replace(figures_003.QUICK.clusters, runs=2, runs_on_many=2, our_epsilons=()),
)


@pytest.fixture(
    scope="module", params=[FEW_RUNS, pytest.param(figures_003.QUICK, marks=pytest.mark.slow)], ids=["fewer", "quick"]
)
def blowfish(request, tmp_path_factory):
    """Run the whole command for document 003 once, in a folder without data sets."""
    folder = tmp_path_factory.mktemp("empty") / "inside"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TACIT_DATA", raising=False)
        patch.setattr("tacit_reproductions.document_003.figures.QUICK", request.param)
        return folder, inside(folder, "reproduce", "003", "--quick", "--json", "--output", "out")


def test_blowfish_goes_on_without_data_and_says_so(blowfish):
    _, done = blowfish
    assert done.code == 0, done
    assert "tweets and colours are made up" in done.document["how"][0]
    assert done.document["quick"] is True


def test_every_figure_and_theorem_of_blowfish_has_a_verdict(blowfish):
    claims = blowfish[1].document["claims"]
    places = {claim["figure"] for claim in claims}
    theorems = {"Theorem 4.1", "Theorem 4.2", "Theorem 4.3", "Theorem 5.1", "Lemma 6.1", "Theorem 7.1", "Theorem 7.2"}
    assert theorems | {"Theorem 8.2", "Corollary 8.3", "Theorem 8.4", "Theorem 8.5", "Theorem 8.6"} <= places
    assert all("public histogram" not in claim["run"] for claim in claims)  # they are made up
    assert {"Theorem 4.4", "Theorem 4.5", "section 4.2, axioms"} <= places
    assert {"1(a)-(c)", "1(b)", "1(c)", "1(d)", "1(e)", "1(f)", "2(b)", "2(c)"} <= places
    assert_every_verdict_is_carried(claims)


def test_invalid_mechanisms_are_marked_wherever_they_are_shown(blowfish):
    document = blowfish[1].document
    assert all("as printed (invalid)" in line for line in (*document["ranges"], *document["clusters"]))
    for table in document["tables"]:
        assert all(len(line) == len(table["headings"]) for line in table["lines"])
        printed = [heading for heading in table["headings"] if heading == "as printed"]
        assert not printed


def test_page_and_charts_of_blowfish_are_written(blowfish):
    folder, done = blowfish
    files = {file.name for file in (folder / "out").iterdir()}
    expected = [f"figure-{name}" for name in ("1a", "1b", "1c", "1d", "1e", "1f", "2a", "2b", "2c", "3")]
    assert done.document["charts"] == expected
    assert files == {"reproduced-003.md", *(f"{name}.{kind}" for name in expected for kind in ("svg", "png"))}
    page = (folder / "out" / "reproduced-003.md").read_text(encoding="utf-8")
    assert all(claim["ours"] in page for claim in done.document["claims"])
    assert all(f"## {table['title']}" in page for table in done.document["tables"])
    widths = {line.count("|") for line in page.splitlines() if line.startswith("| section 3.2")}
    assert widths == {7}  # no cell breaks the table


def test_dependent_attributes_are_recomputed_without_data(tmp_path, monkeypatch):
    folder = tmp_path / "inside"
    folder.mkdir()
    monkeypatch.setattr(
        "tacit_reproductions.document_001.figures.QUICK", replace(figures_001.QUICK, records=20_000, limits=(0.05,))
    )
    done = inside(folder, "reproduce", "001", "--quick", "--json", "--output", "out")
    assert done.code == 0, done
    assert "made up" in done.document["how"][0]
    claims = done.document["claims"]
    places = " ".join(claim["figure"] for claim in claims)
    assert all(
        name in places for name in ("Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4", "Corollary 1", "Lemma 1")
    )
    assert_every_verdict_is_carried(claims)
    assert done.document["charts"] == ["figure-1", "figure-2", "theorem-2", "trade-off"]
    files = {file.name for file in (folder / "out").iterdir()}
    assert files == {"reproduced-001.md", *(f"{n}.{kind}" for n in done.document["charts"] for kind in ("svg", "png"))}
    page = (folder / "out" / "reproduced-001.md").read_text(encoding="utf-8")
    widths = {line.count("|") for line in page.splitlines() if line.startswith("| Theorem")}
    assert widths == {7, 8}  # no cell breaks a table


@pytest.mark.parametrize("paper", ["001", "002", "003"])
def test_without_data_the_whole_is_refused(tmp_path, paper):
    said = inside(tmp_path, "reproduce", paper).refusal()
    assert said.startswith("--data must be named")
    assert "TACIT_DATA" in said
    assert "--quick" in said


def test_a_folder_that_is_none_is_refused(tmp_path, monkeypatch):
    assert "--data must be a folder" in inside(tmp_path, "reproduce", "002", "--quick", "--data", "nowhere").refusal()
    monkeypatch.setenv("TACIT_DATA", "elsewhere")
    error = inside(tmp_path, "reproduce", "002", "--quick", "--json").error()
    assert (error["key"], error["given"]) == ("TACIT_DATA", "elsewhere")


def test_a_missing_file_is_named(tmp_path):
    (tmp_path / "data").mkdir()  # found without being named
    said = inside(tmp_path, "reproduce", "002", "--quick").refusal()
    assert said.startswith("bms_pos/item_counts.csv is not there")
    shutil.rmtree(tmp_path / "data")


def test_another_paper_is_wrong_usage(tmp_path):
    done = inside(tmp_path, "reproduce", "009")
    assert done.code == 2
    assert "002" in done.err


def test_disclosure_goes_on_without_data_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("tacit_reproductions.document_004.disclosures.FEW_ROWS", 2_000)
    done = inside(tmp_path, "reproduce", "004", "--quick", "--json")
    assert done.code == 0, done
    assert "the census tables are made up" in done.document["how"][0]
    assert_every_verdict_is_carried(done.document["claims"])
    said = str(done.document)
    assert "2,000 to 5,000 made-up workers" in said  # what --quick has drawn, not what the whole would
    assert all("census survey" not in claim["run"] for claim in done.document["claims"])
    assert "100K to 500K" not in said
    assert "300,000" not in said
    refused = inside(tmp_path, "reproduce", "004")
    assert refused.code == 1
    assert "--data must be named" in refused.err


def test_benchmarks_are_run_from_the_repository_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tacit_reproductions.command.BENCHMARKS", tmp_path / "benchmarks")
    assert main(["bench", "noise", "--quick"]) == 1
    said = capsys.readouterr().err
    assert said == (
        "tacit: benchmarks are not part of the installed package. Clone the repository and run `make bench` there.\n"
    )
    os.makedirs(tmp_path / "benchmarks")
    (tmp_path / "pyproject.toml").touch()
    every = [name.value for name in Benchmark]
    for name in every:
        text = f'"""Measures {name}."""\ndef main(*, quick):\n    print("a table")\n    return {{"quick": quick}}\n'
        (tmp_path / "benchmarks" / f"bench_{name}.py").write_text(text, encoding="utf-8")
    assert main(["bench", "--quick"]) == 0
    said = capsys.readouterr().out
    assert said == "".join(f"{name}: Measures {name}.\na table\n" for name in every)
    assert main(["bench", "rows", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rows": {"quick": False}}


def test_every_benchmark_of_the_repository_can_be_asked_for() -> None:
    files = {file.stem.removeprefix("bench_"): file for file in BENCHMARKS.glob("bench_*.py")}
    assert {name.value for name in Benchmark} == set(files)
    for file in files.values():
        (main_of,) = (
            node
            for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef) and node.name == "main"
        )
        assert "quick" in [argument.arg for argument in (*main_of.args.args, *main_of.args.kwonlyargs)], file.name
