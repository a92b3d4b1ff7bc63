"""`leakage_budget`: epsilons for each attribute that release the most while nobody learns more than a limit.

Guarantee   The epsilons that are returned keep every limit by evaluation; with coalitions that goes through all
            outcomes. Nothing that is allowed is better by more than `gap`.
Assumes     The dependence is the true one, or at most `drift` away from it, and coins are remembered: asking again
            shows nothing more. Limits bound what is learned on average; a single outcome may tell more, which
            `tc.audit.exclusion` says.
Why         Without coalitions the program is convex (`convex_program`); the sum of epsilons is cut by the price of its
            limit (`one_limit`), or into boxes where there are several (`epsilon_sum`). Coalitions: `coalition_budget`.
            For a drift, limits are lowered by what leakage can rise (`changed_dependence`). Epsilons are rounded down,
            and leakage rises with each of them.
Reference   Lee and Smith, Privacy Leakage over Dependent Attributes in One-Sided Differential Privacy, section V-C;
            docs/decisions/0015-leakage.md.
Checked by  tests/unit/plan/test_leakage_program.py, tests/unit/plan/test_leakage_plan.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.dependence.dependence import Dependence
from tacit.errors import PlanError, sealed, word_or_kind
from tacit.plan.leakage.coalition_budget import Coalitions, alone_bounds
from tacit.plan.leakage.leakage_plan import LeakagePlan, allowance, by_line, uses_of
from tacit.plan.leakage.measures.measured_tables import MeasuredTables
from tacit.plan.leakage.optimisers.convex_program import ConvexProgram, Solved, solve
from tacit.plan.leakage.optimisers.epsilon_sum import epsilons, solve_sum
from tacit.plan.leakage.optimisers.one_limit import solve_one
from tacit.plan.leakage.posterior_limit import Sure, checked_posterior, largest_posterior
from tacit.plan.leakage.setting import LeakageSetting, checked_cap, checked_setting, checked_weights, nonnegative

TOLERANCE = 1e-7
COARSE = 1e-6  # of the value: for what is found by cutting boxes
NARROW = 5e-7  # where one limit is cut by its price
MOST_INTERVALS = 300  # of prices
MOST_BOXES = 600  # convex programs times lines: a few seconds
FEWEST_BOXES = 20
CERTAIN = 1e-9  # a release probability this near to one has no epsilon to speak of
DIGITS = 12  # of an epsilon, rounded down
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
        raise PlanError(
            "must be releases or epsilon", key="objective", given=word_or_kind(objective), fix="Leave it out."
        )
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
    sure = checked_posterior(posterior, setting, dependence, drift=room)
    inputs = _Inputs(tables, setting, worth, setting.released(tables), checked_cap(cap), objective, limits, sure)
    u, value, bound, method = _best(inputs)
    # an epsilon that is a little smaller keeps every limit, and can be charged as it is printed
    rounded = np.floor(epsilons(u) * 10.0**DIGITS) / 10.0**DIGITS
    u = -np.expm1(-rounded)
    value = float(inputs.gain(u[None]).sum())
    return LeakagePlan(
        epsilon=by_line(setting, rounded),
        release_probability=by_line(setting, u),
        value=value,
        gap=max(0.0, bound - value),
        objective=objective,
        method=method,
        limits=uses_of(setting, tables, u),
        drift=room,
        setting=setting,
        dependence=dependence,
        u=u,
        posterior=largest_posterior(setting, dependence, u) if sure is not None else None,
        most_sure=None if sure is None else sure.most,
    )


@dataclass(frozen=True)
class _Inputs:
    """What is planned: lines with weights, limits that are lowered for a drift, and an objective."""

    tables: MeasuredTables
    setting: LeakageSetting
    weights: Floats
    released: Floats  # how likely the attribute of each line is not sensitive
    cap: float | None
    objective: str
    limits: Floats
    sure: Sure | None

    def gain(self, u: Floats) -> Floats:
        """Return what each line adds to the objective, at each row of release probabilities."""
        if self.objective == "epsilon":
            with np.errstate(divide="ignore", invalid="ignore"):
                found: Floats = np.where(self.weights > 0, self.weights * epsilons(u), 0.0)
            return found
        return self.weights * self.released * u


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


def _best(inputs: _Inputs) -> tuple[Floats, float, float, str]:
    """Return release probabilities, what they reach, a bound on what can be reached, and how they were found."""
    most = 1.0 if inputs.cap is None else -math.expm1(-inputs.cap)
    _refuse_never_released(inputs)
    upper = np.where((inputs.weights > 0) & (inputs.released > 0), most, 0.0)
    if not upper.any():
        raise PlanError(
            "must leave a value to release: every attribute with a weight is always sensitive",
            key="sensitive",
            given=sorted({line.attribute for line in inputs.setting.lines}),
            fix="Give a weight to another attribute.",
        )
    if inputs.setting.joint:
        joint = inputs.setting.joint_limits(inputs.tables)
        planned = Coalitions(
            inputs.setting,
            inputs.tables,
            joint,
            inputs.limits,
            inputs.gain,
            lambda program: _solved(inputs, program),
            inputs.sure,
        )
        alone = planned.alone(upper)
        _refuse_unbounded(inputs, alone if inputs.objective == "epsilon" else None)
        solved, method = planned.best(upper, alone, _slopes(inputs))
        _refuse_unbounded(inputs, solved.u)
        return solved.u, solved.gain, solved.bound, method
    singles = inputs.setting.pair_terms(inputs.tables)
    upper = alone_bounds(singles, inputs.limits, upper)
    _refuse_unbounded(inputs, upper if inputs.objective == "epsilon" else None)
    program = ConvexProgram(_slopes(inputs), singles, inputs.limits, np.zeros_like(upper), upper)
    solved = _solved(inputs, program)
    _refuse_unbounded(inputs, solved.u)
    return solved.u, solved.gain, solved.bound, "convex" if inputs.objective == "releases" else "boxes"


def _refuse_never_released(inputs: _Inputs) -> None:
    """Refuse to add up the epsilon of a line that shows nothing: it would be free, and no bound would hold for it."""
    if inputs.objective != "epsilon":
        return
    never = [
        str(line)
        for line, weight, released in zip(inputs.setting.lines, inputs.weights, inputs.released, strict=True)
        if weight > 0 and not released
    ]
    if never and len(never) < np.count_nonzero(inputs.weights):
        raise PlanError(
            f"must leave a value of {', '.join(never[:5])} to release where epsilons are added up: what is always "
            "sensitive is never shown, at any epsilon",
            key="sensitive",
            given=sorted({line.attribute for line in inputs.setting.lines if str(line) in never}),
            fix="Give weights to the other attributes only, or plan objective='releases'.",
        )


def _solved(inputs: _Inputs, program: ConvexProgram) -> Solved:
    if inputs.objective == "epsilon":
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


def _slopes(inputs: _Inputs) -> Floats:
    """Return the factor of each line in the objective."""
    return inputs.weights if inputs.objective == "epsilon" else inputs.weights * inputs.released


def _refuse_unbounded(inputs: _Inputs, u: Floats | None) -> None:
    """Refuse a plan in which an epsilon has no bound: a release with certainty keeps every limit."""
    if u is None or inputs.cap is not None:
        return
    certain = [str(line) for line, one in zip(inputs.setting.lines, u.tolist(), strict=True) if one >= 1 - CERTAIN]
    if certain:
        raise PlanError(
            f"must be given: the epsilon of {', '.join(certain[:5])} has no bound, because every limit holds even if "
            "each value that is not sensitive is released",
            key="cap",
            fix="Say cap=5, which releases 99 of 100, or lower the limit.",
        )
