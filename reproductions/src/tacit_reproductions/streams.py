"""The noise of a reproduction: the same for everybody, part by part, so that a page can be made again to the digit.

Nothing here is a release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

from tacit import noise

OnProgress: TypeAlias = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Streams:
    """The streams of one paper; `fresh` draws new noise instead."""

    paper: str
    fresh: bool = False

    def of(self, part: str) -> AbstractContextManager[Any]:
        """Replay the stream of one part by itself: parts may be left out or change places."""
        if self.fresh:
            return nullcontext()
        key = hashlib.sha256(f"tacit reproduce {self.paper}: {part}".encode()).digest()
        return noise.replayed(noise.Keystream(key=key))

    @contextmanager
    def shown(self, part: str, parts: Sequence[str], on_progress: OnProgress) -> Iterator[None]:
        """Say how far the work has come, and replay the stream of this part."""
        on_progress(part, parts.index(part), len(parts))
        with self.of(part):
            yield
