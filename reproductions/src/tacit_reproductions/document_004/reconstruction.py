"""Chapter 4 of document 004, reconstruction privacy: its examples, tables and figures, and our own publications beside.

Claims about OCC are judged on workers of the census survey, which stand in for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit.audit.selfcheck.planted.tables import planted_tables
from tacit.noise.thinning import thin
from tacit.publish.generalise import same_impact
from tacit.publish.groups import Generalisation, PersonalGroups, as_columns, merged, personal_groups
from tacit.publish.methods.criterion import Channel, Criterion, chernoff_size
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.method import Method
from tacit.publish.methods.perturbation import Uniform
from tacit.publish.methods.sampled import Sampled
from tacit_reproductions.document_004.own_rows import own_row_gain
from tacit_reproductions.document_004.reconstruction_charts import NAMES, error_chart, size_chart, violation_chart
from tacit_reproductions.document_004.tables import PeopleTable, adult_table, census_workers, workers_of
from tacit_reproductions.document_004.violations import (
    ADULT_DATA,
    AGED,
    CRITERIA,
    DEFAULT,
    TOGETHER,
    Row,
    largest_sizes,
    settings,
    size_claims,
    size_table,
    violation,
    violation_claims,
    violation_table,
    violations_of,
)
from tacit_reproductions.document_004.workload import Floats, Ints, Workload, floor_ratios, relative_error, workload
from tacit_reproductions.reproduction import Part, Run
from tacit_reproductions.results import Claim, Table, check, same

OCC: Final = ("Gender", "Education", "Marital", "Race")
PEOPLE: Final = (100_000, 200_000, 300_000, 400_000, 500_000)  # of section 4.4.1; the third is the default
FEW_PEOPLE: Final = (2_000, 3_000, 5_000)
_EXAMPLE: Final = 10_000  # draws of Example 5


def generalised(groups: PersonalGroups, linkage: str, degrees: str = "bins") -> PersonalGroups:
    """Return the groups after values of each attribute that say the same were merged, as in section 4.1.4."""
    maps: dict[str | tuple[str, ...], dict[Any, str]] = {}
    for at, (name, known) in enumerate(zip(groups.columns.public, groups.values, strict=True)):
        counts = np.zeros((len(known), groups.counts.shape[1]), np.int64)
        np.add.at(counts, groups.which[:, at], groups.counts)
        clusters = same_impact(counts, 0.05, linkage, degrees)
        maps[name] = {value: f"{one:03d}" for value, one in zip(known, clusters.tolist(), strict=True)}
    return merged(groups, Generalisation(maps, protected=False))


def groups_of(table: PeopleTable) -> PersonalGroups:
    """Return the personal groups of a table."""
    values = sorted(set(table.rows[table.sensitive].tolist()))
    return personal_groups(table.rows, as_columns(list(table.public), table.sensitive, values))


def reconstruction(run: Run) -> Part:
    """Recompute chapter 4."""
    queries, runs = (100, 1) if run.quick else (5000, 10)
    people = FEW_PEOPLE if run.quick else PEOPLE
    adult = groups_of(adult_table())
    workers = census_workers(run.folder, people[-1])
    # a prefix is a sample as well: rows are drawn one by one, with replacement
    by_size = {size: generalised(groups_of(_occ(workers, size)), "components") for size in people}
    with_age = groups_of(_occ(workers, people[2], ("Age", *OCC)))
    aged = generalised(with_age, "components")
    stand_in = (
        f"stand-in: {people[0]:,} to {people[-1]:,} {workers_of(run.folder)}; age is left "
        f"out, since the thesis merges it into one value, or merged by its test, here into {len(aged.values[0])}"
    )
    small = {"ADULT": generalised(adult, "components"), "OCC": by_size[people[2]]}
    asked = {name: workload(one, queries) for name, one in small.items()}
    sizes = largest_sizes()
    violations = [row for name, one in small.items() for row in violations_of(name, one, quick=run.quick)]
    violations += [
        violation(name, one, "rows", size, DEFAULT, how)
        for name, size, one in (*(("OCC", size, one) for size, one in by_size.items()), (AGED, people[2], aged))
        for how in CRITERIA
    ]
    errors = [row for name, one in small.items() for row in _errors(name, one, asked[name], runs, quick=run.quick)]
    for size, one in by_size.items():
        errors += _errors_at("OCC", one, workload(one, queries), runs, "rows", size, DEFAULT)
    errors += _errors_at(AGED, aged, workload(aged, queries), runs, "rows", people[2], DEFAULT)
    ours = [_our_line(name, one, asked[name], 8 if run.quick else 200) for name, one in small.items()]
    return Part(
        claims=(
            *_examples(),
            *_merging_claims(adult, small["ADULT"], with_age, aged, workers_of(run.folder)),
            *size_claims(),
            *violation_claims(adult, small["ADULT"], violations, stand_in),
            *_error_claims(errors, small, aged, f"{queries:,} queries, {runs} run{'s' * (runs > 1)}; {stand_in}"),
            *(_goal_claims(line, stand_in) for line in ours),
            _attack_claim(4 if run.quick else 20),
        ),
        tables=(
            size_table(sizes),
            violation_table(violations, stand_in, people[2]),
            _error_table(errors),
            Table(
                f"Publications that keep the criterion: {TOGETHER}",
                (
                    "table",
                    "values",
                    "sample / uniform",
                    "masked / uniform",
                    "masked / least",
                    "tails of masked, lower and upper",
                    "gain of own row",
                ),
                [line.cells() for line in ours],
                (
                    "Median over the queries of section 4.4.1 of the root mean squared error, at p = .5 and lambda = "
                    "delta = .3; the least is that of normal masks that hide each count, with nothing else added.",
                    "Tails: how often a masked count is more than 30% below, and above, the true one; medians over "
                    "counts. Definition 8 asks for .3 of each, which no publication here promises.",
                    "The last column: groups in which the own row makes an empirical Bayes estimate of the most "
                    "frequent value right (within 30%) oftener by more than .3, for uniform, sample, masked.",
                ),
            ),
        ),
        details={"largest_sizes": sizes, "violations": violations, "relative_errors": errors},
        charts={
            "figure-4.1": lambda: size_chart(sizes),
            "figures-4.2-and-4.4": lambda: violation_chart(violations),
            "figures-4.3-and-4.5": lambda: error_chart(errors),
        },
    )


def _occ(workers: pd.DataFrame, rows: int, public: tuple[str, ...] = OCC) -> PeopleTable:
    return PeopleTable("OCC", workers.head(rows), public, "Occupation")


# ---- numbers --------------------------------------------------------------------------------------------------------


def _errors(name: str, groups: PersonalGroups, asked: Workload, runs: int, *, quick: bool) -> list[Row]:
    """Return Figures 4.3 and 4.5: mean relative errors of uniform perturbation, of SPS and of masked counts."""
    return [
        row
        for key, value, now in settings(quick=quick)
        for row in _errors_at(name, groups, asked, runs, key, float(value), now)
    ]


def _errors_at(
    name: str, groups: PersonalGroups, asked: Workload, runs: int, key: str, at: float, now: Mapping[str, Fraction]
) -> list[Row]:
    """Return the mean relative errors at one setting, each with its standard error over the runs."""
    channel, wanted = Channel(now["p"], groups.counts.shape[1]), Criterion(now["lam"], now["delta"])
    methods: dict[str, Method] = {"uniform": Uniform(channel), "masked": Masked(channel, wanted)}
    errors = {one: [relative_error(method, groups, asked) for _ in range(runs)] for one, method in methods.items()}
    errors["SPS"] = [_sps_error(groups, asked, channel, wanted) for _ in range(runs)]
    return [
        {
            "table": name,
            "parameter": key,
            "at": at,
            "method": one,
            "error": float(np.mean(found)),
            "standard_error": float(np.std(found, ddof=1) / np.sqrt(runs)) if runs > 1 else None,
        }
        for one, found in errors.items()
    ]


def _sps_sample(groups: PersonalGroups, channel: Channel, wanted: Criterion) -> Floats:
    """Return how many records of each group the thesis' own publication samples."""
    counts, sizes = groups.counts, groups.sizes
    allowed = chernoff_size(counts.max(axis=1) / sizes, channel, wanted)
    return np.where(sizes <= allowed, sizes, np.maximum(np.floor(allowed), 1))


def _sps_error(groups: PersonalGroups, asked: Workload, channel: Channel, wanted: Criterion) -> float:
    """Return the mean relative error of the thesis' own publication, which leaks."""
    counts, sizes = groups.counts, groups.sizes
    drawn = _thinned(counts, _sps_sample(groups, channel, wanted))
    uniform = Uniform(channel)
    many = drawn.sum(axis=1)
    estimates = uniform.estimates(uniform.draw(drawn), many) * (sizes / np.maximum(many, 1))[:, None]
    return float(np.mean(abs(asked.answers(estimates) - asked.truth) / asked.truth))


def _thinned(counts: Ints, wanted: Floats) -> Ints:
    """Return the sample of each group: every value gives its share, rounded at random."""
    shares = counts * (wanted / counts.sum(axis=1))[:, None]
    certain = np.floor(shares).astype(np.int64)
    part = np.rint((shares - certain) * (1 << 40)).astype(np.int64)
    return np.asarray(certain + thin(np.ones_like(certain), part, denominator=1 << 40))


@dataclass(frozen=True)
class OurLine:
    """What our publications of a table come to: errors beside others', tails of masked counts, gains of own rows."""

    table: str
    values: int
    sampled: tuple[float, float]
    masked: tuple[float, float]
    tails: tuple[float, float]
    gains: tuple[float, ...]

    def cells(self) -> tuple[str, ...]:
        """Return the line of the table."""
        errors = (self.sampled[0], *self.masked)
        tails, gains = ", ".join(f"{one:.2f}" for one in self.tails), ", ".join(f"{one:.0%}" for one in self.gains)
        return (self.table, f"{self.values}", *(f"{one:.2f}" for one in errors), tails, gains)


def _our_line(name: str, groups: PersonalGroups, asked: Workload, runs: int) -> OurLine:
    values = groups.counts.shape[1]
    channel, wanted = Channel(DEFAULT["p"], values), Criterion(DEFAULT["lam"], DEFAULT["delta"])
    sample, masked = Sampled(channel, wanted, Fraction(1)), Masked(channel, wanted)
    return OurLine(
        name,
        values,
        floor_ratios(sample, groups, asked, runs),
        floor_ratios(masked, groups, asked, runs),
        _tails(masked, groups, runs),
        tuple(
            float(np.mean(own_row_gain(groups, one, 0.3, min(runs, 50)) > 0.3))
            for one in (Uniform(channel), sample, masked)
        ),
    )


def _tails(method: Method, groups: PersonalGroups, runs: int) -> tuple[float, float]:
    """Return how often counts are estimated too low, and too high, by more than lambda: medians over all counts."""
    counts, lam = groups.counts, float(DEFAULT["lam"])
    low, high = np.zeros(counts.shape), np.zeros(counts.shape)
    for _ in range(runs):
        estimates = method.estimates(method.draw(counts), groups.sizes)
        low += estimates < (1 - lam) * counts
        high += estimates > (1 + lam) * counts
    return float(np.median(low[counts > 0]) / runs), float(np.median(high[counts > 0]) / runs)


# ---- claims ---------------------------------------------------------------------------------------------------------


def _examples() -> list[Claim]:
    channel = Channel(Fraction(1, 5), 10)
    slope, level = 1 / channel.retention, channel.spread
    drawn = _thinned(np.tile([5, 15], (_EXAMPLE, 1)), np.full(_EXAMPLE, 15.0))
    sample = drawn.mean(axis=0)
    return [
        Claim(
            "Example 4",
            "estimate from a share f* at p = .2, m = 10",
            "Tacit's channel; no data",
            "(f* - .08) / .2",
            f"(f* - {float(level):g}) / {float(1 / slope):g}",
            (same("level, divisor", (float(level), float(1 / slope)), (0.08, 0.2), 1e-12),),
        ),
        Claim(
            "Example 5, Table 4.2",
            "5 and 15 records, s = 15: sampled",
            f"SPS as printed, {len(drawn):,} draws of the example",
            "5 x .75 and 15 x .75 on average",
            ", ".join(f"{one:.3f}" for one in sample),
            (same("means", sample, (3.75, 11.25), 0.02),),
        ),
    ]


def _merging_claims(
    adult: PersonalGroups, small: PersonalGroups, occ: PersonalGroups, aged: PersonalGroups, who: str
) -> list[Claim]:
    right = [len(values) for values in small.values]
    printed = [len(values) for values in generalised(adult, "components", "values").values]
    complete = [len(values) for values in generalised(adult, "complete").values]
    before, after = (int(np.prod([len(values) for values in one.values])) for one in (adult, small))
    each = int(adult.sizes.sum())
    ages = [[len(values) for values in one.values] for one in (occ, aged)]
    rows = int(occ.sizes.sum())
    many = [int(np.prod(one)) for one in ages]
    return [
        Claim(
            "Table 4.3",
            "values of education, occupation, race, sex after merging; groups; records a group",
            f"the thesis' test with bins - 1 degrees of freedom; {ADULT_DATA}",
            "7, 4, 2, 2; 2240 to 112; 20 to 404",
            f"{', '.join(map(str, right))}; {before} to {after} ({len(small.counts)} are not empty); "
            f"{each / before:.0f} to {each / after:.0f}; the printed m degrees give {', '.join(map(str, printed))}, "
            f"complete linkage {', '.join(map(str, complete))}",
            (
                check("values with bins - 1 degrees", right, "is", (7, 4, 2, 2)),
                check("groups", (before, after), "is", (2240, 112)),
                check("records a group", (round(each / before), round(each / after)), "is", (20, 404)),
            ),
        ),
        Claim(
            "Table 4.4",
            "OCC: values of age, sex, education, marital status, race; groups; records a group",
            f"the thesis' test; stand-in: {rows:,} {who}",
            "77 to 1, others as before; 116,424 to 1,512; 3 to 331",
            f"{', '.join(map(str, ages[0]))} to {', '.join(map(str, ages[1]))}; {many[0]:,} to {many[1]:,}; "
            f"{rows / many[0]:.0f} to {rows / many[1]:.0f}",
            (
                check("values of age after merging", ages[1][0], "is", 1),
                check("values of the others, as before,", ages[1][1:], "is", ages[0][1:]),
            ),
            "331 records a group is 500K / 1512; of the stated 300K it is 198",
        ),
    ]


def _error_claims(
    errors: list[Row], small: Mapping[str, PersonalGroups], aged: PersonalGroups, run: str
) -> list[Claim]:
    wanted = Criterion(DEFAULT["lam"], DEFAULT["delta"], tails="each")
    worse, reason = {}, {}
    for table, groups in {**small, AGED: aged}.items():
        by = {(row["parameter"], row["at"], row["method"]): row["error"] for row in errors if row["table"] == table}
        worse[table] = [
            by[key, at, "SPS"] / by[key, at, "uniform"] - 1 for key, at, method in by if method == "uniform"
        ]
        sampled = _sps_sample(groups, Channel(DEFAULT["p"], groups.counts.shape[1]), wanted)
        people = groups.sizes.sum()
        reason[table] = (
            f"{sampled.sum() / people:.0%} of the records are sampled at the default: of a group s_g, however large"
        )
    by_rows = {
        method: [
            row["error"] for row in errors if (row["table"], row["parameter"], row["method"]) == ("OCC", "rows", method)
        ]
        for method in ("uniform", "SPS")
    }
    by_p = {
        (table, method): [
            row["error"]
            for row in errors
            if row["parameter"] == "p" and row["table"] == table and row["method"] == method
        ]
        for table in small
        for method in ("uniform", "SPS")
    }
    sizes = [row["at"] for row in errors if (row["table"], row["parameter"], row["method"]) == ("OCC", "rows", "SPS")]
    return [
        Claim(
            "4.3",
            "Adult: how much larger the error of SPS is than that of uniform perturbation",
            f"SPS as printed, which leaks; {run.split(';')[0]}; {ADULT_DATA}",
            "about 50% at worst",
            f"{max(worse['ADULT']):.0%} at worst, {np.median(worse['ADULT']):.0%} in the middle",
            (check("increase at worst, half by a factor of 1.5,", max(worse["ADULT"]), "at most", 0.75),),
            reason["ADULT"],
        ),
        Claim(
            "4.3, 4.5",
            "errors of both as p falls from .9 to .1, OCC without age",
            f"SPS as printed, which leaks; {run}; and {ADULT_DATA}",
            "larger",
            "; ".join(f"{table}, {method} {e[-1]:.1%} to {e[0]:.1%}" for (table, method), e in by_p.items()),
            (check("error at p = .1 over that at .9", [e[0] / e[-1] for e in by_p.values()], "above", 1),),
        ),
        Claim(
            "4.5",
            "OCC: the same as 4.3",
            f"SPS as printed, which leaks; {run}",
            "below 10% for most settings",
            f"{max(worse['OCC']):.0%} at worst, {np.median(worse['OCC']):.0%} in the middle without age; "
            f"{worse[AGED][0]:.0%} with age at the default",
            (
                check(
                    "increase in the middle of the settings, without age,", float(np.median(worse["OCC"])), "below", 0.1
                ),
                check("increase at the default, with age,", worse[AGED][0], "below", 0.1),
            ),
            f"without age {reason['OCC']}; with age {reason[AGED].split(':')[0]}",
        ),
        Claim(
            "4.5(d)",
            f"OCC without age: error of SPS as the table grows from {min(sizes):,} to {max(sizes):,} records",
            f"SPS as printed, which leaks; {run}",
            "smaller, as that of uniform perturbation",
            ", ".join(f"{one:.1%}" for one in by_rows["SPS"])
            + f"; uniform perturbation {', '.join(f'{one:.1%}' for one in by_rows['uniform'])}",
            (
                check(
                    "largest table over smallest, SPS and uniform",
                    [by_rows[method][-1] / by_rows[method][0] for method in ("SPS", "uniform")],
                    "below",
                    0.9,
                ),
            ),
            "the sample of a group does not grow with it",
        ),
    ]


def _goal_claims(line: OurLine, stand_in: str) -> Claim:
    low, high = line.tails
    return Claim(
        "our goal",
        f"{line.table}: masked counts: error beside the least possible, beside an exact sample; tails",
        f"Tacit's masked counts; {ADULT_DATA if line.table == 'ADULT' else stand_in}",
        "at most 1.25; below 1; both tails together above .3 (Definition 8, each at least .3, is no goal)",
        f"{line.masked[1]:.2f}; {line.masked[0] / line.sampled[0]:.2f}; {low:.2f} and {high:.2f}",
        (
            check("error over the least", line.masked[1], "at most", 1.25),
            check("error over an exact sample's", line.masked[0] / line.sampled[0], "below", 1),
            check("both tails together, median,", low + high, "above", float(DEFAULT["delta"])),
        ),
        "where groups are tiny, the noise that keeps epsilon outweighs the masks",
    )


def _attack_claim(groups: int) -> Claim:
    counts = np.tile([2500, *[278] * 9], (groups, 1))
    counts[:, 0] += 40 * np.arange(groups)
    planted, repaired = planted_tables["sampled-by-share"].successes(counts, 0.02)
    return Claim(
        "section 4.3",
        "SPS hides f: groups of about 5,000 in which an attack finds f within 2%",
        f"SPS as printed, {groups} made-up groups",
        "none",
        f"{planted:.0%}; {repaired:.0%} if a simple random sample of a public size is taken",
        (check("share of groups in which f is found", planted, "is", 0),),
        "copies tell the size of the sample, and the size follows from f",
    )


def _error_table(errors: list[Row]) -> Table:
    """Return Figures 4.3 and 4.5 as numbers."""
    by: dict[tuple[str, str, float], dict[str, str]] = {}
    for row in errors:
        off = "" if row["standard_error"] is None else f" ± {row['standard_error']:.2%}"
        by.setdefault((row["table"], row["parameter"], row["at"]), {})[row["method"]] = f"{row['error']:.2%}{off}"
    methods = ("uniform", "SPS", "masked")
    lines = [
        (table, NAMES[key], f"{at:,g}", *(found[one] for one in methods)) for (table, key, at), found in by.items()
    ]
    notes = (
        f'Mean relative error of the queries of section 4.4.1. Masked counts keep the criterion "{TOGETHER}", less '
        "than Definition 8 asks. SPS leaks the frequencies that it hides.",
    )
    title = "Figures 4.3 and 4.5: errors of count queries"
    return Table(title, ("table", "parameter", "at", *methods), lines, notes, on_screen=False)
