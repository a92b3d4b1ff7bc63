"""The documentation site is built from the pages and docstrings, and its links hold."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"


@pytest.fixture
def tool() -> Any:
    """The tool that builds the site, as a module: it stands outside of the package."""
    described = importlib.util.spec_from_file_location("build_docs", ROOT / "tools" / "build_docs.py")
    assert described is not None
    assert described.loader is not None
    found = importlib.util.module_from_spec(described)
    described.loader.exec_module(found)
    return found


def test_the_site_is_built_with_every_page(
    tool: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["build_docs.py"])
    assert tool.main() == 0, capfd.readouterr()
    pages = {file.relative_to(BUILD / "docs").with_suffix(".html") for file in (BUILD / "docs").rglob("*.md")}
    assert pages <= {file.relative_to(BUILD / "site") for file in (BUILD / "site").rglob("*.html")}
    whole = (BUILD / "site" / "tacit.txt").read_text(encoding="utf-8")
    assert "# Which epsilon?" in whole
    for name in ("clinic", "shop", "building"):  # notebooks, run by a kernel: a cell that fails ends the building
        page = (BUILD / "site" / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
        assert page.count('<div class="tacit">') >= 4
        assert "Warning" not in page
    assert "#### tc.Session.release" in whole
    assert (BUILD / "site" / "gallery-0.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_link_that_leads_nowhere_and_a_page_in_no_menu_are_found(
    tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "PAGES", tmp_path)
    (tmp_path / "tour.md").write_text("# A tour\n")
    lost = "# Lost\n\n[nowhere](nowhere.md), [no heading](tour.md#no-such), [page](tour.md)\n"
    (tmp_path / "lost.md").write_text(lost)
    assert list(tool.broken_links()) == [
        "lost.md: there is no page nowhere.md",
        "lost.md: tour.md has no heading #no-such",
        "lost.md is in no menu: add it to nav in zensical.toml",
    ]
