"""What every plan has, whatever the question: one object that is explained, checked, charged, executed and reported.

A plan is made once (`plan/choose.py`), from the policy and public parameters alone, and never changes. The same object
is printed, written to a file and executed, so these cannot disagree.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.amounts import rough, shown
from tacit.arrays import Bools, Ints
from tacit.drawing import Held
from tacit.errors import PlanError, leads_to_a_file, path_words
from tacit.noise.law import Law
from tacit.plan.measure.measured import Measured
from tacit.plan.plans.reading import left_out, not_asked, taken_down
from tacit.plan.question import Query
from tacit.plan.sensitivity.responses import Watched
from tacit.plan.sensitivity.steps import LargestStep
from tacit.policy.application import Application
from tacit.policy.policy import Policy

if TYPE_CHECKING:
    from tacit.plan.plans.linear import CountedTable
    from tacit.plan.plans.records import RecordsPlan

LEVEL: Final = 0.95  # of intervals, where nobody says another
MOST_SPREAD: Final = 1_000_000  # answers whose laws are worked out before there is a release
LARGE_EPSILON: Final = 10
LARGEST_EXPONENT: Final = 690  # whose exponential is a float


@dataclass(frozen=True)
class Plan(Held, ABC):
    """How one question will be answered.

    `why` gives the reason for the noise. `consistent` and `nonnegative` say what is done to the noisy answers
    afterwards, as in `Session.plan`.
    """

    query: Query
    policy: Policy
    epsilon: Fraction
    step: LargestStep
    why: str
    strategy: str = field(default="direct", kw_only=True)
    consistent: bool = field(default=False, kw_only=True)
    nonnegative: bool = field(default=False, kw_only=True)
    asked_by: Application | None = field(default=None, kw_only=True)  # where the policy declares who may ask
    declared_in: Policy | None = field(default=None, kw_only=True)  # that policy; the plan's may have more secrets

    # `base`, `parts`, `answers` and `noise` are fields of some kinds and properties of others

    @cached_property
    def base(self) -> Measured:
        """What is counted: noise is added to these counts, or they are compared."""
        return self.query.counted

    if TYPE_CHECKING:

        @property
        def parts(self) -> tuple[Plan, ...]:
            """The plans whose bases are counted: this one, or those that it is made of."""

        @property
        def answers(self) -> int:
            """How many answers there are, at most."""

        @property
        def noise(self) -> Law | None:
            """The law of the noise in the released numbers; None where they are exact."""

    @property
    @abstractmethod
    def rmse(self) -> float:
        """The expected root mean squared error of one answer, averaged over the answers."""

    def half_width(self, level: float = LEVEL) -> float | None:
        """Return how far an estimate may be off with this probability, of the answer where that is largest.

        None where it depends on the rows, or is not worked out: by default.
        """
        return None

    @property
    def largest_answer(self) -> float | None:
        """What no true answer is above, from public parameters alone; None where nothing says so: by default."""
        return None

    @property
    def cautions(self) -> list[str]:
        """What somebody should think about before this is released, a sentence each."""
        found = []
        if self.epsilon > LARGE_EPSILON:
            factor = f"{math.exp(self.epsilon):.0e}" if self.epsilon < LARGEST_EXPONENT else "more than 1e+300"
            found.append(
                f"epsilon {shown(self.epsilon)} protects next to nothing: what is released may be {factor} times as "
                "likely under one secret as under another. 0.1 to 2 is usual."
            )
        largest = self.largest_answer
        if largest is not None and self.rmse >= largest > 0:
            found.append(
                f"The expected error, {rough(self.rmse, 3)}, is as large as an answer can be, {rough(largest, 3)}: the "
                "answers will tell next to nothing. Spend more epsilon, or ask for fewer or coarser answers."
            )
        return [*found, *taken_down(self.query, self.policy)]

    @property
    def left_out(self) -> str:
        """Say that rows are left out for attributes that the question does not ask about; nothing if none are."""
        return left_out(self.policy, [self.query]) if not_asked(self.policy, [self.query]) else ""

    @property
    def mse(self) -> float:
        """The expected mean squared error of one answer, averaged over the answers."""
        return self.rmse**2

    @property
    def tried(self) -> dict[str, float]:
        """Every strategy that was tried, with the expected mean squared error of one answer; by default only this."""
        return {self.strategy: self.mse}

    @property
    def records(self) -> RecordsPlan | None:
        """The plan itself, if it shows single records as they are; None by default, since answers have noise."""
        return None

    @property
    def coin_lines(self) -> Mapping[str, Fraction]:
        """The names of remembered coins, each with the epsilon that it must have reached; none by default."""
        return {}

    def cost(self, reached: Mapping[str, Fraction]) -> Fraction:
        """Return what to pay where remembered coins have reached these epsilons already: all of it by default."""
        return self.epsilon

    def plain(self) -> Plan:
        """Return the plan of plain differential privacy for the same question at the same cost, to compare with."""
        plain: Plan = self.query.plan(self.policy.plain(), self.epsilon)
        return replace(plain, consistent=self.consistent)

    @property
    def chosen(self) -> str:
        """The name of the strategy that was chosen, as it stands in `tried`."""
        return self.strategy

    @property
    def tallied(self) -> tuple[Measured, ...]:
        """What rows are counted for: the bases of all parts, where answers are made of counts."""
        return tuple(part.base for part in self.parts)

    @property
    def watched(self) -> Watched:
        """The numbers that noise is added to, as the calculus of steps sees them."""
        return self.query.counted

    @property
    def drawing(self) -> tuple[str, ...]:
        """Lines of text that draw what is measured; none where there is nothing to draw."""
        return ()

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """The name of the mechanism."""

    @property
    def mechanism_words(self) -> str:
        """The mechanism and what it is used on, each once."""
        if self.strategy in ("direct", self.mechanism):
            return self.mechanism
        return f"{self.mechanism}{',' if len(self.parts) == 1 else ';'} {self.strategy}"

    @property
    def is_exact(self) -> bool:
        """Whether no secret edge changes any of the answers, so that nothing needs hiding."""
        return self.noise is None

    def predictions(self) -> list[str]:
        """Return in words what can be expected beside the error of an answer, from public parameters alone."""
        return []

    def predicted(self) -> dict[str, Any]:
        """Return what can be expected as plain data."""
        return {"value_rmse": self.rmse}

    def terms(self) -> list[str]:
        """Return in words what an answer means beside its interval: this goes into certificates."""
        return []

    def noise_document(self) -> dict[str, Any] | None:
        """Return the laws of the noise as plain, exact data; None where there is none."""
        return None if self.noise is None else {**self.noise.document(), **self.unit_document()}

    def laws(self) -> list[tuple[Law, Any]]:
        """Return each law of the noise that is added to entries of the base, with those entries; none by default."""
        return []

    def counted_tables(self) -> Iterator[CountedTable]:
        """Yield the tables of counts of everybody that are published, with the noise of each cell; none by default."""
        return iter(())

    def telling_others(self, moves: Bools) -> Ints | None:
        """Return how many others should be in each count to reveal most of a person who moves these; None: any."""
        return None

    @property
    def assumption(self) -> str:
        """The number of people that the expected error is for, in words, where it depends on them; else nothing."""
        return ""

    @property
    def post_processing(self) -> list[str]:
        """What is done to the noisy answers afterwards; nothing is made consistent that cannot be otherwise."""
        fits = self.consistent and bool(self.query.fitting(self.base))
        return [word for word, is_done in (("consistent", fits), ("nonnegative", self.nonnegative)) if is_done]

    def stated_for(self, many: int) -> Plan:
        """Return the same plan with its error stated for so many people or rows, where that makes a difference."""
        return self

    @property
    def about(self) -> str:
        """Which rows every exact number and every interval is about, in words."""
        return self.policy.scope_in_words

    @property
    def moved(self) -> tuple[str, str]:
        """What the step is about: one number, and all of them."""
        return "an answer", "answers"

    @property
    def unit(self) -> Fraction:
        """What one unit of the step and of the noise is worth in the data."""
        return self.base.unit(self.policy.domain)

    @property
    def common(self) -> Policy:
        """The policy that whatever is released together keeps: without the secrets of whoever asks for this."""
        return self.policy.charged if self.declared_in is None else self.declared_in

    def asked_document(self) -> dict[str, Any]:
        """Return who asked and for which purpose, where the policy declares it."""
        by = self.asked_by
        return {} if by is None else {"application": {"name": by.name, **by.document()}}

    @property
    def title(self) -> str:
        """What a ledger calls it: the question, and who asked for which purpose."""
        by = self.asked_by
        return str(self.query) if by is None else f"{self.query}, asked by {by.name} ({by.purpose})"

    def unit_document(self) -> dict[str, str]:
        """Return the unit beside which whole numbers stand, unless it is one."""
        return {} if self.unit == 1 else {"unit": shown(self.unit)}

    def step_document(self) -> dict[str, Any]:
        """Return the step as plain data: whole numbers, and the unit that they count."""
        step = self.step
        found = {"up": step.up, "down": step.down, "l1": step.l1, "l2": step.l2, "exact": step.exact}
        return {**found, **self.unit_document()}

    def document(self) -> dict[str, Any]:
        """Return the plan as plain data, ready for JSON: exact amounts are texts."""
        return {
            "query": self.query.document(),
            "epsilon": str(self.epsilon),
            "answers": self.answers,
            "step": self.step_document(),
            "derivation": list(self.step.why),
            "mechanism": self.mechanism,
            "strategy": self.strategy,
            "candidates": self.tried,
            "noise": self.noise_document(),
            "why": self.why,
            "predicted": self.predicted(),
            "expected_rmse": self.rmse,
            "expected_mse": self.mse,
            "half_width_95": self.half_width(),
            "post_processing": self.post_processing,
            "policy_fingerprint": self.policy.fingerprint,
            **self.asked_document(),
        }

    def save(self, path: str | Path) -> Path:
        """Write the plan and its policy to a new JSON file, for those who review it.

        Nothing reads such a file back: a plan is executed by the session that made it. To compare, plan again.
        """
        if not leads_to_a_file(path):
            raise PlanError("must be the path of a new file", key="path", fix="For instance 'ages.plan.json'.")
        text = json.dumps({**self.document(), "policy": self.policy.document()}, indent=2, ensure_ascii=False)
        try:
            with Path(path).open("x", encoding="utf-8", newline="\n") as file:
                file.write(text + "\n")
        except FileExistsError:
            refusal = PlanError("must not exist yet", key=path_words(path), fix="Name another; nothing is overwritten.")
        except OSError as fault:
            reason = (fault.strerror or "refused").lower()
            refusal = PlanError(f"must be a file that can be written ({reason})", key=path_words(path), fix="Check it.")
        else:
            return Path(path)
        raise refusal

    def lines(self, *, reasons: bool) -> list[str]:
        """Return the plan in words, a line for each fact; with `reasons`, also why."""
        step, unit = self.step, self.unit
        bound = f"largest step{'' if self.moved[0] == 'an answer' else f' of {self.moved[0]}'}"
        bound += "" if step.exact else " (proven bound)"
        up, down, together = (shown(unit * size) for size in (step.up, step.down, step.l1))
        size = self.query.size_words(self.answers, self.policy.domain)
        because = [f"    because {reason}" for reason in step.why] if reasons else []
        return [
            f"{self.title}: {size} for epsilon {shown(self.epsilon)}",
            f"  {bound}: up {up}, down {down}, in all {together} (Euclidean {rough(step.l2 * float(unit))})",
            *because,
            f"  mechanism: {self.mechanism_words}",
            *([f"    because {self.why}"] if reasons else []),
            *([f"    {line}" for line in self.drawing] if reasons else []),
            *([f"  afterwards: {' and '.join(self.post_processing)}"] if self.post_processing else []),
            *(f"  {line}" for line in self.predictions()),
            *(f"  note: {caution}" for caution in (*self.cautions, self.left_out) if caution),
            f"  expected error of {self.query.error_of} (root mean square): {rough(self.rmse)}{self._within_words()}",
        ]

    def _within_words(self) -> str:
        within = self.half_width()
        return f", with 95% within {rough(within)}" if within else ""

    @property
    def assumed_words(self) -> str:
        """For how many people an error is stated, behind that error; nothing where it does not depend on them."""
        return f" for {self.assumption}" if self.assumption else ""

    def __repr__(self) -> str:
        error = f"{self.rmse:.3g}{self._within_words()}{self.assumed_words}"
        return f"<plan of {self.query}, epsilon {shown(self.epsilon)}, expected error {error}>"

    def __str__(self) -> str:
        exact = f" (exact, {self.about})" if self.rmse == 0 else ""
        return "\n".join(self.lines(reasons=False)) + exact


def noise_name(law: Law | None) -> str:
    """Return what a law of noise is called."""
    return "exact" if law is None else law.name
