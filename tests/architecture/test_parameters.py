"""Which cases of a test every run tries."""

from __future__ import annotations

import pytest

TESTS = """
import pytest

@pytest.mark.one_in(3)
@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("engine", ["duckdb", "pandas", "spark"])
def test_pairs(engine, number):
    assert True

@pytest.mark.one_in(3)
@pytest.mark.parametrize("number", range(9))
def test_numbers(number):
    assert True
"""
CONFTEST = "from parameters import mark_all_but_one_in_so_many_as_slow as pytest_collection_modifyitems\n"
SETTINGS = "[pytest]\nmarkers =\n    slow\n    one_in(n)\naddopts = --strict-markers -p no:cacheprovider\n"


@pytest.fixture
def chosen(tmp_path, capfd):
    """Return the names of the quick cases."""
    (tmp_path / "test_cases.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text(SETTINGS)

    class Kept:
        def pytest_collection_finish(self, session):
            self.names = [item.name for item in session.items]

    kept = Kept()
    assert pytest.main(["-q", "--collect-only", "-m", "not slow", str(tmp_path)], plugins=[kept]) == 0
    return kept.names


def test_one_in_so_many_is_quick_and_every_shared_value_among_them(chosen):
    pairs = [name for name in chosen if name.startswith("test_pairs")]
    assert 9 <= len(pairs) < 14
    for value in ["duckdb", "pandas", "spark", *"012345678"]:
        assert any(value in name.removeprefix("test_pairs") for name in pairs), value
    assert len([name for name in chosen if name.startswith("test_numbers")]) == 3
