"""One number for each person, made of the rows of that person that count, and the policy of such numbers.

It is how many rows there are, or of a number in them the sum, the mean or the largest. It is asked about like any
other attribute, under the policy that follows for it from that of the rows.

A person without a row that counts, and that `where` picks, has no number. Any other number is rounded to the nearest
multiple of `step` (upwards in the middle) and cut to a range: from the smallest that rows can make, up to `at_most`.

Guarantee   For every two data sets of rows that are neighbours under `NumberPolicy.rows`, the data sets of people's
            numbers are equal, or neighbours under the `NumberPolicy`: one person's number moves along an edge or, with
            presence secret, comes or goes. So a release that keeps its promise under the `NumberPolicy` keeps the
            promise of the policy of the rows, at the same epsilon. Range and step are public.
Assumes     `policy/inclusion.py` for neighbours: the rows of one owner change, at most `per_person` of them, each once.
            Where an edge changes what is known, others must change as well, and nothing is asked: refused.
Why         One owner's rows change, and everybody else's number stays.
            * If rows may come or go, or an edge may change whether `where` picks a row, the number may become any
              other, come or go. Any two numbers are an edge then, and presence is secret: nothing is excluded. That
              somebody stays with fewer rows is why this is more than coming and going.
            * Else rows stay where they are, and with them whether there is a number. How many rows there are does not
              change: no edge. Along an edge the attribute moves by `t` at most. With up to m rows a sum moves by m t,
              and a mean and a largest number by t: each is at most t above what it was. Cutting moves no two numbers
              apart, and numbers at a distance of d are ceil(d / step) steps apart once they are rounded, at most.
              So numbers at that distance are edges; all of them, where it is the range.
Reference   Blowfish privacy: a policy of what follows from records, in the place of that of the records.
Checked by  tests/property/test_person_numbers.py, tests/contract/test_person_numbers_on_engines.py
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.amounts import as_fraction, shown
from tacit.arrays import Ints
from tacit.errors import PlanError, PolicyError, nearest, word_or_kind
from tacit.policy.attributes import Decimals, Integers
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.genuine import settle
from tacit.policy.policy import Policy
from tacit.policy.secrets import Everything, Partition, Secrets, TakingPart, Within
from tacit.policy.where import Where

EACH: Final = ("rows", "sum", "mean", "max")
MOST_VALUES: Final = 5_000_000  # of a person's number
MOST_NAMED: Final = 1000  # cells of a table of numbers, the last of which is named "or more"
LARGEST: Final = 2**60  # what numbers are worked out in
_NAMES: Final = {"rows": "rows per person", "sum": "{} per person", "mean": "mean {} per person"}
_NAMES["max"] = "largest {} per person"


@dataclass(frozen=True)
class PersonNumber:
    """What a person's number is: how many `rows`, or the `sum`, `mean` or `max` of an attribute in them.

    Numbers above `at_most` count as that, and all are rounded to multiples of `step`. Only rows that `where` picks are
    looked at.
    """

    each: str
    attribute: str | None = None
    at_most: Fraction | None = None
    step: Fraction | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        settle(self)
        if self.each not in EACH:
            given, fix = word_or_kind(self.each), nearest(str(self.each), EACH)
            raise PlanError("must be rows, sum, mean or max", key="each", given=given, fix=fix)
        if (self.each == "rows") != (self.attribute is None):
            if self.attribute is None:
                rule = "must be made of an attribute"
                raise PlanError(rule, key=f"each: {self.each}", fix="Name it, or ask for `each: rows`.")
            rule = "counts rows and takes no attribute"
            raise PlanError(rule, key="each: rows", given=self.attribute, fix="Leave the attribute out, or write sum.")
        for key in ("at_most", "step"):
            if (given := getattr(self, key)) is not None:
                number = as_fraction(given, key=key)
                if 10**15 % number.denominator:
                    raise PlanError("must be a decimal number", key=key, given=shown(number), fix="For instance 0.25.")
                object.__setattr__(self, key, number)
        if self.step is not None and self.step <= 0:
            raise PlanError("must be positive", key="step", given=shown(self.step), fix="For instance 10.")

    @property
    def name(self) -> str:
        """What a person's number is called, like an attribute."""
        return _NAMES[self.each].format(self.attribute)

    def check(self, domain: Domain) -> None:
        """Refuse what the domain of the rows does not have."""
        try:
            if self.attribute is not None and domain.attribute(self.attribute, key="attribute").unit is None:
                rule, fix = "must be declared as integers or decimals", "Ask for `each: rows`."
                raise PlanError(rule, key=f"each: {self.each}", given=self.attribute, fix=fix)
            if self.where is not None:
                self.where.compile(domain)
        except PolicyError as refusal:
            raise refusal.retold(PlanError) from None

    def is_cut(self, values: Any) -> bool:
        """Say whether larger numbers of a person count as the last of these values."""
        end = _fraction(values.high)
        return self.each == "rows" or (self.at_most is not None and end + _fraction(values.step) > self.at_most)

    def cells(self, values: Any) -> Sequence[Any]:
        """Return what the cells of a table of these values are called: a last one that holds larger numbers says so."""
        listed: Sequence[Any] = values.every_cell()
        if values.size > MOST_NAMED or not self.is_cut(values):
            return listed
        return [*map(str, listed[:-1]), f"{listed[-1]} or more"]

    def cut_words(self, values: Any) -> str:
        """Say behind the name of the number which number larger ones count as; nothing if there are none."""
        return f", at most {shown(_fraction(values.high))} counted" if self.is_cut(values) else ""

    def document(self) -> dict[str, Any]:
        """Return what a job file says of it beside the attribute."""
        listed = {key: getattr(self, key) for key in ("at_most", "step")}
        numbers = {key: _plain(number) for key, number in listed.items() if number is not None}
        return {"each": self.each, **numbers, **({} if self.where is None else {"where": str(self.where)})}

    @property
    def options_in_words(self) -> str:
        """What is said of it beside its name, as it stands at the end of a question's name."""
        listed = (("at most", self.at_most), ("in steps of", self.step))
        said = [f"{key} {shown(one)}" for key, one in listed if one is not None]
        where = "" if self.where is None else f" where {self.where}"
        return "".join(f", {one}" for one in said) + where


@dataclass(frozen=True)
class PersonGrid:
    """Where a person's number lies: the places of `values`, for rows of which up to so many count.

    Numbers of the attribute are `first` + `spacing` * place. What is made of them, times `times` over `over`, is the
    number in steps, of which `lowest` are at the first place.
    """

    number: PersonNumber
    values: Integers | Decimals
    first: int
    spacing: int
    times: int
    over: int
    lowest: int

    @classmethod
    def of(cls, number: PersonNumber, domain: Domain, per_person: int) -> PersonGrid:
        """Return the grid of a number, or refuse a range without or with too many values."""
        first, spacing = 0, 1
        unit, low, high = Fraction(1), Fraction(1), Fraction(per_person)
        exact = Fraction(1)
        if number.attribute is not None:
            attribute: Any = domain[number.attribute]
            first, spacing, unit = int(attribute.number(0)), int(attribute.spacing), Fraction(attribute.unit)
            low, high = first * unit, int(attribute.number(attribute.size - 1)) * unit
            exact = unit * math.gcd(first, spacing)
            if number.each == "sum":
                low, high = min(low, low * per_person), max(high, high * per_person)
        largest = max(abs(low), abs(high))
        if number.at_most is not None:
            high = min(high, number.at_most)
        step = number.step or exact
        lowest, highest = math.floor(low / step), math.floor(high / step)
        if high < low:
            rule = f"must not be below the smallest number of a person, {shown(low)}"
            raise PlanError(rule, key="at_most", given=shown(high), fix="Raise it.")
        if lowest == highest and low < high:
            rule = f"must be smaller than the range of a person's number, {shown(low)} to {shown(high)}"
            raise PlanError(rule, key="step", given=shown(step), fix="Lower it.")
        if highest - lowest >= MOST_VALUES:
            rule = f"must have at most {MOST_VALUES:,} values, and has {highest - lowest + 1:,}"
            works = exact * math.ceil((high - low) / exact / (MOST_VALUES - 1))
            fix = f"Give this question `step: {shown(works)}` or more, to which each person's number is rounded"
            raise PlanError(rule, key=number.name, fix=f"{fix} (leave the step of the domain), or a smaller `at_most`.")
        scale = unit / step
        if 4 * max(largest / unit, Fraction(1)) * scale.numerator * scale.denominator * per_person > LARGEST:
            fix = "Give a `step` with fewer digits, or a smaller range."
            raise PlanError("must have fewer digits", key=number.name, given=shown(step), fix=fix)
        ends = lowest * step, highest * step
        whole = step.denominator == 1
        values = Integers(*map(int, (*ends, step))) if whole else Decimals(*map(_decimal, (*ends, step)))
        return cls(number, values, first, spacing, scale.numerator, scale.denominator, lowest)

    def places(self, rows: Ints, positions: Ints) -> Ints:
        """Return the places of people's numbers: of so many rows, whose positions make this sum, or are at most this.

        >>> grid = PersonGrid.of(PersonNumber("mean", "age"), Domain({"age": Integers(10, 20)}), 3)
        >>> grid.places(np.array([1, 2, 3]), np.array([0, 1, 3])).tolist()
        [0, 1, 1]
        """
        each = self.number.each
        if each == "rows":
            made, parts = rows, np.ones_like(rows)
        else:
            many = np.ones_like(rows) if each == "max" else rows
            made, parts = self.first * many + self.spacing * positions, many if each == "mean" else np.ones_like(rows)
        nearest_step = (2 * self.times * made + self.over * parts) // (2 * self.over * parts)
        found: Ints = np.clip(nearest_step - self.lowest, 0, self.values.size - 1)
        return found

    @property
    def words(self) -> str:
        """What the number of a person is, in words."""
        number, picked = self.number, "" if self.number.where is None else f" where {self.number.where.words}"
        of = {"rows": "how many they are", "max": f"their largest {number.attribute}"}
        what = of.get(number.each, f"the {number.each} of their {number.attribute}")
        ends = (shown(_fraction(self.values.low)), shown(_fraction(self.values.high)))
        return f"{what}{picked}, from {' to '.join(ends)} in steps of {shown(_fraction(self.values.step))}"


class NumberPolicy(Policy):
    """What a policy of rows is for one number of each person, which is the only attribute of its domain.

    It is charged, written and fingerprinted as the policy of the rows, `rows`.
    """

    rows: Policy
    grid: PersonGrid

    def __init__(self, rows: Policy, number: PersonNumber) -> None:
        if rows.person is None:
            rule = "needs to know whose row it is"
            fix = "Name the column of people and how many rows count: `person: patient`, `per_person: 5`."
            raise PlanError(rule, key="each", given=number.each, fix=fix)
        number.check(rows.domain)
        if sets := [name for name, attribute in rows.domain.items() if attribute.is_set]:
            rule, fix = "must not be asked for where items of all rows count", "Ask for the histogram of the items."
            raise PlanError(rule, key="each", given=sets[0], fix=fix)
        grid = PersonGrid.of(number, rows.domain, rows.per_person)
        domain = Domain({number.name: grid.values})
        rows_stay = not rows.absences and not (_columns(number.where) & rows.moved_attributes)
        secrets = _edges(number.name, grid, _reach(number, rows)) if rows_stay else Everything()
        known = [fact for fact in rows.known if fact.is_size] if rows_stay and number.where is None else []
        presence = "public" if rows_stay else "secret"
        super().__init__(domain, secrets, known, presence, rows.name, person=rows.person)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "grid", grid)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberPolicy) and (self.rows, self.grid) == (other.rows, other.grid)

    def __hash__(self) -> int:
        return hash((self.rows, self.grid))

    @property
    def charged(self) -> Policy:
        return self.rows

    def plain(self) -> Policy:
        """Return plain differential privacy for people's numbers: anybody's number comes or goes, or is replaced."""
        secrets, presence = (TakingPart(), "secret") if self.rows.absences else (Everything(), "public")
        name = f"{self.name} (differential privacy)"
        return Policy(self.domain, secrets, presence=presence, name=name, person=self.person)

    def document(self) -> dict[str, Any]:
        return self.rows.document()

    @property
    def fingerprint(self) -> str:
        return self.rows.fingerprint

    def describe(self) -> str:
        return self.rows.describe()

    def counted_in_words(self, of: str | None) -> str:
        """Say which rows count, and what is made of them."""
        rows = self.rows.counted_in_words("rows").partition("; every")[0]
        may = "; it may become any other where their rows change" if self.secrets == Everything() else ""
        return f"{rows}; their number is {self.grid.words}{may}"

    @property
    def scope_in_words(self) -> str:
        return self.rows.scope_in_words


def _reach(number: PersonNumber, rows: Policy) -> Fraction:
    """Return how far a person's number moves where no row comes or goes, in its unit."""
    if number.attribute is None:
        return Fraction(0)
    attribute: Any = rows.domain[number.attribute]
    (axis,) = rows.domain.axes_of(number.attribute)
    everywhere = Intervals.full(axis.size)
    far = max((shape.relation(axis).farthest(everywhere, everywhere) for shape in rows.shapes), default=0)
    each = far * int(attribute.spacing) * Fraction(attribute.unit)
    return each * rows.per_person if number.each == "sum" else each


def _edges(name: str, grid: PersonGrid, reach: Fraction) -> Secrets:
    """Return edges between the numbers that are no further apart than this, once they are rounded."""
    step = _fraction(grid.values.step)
    steps = math.ceil(reach / step)
    if steps == 0:
        return Partition(name, (step if step.denominator > 1 else int(step),))
    return Everything() if steps >= grid.values.size - 1 else Within(steps * step, (name,))


def _columns(where: Where | None) -> frozenset[str]:
    return frozenset() if where is None else where.columns()


def _fraction(number: Decimal | int) -> Fraction:
    return Fraction(number)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)
