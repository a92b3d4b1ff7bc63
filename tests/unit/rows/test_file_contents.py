"""Files that coins were made for: the same bytes, or more lines of CSV, and nothing else, ever after."""

from __future__ import annotations

import gzip
import os
import sqlite3

import pandas as pd
import pytest
from tests.older_ledgers import as_older

import tacit as tc
from tacit.ledger.coins import RaisedCoins, StateMoved
from tacit.rows.files.identity import FileContents

POLICY = tc.Policy(
    tc.Domain({"group": tc.Categories(["a", "b"]), "seen": tc.Categories(["early", "late"])}),
    tc.secrets.attributes("seen", where="seen == 'late'"),
)
MANY = 60


def rows(first=0, last=MANY, late=3):
    """Return a row for each key; which of them are late is up to `late`."""
    keys = range(first, last)
    return pd.DataFrame({"id": keys, "group": "a", "seen": ["late" if at % late == 0 else "early" for at in keys]})


def write(path, table):
    table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False)


def asked(**options):
    return tc.true_records("seen", key="id", **options)


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger.db"


def released(ledger, source, question=None):
    """Return what a new session shows, and what remains."""
    session = tc.Session(POLICY, source, budget=9, ledger=ledger, dataset="d")
    frame = session.release(question or asked(), epsilon=1).frame
    return dict(zip(frame["id"], frame["seen"].fillna("?"), strict=True)), session.remaining


def is_refused(ledger, source, question=None):
    before = tc.Ledger(ledger).remaining(dataset="d")
    with pytest.raises(tc.DataRefused, match="the files must hold what they held when these records were last asked"):
        released(ledger, source, question)
    return tc.Ledger(ledger).remaining(dataset="d") == before


@pytest.mark.parametrize("name", ["latest.csv", "latest.csv.gz", "latest.parquet"])
def test_a_file_that_was_replaced_in_place_is_refused_before_it_is_charged(name, ledger, tmp_path):
    file = tmp_path / name
    write(file, rows())
    first, _ = released(ledger, file)
    write(tmp_path / f"next-{name}", rows(late=4))
    stat = file.stat()
    (tmp_path / f"next-{name}").replace(file)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as old as it was
    assert is_refused(ledger, file)
    assert is_refused(ledger, [str(tmp_path / f"late*{file.suffix}")])
    again, left = released(ledger, file, asked(version="2"))
    assert left == 7
    assert again != first
    _, left = released(ledger, file, asked(application="another"))  # never saw the other rows
    assert left == 6
    tc.Ledger(ledger).rotate_coins(dataset="d")
    assert released(ledger, file)[1] == 5
    assert tc.Ledger(ledger).verify().ok


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_file_that_was_touched_or_written_again_is_the_same(name, ledger, tmp_path):
    file = tmp_path / name
    write(file, rows())
    first, _ = released(ledger, file)
    os.utime(file)
    assert released(ledger, file) == (first, 8)
    write(file, rows())
    assert released(ledger, file) == (first, 8)


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_file_of_lines_may_grow_and_what_was_added_is_held_to(end, ledger, tmp_path):
    file, text = tmp_path / "a.csv", rows().to_csv(index=False).rstrip("\n")
    file.write_text(text + end)
    first, _ = released(ledger, file)
    more = rows(MANY, 2 * MANY).to_csv(index=False, header=False)
    file.write_text(f"{text}\n{more}")
    longer, left = released(ledger, file)
    assert left == 8
    assert {key: longer[key] for key in first} == first
    assert {longer[key] for key in range(MANY, 2 * MANY)} == {"early", "?"}
    file.write_text(f"{text}\n{rows(MANY, 2 * MANY, late=4).to_csv(index=False, header=False)}")
    assert is_refused(ledger, file)
    file.write_text(text + end)
    assert is_refused(ledger, file)


def test_a_last_line_that_grew_is_another_row(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("id,seen\n1,early\n2,la")
    size = FileContents([str(file)]).sizes
    before = FileContents([str(file)]).digest(size)
    for more, same in (("te\n", False), ("\n3,late", True)):
        file.write_text("id,seen\n1,early\n2,la" + more)
        assert (FileContents([str(file)]).digest(size) == before) is same
    with gzip.open(tmp_path / "a.csv.gz", "wt") as out:
        out.write("id,seen\n1,early\n")
    size = FileContents([str(tmp_path / "a.csv.gz")]).sizes
    with gzip.open(tmp_path / "a.csv.gz", "at") as out:
        out.write("2,late\n")
    assert FileContents([str(tmp_path / "a.csv.gz")]).digest(size) is None
    # the last byte of this letter is that of a line end
    file.write_bytes("\ufeffid,seen\n1,\u010a".encode("utf-16-be"))
    size = FileContents([str(file)]).sizes
    file.write_bytes(file.read_bytes() + "x\n".encode("utf-16-be"))
    assert FileContents([str(file)]).digest(size) is None


def test_an_explanation_says_that_a_file_would_be_refused(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    released(ledger, file)
    session = tc.Session(POLICY, file, ledger=ledger, dataset="d")
    assert session.explain(asked(), epsilon=1, show=False).files_refused == ""
    write(file, rows(late=4))
    session = tc.Session(POLICY, file, ledger=ledger, dataset="d")
    said = session.explain(asked(), epsilon=1, show=False)
    with pytest.raises(tc.DataRefused) as refused:
        session.release(asked(), epsilon=1)
    assert said.files_refused == said.document()["files_refused"] == str(refused.value)
    assert f"would be refused: {refused.value}" in str(said)
    assert not session.explain(asked(version="2"), epsilon=1, show=False).files_refused


def test_one_of_several_files_is_held_to_and_another_file_is_another_source(ledger, tmp_path):
    for at in range(2):
        write(tmp_path / f"{at}.csv", rows(at * MANY, (at + 1) * MANY))
    pattern = str(tmp_path / "[0-9].csv")
    first, _ = released(ledger, pattern)
    write(tmp_path / "1.csv", rows(MANY, 2 * MANY, late=4))
    assert is_refused(ledger, pattern)
    write(tmp_path / "2.csv", rows(2 * MANY, 3 * MANY))
    other, left = released(ledger, pattern)
    assert left == 7  # all of it is charged, with new coins
    assert {key: other[key] for key in first} != first


def test_a_group_of_a_split_holds_its_files_too(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    session = tc.Session(POLICY, file, budget=9, ledger=ledger, dataset="d")
    session.split("group")["a"].release(asked(), epsilon=1)
    write(file, rows(late=4))
    session = tc.Session(POLICY, file, ledger=ledger, dataset="d")
    with pytest.raises(tc.DataRefused, match="the files must hold"):
        session.split("group")["a"].release(asked(), epsilon=1)


def test_of_two_processes_one_says_what_a_file_holds(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    tc.Ledger(ledger).grant(dataset="d", epsilon=9)
    session = tc.Session(POLICY, file, ledger=ledger, dataset="d")
    lines = list(session.plan(asked(), 1).coin_lines)
    opened, source = tc.Ledger(ledger), repr([str(file.resolve())])
    before = opened.coins(dataset="d", lines=lines, source=source)
    kept = before.contents_now(FileContents([str(file)]), lines)
    session.release(asked(), epsilon=1)
    with pytest.raises(StateMoved):
        opened.reserve(dataset="d", charges=[], clauses=[RaisedCoins(before, {}, kept)])
    with pytest.raises(StateMoved):
        opened.reserve(dataset="d", charges=[(1, "x")], policy=POLICY, clauses=[RaisedCoins(before, {}, kept)])
    assert opened.remaining(dataset="d") == 8


def test_what_is_kept_tells_nothing_about_a_file(ledger, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key that nobody guesses, 0123456789abcdef")
    file = tmp_path / "a.csv"
    write(file, rows())
    content = FileContents([str(file)])
    (size,) = content.sizes
    for question in (asked(), asked(version="2")):
        released(ledger, file, question)
    with sqlite3.connect(ledger) as db:
        found = db.execute("SELECT stamp, digest, sizes FROM tacit_contents").fetchall()
    assert len(found) == 2
    assert not set(found[0]) & set(found[1])  # a secret of each line
    assert all(len(sizes) == 16 and sizes != f"{size:016x}" for *_, sizes in found)
    assert content.digest([size]) not in str(found)


def is_unknown(ledger, file):
    before = tc.Ledger(ledger).remaining(dataset="d")
    with pytest.raises(tc.DataRefused, match="must be known to hold what they held"):
        released(ledger, file)
    assert tc.Ledger(ledger).remaining(dataset="d") == before
    return released(ledger, file, asked(version="2"))[1] == before - 1


@pytest.mark.parametrize("taken", ["DROP TABLE tacit_contents", "DELETE FROM tacit_contents"])
def test_a_ledger_that_does_not_say_what_a_file_held_refuses_it(taken, ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    released(ledger, file)
    as_older(f"sqlite:///{ledger}")
    with sqlite3.connect(ledger) as db:
        db.execute(taken)
    assert tc.Ledger(ledger).verify().ok
    assert is_unknown(ledger, file)
    assert "cannot be known" in tc.Ledger(ledger).verify().unknown


@pytest.mark.parametrize("column", ["line", "state", "stamp", "digest", "sizes", "seal"])
def test_what_is_noted_of_files_cannot_be_changed(column, ledger, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key that nobody guesses, 0123456789abcdef")
    file = tmp_path / "a.csv"
    write(file, rows())
    released(ledger, file)
    session = tc.Session(POLICY, file, ledger=ledger, dataset="d")
    with sqlite3.connect(ledger) as db:
        db.execute(f"UPDATE tacit_contents SET {column} = 'x' || substr({column}, 2)")
    assert tc.Ledger(ledger).verify().problem == "changed: a row of tacit_contents was changed, put in or put back"
    for _ in range(2):
        with pytest.raises(tc.LedgerError, match="a row of tacit_contents was changed, taken out or put in"):
            session.release(asked(), epsilon=1)


def test_what_was_asked_for_is_not_noted_alone(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    released(ledger, file)
    session = tc.Session(POLICY, file, ledger=ledger, dataset="d")
    session.reserve([session.plan(asked(version="2"), 1)])
    with sqlite3.connect(ledger) as db:
        db.execute("DELETE FROM tacit_contents WHERE state = 'shown'")
    with pytest.raises(tc.LedgerError, match="a row of tacit_contents was changed, taken out or put in"):
        session.release(asked(version="2"), epsilon=1)


TWICE = pd.DataFrame({"id": [0], "group": "a", "seen": "early"})


def key_is_refused(ledger, file, match="a key is there twice"):
    with pytest.raises(tc.DataRefused, match=match) as refused:
        released(ledger, file)
    return "costs nothing more" in str(refused.value)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_file_whose_key_was_refused_may_be_repaired_as_it_says(name, ledger, tmp_path):
    file = tmp_path / name
    write(file, pd.concat([rows(), TWICE]))
    assert key_is_refused(ledger, file)
    write(file, rows().assign(id=[None, *range(1, MANY)]))
    assert key_is_refused(ledger, file, "must have a value in every row")
    write(file, rows())
    assert released(ledger, file)[1] == 8  # paid for once
    write(file, rows(late=4))
    assert is_refused(ledger, file)


def test_lines_that_were_refused_may_be_repaired_and_those_that_were_shown_not(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    first, _ = released(ledger, file)
    write(file, pd.concat([rows(), TWICE]))
    assert key_is_refused(ledger, file)
    write(file, rows(late=4))
    assert is_refused(ledger, file)
    write(file, rows(last=2 * MANY))
    more, left = released(ledger, file)
    assert left == 8
    assert {key: more[key] for key in first} == first


def test_all_that_was_reserved_together_may_be_repaired(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, pd.concat([rows(), TWICE]))
    session = tc.Session(POLICY, file, budget=9, ledger=ledger, dataset="d")
    made = session.reserve([session.plan(asked(), 1), session.plan(asked(version="2"), 1)])
    with pytest.raises(tc.DataRefused, match="a key is there twice"):
        made[0].make()
    write(file, rows())
    assert released(ledger, file, asked(version="2"))[1] == 7
    assert released(ledger, file)[1] == 7


def test_whoever_dies_before_anything_is_shown_leaves_files_held(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    session = tc.Session(POLICY, file, budget=9, ledger=ledger, dataset="d")
    session.reserve([session.plan(asked(), 1)])
    write(file, rows(late=4))
    assert is_refused(ledger, file)
    write(file, rows())
    assert released(ledger, file)[1] == 8


def test_of_two_processes_none_shows_what_the_other_took_back_nor_takes_back_what_was_shown(ledger, tmp_path):
    file = tmp_path / "a.csv"
    write(file, rows())
    session = tc.Session(POLICY, file, budget=9, ledger=ledger, dataset="d")
    plan, source = session.plan(asked(), 1), repr([str(file.resolve())])
    other, lines = tc.Ledger(ledger), list(plan.coin_lines)

    def its_kept():
        before = other.coins(dataset="d", lines=lines, source=source)
        return before, before.contents_now(FileContents([str(file)]), lines)

    (mine,) = session.reserve([plan])
    other.were_not_shown(dataset="d", kept=its_kept())
    with pytest.raises(tc.DataRefused, match="others have asked meanwhile"):
        mine.make()
    (mine,) = session.reserve([plan])
    asked_too = its_kept()
    assert asked_too[1]
    mine.make()
    other.were_not_shown(dataset="d", kept=asked_too)
    other.were_shown(dataset="d", kept=asked_too)  # the same bytes
    assert session.remaining == 8
    assert not its_kept()[1]
    write(file, rows(late=4))
    assert is_refused(ledger, file)
