"""The secrets that coins of true records are made from, and how far each line of coins was paid for.

Guarantee   A line that was raised to an epsilon was charged for it in the same transaction. What a line has reached
            counts only with the secret that its coins were made from: where the secret is another one, because it was
            rotated or lost, every line begins at nothing and is charged anew. So it does for each source that has a
            name: rows of two files never share a coin, and each file is paid for. A file that holds other rows than
            those that its coins were made for is refused (`ledger/clauses/contents.py`).
            With a key of the ledger (`TACIT_LEDGER_KEY`), whoever reads all of it knows nothing about its secrets.
Assumes     Without a key, who may read the ledger may know its secrets: with them, a missing cell whose coin was kept
            is known to be a secret. Such a ledger is therefore kept as closely as the rows; a file is for its owner
            alone. Sources of one data set without a name (frames, queries, Spark) are one table: of two tables with the
            same keys, one would tell the coins of the other. Two such tables have a data set each, or the coins are
            rotated in between.
Why         Coins that are remembered follow from one secret for each data set, never printed, and the names of a line
            (`plan/plans/records.py`) and of the source (`rows/files/columns.py`). With a key the secret is HMAC-SHA-256
            of a random text that the ledger keeps; seals are of other texts, so that they tell nothing about it. Lines
            carry a mark of that secret and a seal of the ledger, so that with a key nobody else can raise one, and all
            rows are under one seal, so that nobody can take one out or put one back (`ledger/store/row_seals.py`). A
            price
            is worked out from what was read; if that is no longer so when it is charged, nothing is written and the
            price is worked out again.
Reference   RFC 2104 (HMAC).
Checked by  tests/unit/ledger/test_ledger_coins.py, tests/unit/rows/test_file_contents.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlalchemy import inspect, select

from tacit.ledger.clauses.clause import Clause
from tacit.ledger.clauses.coin_seals import at, coin_seal, line_seal, mark_of, secret_of, short, shown_name
from tacit.ledger.clauses.contents import (
    NOTHING,
    Content,
    Kept,
    ShownContents,
    noted_now,
    read_contents,
    taken_back,
    unknown_before,
    write_contents,
)
from tacit.ledger.store.book import Book
from tacit.ledger.store.chain import LedgerEntry, amount_of
from tacit.ledger.store.page import Page
from tacit.ledger.store.schema import COINS, CONTENTS, LINES
from tacit.ledger.store.summed import LINE
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

    `contents` is what is noted of the files that lines were used for, and `shown` the lines that somebody was shown.
    """

    secret: bytes
    reached: Reached
    entries: Mapping[str, int]
    source: str = ""
    contents: Mapping[str, ShownContents] = field(default_factory=dict)
    shown: frozenset[str] = frozenset()

    def secret_of(self, line: str) -> bytes:
        """Return the secret of one line."""
        return secret_for(self.secret, at(self.source, line))

    def kept_now(self, content: Content, lines: Iterable[str]) -> dict[str, Kept]:
        """Return what is to be noted of the files of these lines before they are shown; refuse other rows.

        Lines whose files hold what was shown of them are not there.
        """
        found = {}
        for line in dict.fromkeys(lines):
            if (line in self.reached or line in self.shown) and line not in self.contents:
                raise unknown_before()
            secret = secret_for(self.secret, repr(("content", self.source, line)))
            found[line] = noted_now(content, self.contents.get(line, ShownContents(NOTHING)), secret)
        return {line: kept for line, kept in found.items() if kept is not None}

    @property
    def mark(self) -> str:
        """What tells these coins from those of other secrets and sources, and nothing about them."""
        return mark_of(self.secret, self.source)


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


class RaisedCoins(Clause):
    """What lines of coins reach with a charge, and what their files hold, after what was read of them."""

    def __init__(self, before: CoinState, after: Reached, contents: Contents) -> None:
        self._before, self._after, self._contents = before, after, contents

    def check(self, page: Page, dataset: str) -> None:
        """Leave the transaction if lines or what is noted of their files have moved: the price was another one.

        Raises:
            StateMoved: If they have.
        """
        before, now = self._before, read_state(page, dataset, {**self._after, **self._contents}, self._before.source)
        if (
            now is None
            or now.secret != before.secret
            or any(now.reached.get(line) != before.reached.get(line) for line in self._after)
            or any(now.contents.get(line) != before.contents.get(line) for line in self._contents)
        ):
            raise StateMoved

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        """Write how far the lines were paid for, and what their files hold."""
        before = self._before
        for line, epsilon in self._after.items():
            if before.reached.get(line) != epsilon:
                row: dict[str, Any] = {"dataset": dataset, "line": short(before.source, line)}
                row |= {"epsilon": str(epsilon), "entry": paid}
                page.put(LINES, {**row, "seal": line_seal(row, before.mark, page.seal)})
        for line, kept in self._contents.items():
            held = before.contents.get(line, ShownContents(NOTHING))
            _write(page, dataset, before, line, ShownContents(held.shown, kept))
        return None


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
        # rows of an older Tacit are sealed before coins are made by them
        found = self._book.read(lambda page: None if page.is_older else read_state(page, dataset, lines, source))

        def work(page: Page) -> CoinState | None:
            if read_state(page, dataset, lines, source) is None:  # no other process was faster
                self._begin(page, dataset)
            return read_state(page, dataset, lines, source)

        if found is None:
            found = self._book.write(work)
        assert found is not None  # noqa: S101 - it was begun
        return found

    def begun(self, dataset: str, lines: Sequence[str], source: str) -> CoinState | None:
        """Return the same of a data set that has such coins already, and write nothing; None if it has none."""
        return self._book.read(lambda page: read_state(page, dataset, lines, source))

    def paid_lines(self, dataset: str) -> list[Fraction]:
        """Return how far each line of a data set was paid for since it has its secret, over all sources.

        The seals of lines' own are not looked at: they hang on the names of sources, which a ledger does not keep.
        """

        def work(page: Page) -> list[Fraction]:
            listed = page.found(LINES, select(LINES).where(LINES.c.dataset == dataset))
            found = [amount_of(row["epsilon"]) for row in listed]
            return [epsilon for epsilon in found if epsilon is not None]

        return self._book.read(work)

    def were_shown(self, dataset: str, before: CoinState, contents: Contents) -> None:
        """Note that lines are shown with what their files held, or refuse that, if it was taken back."""

        def work(page: Page) -> None:
            for line, held in _held_now(page, dataset, before, contents).items():
                if held.asked == contents[line]:
                    _write(page, dataset, before, line, ShownContents(contents[line]))
                elif held.shown != contents[line]:
                    raise taken_back()

        self._book.write(work)

    def were_not_shown(self, dataset: str, before: CoinState, contents: Contents) -> None:
        """Take back what files held that lines were asked for with, where nobody was shown anything since."""

        def work(page: Page) -> None:
            for line, held in _held_now(page, dataset, before, contents).items():
                if held.asked == contents[line]:
                    _write(page, dataset, before, line, ShownContents(held.shown))

        self._book.write(work)

    def rotate(self, dataset: str) -> None:
        """Give a data set another secret."""
        self._book.write(lambda page: self._begin(page, dataset))

    def _begin(self, page: Page, dataset: str) -> None:
        """Give a data set a new secret, which forgets every line."""
        if page.seal.key is None:  # else the secret is not in the file
            self._book.store.close_to_others()
        for table in (LINES, CONTENTS):
            page.drop_all(table, dataset)
        secret = new_secret().hex()
        page.put(COINS, {"dataset": dataset, "secret": secret, "seal": coin_seal(dataset, secret, page.seal)})


def read_state(page: Page, dataset: str, lines: Iterable[str], source: str = "") -> CoinState | None:
    """Return the state of the coins of a data set, and of one source of it; None if it has no secret yet."""
    if page.is_older and not inspect(page.db).has_table(COINS.name):
        return None
    coin = page.rows(COINS, [(dataset,)]).get((dataset,))
    secret = None if coin is None else secret_of(coin, page.seal)
    if secret is None:
        return None
    state = CoinState(secret, {}, {}, source)
    names = {short(source, line): line for line in lines}
    reached, entries = {}, {}
    for row in page.rows(LINES, [(dataset, name) for name in names]).values():
        epsilon = amount_of(row["epsilon"])
        if epsilon is not None and row["seal"] == line_seal(row, state.mark, page.seal):
            reached[names[row["line"]]], entries[names[row["line"]]] = epsilon, int(row["entry"])
    kept = read_contents(page, dataset, names, mark_of(secret))
    shown: frozenset[str] = frozenset()
    if not page.is_older:
        shown = frozenset(line for line in names.values() if page.state(LINE, dataset, shown_name(line, state.mark)))
    return CoinState(secret, reached, entries, source, {names[name]: one for name, one in kept.items()}, shown)


def _held_now(page: Page, dataset: str, before: CoinState, lines: Iterable[str]) -> dict[str, ShownContents]:
    """Return what is noted of the files of lines now; nothing if they have got another secret meanwhile."""
    now = read_state(page, dataset, lines, before.source)
    if now is None or now.secret != before.secret:
        return {}
    return {line: now.contents.get(line, ShownContents(NOTHING)) for line in lines}


def _write(page: Page, dataset: str, before: CoinState, line: str, held: ShownContents) -> None:
    write_contents(page, dataset, short(before.source, line), held, mark_of(before.secret))
