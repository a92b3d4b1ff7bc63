"""The secrets that coins of true records are made from, how far each line was paid for, and what its files held.

Guarantee   A line that was raised to an epsilon was charged for it in the same transaction. What a line has reached
            counts only with the secret that its coins were made from: under another secret (rotated or lost) every line
            begins at nothing and is charged anew. Each source with a name has lines of its own: rows of two files never
            share a coin, and each file is paid for.
            Coins that were made for some files are used again only where the files hold the same bytes, or, of CSV
            files, the same and new lines at the end. Anything else is refused before it is charged, and so is a line
            that was paid for or shown where the ledger does not say what its files held. Files that ended in a refusal
            may be repaired, because nothing of them was shown.
            With a key of the ledger (`TACIT_LEDGER_KEY`), whoever reads all of it learns nothing about its secrets, and
            so nothing about the files.
Assumes     Without a key, whoever may read the ledger may know its secrets; with them, a missing cell whose coin was
            kept is known to be a secret. So the ledger is guarded like the rows: its file is for its owner alone.
            Sources of one data set without a name (frames, queries, Spark) are one table: of two tables with the same
            keys, one would tell the coins of the other. Give two such tables a data set each, or rotate in between.
            It may be known that files have changed between two releases. Bytes are compared only where a file was
            touched: its size, its times or its place on the disk differ. Frames, queries and Spark are not compared: a
            record under its key must then not change, as `plan/plans/records.py` assumes.
Why         Kept coins follow from one secret for each data set, never printed, and the names of a line
            (`plan/plans/records.py`) and of the source (`rows/files/table_files.py`). With a key the secret is
            HMAC-SHA-256 of a random text that the ledger keeps; seals are of other texts, so they tell nothing about
            it. Lines carry a mark of that secret and a seal, so that with a key nobody else can raise one; all rows are
            under one seal, so that nobody can remove one or put one back (`ledger/chain.py`). A price is
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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Protocol

from sqlalchemy import inspect, select

from tacit.errors import DataRefused
from tacit.ledger import chain
from tacit.ledger.accounts import LINE
from tacit.ledger.chain import COINS, CONTENTS, LINES, LedgerEntry, amount_of, line_key, mark_of
from tacit.ledger.clauses import Clause
from tacit.ledger.page import Book, Page
from tacit.noise.kept_coins import new_secret, secret_for

_SIZE_BYTES: Final = 8
_PENDING: Final = "asked"
_SHOWN: Final = "shown"
_ANEW: Final = 'Nothing was charged. Say version=".." with a new text: it has its own coins, and is charged anew.'


class Content(Protocol):
    """What files hold; see `rows/files/identity.py`."""

    @property
    def stamp(self) -> str:
        """A text that changes whenever one of the files is written or replaced."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many bytes each file has."""

    def digest(self, sizes: Sequence[int]) -> str | None:
        """Return the digest of the files as they were when they had these sizes; None if they never had."""


@dataclass(frozen=True, repr=False)
class ContentMarks:
    """What a ledger stores of the files of a line: marks of their stamp and their digest, and their sizes, hidden."""

    stamp: str
    digest: str
    sizes: str


NOTHING: Final = ContentMarks("", "", "")  # nothing was shown yet


@dataclass(frozen=True, repr=False)
class LineContents:
    """What the files of a line held when it was last shown, and what they hold for a release under way."""

    shown: ContentMarks = NOTHING
    pending: ContentMarks | None = None

    def marks_of(self, content: Content, secret: bytes) -> ContentMarks | None:
        """Return what is to be noted of the files of a line, None if they hold what was shown; or refuse them."""
        stamp = _mark(secret, "stamp", content.stamp)
        last = self.pending or self.shown
        if stamp == last.stamp:
            return self.pending
        if last != NOTHING:
            before = content.digest(_sizes(last.sizes, last.digest, secret))
            if before is None or _mark(secret, "digest", before) != last.digest:
                raise DataRefused(
                    "the files must hold what they held when these records were last asked for, or CSV files more "
                    "lines at the end: coins are remembered for each key, so that a gap that is filled now would have "
                    "been a secret",
                    fix=_ANEW,
                )
        sizes = content.sizes
        digest = _mark(secret, "digest", content.digest(sizes) or "")
        plain = b"".join(size.to_bytes(_SIZE_BYTES, "big") for size in sizes)
        return ContentMarks(stamp, digest, _padded(plain, digest, secret).hex())


def _mark(secret: bytes, what: str, text: str) -> str:
    return secret_for(secret, f"{what} {text}").hex()


def _sizes(sizes: str, digest: str, secret: bytes) -> list[int]:
    plain = _padded(bytes.fromhex(sizes), digest, secret)
    return [int.from_bytes(plain[at : at + _SIZE_BYTES], "big") for at in range(0, len(plain), _SIZE_BYTES)]


def _padded(text: bytes, digest: str, secret: bytes) -> bytes:
    pad = hashlib.shake_256(secret_for(secret, f"pad {digest}")).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, pad, strict=True))


Reached = Mapping[str, Fraction]
Contents = Mapping[str, ContentMarks]


@dataclass(frozen=True, repr=False)
class CoinState:
    """The secret of a data set's coins, how far the lines of a source were paid for, and the entries that paid.

    `contents` is what is noted of the files that lines were used for, and `shown` the lines that somebody was shown.
    """

    secret: bytes
    reached: Reached
    entries: Mapping[str, int]
    source: str = ""
    contents: Mapping[str, LineContents] = field(default_factory=dict)
    shown: frozenset[str] = frozenset()

    def secret_of(self, line: str) -> bytes:
        """Return the secret of one line."""
        return secret_for(self.secret, chain.line_name(self.source, line))

    def contents_now(self, content: Content, lines: Iterable[str]) -> dict[str, ContentMarks]:
        """Return what is to be noted of the files of these lines before they are shown; refuse other rows.

        Lines whose files hold what was shown of them are left out.
        """
        found = {}
        for line in dict.fromkeys(lines):
            if (line in self.reached or line in self.shown) and line not in self.contents:
                raise DataRefused(
                    "the files must be known to hold what they held when these records were last asked for, but the "
                    "ledger does not say what that was: an older Tacit wrote it, or it was taken out",
                    fix=_ANEW,
                )
            secret = secret_for(self.secret, repr(("content", self.source, line)))
            found[line] = self.contents.get(line, LineContents()).marks_of(content, secret)
        return {line: marks for line, marks in found.items() if marks is not None}

    @property
    def mark(self) -> str:
        """What tells these coins from those of other secrets and sources, and nothing about them."""
        return mark_of(self.secret, self.source)


class StateMoved(Exception):
    """Lines are no longer where they were when a price was worked out; leaves the transaction, which writes nothing."""


class RaisedCoins(Clause):
    """What lines of coins reach with a charge, and what their files hold, after what was read of them."""

    def __init__(self, before: CoinState, after: Reached, contents: Contents) -> None:
        self._before, self._after, self._contents = before, after, contents

    def check(self, page: Page, dataset: str) -> None:
        """Raise `StateMoved` if lines or what is noted of their files have moved: the price was another one."""
        before, now = self._before, read_state(page, dataset, {**self._after, **self._contents}, self._before.source)
        if (
            now is None
            or now.secret != before.secret
            or any(now.reached.get(line) != before.reached.get(line) for line in self._after)
            or any(now.contents.get(line) != before.contents.get(line) for line in self._contents)
        ):
            raise StateMoved

    def note(self, page: Page, dataset: str, analyst: str | None, paid: int | None) -> LedgerEntry | None:
        before = self._before
        for line, epsilon in self._after.items():
            if before.reached.get(line) != epsilon:
                row: dict[str, Any] = {"dataset": dataset, "line": line_key(before.source, line)}
                row |= {"epsilon": str(epsilon), "entry": paid}
                page.put(LINES, {**row, "seal": chain.line_seal(row, before.mark, page.seal)})
        for line, marks in self._contents.items():
            shown = before.contents.get(line, LineContents()).shown
            _write_contents(page, dataset, before, line, LineContents(shown, marks))
        return None


def begun_state(book: Book, dataset: str, lines: Sequence[str], source: str) -> CoinState:
    """Return the secret of a data set's coins, and how far these lines were paid for; begin with a new secret."""
    # rows of an older Tacit are sealed before coins are made by them
    found = book.read(lambda page: None if page.is_older else read_state(page, dataset, lines, source))

    def work(page: Page) -> CoinState | None:
        if read_state(page, dataset, lines, source) is None:  # no other process was faster
            new_coins(book, page, dataset)
        return read_state(page, dataset, lines, source)

    state = book.write(work) if found is None else found
    assert state is not None  # noqa: S101 - it was begun
    return state


def paid_lines(page: Page, dataset: str) -> list[Fraction]:
    """Return how far each line of a data set was paid for since it has its secret, over all sources.

    The lines' own seals are not checked: they depend on the names of sources, which a ledger does not store.
    """
    amounts = (amount_of(row["epsilon"]) for row in page.found(LINES, select(LINES).where(LINES.c.dataset == dataset)))
    return [epsilon for epsilon in amounts if epsilon is not None]


def settle_contents(page: Page, dataset: str, before: CoinState, contents: Contents, *, shown: bool) -> None:
    """Note that lines are shown with what their files held, or take that back where nobody was shown anything since.

    Raises:
        DataRefused: If lines are to be shown, and somebody else has taken that back.
    """
    now = read_state(page, dataset, contents, before.source)
    if now is None or now.secret != before.secret:
        return
    for line, marks in contents.items():
        noted = now.contents.get(line, LineContents())
        if noted.pending == marks:
            _write_contents(page, dataset, before, line, LineContents(marks if shown else noted.shown))
        elif shown and noted.shown != marks:
            raise DataRefused(
                "the files must hold the same for everybody who asks for these records: others have asked meanwhile, "
                "when they held something else",
                fix="Ask again: what was paid for costs nothing more.",
            )


def new_coins(book: Book, page: Page, dataset: str) -> None:
    """Give a data set a new secret, which forgets every line."""
    if page.seal.key is None:  # else the secret is not in the file
        book.store.close_to_others()
    for table in (LINES, CONTENTS):
        page.drop_all(table, dataset)
    secret = new_secret().hex()
    page.put(COINS, {"dataset": dataset, "secret": secret, "seal": chain.coin_seal(dataset, secret, page.seal)})


def read_state(page: Page, dataset: str, lines: Iterable[str], source: str = "") -> CoinState | None:
    """Return the state of the coins of a data set, and of one source of it; None if it has no secret yet."""
    if page.is_older and not inspect(page.db).has_table(COINS.name):
        return None
    coin = page.rows(COINS, [(dataset,)]).get((dataset,))
    secret = None if coin is None else chain.secret_of(coin, page.seal)
    if secret is None:
        return None
    state = CoinState(secret, {}, {}, source)
    names = {line_key(source, line): line for line in lines}
    reached, entries = {}, {}
    for row in page.rows(LINES, [(dataset, name) for name in names]).values():
        epsilon = amount_of(row["epsilon"])
        if epsilon is not None and row["seal"] == chain.line_seal(row, state.mark, page.seal):
            reached[names[row["line"]]], entries[names[row["line"]]] = epsilon, int(row["entry"])
    contents = {names[name]: one for name, one in _read_contents(page, dataset, names, mark_of(secret)).items()}
    shown: frozenset[str] = frozenset()
    if not page.is_older:
        marked = {line: chain.shown_name(line, state.mark) for line in names.values()}
        shown = frozenset(line for line, name in marked.items() if page.state(LINE, dataset, name))
    return CoinState(secret, reached, entries, source, contents, shown)


def _read_contents(page: Page, dataset: str, names: Iterable[str], mark: str) -> dict[str, LineContents]:
    """Return what is noted of the files of lines, by their keys; refuse what somebody has changed."""
    if page.is_older and not inspect(page.db).has_table(CONTENTS.name):
        return {}
    found: dict[str, dict[str, ContentMarks]] = {}
    keys = [(dataset, name, state) for name in names for state in (_SHOWN, _PENDING)]
    for row in page.rows(CONTENTS, keys).values():
        if row["seal"] != chain.content_seal(row, mark, page.seal):
            raise page.damaged("what it says of files was changed")
        found.setdefault(row["line"], {})[row["state"]] = ContentMarks(row["stamp"], row["digest"], row["sizes"])
    # what is pending was never noted alone: a row is gone
    if any(_SHOWN not in states for states in found.values()):
        raise page.damaged("what it says of files was changed")
    return {name: LineContents(states[_SHOWN], states.get(_PENDING)) for name, states in found.items()}


def _write_contents(page: Page, dataset: str, coins: CoinState, line: str, contents: LineContents) -> None:
    for state, marks in ((_SHOWN, contents.shown), (_PENDING, contents.pending)):
        key = (dataset, line_key(coins.source, line), state)
        if marks is None:
            page.drop(CONTENTS, key)
            continue
        row = dict(zip(("dataset", "line", "state"), key, strict=True))
        row |= {"stamp": marks.stamp, "digest": marks.digest, "sizes": marks.sizes}
        page.put(CONTENTS, {**row, "seal": chain.content_seal(row, mark_of(coins.secret), page.seal)})
