"""A building, its rooms and two applications: what each may see, what it decides, and what leaks.

    python examples/building/building.py --output out                    # the made-up rows of this folder
    python examples/building/building.py --output out --data FILE        # rooms of a Parquet file instead

Lighting asks when rooms start, space planning how much they are used. Unusual days are secret. What depends on what is
known from an earlier survey; from it follow the epsilons, what each application could learn, and how it fills its gaps.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import charts
import days as days_of_rooms
import numpy as np
import pandas as pd

import tacit as tc
from tacit.papers.building_001 import told_by_each_other
from tacit.papers.occupancy import days_of, occupancy_of_file

HERE = Path(__file__).parent
ATTRIBUTES = ("arrival", "leaving", "share")
APPLICATIONS = {"lighting": ["arrival"], "space planning": ["share"]}
TOGETHER = {"lighting": ["lighting"], "space planning": ["space planning"], "both": ["lighting", "space planning"]}
LIMIT = 0.15  # nats that a coalition may learn about when people leave, which nobody asks for
CAP = 3.0  # the largest epsilon
NINE, HALF = 540, 50


@dataclass(frozen=True)
class Application:
    """Who asks for which attribute, and what it decides about a room."""

    name: str
    attribute: str
    question: str
    limit: float

    def decides(self, mean: pd.Series) -> pd.Series:
        return mean > self.limit


ASKING = (
    Application("lighting", "arrival", "starts after 9:00 on average", NINE),
    Application("space planning", "share", "is used more than half of the work hours", HALF),
)


def dependence_of(earlier: pd.DataFrame, policy: tc.Policy) -> tc.Dependence:
    """Count how attributes depend on each other in the earlier survey, which is public."""
    grid = {name: policy.domain[name] for name in ATTRIBUTES}
    values = {name: list(range(own.low, own.high + 1, own.step)) for name, own in grid.items()}
    return tc.Dependence.from_counts(earlier[list(ATTRIBUTES)], smoothing=0.05, values=values)


def sensitive_values(policy: tc.Policy) -> dict[str, list[int]]:
    """Return what the policy calls secret."""
    said = policy.document()["secrets"]["values"]
    return {name: list(said[name]) for name in ATTRIBUTES}


@dataclass(frozen=True)
class Case:
    """Everything that is public: the policy, how attributes depend on each other, and what is secret of them."""

    policy: tc.Policy
    dependence: tc.Dependence
    sensitive: dict[str, list[int]]

    @classmethod
    def read(cls, earlier: pd.DataFrame) -> Case:
        policy = tc.Policy.load(HERE / "policy.yaml")
        return cls(policy, dependence_of(earlier, policy), sensitive_values(policy))

    def plan(self, limit: float = LIMIT) -> tc.plan.LeakagePlan:
        """Choose epsilons: the most releases such that no coalition learns more about when people leave."""
        return tc.plan.leakage_budget(
            self.dependence,
            sensitive=self.sensitive,
            limit={"leaving": limit},
            applications=APPLICATIONS,
            coalitions=TOGETHER,
            cap=CAP,
            own=False,
        )

    def leak(self, epsilon: dict[str, float]) -> tc.audit.Exclusion:
        """Say what applications could learn at these epsilons; coins are remembered."""
        return tc.audit.exclusion(
            self.dependence,
            sensitive=self.sensitive,
            epsilon=epsilon,
            coins="remembered",
            applications=APPLICATIONS,
            coalitions=[TOGETHER["both"]],
        )


def by_attribute(plan: tc.plan.LeakagePlan) -> dict[str, float]:
    """Return the epsilon of each attribute that is asked for."""
    return {one.attribute: plan.epsilon[one.name][one.attribute] for one in ASKING}


# ---- release and decisions ------------------------------------------------------------------------------------------


def released(session: tc.Session, asking: Application, epsilon: float) -> pd.DataFrame:
    """Release one attribute to one application: a row for each room and day, missing where it is hidden."""
    question = tc.true_records([asking.attribute], key=["room", "day"], application=asking.name)
    return session.release(question, epsilon=epsilon).frame


def decided(private: pd.DataFrame, asking: Application, seen: pd.DataFrame, leak: tc.audit.Exclusion) -> pd.DataFrame:
    """Return for each room the true number and decision, and those of the application.

    Shown days alone miss what is secret, so their mean is off. The application fills every gap with what it expects
    there: the mean of the attribute given that it was suppressed, by the earlier survey.
    """
    believed = leak.posterior(asking.attribute, suppressed=[asking.attribute])
    expected = sum(value * chance for value, chance in believed.items())
    numbers = pd.to_numeric(seen[asking.attribute])
    table = pd.DataFrame(
        {
            "true": private.groupby("room")[asking.attribute].mean(),
            "shown days": numbers.groupby(seen["room"]).mean(),
            "gaps filled": numbers.fillna(expected).groupby(seen["room"]).mean(),
        }
    )
    for name in list(table):
        table[f"{name}: decision"] = asking.decides(table[name])
    table.insert(0, "application", asking.name)
    return table


def same(table: pd.DataFrame, how: str) -> str:
    agree = (table["true: decision"] == table[f"{how}: decision"]).sum()
    off = (table[how] - table["true"]).mean()
    return f"{agree} of {len(table)} rooms, off by {off:+.1f} on average"


# ---- what leaks -----------------------------------------------------------------------------------------------------


def posteriors(case: Case) -> list[dict[str, object]]:
    """Return what each coalition could believe against epsilon: after gaps alone, and after what tells most."""
    rows = []
    for epsilon in np.linspace(0.05, 4, 20):
        leak = case.leak({one.attribute: float(epsilon) for one in ASKING})
        for who, members in TOGETHER.items():
            for name in ATTRIBUTES:
                sees = leak.sees(*members)
                odds = leak.odds(name, suppressed=sees)
                for after, chance in (("gaps", odds / (1 + odds)), ("the worst", leak.worst(name, sees).posterior)):
                    rows.append(
                        {"who": who, "attribute": name, "epsilon": float(epsilon), "posterior": chance, "after": after}
                    )
    return rows


def utility(case: Case) -> list[dict[str, object]]:
    """Return how many values of a day are released under each limit, planned and with one epsilon for both."""
    rows = []
    for limit in (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25):
        epsilon = by_attribute(case.plan(limit))
        rows.append({"how": "planned", **leakage_and_releases(case, epsilon)})
    for share in np.linspace(0.05, CAP, 8):
        epsilon = {one.attribute: float(share) for one in ASKING}
        rows.append({"how": "one epsilon for both", **leakage_and_releases(case, epsilon)})
    return rows


def leakage_and_releases(case: Case, epsilon: dict[str, float]) -> dict[str, float]:
    """Return what both applications together learn about leaving, in nats, and how many values of a day are shown."""
    leak = case.leak(epsilon)
    shown = 0.0
    for name, own in epsilon.items():
        chances = dict(zip(case.dependence.values[name], case.dependence.marginal(name).tolist(), strict=True))
        shown += -math.expm1(-own) * sum(p for value, p in chances.items() if value not in case.sensitive[name])
    return {"leakage": leak.mutual_information("leaving", list(epsilon)), "releases": shown}


# ---- all of it ------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the worked case.")
    parser.add_argument("--output", type=Path, required=True, help="the folder for report, tables and charts")
    parser.add_argument("--data", type=Path, help="a Parquet file with space or room, time and occupied")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    if given.data is None:
        occupancy = days_of_rooms.made_up()
        earlier, private = (pd.read_csv(HERE / f"{name}.csv") for name in ("earlier", "days"))
    else:
        occupancy = occupancy_of_file(given.data, given.data.stem)
        earlier, private = days_of_rooms.split(days_of_rooms.frame_of(occupancy))
    case = Case.read(earlier)
    plan = case.plan()
    epsilon = by_attribute(plan)
    leak = case.leak(epsilon)

    session = tc.Session(
        case.policy, private, budget=2 * CAP, ledger=str(given.output / "ledger.db"), dataset="building"
    )
    lines = ["# A building: what was released, decided and learned", "", f"{len(private):,} private days.", ""]
    lines += ["## Epsilons", "", *(f"- {line}" for line in str(plan).splitlines()), "", "## Decisions", ""]
    for asking in ASKING:
        seen = released(session, asking, epsilon[asking.attribute])
        table = decided(private, asking, seen, leak)
        table.to_csv(given.output / f"{asking.name.replace(' ', '-')}.csv")
        shown = seen[asking.attribute].notna().mean()
        lines.append(f"- {asking.name}: a room {asking.question}. {100 * shown:.0f}% of the days are shown.")
        lines += [f"  - from {how}: the true decision for {same(table, how)}." for how in ("shown days", "gaps filled")]
    lines += ["", "## What leaks", "", *(f"- {line}" for line in str(leak).splitlines()), ""]
    strengths = {
        (one, other): told_by_each_other(case.dependence, one, other)
        for one, other in (("arrival", "leaving"), ("leaving", "share"), ("arrival", "share"))
    }
    files = charts.save(
        {
            "pattern": charts.pattern_chart(occupancy, days_of(occupancy), "One day in one room"),
            "posterior": charts.posterior_chart(posteriors(case)),
            "leakage": charts.leakage_chart(utility(case)),
            "graph": charts.applications_chart(strengths, "Who asks, what depends, who colludes"),
        },
        given.output,
    )
    lines += [f"![{file.stem}]({file.name})" for file in files]
    (given.output / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
