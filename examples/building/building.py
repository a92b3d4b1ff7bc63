"""A building, its rooms and two applications: what each may see, what it decides, and what leaks.

    python examples/building/building.py --output out                    # the made-up rows of this folder
    python examples/building/building.py --output out --data FILE        # rooms of a Parquet file instead

`case.yaml` says who asks for what, who colludes and what may be learned. From it and an earlier survey follow the
epsilons, what each application could learn, and how it fills its gaps.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import days as days_of_rooms
import numpy as np
import pandas as pd

import tacit as tc
from tacit.audit.case_audit import audit_case
from tacit.jobs.case_file import Case, read_case
from tacit.jobs.job_file import read_job_or_case
from tacit.jobs.job_run import session_of
from tacit.report.charts.audit_charts import leakage_charts, series
from tacit.report.charts.chart_parts import styled
from tacit.report.charts.release_charts import chart_png
from tacit_reproductions.document_001.charts import pattern_chart
from tacit_reproductions.document_001.occupancy import Occupancy, days_of, occupancy_of_file

HERE = Path(__file__).parent
SHOWN, FILLED = "shown days", "gaps filled"


@dataclass(frozen=True)
class Application:
    """Who asks for which attribute, and what it decides about a room: whether the mean is above a number."""

    name: str
    attribute: str
    question: str
    limit: float


ASKING = (
    Application("lighting", "arrival", "starts after 9:00 on average", 9 * 60),
    Application("space planning", "share", "is used more than half of the work hours", 50),
)


def prepared(folder: Path, data: Path | None) -> Occupancy:
    """Put everything that the case needs into a folder; return the rooms as they were read."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("policy.yaml", "case.yaml"):
        shutil.copy(HERE / name, folder)
    if data is None:
        for name in ("earlier.csv", "days.csv"):
            shutil.copy(HERE / name, folder)
        return days_of_rooms.made_up()
    occupancy = occupancy_of_file(data, data.stem)
    days_of_rooms.write(occupancy, folder)
    return occupancy


def expected_in_gaps(case: Case, asking: Application, epsilon: float) -> float:
    """Return what the application expects where nothing is shown, by the earlier survey."""
    leak = tc.audit.exclusion(case.dependence, sensitive=case.sensitive, epsilon={asking.attribute: epsilon})
    believed = leak.posterior(asking.attribute, suppressed=[asking.attribute])
    return sum(value * chance for value, chance in believed.items())


def decided(private: pd.DataFrame, asking: Application, seen: pd.DataFrame, in_gaps: float) -> pd.DataFrame:
    """Return for each room the true mean and decision, and those of the application.

    Shown days alone miss what is secret, so their mean is off; with gaps filled it is much less so.
    """
    numbers = pd.to_numeric(seen[asking.attribute])
    table = pd.DataFrame(
        {
            "true": private.groupby("room")[asking.attribute].mean(),
            SHOWN: numbers.groupby(seen["room"]).mean(),
            FILLED: numbers.fillna(in_gaps).groupby(seen["room"]).mean(),
        }
    )
    for name in list(table):
        table[f"{name}: decision"] = table[name] > asking.limit
    return table


def compared(table: pd.DataFrame, how: str) -> str:
    agree = (table["true: decision"] == table[f"{how}: decision"]).sum()
    off = (table[how] - table["true"]).mean()
    return f"from {how}: the true decision for {agree} of {len(table)} rooms, off by {off:+.1f} on average."


@dataclass(frozen=True)
class Worked:
    """The case, its plan, and for each application what it was shown and what it decides."""

    case: Case
    plan: tc.plan.LeakagePlan
    seen: dict[str, pd.DataFrame]
    tables: dict[str, pd.DataFrame]


def worked(folder: Path) -> Worked:
    """Plan the case in a folder, release to each application what it asks for, and let it decide.

    The releases are those that `tacit run` makes of the same case, with the same ledger: the same rows are shown.
    """
    case, job = read_case(folder / "case.yaml"), read_job_or_case(folder / "case.yaml")
    private, session = pd.read_csv(folder / "days.csv"), session_of(job)
    seen, tables = {}, {}
    asked = {release.query.application: release for release in job.releases}
    for asking in ASKING:
        release = asked[asking.name]
        # a row for each room and day, missing where it is hidden
        seen[asking.name] = session.release(release.query, epsilon=release.epsilon).frame
        in_gaps = expected_in_gaps(case, asking, float(release.epsilon))
        tables[asking.name] = decided(private, asking, seen[asking.name], in_gaps)
    return Worked(case, case.plan(), seen, tables)


def written(found: Worked, occupancy: Occupancy, folder: Path) -> list[str]:
    """Write tables, charts and a report; return its lines."""
    lines = ["# A building: what was released, decided and learned", "", "## Epsilons", ""]
    lines += [*(f"- {line}" for line in str(found.plan).splitlines()), "", "## Decisions", ""]
    for asking in ASKING:
        table, seen = found.tables[asking.name], found.seen[asking.name]
        table.to_csv(folder / f"{asking.name.replace(' ', '-')}.csv")
        shown = seen[asking.attribute].notna().mean()
        lines.append(f"- {asking.name}: a room {asking.question}. {100 * shown:.0f}% of {len(seen):,} days are shown.")
        lines += [f"  - {compared(table, how)}" for how in (SHOWN, FILLED)]
    audit = audit_case(found.case)
    lines += ["", "## What leaks", ""]
    lines += [
        f"- {row.who}: {row.attribute} is secret with probability {row.prior:.3f}, at worst {row.worst:.3f} "
        f"({row.after}); {row.value:.4f} nats on average."
        for row in audit.rows
    ]
    lines += [f"- {remark}" for remark in audit.remarks]
    charts = {
        "pattern": pattern_chart(occupancy, days_of(occupancy), "One day in one room"),
        "gaps": gaps_chart(found.case),
        **leakage_charts(audit),
    }
    for name, chart in charts.items():
        (folder / f"{name}.png").write_bytes(chart_png(chart))
        lines += ["", f"![{name}]({name}.png)"]
    (folder / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


def gaps_chart(case: Case) -> Any:
    """Draw how likely each attribute is secret once all that a coalition asked for is suppressed, against epsilon."""
    rows = []
    for epsilon in np.linspace(0.05, 4, 20).tolist():
        leak = tc.audit.exclusion(
            case.dependence,
            sensitive=case.sensitive,
            epsilon={one.attribute: epsilon for one in ASKING},
            applications=case.applications,
        )
        for who, members in case.groups.items():
            for name in case.sensitive:
                odds = leak.odds(name, suppressed=leak.sees(*members))
                rows.append({"who": who, "attribute": name, "epsilon": epsilon, "chance": odds / (1 + odds)})
    panels = [
        alt.Chart(alt.Data(values=[row for row in rows if row["attribute"] == name]))
        .mark_line()
        .encode(
            x=alt.X("epsilon:Q", title="epsilon of both attributes"),
            y=alt.Y("chance:Q", title="probability", scale=alt.Scale(domain=[0, 1])),
            **series(list(case.groups)),
        )
        .properties(width=220, height=180, title=f"{name} is secret")
        for name in case.sensitive
    ]
    return styled(
        alt.hconcat(*panels),
        "What gaps give away",
        ["Nothing is shown of what was asked for. By who sees it; thin lines lie on wide ones."],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the worked case.")
    parser.add_argument("--output", type=Path, required=True, help="the folder for rows, report, tables and charts")
    parser.add_argument("--data", type=Path, help="a Parquet file with space or room, time and occupied")
    given = parser.parse_args()
    occupancy = prepared(given.output, given.data)
    print("\n".join(written(worked(given.output), occupancy, given.output)))


if __name__ == "__main__":
    main()
