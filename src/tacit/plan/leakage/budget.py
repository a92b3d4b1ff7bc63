"""`leakage_budget`: epsilons for each attribute that release the most while nobody learns more than a limit.

Guarantee   The epsilons that are returned keep every limit by evaluation; with coalitions that evaluation goes through all
            outcomes. Nothing that is allowed is better by more than `gap`.
Assumes     The dependence is the true one, or at most `drift` away from it, and coins are remembered: asking again shows
            nothing more. Epsilons bound what one record's release says; limits bound what it says on average.
Why         Without coalitions the program is convex (`convex_program`), or convex on boxes (`epsilon_sum`). Coalitions
            that share no line are planned apart, since gains add up; few lines by cutting boxes (`monotone_boxes`),
            many by a convex bound that is never below the joint leakage (`joint_terms`), from which probabilities
            are raised until a limit is met. Their bound is the sum of what each line could gain alone.
            For a drift, limits are lowered by what the leakage can rise (`changed_dependence`).
Reference   Lee, One-sided differential privacy under dependence, section V-C; docs/decisions/0015-leakage.md.
Checked by  tests/unit/test_leakage_program.py, tests/unit/test_leakage_plan.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.dependence.dependence import Dependence
from tacit.errors import PlanError, sealed, word_or_kind
from tacit.plan.leakage.convex_program import Program, Solved, solve
from tacit.plan.leakage.convex_terms import Floats, Mask, Terms
from tacit.plan.leakage.epsilon_sum import epsilons, solve_sum
from tacit.plan.leakage.leakage_plan import LeakagePlan, allowance, by_line, uses_of
from tacit.plan.leakage.monotone_boxes import ROUNDING, Rising, solve_rising
from tacit.plan.leakage.setting import Setting, checked_cap, checked_setting, checked_weights, nonnegative

TOLERANCE = 1e-7
COARSE = 1e-6  # of the value: for what is found by cutting boxes
MOST_BOXES = 300  # convex programs
MOST_RISING_BOXES = 12_000  # evaluations of a few outcomes each
FEW_LINES = 3  # of coalitions that share lines: more are planned by the convex bound
CERTAIN = 1e-9  # a release probability this near to one has no epsilon to speak of
HALVINGS = 60
NOTHING = 1e-15  # nats: what rounding makes of no information
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
) -> LeakagePlan:
    """Return the epsilons that release the most while what is learned stays within limits.

    Args:
        dependence: How the attributes depend on each other.
        sensitive: The sensitive values of each protected attribute.
        limit: In nats: one number for what is learned about all protected attributes together, or one for each
            attribute, or one for each coalition.
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
        own: Whether what the release of an attribute says about that attribute itself counts.
        drift: The total variation by which the dependence may change before the plan must be made anew.
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
    inputs = _Inputs(dependence, setting, worth, checked_cap(cap), objective, _lowered(setting, dependence, room))
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
        limits=uses_of(setting, dependence, u),
        drift=room,
        setting=setting,
        dependence=dependence,
        u=u,
    )


@dataclass(frozen=True)
class _Inputs:
    """What is planned: lines with weights, limits that are lowered for a drift, and an objective."""

    dependence: Dependence
    setting: Setting
    weights: Floats
    cap: float | None
    objective: str
    limits: Floats

    def gain(self, u: Floats) -> Floats:
        """Return what each line adds to the objective, at each row of release probabilities."""
        if self.objective == "epsilon":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(self.weights > 0, self.weights * epsilons(u), 0.0)
        return self.weights * self.released * u

    @property
    def released(self) -> Floats:
        """How likely the attribute of each line is not sensitive."""
        return self.setting.released(self.setting.tables(self.dependence))


def _lowered(setting: Setting, dependence: Dependence, drift: float) -> Floats:
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
    tables = inputs.setting.tables(inputs.dependence)
    most = 1.0 if inputs.cap is None else -math.expm1(-inputs.cap)
    upper = np.where((inputs.weights > 0) & (inputs.released > 0), most, 0.0)
    if not upper.any():
        raise PlanError(
            "must leave a value to release: every attribute with a weight is always sensitive",
            key="sensitive",
            given=sorted({line.attribute for line in inputs.setting.lines}),
            fix="Give a weight to another attribute.",
        )
    singles = inputs.setting.pair_terms(tables)
    if inputs.setting.joint:
        return _by_coalition(inputs, upper, singles)
    upper = _alone(singles, inputs.limits, upper)
    _refuse_unbounded(inputs, upper if inputs.objective == "epsilon" else None)
    gain = inputs.weights if inputs.objective == "epsilon" else inputs.weights * inputs.released
    program = Program(gain, singles, inputs.limits, np.zeros_like(upper), upper)
    solved = _solved(inputs, program)
    _refuse_unbounded(inputs, solved.u)
    return solved.u, solved.gain, solved.bound, "convex" if inputs.objective == "releases" else "boxes"


def _solved(inputs: _Inputs, program: Program) -> Solved:
    if inputs.objective == "epsilon":
        reach = float(program.gain @ epsilons(program.upper))
        return solve_sum(program, tolerance=COARSE * max(reach, 1e-3), most_boxes=MOST_BOXES)
    first = solve(program, tolerance=TOLERANCE)
    assert first is not None  # noqa: S101 - nothing released keeps every limit
    if first.bound - first.gain <= COARSE * first.gain:
        return first
    again = solve(program, tolerance=TOLERANCE * first.gain)  # where limits are tiny, so must be the gap
    return first if again is None or again.bound - again.gain > first.bound - first.gain else again


def _alone(terms: Terms, limits: Floats, upper: Floats) -> Floats:
    """Return bounds on release probabilities: what each line may have where nothing else is released."""
    # with nothing left of a limit, only what says nothing is released; rounding would let a little through
    leaks = (terms.each(upper) > NOTHING) & (limits <= 0)[:, None]
    upper = np.where(leaks.any(axis=0), 0.0, upper)
    low, high = np.zeros_like(upper), upper.copy()
    whole = (terms.each(high) <= np.maximum(limits, NOTHING)[:, None]).all(axis=0)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        fits = (terms.each(middle) <= limits[:, None]).all(axis=0)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(whole, upper, high)


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


# ---- coalitions -----------------------------------------------------------------------------------------------------


def _by_coalition(inputs: _Inputs, upper: Floats, singles: Terms) -> tuple[Floats, float, float, str]:
    """Plan coalitions that share no line apart, and put the parts together."""
    joint = inputs.setting.joint_limits(inputs.setting.tables(inputs.dependence))
    safe = inputs.setting.safe_terms(inputs.setting.tables(inputs.dependence))

    def excess(u: Floats, over: list[int]) -> Floats:
        return np.max([joint[at].at(u) - inputs.limits[at] for at in over], axis=0)

    u, bound, methods = np.zeros(len(upper)), 0.0, set()
    alone = upper.copy()
    for number in range(len(upper)):
        over = [at for at, limit in enumerate(inputs.setting.limits) if number in limit.lines]
        if over:
            alone[number] = _beyond(lambda one, n=number, o=over: excess(_unit(len(upper), n, one), o), upper[number])
    _refuse_unbounded(inputs, alone if inputs.objective == "epsilon" else None)
    for lines, over in _parts(inputs.setting, len(upper)):
        if not over:
            u[lines] = upper[lines]
            bound += float(inputs.gain(upper[None])[0, lines].sum())
        elif len(lines) <= FEW_LINES:
            solved = _few(inputs, alone, lines, lambda point, o=over: excess(point, o))
            u[lines], bound = solved.u, bound + solved.bound
            methods.add("boxes")
        else:
            u[lines] = _many(inputs, alone, lines, over, safe, lambda point, o=over: excess(point, o))
            bound += float(inputs.gain(alone[None])[0, lines].sum())
            methods.add("safe")
    _refuse_unbounded(inputs, u)
    return u, float(inputs.gain(u[None]).sum()), bound, "safe" if "safe" in methods else "boxes"


def _few(inputs: _Inputs, upper: Floats, lines: list[int], excess: Callable[[Floats], Floats]) -> Solved:
    whole = len(inputs.weights)

    def spread(part: Floats) -> Floats:
        found = np.zeros((len(part), whole))
        found[:, lines] = part
        return found

    problem = Rising(lambda part: inputs.gain(spread(part))[:, lines], lambda part: excess(spread(part)), upper[lines])
    reach = float(inputs.gain(upper[None])[0, lines].sum())
    return solve_rising(problem, tolerance=COARSE * max(reach, 1e-3), most_boxes=MOST_RISING_BOXES)


def _many(
    inputs: _Inputs, upper: Floats, lines: list[int], over: list[int], safe: Terms, excess: Callable[[Floats], Floats]
) -> Floats:
    """Return release probabilities of many lines: by the convex bound, then raised one after the other."""
    chosen = np.array(lines)
    terms = safe.kept(_mask(over, safe.limits), _mask(lines, len(upper)))
    gain = (inputs.weights if inputs.objective == "epsilon" else inputs.weights * inputs.released)[chosen]
    bounds = _alone(terms, inputs.limits[over], upper[chosen])
    solved = _solved(inputs, Program(gain, terms, inputs.limits[over], np.zeros(len(lines)), bounds))
    whole = np.zeros(len(upper))
    whole[chosen] = solved.u
    # all towards their bounds together first, then each by itself, what is worth most first
    whole = whole + _largest(lambda share: excess((whole + share * (upper - whole))[None]), 1.0) * (upper - whole)
    for number in chosen[np.argsort(-gain)]:
        step = _unit(len(upper), int(number), upper[number] - whole[number])[0]
        whole = whole + _largest(lambda share, s=step: excess((whole + share * s)[None]), 1.0) * step  # noqa: B023
    found: Floats = whole[chosen]
    return found


def _parts(setting: Setting, lines: int) -> list[tuple[list[int], list[int]]]:
    """Return groups of lines that no limit connects, each with its limits."""
    group = list(range(lines))
    for limit in setting.limits:
        joined = {group[number] for number in limit.lines}
        group = [min(joined) if one in joined else one for one in group]
    found = []
    for name in sorted(set(group)):
        members = [number for number in range(lines) if group[number] == name]
        found.append((members, [at for at, limit in enumerate(setting.limits) if set(limit.lines) & set(members)]))
    return found


def _mask(chosen: list[int], size: int) -> Mask:
    found = np.zeros(size, dtype=bool)
    found[chosen] = True
    return found


def _unit(lines: int, number: int, value: float) -> Floats:
    found = np.zeros((1, lines))
    found[0, number] = value
    return found


def _largest(excess: Callable[[float], Floats], most: float) -> float:
    """Return the largest number up to `most` that breaks no limit."""
    if excess(most)[0] <= 0:
        return most
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle)[0] <= 0 else (low, middle)
    return low


def _beyond(excess: Callable[[float], Floats], most: float) -> float:
    """Return a number up to `most` beyond which a limit is broken for certain, whatever rounding did."""
    if excess(most)[0] <= ROUNDING:
        return most
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if excess(middle)[0] > ROUNDING else (middle, high)
    return high
