"""What an exact audit finds: the worst log likelihood ratio along secret edges, in both directions, and where."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from tacit.audit.sampled_audits.canonical import canonical
from tacit.audit.worlds import Neighbours
from tacit.drawing import Held
from tacit.errors import PlanError

Table = Mapping[Any, float]
Distinct = Mapping[str, tuple[Any, Any]]  # by canonical form: what Python calls equal (1, 1.0, True) may be told apart
ROUNDING: Final = 1e-12  # relative error that a table's probabilities may carry
LONGEST: Final = 160  # letters of a witness that are printed


class Loss(float):
    """A loss that surely lies between `low` and `high`; as a number it is `high`, so that `loss <= epsilon` is safe.

    >>> third = Loss.between(Fraction(1, 3), Fraction(1, 3))
    >>> Fraction(third.low) < Fraction(1, 3) < Fraction(third.high)
    True
    >>> float(Loss.between(Fraction(1, 2), Fraction(1, 2)))
    0.5
    """

    low: float

    def __new__(cls, low: float, high: float) -> Loss:
        """Make a loss from its two ends."""
        made = super().__new__(cls, high)
        made.low = low
        return made

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        """Return what a copy is made from."""
        return self.low, float(self)

    @classmethod
    def between(cls, low: Fraction | float, high: Fraction | float) -> Loss:
        """Return a loss between two exact numbers, rounded outward."""
        return cls(_rounded(low, up=False), _rounded(high, up=True))

    @property
    def high(self) -> float:
        """The upper end."""
        return float(self)

    def __iter__(self) -> Iterator[float]:
        yield self.low
        yield self.high

    def __repr__(self) -> str:
        if self.low == self.high or math.isclose(self.low, self.high, rel_tol=1e-9):
            return f"{self.high:.6g}"
        return f"{self.low:.4g} to {self.high:.4g}"

    __str__ = __repr__


@dataclass(frozen=True)
class Witness:
    """Where the worst loss is: two neighbouring data sets and an output that tells them apart."""

    hidden: Any
    cover: Any
    output: Any

    def __str__(self) -> str:
        return f"{_short(self.hidden)} -> {_short(self.cover)} at output {_short(self.output)}"


@dataclass(frozen=True, repr=False)
class ExactAudit(Held):
    """The worst-case loss of a mechanism along the secret edges of a policy.

    `forward` is what a guarantee is about (hidden -> cover); `backward` may be infinite and often is. `forward.low` is
    attained on the witness. `complete` says that every pair of neighbours was tried, so that the two ends differ by
    rounding only; otherwise `forward.high` is what the plan's proof allows, or infinite where there is no plan.
    """

    mechanism: str
    epsilon: float | None
    forward: Loss
    backward: Loss
    witness: Witness | None
    neighbours: int
    complete: bool

    @property
    def keeps(self) -> bool:
        """Whether the loss along secret edges surely is at most epsilon."""
        # a billionth: probabilities that are given as floating-point numbers carry their own rounding
        return self.epsilon is not None and self.forward.high <= self.epsilon * (1 + 1e-9)

    def __str__(self) -> str:
        tried = "all" if self.complete else "the most telling"
        claimed = "" if self.epsilon is None else f", claimed {self.epsilon:g}"
        return (
            f"{self.mechanism}: loss {self.forward} along secret edges{claimed}, {self.backward} backward "
            f"({tried} {self.neighbours:,} pairs of neighbours); worst: {self.witness}"
        )


def loss_of_tables(
    table: Callable[[Any], Table], pairs: list[Neighbours], epsilon: float | None, *, complete: bool
) -> ExactAudit:
    """Return the worst loss of a function from data sets to tables, over these pairs of neighbours."""
    tables: dict[Any, Distinct] = {}

    def of(world: tuple[Any, ...]) -> Distinct:
        if world not in tables:
            tables[world] = distinct(_checked(table(world)))
        return tables[world]

    forward, backward, witness = 0.0, 0.0, None
    for pair in pairs:
        ahead, output = distinct_loss(of(pair.hidden), of(pair.cover))
        if witness is None or ahead > forward:
            witness = Witness(pair.hidden, pair.cover, output)
        forward, backward = max(forward, ahead), max(backward, distinct_loss(of(pair.cover), of(pair.hidden))[0])
    slack = 4 * ROUNDING
    # what was not tried may be as bad as anything
    return ExactAudit(
        getattr(table, "__name__", "function"),
        epsilon,
        Loss(max(forward - slack, 0.0), math.inf if not complete else forward + slack if forward else 0.0),
        Loss(max(backward - slack, 0.0), math.inf if not complete else backward + slack if backward else 0.0),
        witness,
        len(pairs),
        complete,
    )


def distinct(table: Table) -> Distinct:
    """Return the probability of each output that a reader can tell from the others."""
    found: dict[str, tuple[Any, Any]] = {}
    for output, probability in table.items():
        said = canonical(output)
        found[said] = output, found.get(said, (output, 0))[1] + probability  # two keys may be NaN
    return found


def distinct_loss(hidden: Distinct, cover: Distinct) -> tuple[float, Any]:
    """Return the worst log likelihood ratio of two tables and the output where it is."""
    worst, at = -math.inf, None
    for said, (output, probability) in hidden.items():
        if probability <= 0:
            continue
        other = cover.get(said, (None, 0.0))[1]
        ratio = math.inf if other <= 0 else _log(probability) - _log(other)
        if ratio > worst:
            worst, at = ratio, output
    return worst, at


def _log(probability: Any) -> float:
    """Return the logarithm, also of a fraction that is too small for a double."""
    if isinstance(probability, Fraction):
        return math.log(probability.numerator) - math.log(probability.denominator)
    return math.log(probability)


def _checked(table: Any) -> Table:
    if not isinstance(table, Mapping):
        raise PlanError(
            "must return {output: probability} for a data set",
            key="mechanism",
            given=type(table).__name__,
            fix="Audit a function that draws outputs with tc.audit.sampled.",
        )
    total = math.fsum(table.values())
    if any(not 0 <= p <= 1 + ROUNDING for p in table.values()) or not math.isclose(total, 1, abs_tol=1e-9):
        raise PlanError(
            "must be probabilities that add up to 1",
            key="table",
            given=total,
            fix="Enter an infinite tail as one output, with its whole probability.",
        )
    return table


def _short(value: Any) -> str:
    said = str(value)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} .."


def _rounded(exact: Fraction | float, *, up: bool) -> float:
    near = float(exact)
    if not isinstance(exact, Fraction) or math.isinf(near) or Fraction(near) == exact:
        return near
    if (Fraction(near) > exact) == up:
        return near
    return math.nextafter(near, math.inf if up else -math.inf)
