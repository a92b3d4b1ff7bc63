"""What is no table of rows is refused in one true sentence, nothing of it is quoted, and nothing is fetched."""

from __future__ import annotations

import gzip
import json
import re
import socket
from pathlib import Path

import pytest

from tacit.draft import draft_policy
from tacit.errors import DataRefused
from tacit.policy.attributes import Integers
from tacit.policy.domain import Domain
from tacit.rows.rows import open_rows

CANARY = "CANARY7f3a"
AGES = Domain({"age": Integers(0, 99)})
PEOPLE = [{"age": 31, "who": CANARY}, {"age": 47, "who": CANARY}]
LATIN = f"age,who\n31,{CANARY}\n47,Müller\n".encode("latin-1")


def sentences(path: str | Path) -> tuple[str, str]:
    """Return what a draft and a release say about a file."""
    said = []
    for use in (draft_policy, lambda given: open_rows(given, AGES, person="who")):
        with pytest.raises(DataRefused) as refused:
            use(path)
        assert CANARY not in str(refused.value)
        assert refused.value.__context__ is None
        said.append(str(refused.value))
    return said[0], said[1]


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("people.json", json.dumps(PEOPLE).encode(), "is JSON, not CSV or Parquet"),
        ("people.jsonl", b'{"age": 31}\n', "is JSON, not CSV or Parquet"),
        ("people.xlsx", b"PK\x03\x04..", "is a workbook, not a table"),
        ("people.sav", b"$FL2", "is a file of a statistics program"),
        ("people.zip", b"PK\x03\x04..", "is an archive, not a table"),
        ("people.db", b"SQLite format 3\0", "is a database, not a table"),
        ("people.txt", b"age\n31\n", "must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet"),
        ("people", b"age\n31\n", "must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet"),
        # by what is in it, whatever it is called
        ("people.csv", json.dumps(PEOPLE).encode(), "looks like JSON, whatever it is called"),
        ("people.csv", f'{{"who": "{CANARY}"}}\n'.encode(), "looks like JSON, whatever it is called"),
        ("people.csv", b"PK\x03\x04..", "is a workbook or an archive, whatever it is called"),
        ("people.csv", b"\xd0\xcf\x11\xe0..", "is an old Excel workbook, whatever it is called"),
        ("people.csv", b"PAR1..", "is Parquet, whatever it is called"),
        ("people.csv", gzip.compress(b"age\n31\n", mtime=0), "is packed with gzip"),
        ("people.csv", b"age,\0\0\n31,x\n", "is no text"),
        ("people.csv", b"<!DOCTYPE html><p>", "looks like HTML or XML, whatever it is called"),
    ],
)
def test_a_file_is_called_what_it_is(name: str, content: bytes, rule: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    for said in sentences(tmp_path / name):
        assert said.startswith(f"file {str(tmp_path / name)!r} {rule}")
        assert said.count(". ") >= 1  # and says what to do


def test_only_a_draft_says_what_is_wrong_in_a_row(tmp_path: Path) -> None:
    form = "must be well-formed CSV in UTF-8: as many fields in every line as in the header, quotes closed, one kind of"
    for content, where in [
        (f"age,who\n31,x\n47,{CANARY},more\n".encode(), "; line 3 has 3 fields, the header has 2."),
        (f'age,who\n31,"a\nb"\n{CANARY}\n'.encode(), "; line 4 has 1 field, the header has 2."),
        (f'age,who\n31,"{CANARY}\n'.encode(), "; line 2 has a quote that is not closed, or text after a closing"),
    ]:
        (tmp_path / "people.csv").write_bytes(content)
        drafted, released = sentences(tmp_path / "people.csv")
        assert where in drafted
        assert form in released  # the same whatever is wrong in which row
        assert "line 3" not in released


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("age,who\n31,x\n".encode("utf-16"), "is UTF-16, not UTF-8. Say so: `encoding: utf-16`."),
        ("äge,age,who\n1,31,x\n".encode("latin-1"), "must be UTF-8; its letters are in another encoding. Say which"),
        (LATIN, "If its letters are in another encoding, say `encoding: cp1252`"),
    ],
)
def test_a_draft_finds_the_encoding_that_a_release_must_be_told(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "people.csv").write_bytes(content)
    assert "age" in draft_policy(tmp_path / "people.csv", has_header=True)
    with pytest.raises(DataRefused, match=re.escape(said)):
        open_rows(tmp_path / "people.csv", AGES, person="who")


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("somebody tried to connect")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for address in ("http://localhost/people.csv", "https://x.org/p.parquet", "s3://bucket/p.parquet", "hf://a/b.csv"):
        with pytest.raises(DataRefused, match="must be a file on this computer; nothing is fetched"):
            draft_policy(address)


def test_folders_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataRefused, match=r"is a folder\. Name the files in it"):
        draft_policy(tmp_path)
    with pytest.raises(DataRefused, match=r"no\.csv' must exist"):
        draft_policy(tmp_path / "no.csv")
    for name in ("x" * 5000 + ".csv", "x" * 300 + ".csv"):
        with pytest.raises(DataRefused) as refused:
            draft_policy(name)
        assert len(str(refused.value)) < 600
