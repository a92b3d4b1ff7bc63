"""Whatever is given where events are expected: no refusal holds anything of it, and interrupts stay interrupts."""

from __future__ import annotations

import csv
import io
import signal
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc

CANARY = "alice.smith"
POLICY = tc.Policy(tc.Domain({"visited": tc.Items(["gym", "cafe"])}), tc.secrets.values({"visited": [1]}))
ROW = {"visited": "gym", "who": CANARY, "time": 0}


def monitors() -> Iterator[Any]:
    with tc.PlaceMonitor(POLICY, place="gym", threshold=5, epsilon=1, window=2, person="who") as one:
        yield one
    with tc.MapMonitor(POLICY, threshold=5, epsilon=1, person="who") as many:
        yield many


def everything_in(refusal: BaseException) -> str:
    """Return all that hangs on an exception: words, arguments, attributes, cause, context and our frames' locals."""
    found = [
        str(refusal),
        repr(refusal),
        repr(refusal.args),
        repr(vars(refusal)),
        repr(getattr(refusal, "__notes__", "")),
    ]
    for other in (refusal.__cause__, refusal.__context__):
        if other is not None:
            found.append(everything_in(other))
    step = refusal.__traceback__
    while step is not None:
        if "tacit" in step.tb_frame.f_globals.get("__name__", ""):
            found += [repr(value) for value in step.tb_frame.f_locals.values()]
        step = step.tb_next
    return "\n".join(found)


class Angry(Mapping[str, Any]):
    """A record that quotes itself when it is read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(CANARY)

    def get(self, key: str, default: Any = None) -> Any:
        raise LookupError(CANARY, self, ROW)

    def __iter__(self) -> Iterator[str]:
        return iter(ROW)

    def __len__(self) -> int:
        return 3


class Loud:
    """A cell that quotes itself whatever is done with it."""

    def __str__(self) -> str:
        raise ValueError(CANARY)

    __repr__ = __hash__ = __eq__ = __float__ = __str__  # type: ignore[assignment]


def failing(error: BaseException) -> Iterator[dict[str, Any]]:
    yield ROW
    raise error


def chained() -> Iterator[dict[str, Any]]:
    yield ROW
    try:
        raise ValueError(CANARY)
    except ValueError as first:
        second = RuntimeError(ROW)
        second.add_note(CANARY)
        raise second from first


def bad_bytes() -> Iterator[Any]:
    text = f"visited,who,time\ngym,{CANARY},0\ngym,{CANARY}".encode() + b"\xff\xfe,1\n"
    return csv.DictReader(io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", newline=""))


def broken_cursor() -> Any:
    db = sqlite3.connect(":memory:")
    db.create_function("quote_it", 1, lambda value: 1 / 0)
    db.row_factory = lambda cursor, row: (_ for _ in ()).throw(ValueError(row))
    return db.execute(f"SELECT 'gym', '{CANARY}', 0")


def headerless(read: Any) -> Any:
    return read(io.StringIO(f"gym,{CANARY},2024-03-01\ncafe,bob,2024-03-02\n"))


REFUSED: dict[str, Any] = {
    "bad bytes": bad_bytes,
    "generator": lambda: failing(RuntimeError(CANARY, ROW)),
    "generator with a chain": chained,
    "generator that raises one of ours": lambda: failing(tc.PlanError("must not be", key="who", given=CANARY)),
    "generator that raises data of ours": lambda: failing(tc.DataRefused(CANARY, column=CANARY)),
    "generator that ends another": lambda: failing(GeneratorExit(CANARY)),
    "decode error": lambda: failing(UnicodeDecodeError("utf-8", CANARY.encode(), 0, 1, CANARY)),
    "group": lambda: failing(ExceptionGroup(CANARY, [ValueError(CANARY)])),
    "cursor": broken_cursor,
    "angry record": lambda: [ROW, Angry()],
    "text of rows": lambda: pd.DataFrame([ROW]).to_csv(),
    "one line": lambda: f"gym,{CANARY},0",
    "long line": lambda: f"gym,{CANARY}," * 5000,
    "bytes": lambda: f"gym,{CANARY}\n".encode(),
    "mapping": lambda: dict(ROW),
    "number": lambda: 7,
    "class": lambda: Angry,
    "headerless pandas": lambda: headerless(pd.read_csv),
    "headerless polars": lambda: headerless(pl.read_csv),
    "headerless arrow": lambda: pa.table({"gym": ["cafe"], CANARY: ["bob"], "2024-03-01": ["2024-03-02"]}),
    "numbered columns": lambda: pd.DataFrame([["gym", CANARY, 0]]),
    "lists of persons": lambda: pa.table({"visited": ["gym"], "who": [[CANARY]], "time": [0]}),
    "nested persons": lambda: pa.table({"visited": [["gym"]], "who": [CANARY], "time": [0]}),
    "a column twice": lambda: pd.DataFrame([["gym", CANARY, CANARY]], columns=["visited", "who", "who"]),
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("given", REFUSED)
def test_a_refusal_holds_nothing_of_what_was_given(given: str) -> None:
    for watched in monitors():
        with pytest.raises(tc.TacitError) as refusal:
            watched.feed(REFUSED[given]())
        said = everything_in(refusal.value)
        assert CANARY not in said
        assert "bob" not in said
        assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)
        assert not isinstance(refusal.value, tc.InternalError)
        assert watched.history.steps == ()  # nothing happened, and the clock did not move
        assert watched.feed([ROW]).step == 0


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "batch",
    [
        [("gym", CANARY)],
        [("gym", CANARY, 0, 1), ()],
        [{"place": "gym"}, {1: CANARY}, {}],
        [None, 7, object(), [CANARY], b"gym"],
        [{"visited": Loud(), "who": CANARY}],
        [{"visited": "gym", "who": Loud()}],
        [{"visited": "gym", "who": CANARY, "time": Loud()}],
        [{"visited": {"gym"}, "who": [CANARY]}],
        pd.Series([CANARY]),
    ],
    ids=range(9),
)
def test_records_of_a_wrong_shape_are_left_out_or_refused_in_one_sentence(batch: list[Any]) -> None:
    for watched in monitors():
        refused = None
        try:
            watched.feed(iter(batch))
        except tc.TacitError as refusal:
            refused = refusal
        if refused is not None:
            assert CANARY not in everything_in(refused)
            assert str(refused).startswith("the engine could not read the events")


class TooLong(Exception):
    """What the handler of a caller's alarm raises."""


def alarmed(swallowed_by: type[Exception] | None) -> Iterator[dict[str, Any]]:
    """Give a row, and then be interrupted by an alarm, of which the caller's own code may make something else."""
    yield ROW
    try:
        signal.raise_signal(signal.SIGALRM)
    except TooLong:
        if swallowed_by is None:
            raise
        raise swallowed_by(CANARY) from None


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (KeyboardInterrupt(CANARY), None),
        (SystemExit(3), 3),
        (SystemExit(0), 0),
        (SystemExit(CANARY), 1),  # a text is a failure, though it may be a row and is not said
        (SystemExit(ROW), 1),
    ],
    ids=["interrupt", "exit", "exit without a fault", "exit with a text", "exit with a row"],
)
def test_an_interrupt_is_an_interrupt(raised: BaseException, code: int | None) -> None:
    for watched in monitors():
        with pytest.raises(type(raised)) as ended:
            watched.feed(failing(raised))
        assert CANARY not in everything_in(ended.value)
        if isinstance(ended.value, SystemExit):
            assert ended.value.code == code
        assert watched.feed([ROW]).step == 0


@pytest.mark.parametrize("swallowed_by", [None, RuntimeError, tc.DataRefused])
def test_what_the_handler_of_a_signal_raises_is_given_back(swallowed_by: type[Exception] | None) -> None:
    def end(number: int, frame: Any) -> None:
        raise TooLong("so I said")

    before = signal.signal(signal.SIGALRM, end)
    try:
        for watched in monitors():
            with pytest.raises(TooLong, match="so I said") as ended:
                watched.feed(alarmed(swallowed_by))
            assert CANARY not in everything_in(ended.value)
            assert signal.getsignal(signal.SIGALRM) is end
            assert watched.feed([ROW]).step == 0
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("wrong", ["step", "batch_id"])
def test_rows_in_the_wrong_place_stay_in_no_frame(wrong: str) -> None:
    for watched in monitors():
        with pytest.raises(tc.PlanError) as refusal:
            watched.feed([ROW], **{wrong: pd.DataFrame([ROW])})
        assert CANARY not in everything_in(refusal.value)


def test_a_file_that_is_not_there_is_named_because_its_name_was_given(tmp_path: Path) -> None:
    with pytest.raises(tc.DataRefused, match=r"town\.csv"):
        tc.PlaceMonitor(POLICY, place="gym", threshold=5, epsilon=1, window=2).feed(str(tmp_path / "town.csv"))
