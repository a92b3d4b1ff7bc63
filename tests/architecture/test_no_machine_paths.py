"""Nothing in the repository knows the machine that it was written on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Written in parts, or this file would find itself.
FOLDERS = ("work", "root", "tmp", "home")
# At the start of a word: docs/work/ and https://example.org/root/ are no machine's paths.
PATTERN = re.compile(rb"(?<![\w.~*-])/(?:" + "|".join(FOLDERS).encode() + rb")/")


def repository_files() -> list[Path]:
    """Return what is or could be committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name]


def test_the_pattern_finds_what_it_should() -> None:
    for folder in FOLDERS:
        assert PATTERN.search(f"open('/{folder}/x')".encode())
        assert not PATTERN.search(f"docs/{folder}/x, https://example.org/{folder}/x".encode())


def test_no_file_has_a_path_of_some_machine() -> None:
    found = []
    for file in repository_files():
        if not file.is_file():  # removed but not committed
            continue
        for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
            if PATTERN.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}")
    assert found == []
