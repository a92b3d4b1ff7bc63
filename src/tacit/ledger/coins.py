"""The secrets that coins of true records are made from, how far each line was paid for, and what its files held.

Guarantee   A line that was raised to an epsilon was charged for it in the same transaction. What a line has reached
            counts only with the secret that its coins were made from: under another secret (rotated or lost) every line
            begins at nothing and is charged anew. Each source with a name has lines of its own: rows of two files never
            share a coin, and each file is paid for.
            Coins that were made for some files are used again only where the files hold the same bytes, or, of CSV
            files, the same and new lines at the end. Anything else is refused before it is charged, and so is a line
            that was paid for or shown where the ledger does not say what its files held. Files that ended in a refusal,
            so that nothing of them was shown, may be repaired.
            With a key of the ledger (`TACIT_LEDGER_KEY`), whoever reads all of it learns nothing about its secrets, and
            so nothing about the files.
Assumes     Without a key, whoever may read the ledger may know its secrets; with them, a missing cell whose coin was
            kept is known to be a secret. So the ledger is guarded like the rows: its file is for its owner alone.
            Sources of one data set without a name (frames, queries, Spark) are one table: of two tables with the same
            keys, one would tell the coins of the other. Give two such tables a data set each, or rotate in between.
            That files have changed between two releases may be told. Bytes are compared only where a file was touched:
            its size, its times or its place on the disk differ. Frames, queries and Spark are not compared: a record
            under its key must then not change, as `plan/plans/records.py` assumes.
Why         Kept coins follow from one secret for each data set, never printed, and the names of a line
            (`plan/plans/records.py`) and of the source (`rows/files/table_files.py`). With a key the secret is
            HMAC-SHA-256 of a random text that the ledger keeps; seals are of other texts, so they tell nothing about
            it. Lines carry a mark of that secret and a seal, so that with a key nobody else can raise one; all rows are
            under one seal, so that nobody can take one out or put one back (`ledger/chain.py`). A price is
            computed from what was read; if that has changed when it is charged, nothing is written and the
            price is computed again.
            A gap that is filled later, by the same coin, was a secret before: so files must hold what they held. Equal
            bytes are equal rows. New lines behind the end of a whole file leave its rows as they were; since no key may
            occur twice (`release/results/shown_records.py`), they have keys, and so coins, of their own.
            What a line's files hold is written in the transaction that charges for it, before rows are opened, and only
            if nobody else has written meanwhile: so no two processes use one line for different bytes. The longest
            content counts, so that added lines are compared as well. It is first noted as asked for, then as shown, in
            a transaction of its own before anything is handed out; that one is refused if somebody has taken the note
            back meanwhile. Only what nobody was shown is taken back, after a refusal; a process that dies in between
            leaves it, and files are held to it.
            Marks are HMAC-SHA-256. Sizes are added to a pad made by SHAKE-256, with a secret of the line that is that
            of no coin; a pad belongs to one digest, and so to one list of sizes.
Reference   RFC 2104 (HMAC); NIST FIPS 202 (SHAKE).
Checked by  tests/unit/ledger/test_ledger_coins.py, tests/unit/rows/test_file_contents.py
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Protocol

from sqlalchemy import inspect, select

from tacit.errors import DataRefused
from tacit.ledger.chain import (
    LedgerEntry,
    amount_of,
    at,
    coin_seal,
    content_seal,
    line_seal,
    mark_of,
    secret_of,
    short,
    shown_name,
)
from tacit.ledger.clauses import Clause
from tacit.ledger.page import Book, Page
from tacit.ledger.schema import COINS, CONTENTS, LINES
from tacit.ledger.summed import LINE
from tacit.noise.kept_coins import new_secret, secret_for

_SIZE_BYTES: Final = 8
_ASKED: Final = "asked"
_SHOWN: Final = "shown"
_ANEW: Final = 'Nothing was charged. Say version=".." with a new text: it has its own coins, and is charged anew.'


class Content(Protocol):
    """What files hold; see `rows/files/identity.py`."""

    @property
    def stamp(self) -> str:
        """What changes whenever one of the files is written or replaced."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many bytes each file has."""

    def digest(self, sizes: Sequence[int]) -> str | None:
        """Return the digest of the files as they were when they had so many bytes; None if they were never so."""


@dataclass(frozen=True, repr=False)
class Kept:
    """What is kept of the files of a line: marks of their stamp and their digest, and their sizes, hidden."""

    stamp: str
    digest: str
    sizes: str


NOTHING: Final = Kept("", "", "")  # nothing was shown yet


@dataclass(frozen=True, repr=False)
class ShownContents:
    """What the files of a line held when it was last shown, and what they hold for whoever is being shown it now."""

    shown: Kept
    asked: Kept | None = None


def noted_now(content: Content, held: ShownContents, secret: bytes) -> Kept | None:
    """Return what is to be noted of the files of a line, None if they hold what was shown; or refuse them."""
    stamp = _mark(secret, "stamp", content.stamp)
    last = held.asked or held.shown
    if stamp == last.stamp:
        return held.asked
    if last != NOTHING:
        before = content.digest(_sizes(last.sizes, last.digest, secret))
        if before is None or _mark(secret, "digest", before) != last.digest:
            raise DataRefused(
                "the files must hold what they held when these records were last asked for, or CSV files more lines at "
                "the end: coins are remembered for each key, so that a gap that is filled now would have been a secret",
                fix=_ANEW,
            )
    sizes = content.sizes
    digest = _mark(secret, "digest", content.digest(sizes) or "")
    return Kept(stamp, digest, _hidden(sizes, digest, secret))


def unknown_before() -> DataRefused:
    """Return the refusal of files whose coins were used before, where nobody knows what they held then."""
    return DataRefused(
        "the files must be known to hold what they held when these records were last asked for, but the ledger does "
        "not say what that was: an older Tacit wrote it, or it was taken out",
        fix=_ANEW,
    )


def taken_back() -> DataRefused:
    """Return the refusal to show what was asked of files that somebody else has asked for differently meanwhile."""
    return DataRefused(
        "the files must hold the same for everybody who asks for these records: others have asked meanwhile, when they "
        "held something else",
        fix="Ask again: what was paid for costs nothing more.",
    )


def read_contents(page: Page, dataset: str, lines: Iterable[str], mark: str) -> dict[str, ShownContents]:
    """Return what is noted of the files of lines, by their short names; refuse what somebody has changed."""
    if page.is_older and not inspect(page.db).has_table(CONTENTS.name):
        return {}
    found: dict[str, dict[str, Kept]] = {}
    for row in page.rows(CONTENTS, [(dataset, line, state) for line in lines for state in (_SHOWN, _ASKED)]).values():
        if row["seal"] != content_seal(row, mark, page.seal):
            raise page.damaged("what it says of files was changed")
        found.setdefault(row["line"], {})[row["state"]] = Kept(row["stamp"], row["digest"], row["sizes"])
    # what is asked for was never noted alone: a row is gone
    if any(_SHOWN not in states for states in found.values()):
        raise page.damaged("what it says of files was changed")
    return {line: ShownContents(states[_SHOWN], states.get(_ASKED)) for line, states in found.items()}


def write_contents(page: Page, dataset: str, line: str, held: ShownContents, mark: str) -> None:
    """Note what the files of a line held and hold."""
    for state, kept in ((_SHOWN, held.shown), (_ASKED, held.asked)):
        if kept is None:
            page.drop(CONTENTS, (dataset, line, state))
            continue
        row = {"dataset": dataset, "line": line, "state": state}
        row |= {"stamp": kept.stamp, "digest": kept.digest, "sizes": kept.sizes}
        page.put(CONTENTS, {**row, "seal": content_seal(row, mark, page.seal)})


def _mark(secret: bytes, what: str, text: str) -> str:
    return secret_for(secret, f"{what} {text}").hex()


def _hidden(sizes: Sequence[int], digest: str, secret: bytes) -> str:
    plain = b"".join(size.to_bytes(_SIZE_BYTES, "big") for size in sizes)
    return _padded(plain, digest, secret).hex()


def _sizes(sizes: str, digest: str, secret: bytes) -> list[int]:
    plain = _padded(bytes.fromhex(sizes), digest, secret)
    return [int.from_bytes(plain[at : at + _SIZE_BYTES], "big") for at in range(0, len(plain), _SIZE_BYTES)]


def _padded(text: bytes, digest: str, secret: bytes) -> bytes:
    pad = hashlib.shake_256(secret_for(secret, f"pad {digest}")).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))


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
