"""What fuzzing needs: a limit of processor time for one input, and mistakes in documents, by the hundred thousand.

Inputs follow from a number, so that one that fails can be made again: `broken(number, text)`.
"""

import random
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tacit.errors import InternalError, TacitError

LIMIT = 5.0  # seconds for one input, of processor time: other work on the machine is no hang

_TOKEN = re.compile(r"[\w./]+|'[^']*'|\"[^\"]*\"|\[[^\[\]]*\]|\{[^{}]*\}")
_OPENED = ("[", "{a: ", "- ", "(", "not ")


class Hang(BaseException):
    """One input took too long; no Exception, so that nothing takes it for a refusal."""


@contextmanager
def in_time(limit: float = LIMIT) -> Iterator[None]:
    """End what takes more processor time than that."""

    def end(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def refusals(limit: float = LIMIT) -> Iterator[None]:
    """Let refusals pass: one sentence, and no fault of ours."""
    try:
        with in_time(limit):
            yield
    except InternalError:
        raise
    except TacitError as refusal:
        said = str(refusal)
    else:
        return
    assert said.strip()
    assert len(said) < 20_000


def broken(number: int, texts: Sequence[str], words: Sequence[str]) -> str:
    """Return one of the documents with mistakes in it: words, lines and letters exchanged, doubled or gone."""
    draw = random.Random(number)  # noqa: S311 - nothing is kept secret with it
    text = draw.choice(texts)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        text = draw.choice(_WAYS)(text, draw, words, texts)
    return text


def _exchange(text: str, draw: random.Random, words: Sequence[str], _: Sequence[str]) -> str:
    found = list(_TOKEN.finditer(text))
    if not found:
        return draw.choice(words)
    token = draw.choice(found)
    return text[: token.start()] + draw.choice(words) + text[token.end() :]


def _lines(text: str, draw: random.Random, _: Sequence[str], __: Sequence[str]) -> str:
    lines = text.split("\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(4):
        case 0:
            lines.insert(other, lines[one])
        case 1:
            del lines[one]
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case _:
            lines[one] = " " * draw.randrange(5) + lines[one].strip()
    return "\n".join(lines)


def _insert(text: str, draw: random.Random, words: Sequence[str], _: Sequence[str]) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + draw.choice(words) + text[at:]


def _cut(text: str, draw: random.Random, _: Sequence[str], __: Sequence[str]) -> str:
    at = draw.randrange(len(text) + 1)
    return text[:at] + text[at + draw.randrange(1, 30) :]


def _letter(text: str, draw: random.Random, _: Sequence[str], __: Sequence[str]) -> str:
    at = draw.randrange(len(text) + 1)
    sign = chr(draw.choice((draw.randrange(32, 127), draw.randrange(0x300), 0x85, 0x2028, 0xFEFF, 0x1F600)))
    return text[:at] + sign + text[at + 1 :]


def _splice(text: str, draw: random.Random, _: Sequence[str], texts: Sequence[str]) -> str:
    other = draw.choice(texts)
    start = draw.randrange(len(other))
    at, to = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
    return text[:at] + other[start : start + draw.randrange(80)] + text[to:]


def _nest(text: str, draw: random.Random, _: Sequence[str], __: Sequence[str]) -> str:
    return draw.choice(_OPENED) * draw.choice((3, 45, 500)) + text


_WAYS: tuple[Callable[..., str], ...] = (
    *[_exchange] * 9, *[_lines] * 3, *[_insert] * 3, _cut, *[_letter] * 2, _splice, _nest,
)  # fmt: skip
