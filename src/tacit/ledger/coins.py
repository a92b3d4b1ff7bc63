"""The secrets that coins of true records are made from, and how far each line of coins was paid for.

Guarantee   A line that was raised to an epsilon was charged for it in the same transaction. What a line has reached
            counts only with the secret that its coins were made from: where the secret is another one, because it was
            rotated or lost, every line begins at nothing and is charged anew. So it does for each source that has a
            name: rows of two files never share a coin, and each file is paid for. A file that holds other rows than
            those that its coins were made for is refused (`ledger/contents.py`).
            With a key of the ledger (`TACIT_LEDGER_KEY`), whoever reads all of it knows nothing about its secrets.
Assumes     Without a key, who may read the ledger may know its secrets: with them, a missing cell whose coin was kept
            is known to be a secret. Such a ledger is therefore kept as closely as the rows; a file is for its owner
            alone. Sources of one data set without a name (frames, queries, Spark) are one table: of two tables with the
            same keys, one would tell the coins of the other. Two such tables have a data set each, or the coins are
            rotated in between.
Why         Coins that are remembered follow from one secret for each data set, never printed, and the names of a line
            (`plan/records_plan.py`) and of the source (`rows/file_columns.py`). With a key the secret is HMAC-SHA-256
            of a random text that the ledger keeps; seals are of other texts, so that they tell nothing about it. Lines
            carry a mark of that secret and a seal of the ledger, so that with a key nobody else can raise one. A price
            is worked out from what was read; if that is no longer so when it is charged, nothing is written and the
            price is worked out again.
Reference   RFC 2104 (HMAC).
Checked by  tests/unit/test_ledger_coins.py, tests/unit/test_file_contents.py
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, delete, insert, inspect, select

from tacit.ledger.book import Book
from tacit.ledger.chain import Seal, amount_of
from tacit.ledger.contents import (
    NOTHING,
    Content,
    Held,
    Kept,
    changed_content,
    noted_now,
    read_contents,
    taken_back,
    unknown_before,
    write_contents,
)
from tacit.ledger.store import rows
from tacit.ledger.tables import COINS, CONTENTS, LINES
from tacit.noise.kept_coins import new_secret, secret_for

Reached = Mapping[str, Fraction]
Contents = Mapping[str, Kept]


@dataclass(frozen=True)
class Due:
    """One charge whose price may depend on what lines of coins have reached: its note, price, and what it raises."""

    what: str
    price: Callable[[Reached], Fraction]
    lines: Reached = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class CoinState:
    """The secret of a data set's coins, how far the lines of a source were paid for, and the entries that paid.

    `contents` is what is noted of the files that lines were used for.
    """

    secret: bytes
    reached: Reached
    entries: Mapping[str, int]
    source: str = ""
    contents: Mapping[str, Held] = field(default_factory=dict)

    def secret_of(self, line: str) -> bytes:
        """Return the secret of one line."""
        return secret_for(self.secret, _at(self.source, line))

    def kept_now(self, content: Content, lines: Iterable[str]) -> dict[str, Kept]:
        """Return what is to be noted of the files of these lines before they are shown; refuse other rows.

        Lines whose files hold what was shown of them are not there.
        """
        found = {}
        for line in dict.fromkeys(lines):
            if line in self.reached and line not in self.contents:
                raise unknown_before()
            secret = secret_for(self.secret, repr(("content", self.source, line)))
            found[line] = noted_now(content, self.contents.get(line, Held(NOTHING)), secret)
        return {line: kept for line, kept in found.items() if kept is not None}

    @property
    def mark(self) -> str:
        """What tells these coins from those of other secrets and sources, and nothing about them."""
        return _mark_of(self.secret, self.source)


class StateMoved(Exception):
    """Lines are no longer where they were when a price was worked out; leaves the transaction, which writes nothing."""


def prices(due: Sequence[Due], reached: Reached) -> tuple[list[Fraction], dict[str, Fraction]]:
    """Return what each charge costs after those before it, and what the lines have reached afterwards."""
    after = dict(reached)
    found = []
    for one in due:
        found.append(one.price(after))
        for line, epsilon in one.lines.items():
            after[line] = max(epsilon, after.get(line, Fraction(0)))
    return found, after


class OwnCoins:
    """The coins of a session without a ledger: as long as it lives."""

    def __init__(self) -> None:
        self._state = CoinState(b"", {}, {})

    def state(self, lines: Iterable[str]) -> CoinState:
        """Return the secret, and what the lines have reached; the first line that is asked for makes the secret."""
        if not self._state.secret and any(True for _ in lines):
            self._state = CoinState(new_secret(), {}, {})
        return self._state

    def raised(self, after: Reached) -> None:
        """Note what the lines have reached."""
        self._state = CoinState(self._state.secret, dict(after), {})


class KeptCoins:
    """The coins of all data sets of a ledger."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def state(self, dataset: str, lines: Sequence[str], source: str) -> CoinState:
        """Return the secret of a data set's coins, and how far these lines were paid for; begin with a new secret."""
        found = self.begun(dataset, lines, source)

        def work(db: Connection) -> CoinState | None:
            self._book.sound_head(db)
            if read_state(db, dataset, lines, self._book, source) is None:  # no other process was faster
                self._begin(db, dataset)
            return read_state(db, dataset, lines, self._book, source)

        if found is None:
            found = self._book.store.write(work)
        assert found is not None  # noqa: S101 - it was begun
        return found

    def begun(self, dataset: str, lines: Sequence[str], source: str) -> CoinState | None:
        """Return the same of a data set that has such coins already, and write nothing; None if it has none."""
        return self._book.store.read(lambda db: read_state(db, dataset, lines, self._book, source))

    def paid_lines(self, dataset: str) -> list[Fraction]:
        """Return how far each line of a data set was paid for since it has its secret, over all sources.

        The seals of lines are not looked at: they hang on the names of sources, which a ledger does not keep.
        """

        def work(db: Connection) -> list[Fraction]:
            if not inspect(db).has_table(LINES.name):
                return []
            found = [amount_of(row["epsilon"]) for row in rows(db, select(LINES).where(LINES.c.dataset == dataset))]
            return [epsilon for epsilon in found if epsilon is not None]

        return self._book.store.read(work)

    def were_shown(self, dataset: str, before: CoinState, contents: Contents) -> None:
        """Note that lines are shown with what their files held, or refuse that, if it was taken back."""

        def work(db: Connection) -> None:
            self._book.sound_head(db)
            for line, held in _held_now(db, dataset, before, contents, self._book).items():
                if held.asked == contents[line]:
                    _write(db, dataset, before, line, Held(contents[line]), self._book)
                elif held.shown != contents[line]:
                    raise taken_back()

        self._book.store.write(work)

    def were_not_shown(self, dataset: str, before: CoinState, contents: Contents) -> None:
        """Take back what files held that lines were asked for with, where nobody was shown anything since."""

        def work(db: Connection) -> None:
            self._book.sound_head(db)
            for line, held in _held_now(db, dataset, before, contents, self._book).items():
                if held.asked == contents[line]:
                    _write(db, dataset, before, line, Held(held.shown), self._book)

        self._book.store.write(work)

    def rotate(self, dataset: str) -> None:
        """Give a data set another secret."""

        def work(db: Connection) -> None:
            self._book.sound_head(db)
            self._begin(db, dataset)

        self._book.store.write(work)

    def _begin(self, db: Connection, dataset: str) -> None:
        if self._book.seal.key is None:  # else the secret is not in the file
            self._book.store.close_to_others()
        begin(db, dataset, self._book.seal)


def read_state(db: Connection, dataset: str, lines: Iterable[str], book: Book, source: str = "") -> CoinState | None:
    """Return the state of the coins of a data set, and of one source of it; None if it has no secret yet."""
    if not inspect(db).has_table(COINS.name):
        return None
    coin = next(iter(rows(db, select(COINS).where(COINS.c.dataset == dataset))), None)
    if coin is None or coin["seal"] != _coin_seal(dataset, coin["secret"], book.seal):
        return None
    state = CoinState(_secret(dataset, coin["secret"], book.seal), {}, {}, source)
    names = {_short(source, line): line for line in lines}
    reached, entries = {}, {}
    ours = (LINES.c.dataset == dataset) & LINES.c.line.in_(list(names))
    for row in rows(db, select(LINES).where(ours)) if names else ():
        epsilon = amount_of(row["epsilon"])
        if epsilon is not None and row["seal"] == _line_seal(row, state.mark, book.seal):
            reached[names[row["line"]]], entries[names[row["line"]]] = epsilon, int(row["entry"])
    kept = read_contents(db, dataset, names, _mark_of(state.secret), book)
    return CoinState(state.secret, reached, entries, source, {names[short]: one for short, one in kept.items()})


def begin(db: Connection, dataset: str, seal: Seal) -> None:
    """Give a data set a new secret, which forgets every line."""
    for table in (COINS, LINES, CONTENTS):
        table.create(db, checkfirst=True)
        db.execute(delete(table).where(table.c.dataset == dataset))
    secret = new_secret().hex()
    db.execute(insert(COINS).values(dataset=dataset, secret=secret, seal=_coin_seal(dataset, secret, seal)))


def raise_lines(db: Connection, dataset: str, before: CoinState, after: Reached, entry: int, book: Book) -> None:
    """Note what lines have reached, in the transaction that charges for it; leave it if they have moved meanwhile."""
    now = read_state(db, dataset, after, book, before.source)
    if (
        now is None
        or now.secret != before.secret
        or any(now.reached.get(line) != before.reached.get(line) for line in after)
    ):
        raise StateMoved
    for line, epsilon in after.items():
        if now.reached.get(line) == epsilon:
            continue
        name = _short(before.source, line)
        row: dict[str, Any] = {"dataset": dataset, "line": name, "epsilon": str(epsilon), "entry": entry}
        db.execute(delete(LINES).where((LINES.c.dataset == dataset) & (LINES.c.line == name)))
        db.execute(insert(LINES).values(**row, seal=_line_seal(row, before.mark, book.seal)))


def keep_contents(db: Connection, dataset: str, before: CoinState, contents: Contents, book: Book) -> None:
    """Note what the files of lines hold; leave the transaction if somebody else has noted something meanwhile."""
    now = read_state(db, dataset, contents, book, before.source)
    if (
        now is None
        or now.secret != before.secret
        or any(now.contents.get(line) != before.contents.get(line) for line in contents)
    ):
        raise StateMoved
    for line, kept in contents.items():
        held = now.contents.get(line, Held(NOTHING))
        _write(db, dataset, before, line, Held(held.shown, kept), book)


def changed_contents(db: Connection, seal: Seal) -> bool:
    """Say whether somebody has changed what is noted of files, of any line; what has no secret counts for nothing."""
    if not all(inspect(db).has_table(table.name) for table in (COINS, CONTENTS)):
        return False
    marks = {}
    for coin in rows(db, select(COINS)):
        if coin["seal"] == _coin_seal(coin["dataset"], coin["secret"], seal):
            marks[coin["dataset"]] = _mark_of(_secret(coin["dataset"], coin["secret"], seal))
    return any(
        changed_content(row, marks[row["dataset"]], seal)
        for row in rows(db, select(CONTENTS))
        if row["dataset"] in marks
    )


def _held_now(db: Connection, dataset: str, before: CoinState, lines: Iterable[str], book: Book) -> dict[str, Held]:
    """Return what is noted of the files of lines now; nothing if they have got another secret meanwhile."""
    now = read_state(db, dataset, lines, book, before.source)
    if now is None or now.secret != before.secret:
        return {}
    return {line: now.contents.get(line, Held(NOTHING)) for line in lines}


def _write(db: Connection, dataset: str, before: CoinState, line: str, held: Held, book: Book) -> None:
    write_contents(db, dataset, _short(before.source, line), held, _mark_of(before.secret), book.seal)


def _mark_of(secret: bytes, source: str = "") -> str:
    return hashlib.sha256(b"mark of coins" + secret + source.encode()).hexdigest()[:32]


def _at(source: str, line: str) -> str:
    return repr((source, line))


def _short(source: str, line: str) -> str:
    return hashlib.sha256(_at(source, line).encode()).hexdigest()


def _secret(dataset: str, kept: str, seal: Seal) -> bytes:
    """Return the secret that belongs to what a ledger keeps: with a key it is not in the ledger."""
    if seal.key is None:
        return bytes.fromhex(kept)
    return bytes.fromhex(seal.of({"ledger": "secret of coins", "dataset": dataset, "kept": kept}))


def _coin_seal(dataset: str, secret: str, seal: Seal) -> str:
    return seal.of({"ledger": "coins", "dataset": dataset, "secret": secret})


def _line_seal(row: Mapping[str, Any], mark: str, seal: Seal) -> str:
    fields = {name: row[name] for name in ("dataset", "line", "epsilon", "entry")}
    return seal.of({"ledger": "line", "mark": mark, **fields})
