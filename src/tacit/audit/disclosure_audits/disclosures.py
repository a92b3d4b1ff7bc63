"""What noisy answers disclose: groups whose share of a sensitive value a reader can guess with confidence.

A value is *disclosed* in a group if (1) a reader's guess of its confidence, the ratio of two published counts, is
within the share `tau` of the truth with probability `closeness` at least, and (2) the true confidence is at least
`jump` times the share of the value among all people. Accurate answers disclose much: an epsilon hides what one row
adds, not what a group of rows has in common. So fewer disclosures mean larger errors: a curve shows both against
epsilon (document 004, section 3.4).

Guarantee   None, and no protection: this audit reads private data, for the curator alone. It is marked so wherever it
            is shown, charges nothing and writes nothing.
Assumes     A reader knows everything of a person but the sensitive attribute that is guessed, and takes the share in
            that person's group for the probability. One row is one person, unless a plan's policy names persons.
Why         Document 004, Definitions 3 to 5. The probabilities are exact (`ratios.py`, `whole_ratios.py`).
            A group in which nobody has a value, a value that nobody has, a group of one and an attribute with one value
            have defined results: no guess but 0 is close to 0, and a jump over a share of 0 or 1 is 0 or 1.
Reference   Document 004, sections 3.2 to 3.4.
Checked by  tests/unit/audit/test_disclosures.py, reproductions/tests/test_disclosures_004.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.arrays import Bools, Floats
from tacit.audit.disclosure_audits.confidences import (
    ConfidenceColumns,
    Confidences,
    Names,
    OneScale,
    Planned,
    PublishedCounts,
    as_names,
    as_ways,
    check_apart,
    check_known,
    every_choice_of_columns,
    in_words,
)
from tacit.audit.disclosure_audits.ratios import LAPLACE
from tacit.audit.disclosure_audits.yardsticks import Yardsticks
from tacit.drawing import Held, draw
from tacit.errors import PlanError, kind_of, sealed, word_or_kind
from tacit.plan.plans.plan import Plan
from tacit.release.curator import PRIVATE
from tacit.release.curator.private_counts import counts_of_columns, counts_under

SANITY: Final = 1e-4  # of all people: smaller counts are not expected to be accurate (document 004, section 3.4.4)
LOWEST: Final = 1e-6
HIGHEST: Final = 1e3
DIGITS: Final = 1.002  # two epsilons closer than this are the same, to three digits


def overall_error(published: PublishedCounts, parts: Sequence[Confidences], people: int) -> float:
    """Return the mean over all counts of the expected error over the count.

    Where the sanity bound is larger than the count, over that.
    """
    total, cells = 0.0, 0
    for part in parts:
        for errors, counts in published.errors(part):
            total += float((errors / np.maximum(counts, max(SANITY * people, 1e-300))).sum())
            cells += len(counts)
    return total / cells if cells else 0.0


EPSILONS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # the range of document 004


@dataclass(frozen=True)
class Thresholds:
    """What counts as a disclosure."""

    tau: float
    closeness: float
    jump: float

    def __post_init__(self) -> None:
        for key, most in (("tau", 1), ("closeness", 1), ("jump", np.inf)):
            given = getattr(self, key)
            fits = isinstance(given, int | float | np.number) and not isinstance(given, bool) and 0 < given <= most
            if not fits or (key == "tau" and given == 1) or not np.isfinite(given):
                rule, usual = {
                    "tau": ("lie between 0 and 1", "0.2"),
                    "closeness": ("lie above 0 and at most at 1", "0.7"),
                    "jump": ("be a finite number above 0", "3"),
                }[key]
                raise PlanError(f"must {rule}", key=key, given=word_or_kind(given), fix=f"Usual: {usual}.")
            object.__setattr__(self, key, float(given))


@dataclass(frozen=True, eq=False, repr=False)
class Disclosure(Held):
    """What an audit of disclosures found. It holds true counts: for the curator only.

    `left_out` are the releases that the audit says nothing about. `people` is how many are counted; `incomplete` rows
    are not, because they miss a cell of a named column.
    """

    thresholds: Thresholds
    published: PublishedCounts
    parts: tuple[Confidences, ...]
    chances: tuple[Floats, ...]
    people: int
    left_out: tuple[str, ...] = ()
    incomplete: int = 0
    private: str = field(default=PRIVATE, init=False)

    @property
    def count(self) -> int:
        """How many values are disclosed, over all groups."""
        return sum(
            int(self._disclosed(part, chance).sum()) for part, chance in zip(self.parts, self.chances, strict=True)
        )

    @property
    def groups(self) -> int:
        """How many groups were looked at."""
        return sum(len(part.places) for part in self.parts)

    @property
    def error(self) -> float:
        """The expected error of a published count over the count itself, averaged (document 004, section 3.4.4)."""
        return overall_error(self.published, self.parts, self.people)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A line for each group and value: group, value, closeness, jump, disclosed."""
        return self._details[["group", "value", "closeness", "jump", "disclosed"]]

    def worst(self, most: int = 10) -> pd.DataFrame:
        """Return the disclosures with the largest jumps, with the size and the share of each group."""
        found = self._details[self._details["disclosed"]]
        return (
            found.sort_values(["jump", "closeness"], ascending=False, kind="stable").head(most).reset_index(drop=True)
        )

    def curve(self, epsilons: Sequence[float] = EPSILONS) -> pd.DataFrame:
        """Return disclosures and the overall error at other costs: epsilon, disclosures, error.

        Costs are left out at which there is no plan, or too much noise to add up.
        """
        rows = []
        for epsilon in epsilons:
            if not 0 < epsilon < np.inf:
                raise PlanError("must be numbers above 0", key="epsilons", given=word_or_kind(epsilon))
            many = self._tried(epsilon)
            if many is not None:
                rows.append((float(epsilon), many, self._error_at(epsilon)))
        return pd.DataFrame(rows, columns=["epsilon", "disclosures", "error"])

    @cached_property
    def largest_safe_epsilon(self) -> float | None:
        """The largest epsilon without a disclosure, to three digits; None if none between 10^-6 and 10^3 is known.

        Closeness grows with epsilon except for what two negative counts add, and that is never above one half. So a
        bisection finds where disclosures begin; its lower end is a cost that was computed.
        """
        start = self.published.epsilon
        low, high = (start, None) if not self._disclosures_at(start) else (None, start)
        while low is None or high is None:
            epsilon = (high or start) / 4 if low is None else low * 4
            many = self._tried(epsilon) if LOWEST <= epsilon <= HIGHEST else None
            if many is None:
                return None
            low, high = (epsilon, high) if not many else (low, epsilon)
        while high / low > DIGITS:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if self._tried(middle) != 0 else (middle, high)
        return low

    @property
    def error_when_safe(self) -> float | None:
        """The overall error that remains at that epsilon; None if there is none."""
        safe = self.largest_safe_epsilon
        return None if safe is None else self._error_at(safe)

    @property
    def yardsticks(self) -> tuple[Yardsticks, ...]:
        """How much alike the people of each table's groups are: k-anonymity and its kin."""
        return tuple(Yardsticks(part, 2, 0.1) for part in self.parts if len(part.places))

    def in_words_when_safe(self) -> str:
        """Say what the largest epsilon without a disclosure is, and how wrong counts are there."""
        if not any((part.jumps >= self.thresholds.jump).any() for part in self.parts):
            return "No share is so large that it could be disclosed, at any epsilon."
        safe, error = self.largest_safe_epsilon, self.error_when_safe
        if safe is None or error is None:
            return "A largest epsilon without a disclosure was not found."
        return f"Largest epsilon without a disclosure: {safe:.3g}. There a count is off by {error:.1%}."

    def chart(self) -> Any:
        """Return disclosures and error against epsilon in one chart."""
        return draw("disclosure", self)

    def document(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "private": self.private,
            "epsilon": self.published.epsilon,
            "thresholds": dict(vars(self.thresholds)),
            "people": self.people,
            "rows_left_out": self.incomplete,
            "groups": self.groups,
            "disclosures": self.count,
            "overall_error": self.error,
            "largest_epsilon_without_a_disclosure": self.largest_safe_epsilon,
            "overall_error_there": self.error_when_safe,
            "curve": self.curve().to_dict("records"),
            "worst": self.worst().to_dict("records"),
            "yardsticks": [table.document() for table in self.yardsticks],
            "left_out": list(self.left_out),
        }

    def __repr__(self) -> str:
        return "Disclosure(for the curator only)"

    def summary(self) -> list[str]:
        """Return in words what was found, and what was not looked at."""
        at = self.thresholds
        lines = [
            f"{self.count:,} disclosures in {self.groups:,} groups of {self.people:,} people, for epsilon "
            f"{self.published.epsilon:.4g}; a count is off by {self.error:.1%} on average.",
            f"Disclosed: a guess within {at.tau:.0%} of the true share with probability {at.closeness:.0%} at least, "
            f"where that share is {at.jump:g} times as large as among all people.",
        ]
        lines += [in_words(self.incomplete)] if self.incomplete else []
        lines.append(self.in_words_when_safe())
        tables = self.yardsticks
        if tables:
            lines.append(
                f"Over all tables: k-anonymity {min(one.k for one in tables)}, distinct l-diversity "
                f"{min(one.distinct for one in tables)}, t-closeness {max(one.t_equal for one in tables):.3g}, "
                f"beta-likeness {max(one.beta for one in tables):.3g}, delta-growth "
                f"{max(one.growth for one in tables):.3g}."
            )
        return [*lines, *(f"Not looked at: {one}." for one in self.left_out)]

    def __str__(self) -> str:
        lines = [self.private, "", *self.summary()]
        worst = self.worst(5)
        if len(worst):
            lines += ["", "Worst groups:"]
            lines += [
                f"  - {row.group} -> {row.told}: {row.share:.1%} of {row.size:,} people, "
                f"{row.jump:.1f} times the share of all; closeness {row.closeness:.3f}"
                for row in worst.itertuples()
            ]
        return "\n".join(lines)

    def _disclosed(self, part: Confidences, chances: Floats) -> Bools:
        return np.asarray((chances >= self.thresholds.closeness) & (part.jumps >= self.thresholds.jump))

    def _disclosures_at(self, epsilon: float) -> int:
        """Return how many values would be disclosed at another cost."""
        shown, at, found = self.published.at(epsilon), self.thresholds, 0
        for part in self.parts:
            lines, columns = np.nonzero((part.jumps >= at.jump) & (part.theta > 0))
            if len(lines):
                found += int((shown.closeness(part, at.tau, (lines, columns)) >= at.closeness).sum())
        return found

    def _tried(self, epsilon: float) -> int | None:
        """Return the same; None where there is no plan, or too much noise to add up."""
        try:
            return self._disclosures_at(epsilon)
        except PlanError:
            return None

    def _error_at(self, epsilon: float) -> float:
        return overall_error(self.published.at(epsilon), self.parts, self.people)

    @cached_property
    def _details(self) -> pd.DataFrame:
        several = len({part.columns.sensitive for part in self.parts}) > 1
        columns: dict[str, list[npt.NDArray[Any]]] = {}
        for part, chances in zip(self.parts, self.chances, strict=True):
            groups, values = part.theta.shape
            target = part.columns.sensitive
            called = np.array([f"{target}={value}" for value in part.values], dtype=object)
            plain = np.empty(values, dtype=object)
            plain[:] = list(part.values)
            for name, cells in {
                "group": np.repeat(np.array(part.labels(), dtype=object), values),
                "value": np.tile(called if several else plain, groups),
                "closeness": chances.reshape(-1),
                "jump": part.jumps.reshape(-1),
                "disclosed": self._disclosed(part, chances).reshape(-1),
                "told": np.tile(called, groups),
                "share": (part.theta / part.phi[:, None]).reshape(-1),
                "size": np.repeat(part.phi, values),
            }.items():
                columns.setdefault(name, []).append(cells)
        return pd.DataFrame({name: np.concatenate(cells) for name, cells in columns.items()})


@sealed
def disclosure(
    rows: Any,
    *,
    public: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    scale: float | None = None,
    plan: Plan | Sequence[Plan] | None = None,
    tau: float = 0.2,
    closeness: float = 0.7,
    jump: float = 3,
    ways: int | Sequence[int] = 2,
    noise: str = LAPLACE,
    step: float | None = None,
    weight: str | None = None,
) -> Disclosure:
    """Say which sensitive values noisy counts disclose, in which groups, and how sure a reader is.

    For the curator only: this audit reads private data. Nothing is charged, and nothing is written.

    Args:
        rows: what a session takes. Without a plan, rows that miss a cell of a named column are left out; with one, its
            domain decides.
        public: the attributes that a reader may know of a person; with `plan`, those that no secret edge changes.
        sensitive: one or more attributes that are told; with `plan`, those that secret edges change. Of several, each
            is also looked at where a reader knows another.
        scale: the scale of independent noise in all counts, of groups and of groups with a value. Or:
        plan: the plan of a release, or those of a whole job: then the noise is theirs, and whatever they leave exact.
        tau: how far off a guess may be, as a share of the truth.
        closeness: how likely a guess must be as near as that.
        jump: how many times as large as among all people the share in the group must be.
        ways: how many known attributes make a group; their number for the groups of people who share all. A list asks
            for several. Plans say by themselves which tables there are.
        noise: "laplace", "gaussian" (the scale is its standard deviation), "two-sided" or "one-sided".
        step: what the scale is for at epsilon 1; without it 4 for each table, as in document 004, Equation 3.12.
        weight: the column that says how many people each row stands for; without it one. Not with `plan`.
    """
    thresholds = Thresholds(tau, closeness, jump)
    if (scale is None) == (plan is None):
        raise PlanError("must be given, or a plan, and not both", key="scale", fix="For instance scale=48.0.")
    if plan is not None:
        if weight is not None:
            rule = "must not be given with a plan, whose policy says whose row it is"
            raise PlanError(
                rule, key="weight", given=kind_of(weight), fix="Leave it out, and give a row for each person."
            )
        return _of_plans(rows, _listed(plan), public, sensitive, thresholds)
    known, secret = as_names(public, "public"), as_names(sensitive, "sensitive")
    check_apart(known, secret)
    columns = every_choice_of_columns(known, secret, as_ways(ways))
    shown = OneScale.checked(scale, noise, 4 * len(columns) if step is None else step)
    counts = counts_of_columns(rows, [one.table for one in columns], weight)
    found = _audited(shown, [Confidences.of(one, counts) for one in columns], counts.people, thresholds)
    return replace(found, incomplete=counts.left_out)


def _of_plans(rows: Any, plans: tuple[Plan, ...], public: Any, sensitive: Any, thresholds: Thresholds) -> Disclosure:
    shown = Planned(plans)
    policy = shown.policy
    moved = [name for name in policy.domain if name in policy.moved_attributes]
    secret = tuple(moved) if sensitive is None else as_names(sensitive, "sensitive")
    check_known(secret, list(policy.domain), "sensitive")
    if public is None:
        known: Names = tuple(name for name in policy.domain if name not in secret)
    else:
        known = as_names(public, "public")
        check_known(known, list(policy.domain), "public")
    check_apart(known, secret)
    columns: list[ConfidenceColumns] = shown.columns(known, secret)
    if not columns:
        raise PlanError(
            "must publish counts of a sensitive attribute by others",
            key="plan",
            given="; ".join(str(one.query) for one in plans),
            fix="Ask for a histogram or marginals of both, or name what is sensitive.",
        )
    counts = counts_under(policy, rows, [one.table for one in columns])
    parts = [Confidences.of(one, counts) for one in columns]
    return _audited(shown, parts, counts.people, thresholds, shown.left_out)


def _listed(plan: Any) -> tuple[Plan, ...]:
    plans = tuple(plan) if isinstance(plan, list | tuple) else (plan,)
    for one in plans:
        if not isinstance(one, Plan):
            raise PlanError(f"must be a plan, not {kind_of(one)}", key="plan", fix="Take session.plan(query, epsilon).")
        if one.policy.fingerprint != plans[0].policy.fingerprint:
            raise PlanError(
                "must be made under one policy", key="plan", fix="Audit the plans of each policy by themselves."
            )
    if not plans:
        raise PlanError("must not be empty", key="plan", fix="Take session.plan(query, epsilon).")
    return plans


def _audited(
    shown: PublishedCounts,
    parts: Sequence[Confidences],
    people: int,
    thresholds: Thresholds,
    left_out: tuple[str, ...] = (),
) -> Disclosure:
    chances = []
    for part in parts:
        found = np.zeros(part.theta.shape)
        picked = np.nonzero(part.theta)
        if len(picked[0]):
            found[picked] = shown.closeness(part, thresholds.tau, (picked[0], picked[1]))
        chances.append(found)
    return Disclosure(thresholds, shown, tuple(parts), tuple(chances), people, left_out)
