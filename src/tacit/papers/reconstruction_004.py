"""Chapter 4 of document 004, reconstruction privacy: its examples, tables and figures, and our own publications beside.

Claims about OCC are judged on workers of the census survey, which stand in for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tacit import noise
from tacit.audit.reconstructing.own_rows import own_row_gain
from tacit.audit.reconstructing.reconstruction_attacks import planted_tables
from tacit.audit.reconstructing.reconstruction_audit import audit_groups
from tacit.noise.thinning import thin
from tacit.papers.charts_reconstruction_004 import error_chart, size_chart, violation_chart
from tacit.papers.parts import Part, Setting
from tacit.papers.results import NO, PARTLY, YES, Claim, Table, judged
from tacit.papers.tables_004 import PeopleTable, adult_table, census_workers
from tacit.publish.criterion import Channel, Criterion, chernoff_size, largest_size
from tacit.publish.generalisation import Generalisation, merged
from tacit.publish.generalise import same_impact
from tacit.publish.groups import PersonalGroups, as_columns, personal_groups
from tacit.publish.masked import Masked
from tacit.publish.method import Method
from tacit.publish.perturbation import Uniform
from tacit.publish.sampled import Sampled

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Row = dict[str, Any]

DEFAULT: Final = {"p": Fraction(1, 2), "lam": Fraction(3, 10), "delta": Fraction(3, 10)}
RANGES: Final = {  # Table 4.5
    "p": tuple(Fraction(n, 10) for n in (1, 3, 5, 7, 9)),
    "lam": tuple(Fraction(n, 10) for n in (1, 2, 3, 4, 5)),
    "delta": tuple(Fraction(n, 10) for n in (1, 2, 3, 4, 5)),
}
_TENTHS: Final = tuple(n / 10 for n in range(1, 10))
_MOST_TRIED: Final = 200_000  # queries that are tried until enough of them are frequent
_SELECTIVITY: Final = 1e-3
FLOOR: Final = 0.3 / 1.036  # the least relative deviation of a normal mask that hides a count at (0.3, 0.3)


@dataclass(frozen=True)
class Workload:
    """Count queries: which groups each adds up, and which value it counts. `truth` are the true answers."""

    groups: Floats
    value: Ints
    truth: Floats

    def answers(self, counts: npt.NDArray[Any]) -> Floats:
        """Return the sums of counts that the queries ask for."""
        return np.asarray((self.groups @ counts)[np.arange(len(self.value)), self.value])


def workload(groups: PersonalGroups, queries: int) -> Workload:
    """Draw the queries of section 4.4.1: one to three attributes, one value of each, one sensitive value.

    Those that hold for less than 0.1% of the people are left out.
    """
    counts, total, attributes = groups.counts, int(groups.counts.sum()), len(groups.values)
    chosen, values, truths = [], [], []
    for _ in range(_MOST_TRIED):
        many = 1 + noise.uniform_below(min(3, attributes))
        mask = np.ones(len(counts), np.bool_)
        for at in noise.permutation(attributes)[:many]:
            mask &= groups.which[:, at] == noise.uniform_below(len(groups.values[at]))
        value = noise.uniform_below(counts.shape[1])
        truth = int(counts[mask, value].sum())
        if truth >= _SELECTIVITY * total:
            chosen.append(mask)
            values.append(value)
            truths.append(float(truth))
        if len(chosen) == queries:
            break
    return Workload(np.array(chosen, np.float64), np.array(values), np.array(truths))


def relative_error(method: Method, groups: PersonalGroups, asked: Workload, runs: int) -> float:
    """Return the mean relative error of the queries over several publications."""
    found = []
    for _ in range(runs):
        estimates = method.estimates(method.draw(groups.counts), groups.sizes)
        found.append(np.mean(abs(asked.answers(estimates) - asked.truth) / asked.truth))
    return float(np.mean(found))


def floor_ratios(method: Method, groups: PersonalGroups, asked: Workload, runs: int) -> tuple[float, float]:
    """Return the median error of queries beside uniform perturbation's, and beside the least that masks allow."""
    counts, sizes = groups.counts, groups.sizes
    errors = []
    for _ in range(runs):
        estimates = method.estimates(method.draw(counts), sizes)
        errors.append(asked.answers(estimates) - asked.truth)
    own = np.sqrt(np.mean(np.square(errors), axis=0))
    values = counts.shape[1]
    uniform = Uniform(Channel(DEFAULT["p"], values)).variances(counts.astype(np.float64), sizes)
    hidden = np.maximum(counts, sizes[:, None] - counts) if values == 2 else counts
    least = (FLOOR * hidden) ** 2
    return (
        float(np.median(own / np.sqrt(asked.answers(uniform)))),
        float(np.median(own / np.sqrt(asked.answers(least)))),
    )


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


def reconstruction(setting: Setting) -> Part:
    """Recompute chapter 4."""
    queries, runs = (100, 1) if setting.quick else (5000, 10)
    adult = groups_of(adult_table())
    workers = census_workers(setting.folder, 5_000 if setting.quick else 300_000)
    census = groups_of(PeopleTable("OCC", workers, ("Gender", "Education", "Marital", "Race"), "Occupation"))
    small = {"ADULT": generalised(adult, "components"), "OCC": generalised(census, "components")}
    asked = {name: workload(one, queries) for name, one in small.items()}
    sizes = _sizes()
    violations = [row for name, one in small.items() for row in _violations(name, one, quick=setting.quick)]
    errors = [row for name, one in small.items() for row in _errors(name, one, asked[name], runs, quick=setting.quick)]
    ours = [_our_line(name, one, asked[name], 8 if setting.quick else 200) for name, one in small.items()]
    return Part(
        claims=(
            *_examples(),
            *_merging_claims(adult, census, small),
            *_size_claims(),
            *_violation_claims(adult, small["ADULT"]),
            *_error_claims(errors, ours),
            _attack_claim(4 if setting.quick else 20),
        ),
        tables=(
            Table(
                "Publications that satisfy the exact criterion",
                ("table", "values", "sample / uniform", "masked / uniform", "masked / least", "gain of own row"),
                [line for line, _, _ in ours],
                (
                    "Median over the queries of section 4.4.1 of the root mean squared error, at p = .5 and lambda = "
                    "delta = .3; the least is that of normal masks that hide each count, with nothing else added.",
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


# ---- numbers --------------------------------------------------------------------------------------------------------


def _sizes() -> list[Row]:
    """Return Figure 4.1: the largest size of a group by its largest frequency."""
    asked = Criterion(DEFAULT["lam"], DEFAULT["delta"], "chernoff", "each")
    found = []
    for name, values in (("ADULT", 2), ("OCC", 50)):
        for p in RANGES["p"]:
            for f in _TENTHS if values > 2 else _TENTHS[4:]:
                size = float(chernoff_size(f, Channel(p, values), asked))
                found.append({"table": name, "p": float(p), "f": f, "size": size})
    return found


def _settings(*, quick: bool) -> list[tuple[str, Fraction, dict[str, Fraction]]]:
    """Return the settings of the figures: one parameter moves, the others stay."""
    return [
        (key, value, {**DEFAULT, key: value})
        for key, values in RANGES.items()
        for value in (values[::4] if quick else values)
    ]


def _violations(name: str, groups: PersonalGroups, *, quick: bool) -> list[Row]:
    """Return Figures 4.2 and 4.4: the shares of groups and records that violate the criterion."""
    found = []
    for key, value, now in _settings(quick=quick):
        channel = Channel(now["p"], groups.counts.shape[1])
        for how in ("chernoff", "exact"):
            audit = audit_groups(groups, channel, Criterion(now["lam"], now["delta"], how, "each"))
            found.append(
                {
                    "table": name,
                    "parameter": key,
                    "at": float(value),
                    "criterion": how,
                    "groups": audit.share_of_groups,
                    "records": audit.share_of_records,
                }
            )
    return found


def _errors(name: str, groups: PersonalGroups, asked: Workload, runs: int, *, quick: bool) -> list[Row]:
    """Return Figures 4.3 and 4.5: mean relative errors of uniform perturbation, of SPS and of masked counts."""
    found = []
    for key, value, now in _settings(quick=quick):
        channel = Channel(now["p"], groups.counts.shape[1])
        wanted = Criterion(now["lam"], now["delta"])
        methods: dict[str, Method] = {"uniform": Uniform(channel), "masked": Masked(channel, wanted)}
        errors = {one: relative_error(method, groups, asked, runs) for one, method in methods.items()}
        errors["SPS"] = float(np.mean([_sps_error(groups, asked, channel, wanted) for _ in range(runs)]))
        found += [
            {"table": name, "parameter": key, "at": float(value), "method": one, "error": error}
            for one, error in errors.items()
        ]
    return found


def _sps_error(groups: PersonalGroups, asked: Workload, channel: Channel, wanted: Criterion) -> float:
    """Return the mean relative error of the thesis' own publication, which leaks."""
    counts, sizes = groups.counts, groups.sizes
    allowed = chernoff_size(counts.max(axis=1) / sizes, channel, wanted)
    sample = np.where(sizes <= allowed, sizes, np.maximum(np.floor(allowed), 1))
    shares = counts * (sample / sizes)[:, None]
    certain = np.floor(shares).astype(np.int64)
    part = np.rint((shares - certain) * (1 << 40)).astype(np.int64)
    drawn = certain + thin(np.ones_like(certain), part, denominator=1 << 40)
    uniform = Uniform(channel)
    many = drawn.sum(axis=1)
    estimates = uniform.estimates(uniform.draw(drawn), many) * (sizes / np.maximum(many, 1))[:, None]
    return float(np.mean(abs(asked.answers(estimates) - asked.truth) / asked.truth))


def _our_line(
    name: str, groups: PersonalGroups, asked: Workload, runs: int
) -> tuple[tuple[str, ...], tuple[float, float], tuple[float, float]]:
    values = groups.counts.shape[1]
    channel, wanted = Channel(DEFAULT["p"], values), Criterion(DEFAULT["lam"], DEFAULT["delta"])
    sampled = floor_ratios(Sampled(channel, wanted, Fraction(1)), groups, asked, runs)
    masked = floor_ratios(Masked(channel, wanted), groups, asked, runs)
    methods = Uniform(channel), Sampled(channel, wanted, Fraction(1)), Masked(channel, wanted)
    gains = [float(np.mean(own_row_gain(groups, one, 0.3, min(runs, 50)) > 0.3)) for one in methods]
    shown = ", ".join(f"{one:.0%}" for one in gains)
    line = (name, f"{values}", f"{sampled[0]:.2f}", f"{masked[0]:.2f}", f"{masked[1]:.2f}", shown)
    return line, sampled, masked


# ---- claims ---------------------------------------------------------------------------------------------------------


def _examples() -> list[Claim]:
    channel = Channel(Fraction(1, 5), 10)
    slope, level = 1 / channel.retention, channel.spread
    sample = [Fraction(count * 15, 20) for count in (5, 15)]
    return [
        Claim(
            "Example 4",
            "estimate from a share f* at p = .2, m = 10",
            "(f* - .08) / .2",
            f"(f* - {float(level):g}) / {float(1 / slope):g}",
            judged([level == Fraction(8, 100), slope == 5])[0],
        ),
        Claim(
            "Example 5, Table 4.2",
            "5 and 15 records, s = 15: sampled",
            "5 x .75 and 15 x .75 on average",
            ", ".join(f"{float(one):g}" for one in sample),
            judged([sample == [Fraction(15, 4), Fraction(45, 4)]])[0],
            "the sample keeps frequencies, and by its size it tells them",
        ),
    ]


def _merging_claims(adult: PersonalGroups, census: PersonalGroups, small: dict[str, PersonalGroups]) -> list[Claim]:
    right = [len(values) for values in small["ADULT"].values]
    printed = [len(values) for values in generalised(adult, "components", "values").values]
    complete = [len(values) for values in generalised(adult, "complete").values]
    before, after = (int(np.prod([len(values) for values in one.values])) for one in (adult, small["ADULT"]))
    occ = [int(np.prod([len(values) for values in one.values])) for one in (census, small["OCC"])]
    return [
        Claim(
            "Table 4.3",
            "values of education, occupation, race, sex after merging; groups",
            "7, 4, 2, 2; 2240 to 112",
            f"{', '.join(map(str, right))}; {before} to {after} ({len(small['ADULT'].counts)} are not empty)",
            judged([right == [7, 4, 2, 2]])[0],
            f"with bins - 1 degrees of freedom; the printed m gives {', '.join(map(str, printed))}, complete linkage "
            f"{', '.join(map(str, complete))}",
        ),
        Claim(
            "Table 4.4",
            "OCC: groups before and after merging",
            "116,424 to 1,512",
            f"{occ[0]:,} to {occ[1]:,} on the stand-in, of four attributes",
            judged([occ[1] < occ[0]])[0],
            "331 records a group is 500K / 1512; of the stated 300K it is 198",
        ),
    ]


def _size_claims() -> list[Claim]:
    asked = Criterion(DEFAULT["lam"], DEFAULT["delta"], "chernoff", "each")
    two = chernoff_size([0.5, 0.7, 0.9], Channel(DEFAULT["p"], 2), asked)
    fifty = chernoff_size([0.1, 0.3, 0.5, 0.9], Channel(DEFAULT["p"], 50), asked)
    exact = float(
        largest_size(0.5, Channel(DEFAULT["p"], 10), Criterion(DEFAULT["lam"], DEFAULT["delta"], tails="each"))
    )
    bound = float(np.floor(chernoff_size(0.5, Channel(DEFAULT["p"], 10), asked)))
    return [
        Claim(
            "4.1",
            "largest size, p = .5: m = 2 at .5/.7/.9; m = 50 at .1/.3/.5/.9",
            "falls with f, large m and small f allow more",
            f"{', '.join(f'{one:.1f}' for one in two)}; {', '.join(f'{one:.1f}' for one in fifty)}",
            judged([bool(np.all(np.diff(two) < 0)), bool(np.all(np.diff(fifty) < 0))])[0],
            "Eq 4.9 as printed",
        ),
        Claim(
            "Corollary 6",
            "a group satisfies the criterion if and only if its size is at most s_g (m = 10, f = .5)",
            f"{bound:g} records",
            f"{exact:g} records",
            NO,
            "Chernoff's bound is an upper bound on the chance of an error; who adds up the two binomials knows better",
        ),
    ]


def _violation_claims(adult: PersonalGroups, small: PersonalGroups) -> list[Claim]:
    channel = Channel(DEFAULT["p"], 2)
    said = []
    for how in ("chernoff", "exact"):
        asked = Criterion(DEFAULT["lam"], DEFAULT["delta"], how, "each")
        both = [audit_groups(one, channel, asked) for one in (small, adult)]
        said.append([f"{one.share_of_groups:.1%} and {one.share_of_records:.1%}" for one in both])
    bound, exact = said
    return [
        Claim(
            "section 4.4.2",
            "Adult at the default: groups and records that violate",
            "85% and 99%",
            f"{bound[0]} by Eq 4.9 on the groups of Table 4.3, {bound[1]} on the groups before merging",
            PARTLY,
            f"most records, but not most groups; by the exact criterion {exact[0]}, and {exact[1]} before merging",
        )
    ]


def _error_claims(errors: list[Row], ours: list[Any]) -> list[Claim]:
    worse = {}
    for table in ("ADULT", "OCC"):
        by = {(row["parameter"], row["at"], row["method"]): row["error"] for row in errors if row["table"] == table}
        worse[table] = [
            by[key, at, "SPS"] / by[key, at, "uniform"] - 1 for key, at, method in by if method == "uniform"
        ]
    claims = [
        Claim(
            "4.3",
            "Adult: how much larger the error of SPS is than that of uniform perturbation",
            "about 50% at worst",
            f"{max(worse['ADULT']):.0%} at worst, {np.median(worse['ADULT']):.0%} in the middle",
            judged([max(worse["ADULT"]) < 0.75])[0],
            "and SPS leaks the frequencies that it hides",
        ),
        Claim(
            "4.5",
            "OCC: the same",
            "below 10% for most settings",
            f"{max(worse['OCC']):.0%} at worst, {np.median(worse['OCC']):.0%} in the middle",
            judged([float(np.median(worse["OCC"])) < 0.1])[0],
            "the stand-in has fewer and larger groups, of which more are sampled",
        ),
    ]
    for (name, *_), sampled, masked in ours:
        claims.append(
            Claim(
                "our goal",
                f"{name}: error of masked counts beside the least possible; beside an exact sample",
                "at most 1.25; below 1",
                f"{masked[1]:.2f}; {masked[0] / sampled[0]:.2f}",
                *judged(
                    [masked[1] <= 1.25, masked[0] < sampled[0]],
                    why="where groups are tiny, the noise that keeps epsilon outweighs the masks",
                ),
            )
        )
    return claims


def _attack_claim(groups: int) -> Claim:
    counts = np.tile([2500, *[278] * 9], (groups, 1))
    counts[:, 0] += 40 * np.arange(groups)
    planted, repaired = planted_tables["sampled-by-share"].successes(counts, 0.02)
    return Claim(
        "section 4.3",
        "SPS hides f: groups of about 5,000 in which an attack finds f within 2%",
        "none",
        f"{planted:.0%}; {repaired:.0%} if a simple random sample of a public size is taken",
        YES if planted < 0.1 else NO,
        "copies tell the size of the sample, and the size follows from f",
    )
