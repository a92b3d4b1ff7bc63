"""What noise on a line is made of: rates, whole cells on each level, and those that the end of a segment cuts short."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.noise.line.messages import Message, joined, sharpened, unit_message


@dataclass(frozen=True)
class Rates:
    """The rates of a segment as doubles: anchors, cells from the largest to single values, and the end."""

    anchor: float
    cells: tuple[float, ...]
    end: float | None

    def times(self, factor: float) -> Rates:
        """Return all rates times a factor."""
        end = None if self.end is None else self.end * factor
        return Rates(self.anchor * factor, tuple(rate * factor for rate in self.cells), end)

    @property
    def levels(self) -> int:
        """How often a block is halved."""
        return len(self.cells) - 1

    @property
    def block(self) -> int:
        """How many values a block has."""
        return 1 << self.levels


def level_messages(cells: tuple[float, ...]) -> tuple[Message, ...]:
    """Return the messages of whole cells, from the block to a single value."""
    found = [unit_message(cells[-1])]
    for rate in reversed(cells[:-1]):
        found.append(sharpened(joined(found[-1], found[-1]), rate))
    return tuple(reversed(found))


def cut_messages(rest: int, cells: tuple[float, ...], levels: tuple[Message, ...]) -> dict[int, Message]:
    """Return the messages of the cells that the end of a segment cuts short, by level, where `rest` values remain.

    On each level it is one cell: whatever lies behind the last multiple of its size.
    """
    found: dict[int, Message] = {}
    depth = len(cells) - 1
    for level in range(depth - 1, -1, -1):
        half = 1 << (depth - level - 1)
        inside = rest % (2 * half)
        if not inside:
            continue
        inner = found.get(level + 1)
        if inside >= half:
            inner = levels[level + 1] if inner is None else joined(levels[level + 1], inner)
        found[level] = sharpened(inner, cells[level])  # type: ignore[arg-type]
    return found


def cut_levels(rest: int, depth: int) -> list[int]:
    """Return the levels of the whole cells that `rest` values are made of, the largest first."""
    return [level for level in range(1, depth + 1) if rest & (1 << (depth - level))]
