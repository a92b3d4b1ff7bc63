"""`tacit reproduce`: made-up data where there are none, refusals that say what is missing, files that are complete."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from cli.shell import inside
from tacit.papers.figures_002 import QUICK

KINDS = {"yes", "no", "partly"}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)


FEWER = replace(QUICK, runs=4, baseline_runs=16, map_runs=2, decisions=10**5)  # the same figures, from fewer draws


@pytest.fixture(scope="module", params=[FEWER, pytest.param(QUICK, marks=pytest.mark.slow)], ids=["fewer", "quick"])
def made_up(request, tmp_path_factory):
    """Run the whole command once, in a folder without data sets."""
    folder = tmp_path_factory.mktemp("empty") / "inside"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TACIT_DATA", raising=False)
        patch.setattr("tacit.papers.figures_002.QUICK", request.param)
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
    assert all(claim["claim"] and claim["ours"] and claim["holds"] in KINDS for claim in claims)
    assert all(claim["why"] for claim in claims if claim["holds"] != "yes")


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
    assert "| figure | what | the paper's claim | our number | holds? |" in page
    assert all(claim["ours"] in page for claim in done.document["claims"])


def test_without_data_the_whole_is_refused(tmp_path):
    said = inside(tmp_path, "reproduce", "002").refusal()
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
