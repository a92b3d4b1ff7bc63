"""Document 004, chapter 3: how close noisy confidences are, what is disclosed, and how wrong answers are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from tacit.audit.disclosure_audits.disclosures import SANITY, Disclosure, disclosure
from tacit.audit.disclosure_audits.ratios import closeness
from tacit_reproductions.document_004 import charts
from tacit_reproductions.document_004.tables import FEW_ROWS, ROWS, PeopleTable, census_tables, workers_of
from tacit_reproductions.reproduction import Part, Run
from tacit_reproductions.results import Claim, Table, about, check, same

EPSILONS: Final = (2.0, 1.0, 0.5, 0.1, 0.01)
TAUS: Final = (0.1, 0.2, 0.3)
SHARES: Final = (0.5, 0.7, 0.9)
SIZES: Final = (100, 1000, 2000)
STEP: Final = 25
HALF: Final = 0.5
PRINTED_3_1: Final = (1.000, 0.993, 0.897, 0.313, 0.058)  # recomputed from the paper's formula at its defaults
# the printed error at epsilon .01, and the sizes of the paper's domains (Table 3.5): the public ones, and the sensitive
SIZES_OF: Final = {
    "EDU": (4.0, ((2, 50, 6, 9), 14)),
    "OCC": (4.0, ((2, 14, 6, 9), 50)),
    "SALARY": (22.0, ((2, 14, 6, 9, 7, 69), 50)),
}
MANY: Final = 10  # disclosures


def _stand_in(name: str, rows: int, who: str) -> str:
    """Say what a claim about a table of the census is judged on."""
    instead = ", occupations instead of salaries" if name == "SALARY" else ""
    return f"stand-in: {rows:,} {who}{instead}"


def figures(run: Run) -> Part:
    """Return Figures 3.1 to 3.4."""
    curves, who = closeness_curves(), workers_of(run.folder)
    tables = census_tables(run.folder, FEW_ROWS if run.quick else ROWS)
    found = {table.name: audited(table) for table in tables}
    by_epsilon = {name: one.curve(sorted(EPSILONS)) for name, one in found.items()}
    return Part(
        claims=(_figure_3_1(curves), *_figure_3_2(found, who), *_figures_3_3_and_3_4(found, by_epsilon, who)),
        tables=(_closeness_table(curves), _conflict_table(found, by_epsilon, who)),
        details={
            "closeness": curves,
            "disclosures": [
                {"table": name, **row} for name, frame in by_epsilon.items() for row in frame.to_dict("records")
            ],
        },
        charts={
            "figure-3.1": partial(charts.closeness_chart, curves),
            "figure-3.2": partial(charts.points_chart, {name: _points(one) for name, one in found.items()}),
            "figure-3.3-3.4": partial(charts.conflict_chart, by_epsilon),
        },
    )


def audited(table: PeopleTable, epsilon: float = HALF) -> Disclosure:
    """Return what all two-way marginals of a table disclose, with Laplace noise of Equation 3.12."""
    pairs = len(table.public) * (len(table.public) - 1) // 2
    return disclosure(table.rows, public=list(table.public), sensitive=table.sensitive, scale=4 * pairs / epsilon)


def least_error(sizes: tuple[tuple[int, ...], int], epsilon: float, people: int = ROWS) -> float:
    """Return a bound on the mean relative error over all rows of the marginals, whatever the data.

    An error is b / max(count, bound), a convex function of that maximum, so its mean is at least b over the mean of the
    maximum (Jensen), which is at most the bound and the mean count together.
    """
    public, sensitive = sizes
    pairs = [a * b for a, b in combinations(public, 2)]
    rows = sum(pairs) * (1 + sensitive)
    return 4 * len(pairs) / epsilon / (SANITY * people + 2 * len(pairs) * people / rows)


def closeness_curves() -> list[dict[str, Any]]:
    """Return Figure 3.1: closeness by epsilon, where tau, the confidence or the size differs from its default."""
    default: dict[str, Any] = {"tau": 0.2, "share": 0.7, "size": 1000}
    rows = []
    for panel, values in (("tau", TAUS), ("share", SHARES), ("size", SIZES)):
        for value in values:
            at = {**default, panel: value}
            found = closeness(at["share"] * at["size"], at["size"], STEP / np.array(EPSILONS), at["tau"])
            rows += [
                {"panel": panel, "value": value, "epsilon": epsilon, "closeness": float(chance)}
                for epsilon, chance in zip(EPSILONS, found, strict=True)
            ]
    return rows


def _figure_3_1(curves: list[dict[str, Any]]) -> Claim:
    ours = [row["closeness"] for row in curves if row["panel"] == "tau" and row["value"] == 0.2]
    said = ", ".join(f"{one:.3f}" for one in ours)
    series: dict[tuple[str, float], list[float]] = {}
    for row in curves:
        series.setdefault((row["panel"], row["epsilon"]), []).append(row["closeness"])
    steps = [float(step) for one in series.values() for step in np.diff(one)]
    return Claim(
        "3.1",
        "CP at epsilon 2, 1, .5, .1, .01 (tau .2, share .7, size 1000)",
        "the law of Laplace noise; no data",
        "larger with tau, share, size and epsilon",
        said,
        (
            check("change of CP with tau, share, size", steps, "at least", 0),
            check("change of CP as epsilon falls", np.diff(ours), "at most", 0),
            same("CP", ours, PRINTED_3_1, 5e-4),
        ),
    )


def _figure_3_2(found: Mapping[str, Disclosure], who: str) -> list[Claim]:
    claims = []
    for name, claim in (
        ("EDU", "many; jumps above 20 at CP near 1"),
        ("OCC", "many; jumps above 20 at CP near 1"),
        ("SALARY", "none"),
    ):
        one = found[name]
        worst = one.worst(10**6)
        sure = worst[worst.closeness > 0.95]
        largest = float(sure.jump.max()) if len(sure) else 0.0
        ours = f"{one.count:,} in {one.groups:,} groups" + (
            f"; jumps up to {largest:.1f} at CP above .95" if one.count else ""
        )
        many = (
            check("disclosures", one.count, "is", 0)
            if name == "SALARY"
            else check("disclosures", one.count, "above", MANY)
        )
        jumps = () if name == "SALARY" else (check("largest jump at CP above .95", largest, "above", 20),)
        run = f"the paper's audit; {_stand_in(name, one.people, who)}"
        claims.append(Claim("3.2", f"{name}: disclosures at epsilon .5", run, claim, ours, (many, *jumps)))
    return claims


def _figures_3_3_and_3_4(found: Mapping[str, Disclosure], curves: Mapping[str, Any], who: str) -> list[Claim]:
    least = {name: int(frame.disclosures[0]) for name, frame in curves.items()}
    more = [int(step) for frame in curves.values() for step in np.diff(frame.disclosures)]
    people = max(one.people for one in found.values())
    run = f"the paper's audit; {_stand_in('SALARY', people, who)}"
    claims = [
        Claim(
            "3.3",
            "disclosures at epsilon .01",
            run,
            "none in any table",
            ", ".join(f"{name} {many}" for name, many in least.items()),
            (check("disclosures in each table", list(least.values()), "is", 0),),
        ),
        Claim(
            "3.3",
            "disclosures as epsilon grows",
            run,
            "more",
            f"steps from one epsilon to the next: {', '.join(map(str, more))}",
            (check("change from one epsilon to the next", more, "at least", 0),),
        ),
    ]
    for name, (said, sizes) in SIZES_OF.items():
        error, bound = float(curves[name].error[0]), least_error(sizes, 0.01)
        ours = f"{error:.0%}; {bound:.0%} at least in any table of the paper's sizes"
        claims.append(
            Claim(
                "3.4",
                f"{name}: overall error at epsilon .01",
                f"mean over all rows of the marginals; {_stand_in(name, people, who)}",
                f"about {said:.0%}",
                ours,
                (
                    about("error on the stand-in over the printed one", error / said, 1, 2),
                    check("least error in any table of the paper's sizes", bound, "at most", said),
                ),
                "the printed number is another average than the mean over all rows",
            )
        )
    for name, needed in (("EDU", 0.5), ("OCC", 0.5), ("SALARY", 2.0)):
        frame = curves[name].set_index("epsilon")
        error = float(frame.error[needed])
        told = int(frame.disclosures[needed])
        claims.append(
            Claim(
                "3.4",
                f"{name}: epsilon for an error of 10%",
                f"the paper's audit; {_stand_in(name, people, who)}",
                f"{needed:g}, with many disclosures",
                f"{error:.0%} there, with {told:,} disclosures",
                (check("error", error, "at most", 0.11), check("disclosures", told, "above", MANY)),
            )
        )
    safe = ", ".join(
        f"{name} {one.largest_safe_epsilon:.3g} ({one.error_when_safe:.0%})"
        for name, one in found.items()
        if one.largest_safe_epsilon and one.error_when_safe
    )
    errors = [one.error_when_safe for one in found.values() if one.error_when_safe]
    claims.append(
        Claim(
            "section 3.4",
            "largest epsilon without a disclosure (error there)",
            run,
            "accuracy and disclosure conflict",
            safe,
            (check("error in each table, above the 10% that the thesis calls useful,", errors, "above", 0.1),),
        )
    )
    return claims


def _closeness_table(curves: list[dict[str, Any]]) -> Table:
    lines = []
    for panel in ("tau", "share", "size"):
        for value in dict.fromkeys(row["value"] for row in curves if row["panel"] == panel):
            cells = [row["closeness"] for row in curves if row["panel"] == panel and row["value"] == value]
            lines.append((f"{panel} {value:g}", *(f"{cell:.3f}" for cell in cells)))
    headings = ("differs from the default", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS))
    notes = ("Default: tau 0.2, confidence 0.7, a group of 1,000; Delta 25.",)
    return Table("Figure 3.1: how likely the noisy confidence is close to the true one", headings, lines, notes)


def _conflict_table(found: Mapping[str, Disclosure], curves: Mapping[str, Any], who: str) -> Table:
    lines = [
        (name, f"{row.epsilon:g}", f"{row.disclosures:,}", f"{row.error:.1%}")
        for name, frame in curves.items()
        for row in frame.itertuples()
    ]
    people = max(one.people for one in found.values())
    notes = (
        f"{people:,} {who}. SALARY has the six public attributes of the "
        "paper's table, and occupations in place of salaries.",
    )
    title = "Figures 3.3 and 3.4: disclosures and overall error"
    return Table(title, ("table", "epsilon", "disclosures", "overall error"), lines, notes)


def _points(found: Disclosure) -> list[dict[str, float]]:
    worst = found.worst(2_000)
    pairs = zip(worst.jump.tolist(), worst.closeness.tolist(), strict=True)
    return [{"jump": jump, "closeness": chance} for jump, chance in pairs]
