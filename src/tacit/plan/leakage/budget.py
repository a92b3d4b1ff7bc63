"""`leakage_budget`: epsilons for each attribute that release the most while nobody learns more than a limit.

Guarantee   The epsilons that are returned keep every limit by evaluation; with coalitions that goes through all
            outcomes. Nothing that is allowed is better by more than `gap`.
Assumes     The dependence is the true one, or at most `drift` away from it, and coins are remembered: asking again
            shows nothing more. Limits bound what is learned on average; a single outcome may tell more, which
            `tc.audit.exclusion` says.
Why         Without coalitions the program is convex (`convex_program`); the sum of epsilons is cut by the price of its
            limit (`one_limit`), or into boxes where there are several. For a drift, limits are lowered by what leakage
            can rise (`leakage_plan`). Epsilons are rounded down, and leakage rises with each of them.
            Coalitions: joint informations and the surest outcome rise with each release probability (`outcomes`).
            Lines that no coalition connects are planned apart, since gains add up; where a posterior is limited,
            coalitions without a limit on information connect theirs too. A few lines are planned by cutting boxes
            (`coalition_boxes`): first under limits that rise, then with bounds that close faster. For many there is a
            convex bound that is never below the joint information: what it allows is allowed, and is then raised as
            far as the joint information itself allows. Nobody can gain more than each line alone, with nothing else
            released, since limits rise. Over days and people limits are kept by bounds (`outcomes`); what a line could
            reach alone is exact.
Reference   Lee and Smith, Privacy Leakage over Dependent Attributes in One-Sided Differential Privacy, section V-C;
            docs/decisions/0015-leakage.md.
Checked by  tests/unit/plan/test_leakage_program.py, tests/unit/plan/test_leakage_plan.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.errors import PlanError, sealed, word_or_kind
from tacit.plan.leakage.coalition_boxes import (
    ROUNDING,
    CurvedLimits,
    RisingLimits,
    shows_apart,
    solve_curved,
    solve_rising,
)
from tacit.plan.leakage.convex_program import ConvexProgram, Solved, epsilons, solve, solve_sum, where_it_ends
from tacit.plan.leakage.informations import NOTHING, MeasuredTables, Terms
from tacit.plan.leakage.leakage_plan import LeakagePlan, allowance, by_line, uses_of
from tacit.plan.leakage.one_limit import solve_one
from tacit.plan.leakage.outcomes import JointLimit, PosteriorLimit, SummedLimit
from tacit.plan.leakage.setting import (
    LeakageSetting,
    checked_cap,
    checked_posterior,
    checked_setting,
    checked_weights,
    largest_posterior,
    nonnegative,
)

TOLERANCE = 1e-7
COARSE = 1e-6  # of the value: for what is found by cutting boxes
NARROW = 5e-7  # where one limit is cut by its price, and where bounds close with the square of a box
MOST_INTERVALS = 300  # of prices
MOST_BOXES = 600  # convex programs times lines: a few seconds
FEWEST_BOXES = 20
MOST_RISING = 6_000  # boxes of a coalition's lines
FIRST_RISING = 600  # where bounds that close faster come next
MOST_CURVED = 6_000
FEW_LINES = 3  # that coalitions connect: more are planned by the convex bound
HALVINGS = 60
CERTAIN = 1e-9  # a release probability this near to one has no epsilon to speak of
DIGITS = 12  # of an epsilon, rounded down
LAST = 1 - 2.0**-53  # the last floating-point number before a certain release; its epsilon is 36.7
OBJECTIVES = ("releases", "epsilon")


@sealed
def leakage_budget(
    dependence: Dependence,
    *,
    sensitive: Mapping[str, Iterable[Any]],
    limit: Any,
    weights: Any = None,
    measure: str = "value",
    applications: Any = None,
    coalitions: Any = None,
    cap: float | None = None,
    objective: str = "releases",
    own: bool = True,
    drift: float = 0.0,
    posterior: float | None = None,
) -> LeakagePlan:
    """Return the epsilons that release the most while what is learned stays within limits.

    Args:
        dependence: How the attributes depend on each other.
        sensitive: The sensitive values of each protected attribute.
        limit: In nats: one number for all protected attributes, or one for each attribute, or one for each coalition.
            A coalition is limited in what it learns about several attributes together; without coalitions, what is
            told about each is added up, which misses what only shows in several together.
        weights: What the release of an attribute is worth; 1 for each sensitive attribute by default. An attribute
            without a sensitive value is released as well if it has a weight.
        measure: `value`: what a value or its absence tells about the protected value. `bit`: what the absence alone
            tells about whether the protected attribute is sensitive.
        applications: Which attributes each application asks for, each with coins of its own. By default each attribute
            is an application of its own name.
        coalitions: Groups of applications that pool what they see: each is limited by the joint information. By
            default the informations of single releases are added up over all of them.
        cap: The largest epsilon.
        objective: `releases` (the expected weighted number of released values) or `epsilon` (their weighted sum).
        own: Whether what the release of an attribute says about that attribute itself counts. With coalitions it may
            be left out only where each limit is about one attribute.
        drift: The total variation by which the dependence may change before the plan must be made anew.
        posterior: The largest probability that any outcome a coalition could see may give to a protected attribute
            being sensitive: for every coalition and every protected attribute, and from all lines that the coalition
            sees, whatever `limit` and `own` say. Needs coalitions, and no drift.
    """
    if not isinstance(objective, str) or objective not in OBJECTIVES:
        given = word_or_kind(objective)
        raise PlanError("must be releases or epsilon", key="objective", given=given, fix="Leave it out.")
    extra = [name for name in weights if isinstance(name, str)] if isinstance(weights, Mapping) else []
    setting = checked_setting(
        dependence,
        sensitive=sensitive,
        limit=limit,
        measure=measure,
        applications=applications,
        coalitions=coalitions,
        shown=extra,
        own=own,
    )
    worth = checked_weights(weights, setting.lines)
    room = nonnegative(drift, key="drift", fix="A total variation between 0 and 1, for instance 0.001.")
    tables = setting.tables(dependence)
    limits = _lowered(setting, dependence, room)
    most_sure = checked_posterior(posterior, setting, dependence, drift=room)
    surest = [] if most_sure is None else setting.posterior_limits(dependence)
    most = checked_cap(cap)
    problem = _Problem(setting, tables, worth, most, objective, limits, most_sure or 0.0, surest)
    solved, method = problem.best()
    with np.errstate(divide="ignore"):  # a probability that is one after rounding stands for the cap
        found = np.minimum(epsilons(solved.u), math.inf if most is None else most)
    # an epsilon that is a little smaller keeps every limit, and can be charged as it is printed
    rounded = np.floor(found * 10.0**DIGITS) / 10.0**DIGITS
    u = -np.expm1(-rounded)
    value = float(problem.slopes @ (rounded if objective == "epsilon" else u))
    return LeakagePlan(
        epsilon=by_line(setting, rounded),
        release_probability=by_line(setting, u),
        value=value,
        gap=max(0.0, solved.bound - value),
        objective=objective,
        method=method,
        limits=uses_of(setting, tables, u),
        drift=room,
        setting=setting,
        dependence=dependence,
        u=u,
        posterior=None if most_sure is None else largest_posterior(setting, dependence, u),
        most_sure=most_sure,
    )


def _lowered(setting: LeakageSetting, dependence: Dependence, drift: float) -> Floats:
    """Return the limits, less what the leakage can rise while the dependence drifts."""
    lowered = [limit.most - allowance(setting, dependence, limit, drift) for limit in setting.limits]
    for limit, left in zip(setting.limits, lowered, strict=True):
        if left < 0:
            raise PlanError(
                f"leaves nothing of the limit {limit.most:g} on {', '.join(limit.about)}: so much could be learned "
                "once the dependence has changed",
                key="drift",
                given=drift,
                fix=f"Choose a smaller drift, or a limit above {limit.most - left:.3g}.",
            )
    return np.array(lowered)


class _LimitsOf(NamedTuple):
    """The limits that some lines count for, by number: on informations, and on how sure a coalition may become."""

    informations: list[int]
    posteriors: list[int]


@dataclass(frozen=True)
class _Problem:
    """Lines with weights, an objective, limits that are lowered for a drift, and what coalitions may become sure of."""

    setting: LeakageSetting
    tables: MeasuredTables
    weights: Floats
    cap: float | None
    objective: str
    limits: Floats
    most_sure: float
    surest: list[PosteriorLimit]  # none where no posterior is limited

    @cached_property
    def released(self) -> Floats:
        """How likely the attribute of each line is not sensitive."""
        return self.setting.released(self.tables)

    @cached_property
    def joint(self) -> list[JointLimit | SummedLimit]:
        return self.setting.joint_limits(self.tables)

    @property
    def slopes(self) -> Floats:
        """The factor of each line in the objective."""
        return self.weights if self.objective == "epsilon" else self.weights * self.released

    def gain(self, u: Floats) -> Floats:
        """Return what each line adds to the objective, at each row of release probabilities."""
        if self.objective == "epsilon":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(self.weights > 0, self.weights * epsilons(u), 0.0)
        return self.slopes * u

    def best(self) -> tuple[Solved, str]:
        """Return release probabilities, what they reach, a bound on what can be reached, and how they were found."""
        most = 1.0 if self.cap is None else -math.expm1(-self.cap)
        if self.objective == "epsilon":
            most = min(most, LAST)
        self._refuse_never_released()
        upper = np.where((self.weights > 0) & (self.released > 0), most, 0.0)
        if not upper.any():
            raise PlanError(
                "must leave a value to release: every attribute with a weight is always sensitive",
                key="sensitive",
                given=sorted({line.attribute for line in self.setting.lines}),
                fix="Give a weight to another attribute.",
            )
        singles = None if self.setting.joint else self.setting.pair_terms(self.tables)
        if singles is None:
            self._refuse_uncertain()
        alone = self._alone(upper) if singles is None else alone_bounds(singles, self.limits, upper)
        if self.objective == "epsilon":
            self._refuse_unbounded(alone)
        if singles is None:
            solved, method = self._of_coalitions(upper, alone)
        else:
            solved = self._convex(ConvexProgram(self.slopes, singles, self.limits, np.zeros_like(alone), alone))
            method = "convex" if self.objective == "releases" else "boxes"
        self._refuse_unbounded(solved.u)
        # an allowed plan stays allowed with every probability lowered to the last one, which costs it this at most
        beyond = 0.0 if self.cap is None else max(0.0, self.cap + math.log1p(-LAST))
        lost = beyond * float(self.weights[alone >= LAST].sum()) if self.objective == "epsilon" else 0.0
        return replace(solved, bound=solved.bound + lost), method

    def _convex(self, program: ConvexProgram) -> Solved:
        """Return the best under convex limits."""
        if self.objective == "epsilon":
            reach = float(program.gain @ epsilons(program.upper))
            if program.terms.limits == 1:
                tolerance = min(NARROW, COARSE * max(reach, 1e-3))
                one = solve_one(program, tolerance=tolerance, most_intervals=MOST_INTERVALS)
                if one is not None:
                    return one
            boxes = max(FEWEST_BOXES, MOST_BOXES // max(1, int((program.upper > 0).sum())))
            return solve_sum(program, tolerance=COARSE * max(reach, 1e-3), most_boxes=boxes)
        first = solve(program, tolerance=TOLERANCE)
        assert first is not None  # noqa: S101 - nothing released keeps every limit
        if first.bound - first.gain <= COARSE * first.gain:
            return first
        again = solve(program, tolerance=TOLERANCE * first.gain)  # where limits are tiny, so must be the gap
        return first if again is None or again.bound - again.gain > first.bound - first.gain else again

    def _refuse_never_released(self) -> None:
        """Refuse to add up the epsilon of a line that shows nothing: it would be free, and no bound would hold."""
        if self.objective != "epsilon":
            return
        never = [
            line
            for line, weight, released in zip(self.setting.lines, self.weights, self.released, strict=True)
            if weight > 0 and not released
        ]
        if never and len(never) < np.count_nonzero(self.weights):
            raise PlanError(
                f"must leave a value of {', '.join(map(str, never[:5]))} to release where epsilons are added up: what "
                "is always sensitive is never shown, at any epsilon",
                key="sensitive",
                given=sorted({line.attribute for line in never}),
                fix="Give weights to the other attributes only, or plan objective='releases'.",
            )

    def _refuse_unbounded(self, u: Floats) -> None:
        """Refuse a plan in which an epsilon has no bound: a release with certainty keeps every limit."""
        certain = [str(line) for line, one in zip(self.setting.lines, u.tolist(), strict=True) if one >= 1 - CERTAIN]
        if certain and self.cap is None:
            raise PlanError(
                "must be given, the largest epsilon that a plan may use: without it the epsilon of "
                f"{', '.join(certain[:5])} has no bound, because every limit holds even if each value that is not "
                "sensitive is released",
                key="cap",
                fix="Say cap=5, which releases 99 of 100, or lower the limit.",
            )

    # ---- coalitions ------------------------------------------------------------------------------------------------

    @cached_property
    def _has_bounds(self) -> bool:
        """Whether a limit is kept by a bound, since there are too many outcomes."""
        return any(one.is_bound for one in (*self.joint, *self.surest))

    def of_line(self, number: int) -> _Problem:
        """Return the problem in which nothing is shown but one line."""
        alone = self.setting.of_line(number)
        surest = alone.posterior_limits(self.tables.dependence) if self.surest else []
        return replace(self, setting=alone, surest=surest)

    def _refuse_uncertain(self) -> None:
        """Refuse limits that their bounds break before anything is shown."""
        nothing = np.zeros((1, len(self.setting.lines)))
        for limit, joint, most in zip(self.setting.limits, self.joint, self.limits.tolist(), strict=True):
            if joint.is_bound and joint.at(nothing)[0] > most:
                least = float(joint.at(nothing)[0]) + limit.most - most
                raise PlanError(
                    f"must be at least {least:.3g} about {', '.join(limit.about)}: so much would tell what lies beyond "
                    "the nearest attributes, and it has to be taken as known, since there are too many outcomes",
                    key="limit",
                    given=limit.most,
                    fix="Raise the limit, or plan fewer days or people.",
                )

    def _alone(self, upper: Floats) -> Floats:
        """Return beyond which release probability each line breaks a limit, with nothing else released."""
        found = upper.copy()
        for number, most in enumerate(upper.tolist()):
            # bounds hold for plans, and would claim too much about what no plan can reach
            problem = self.of_line(number) if self._has_bounds else self
            limits = problem._limits_of({number})
            along = partial(problem._along, np.zeros(len(upper)), np.eye(len(upper))[number], limits)
            if any(limits):
                # beyond the upper end a limit is certainly broken, in spite of rounding
                found[number] = _ends_of(along, most, ROUNDING)[1]
        return found

    def _of_coalitions(self, upper: Floats, alone: Floats) -> tuple[Solved, str]:
        """Return the plan of all parts together, and how it was found."""
        u, bound, method = np.zeros(len(upper)), 0.0, "boxes"
        for lines, limits in self._parts(len(upper)):
            if not any(limits):
                u[lines] = upper[lines]
                bound += float(self.gain(upper[None])[0, lines].sum())
            elif len(lines) <= FEW_LINES and not self._has_bounds:
                solved = self._few(alone, lines, limits)
                u[lines], bound = solved.u, bound + solved.bound
            else:
                u[lines] = self._many(alone, lines, limits)
                bound += float(self.gain(alone[None])[0, lines].sum())
                method = "safe"
        return Solved(u, float(self.gain(u[None]).sum()), bound), method

    def _excess(self, limits: _LimitsOf, u: Floats) -> Floats:
        """Return by how much each row of release probabilities breaks a limit, at most zero where it breaks none."""
        found = [self.joint[at].at(u) - self.limits[at] for at in limits.informations]
        found += [self.surest[at].at(u) - self.most_sure for at in limits.posteriors]
        return np.asarray(np.max(found, axis=0))

    def _limits_of(self, lines: set[int]) -> _LimitsOf:
        return _LimitsOf(
            [at for at, limit in enumerate(self.joint) if lines & limit.by_lines],
            [at for at, one in enumerate(self.surest) if lines & one.by_lines],
        )

    def _along(self, start: Floats, step: Floats, limits: _LimitsOf, share: float) -> float:
        return float(self._excess(limits, (start + share * step)[None])[0])

    def _few(self, upper: Floats, lines: list[int], limits: _LimitsOf) -> Solved:
        def spread(part: Floats) -> Floats:
            found = np.zeros((len(part), len(upper)))
            found[:, lines] = part
            return found

        def gain(part: Floats) -> Floats:
            return self.gain(spread(part))[:, lines]

        problem = RisingLimits(gain, lambda part: self._excess(limits, spread(part)), upper[lines])
        tolerance = COARSE * max(float(gain(upper[None, lines]).sum()), 1e-3)
        apart = [joint for joint in (self.joint[at] for at in limits.informations) if shows_apart(joint)]
        if limits.posteriors or len(apart) < len(limits.informations):
            return solve_rising(problem, tolerance=tolerance, most_boxes=MOST_RISING)
        tolerance = min(NARROW, tolerance)
        first = solve_rising(problem, tolerance=tolerance, most_boxes=FIRST_RISING)
        place = {line: at for at, line in enumerate(lines)}
        joint = [one.renumbered(place) for one in apart]
        curved = CurvedLimits(gain, joint, self.limits[limits.informations], upper[lines])
        return solve_curved(curved, first, tolerance=tolerance, most_boxes=MOST_CURVED)

    def _many(self, upper: Floats, lines: list[int], limits: _LimitsOf) -> Floats:
        """Return release probabilities of many lines: by the convex bound, then raised."""
        found, nothing = np.zeros(len(upper)), np.zeros(len(upper))
        found[lines] = self._safe(upper, lines, limits.informations) if limits.informations else upper[lines]
        # a hair, by rounding; and as far as a limit on posteriors needs it
        found = found * _ends_of(partial(self._along, nothing, found, limits), 1.0)[0]
        # first all lines together towards their bounds, then each by itself, what is worth most first
        steps = [np.isin(np.arange(len(upper)), lines).astype(np.float64)]
        steps += [np.eye(len(upper))[number] for number in sorted(lines, key=lambda one: -self.slopes[one])]
        for which in steps:
            step = which * (upper - found)
            along = partial(self._along, found, step, self._limits_of(set(np.flatnonzero(step).tolist())))
            found = found + _ends_of(along, 1.0)[0] * step
        return np.asarray(found[lines])

    def _safe(self, upper: Floats, lines: list[int], numbers: list[int]) -> Floats:
        """Return release probabilities that keep limits on informations, by the convex bound."""
        safe = self.setting.safe_terms(self.tables)
        terms = safe.part(np.isin(np.arange(safe.limits), numbers), np.isin(np.arange(len(upper)), lines))
        bounds = alone_bounds(terms, self.limits[numbers], upper[lines])
        return self._convex(
            ConvexProgram(self.slopes[lines], terms, self.limits[numbers], np.zeros(len(lines)), bounds)
        ).u

    def _parts(self, lines: int) -> list[tuple[list[int], _LimitsOf]]:
        """Return groups of lines that nothing connects, each with its limits."""
        group = list(range(lines))
        for seen in [*(limit.by_lines for limit in self.joint), *(one.by_lines for one in self.surest)]:
            joined = {group[number] for number in seen}
            group = [min(joined) if one in joined else one for one in group]
        parts = [[number for number in range(lines) if group[number] == name] for name in sorted(set(group))]
        return [(part, self._limits_of(set(part))) for part in parts]


def alone_bounds(terms: Terms, limits: Floats, upper: Floats) -> Floats:
    """Return bounds on release probabilities: what each line may have where nothing else is released."""
    # with nothing left of a limit, only what says nothing is released; rounding would let a little through
    leaks = (terms.each(upper) > NOTHING) & (limits <= 0)[:, None]
    upper = np.where(leaks.any(axis=0), 0.0, upper)
    whole = (terms.each(upper) <= np.maximum(limits, NOTHING)[:, None]).all(axis=0)
    ends = where_it_ends(
        lambda u: (terms.each(u) <= limits[:, None]).all(axis=0), np.zeros_like(upper), upper, HALVINGS
    )
    return np.where(whole, upper, ends[1])


def _ends_of(excess: Callable[[float], float], most: float, above: float = 0.0) -> tuple[float, float]:
    """Return two neighbouring numbers up to `most`: the excess is at most `above` at the first, more at the second."""
    if excess(most) <= above:
        return most, most
    low, high = where_it_ends(lambda number: excess(number) <= above, 0.0, most, HALVINGS)
    return float(low), float(high)
