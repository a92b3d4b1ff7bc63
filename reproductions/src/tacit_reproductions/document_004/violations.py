"""Document 004, section 4.4.2: how large a group may be, and which groups and records violate the criterion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.audit.reconstruction_audit import audit_groups
from tacit.publish.groups import PersonalGroups
from tacit.publish.methods.criterion import Channel, Criterion, chernoff_size, largest_size
from tacit_reproductions.document_004.reconstruction_charts import NAMES
from tacit_reproductions.results import Claim, Table, check, same

Row = dict[str, Any]

DEFAULT: Final = {"p": Fraction(1, 2), "lam": Fraction(3, 10), "delta": Fraction(3, 10)}
RANGES: Final = {  # Table 4.5
    "p": tuple(Fraction(n, 10) for n in (1, 3, 5, 7, 9)),
    "lam": tuple(Fraction(n, 10) for n in (1, 2, 3, 4, 5)),
    "delta": tuple(Fraction(n, 10) for n in (1, 2, 3, 4, 5)),
}
CRITERIA: Final = ("chernoff", "exact")
AGED: Final = "OCC with age"  # beside OCC, where age is left out
EACH: Final = "exact, each tail at least delta (Definition 8)"
TOGETHER: Final = "exact, both tails together above delta"
ADULT_DATA: Final = "Adult, the paper's data"
_TENTHS: Final = tuple(n / 10 for n in range(1, 10))


def settings(*, quick: bool) -> list[tuple[str, Fraction, dict[str, Fraction]]]:
    """Return the settings of the figures: one parameter moves, the others stay."""
    return [
        (key, value, {**DEFAULT, key: value})
        for key, values in RANGES.items()
        for value in (values[::4] if quick else values)
    ]


# ---- numbers --------------------------------------------------------------------------------------------------------


def largest_sizes() -> list[Row]:
    """Return Figure 4.1: the largest size of a group by its largest frequency."""
    asked = Criterion(DEFAULT["lam"], DEFAULT["delta"], "chernoff", "each")
    found = []
    for name, values in (("ADULT", 2), ("OCC", 50)):
        for p in RANGES["p"]:
            for f in _TENTHS if values > 2 else _TENTHS[4:]:
                size = float(chernoff_size(f, Channel(p, values), asked))
                found.append({"table": name, "p": float(p), "f": f, "size": size})
    return found


def violations_of(name: str, groups: PersonalGroups, *, quick: bool) -> list[Row]:
    """Return Figures 4.2 and 4.4: the shares of groups and records that violate the criterion."""
    return [
        violation(name, groups, key, float(value), now, how)
        for key, value, now in settings(quick=quick)
        for how in CRITERIA
    ]


def violation(name: str, groups: PersonalGroups, key: str, at: float, now: Mapping[str, Fraction], how: str) -> Row:
    """Return the shares at one setting, by one criterion."""
    channel = Channel(now["p"], groups.counts.shape[1])
    audit = audit_groups(groups, channel, Criterion(now["lam"], now["delta"], how, "each"))
    return {
        "table": name,
        "parameter": key,
        "at": at,
        "criterion": how,
        "groups": audit.share_of_groups,
        "records": audit.share_of_records,
    }


# ---- claims ---------------------------------------------------------------------------------------------------------


def size_claims() -> list[Claim]:
    """Return what is claimed about the sizes of groups."""
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
            "Eq 4.9 as printed; no data",
            "falls with f; m has the opposite effect",
            f"{', '.join(f'{one:.1f}' for one in two)}; {', '.join(f'{one:.1f}' for one in fifty)}",
            (
                check("change with f", [*np.diff(two), *np.diff(fifty)], "below", 0),
                check("m = 50 beside m = 2, at f = .5 and .9,", (fifty[2], fifty[3]), "above", (two[0], two[2])),
            ),
        ),
        Claim(
            "Corollary 6",
            "a group satisfies the criterion if and only if its size is at most s_g (m = 10, f = .5)",
            f"Eq 4.9 as printed, and {EACH}; no data",
            f"{bound:g} records",
            f"{exact:g} records",
            (check("largest size that satisfies the criterion", int(exact), "is", int(bound)),),
            "Chernoff's bound is an upper bound on the chance of an error; who adds up the two binomials knows better",
        ),
    ]


def violation_claims(
    adult: PersonalGroups, small: PersonalGroups, violations: Sequence[Row], stand_in: str
) -> list[Claim]:
    """Return what is claimed about groups and records that violate the criterion."""
    channel = Channel(DEFAULT["p"], 2)
    audits = [
        [audit_groups(one, channel, Criterion(DEFAULT["lam"], DEFAULT["delta"], how, "each")) for one in (small, adult)]
        for how in CRITERIA
    ]
    bound, exact = ([f"{one.share_of_groups:.1%} and {one.share_of_records:.1%}" for one in both] for both in audits)
    printed = [row for row in violations if row["criterion"] == "chernoff"]
    by = {
        (table, key): [
            (row["at"], row["groups"], row["records"])
            for row in printed
            if row["table"] == table and row["parameter"] == key
        ]
        for table, key in (("ADULT", "p"), ("OCC", "rows"), (AGED, "rows"))
    }
    falls = [[row[what] for row in by["ADULT", "p"]] for what in (1, 2)]
    grown = [[row[what] for row in by["OCC", "rows"]] for what in (1, 2)]
    ((rows, *aged),) = by[AGED, "rows"]
    at_default = [next(row[1:] for row in by["OCC", "rows"] if row[0] == rows), aged]
    groups, records = zip(*at_default, strict=True)
    most = by["OCC", "rows"][-1][0]
    return [
        Claim(
            "4.2",
            "Adult at the default: groups and records that violate",
            f"Eq 4.9 as printed; {ADULT_DATA}, groups of Table 4.3",
            "85%, and more than 99%",
            f"{bound[0]} ({bound[1]} on the groups before merging); {EACH}: {exact[0]} ({exact[1]})",
            (
                same("share of groups", audits[0][0].share_of_groups, 0.85, 0.05),
                check("share of records", audits[0][0].share_of_records, "above", 0.99),
            ),
        ),
        Claim(
            "4.2",
            "Adult: groups and records that violate as p falls from .9 to .1",
            f"Eq 4.9 as printed; {ADULT_DATA}, groups of Table 4.3",
            "fewer: a small p helps",
            "; ".join(f"{one[-1]:.1%} to {one[0]:.1%}" for one in falls),
            (
                check(
                    "change of a share with the next larger p",
                    [step for one in falls for step in np.diff(one)],
                    "at least",
                    0,
                ),
            ),
        ),
        Claim(
            "4.4",
            f"OCC at the default, {rows:,} records: groups and records that violate",
            f"Eq 4.9 as printed; {stand_in}",
            "far fewer groups than in Adult, and most records",
            "; ".join(
                f"{share:.1%} and {of_records:.1%} {age}"
                for share, of_records, age in zip(groups, records, ("without age", "with age"), strict=True)
            ),
            (
                check("share of groups, half of Adult's,", groups, "below", audits[0][0].share_of_groups / 2),
                check("share of records", records, "above", 0.5),
            ),
        ),
        Claim(
            "4.4(d)",
            f"OCC without age: groups and records that violate as the table grows to {most:,} records",
            f"Eq 4.9 as printed; {stand_in}",
            "more",
            "; ".join(", ".join(f"{share:.1%}" for share in one) for one in grown),
            (check("change with the next larger table", [step for one in grown for step in np.diff(one)], "above", 0),),
        ),
    ]


# ---- tables ---------------------------------------------------------------------------------------------------------


def size_table(sizes: Sequence[Row]) -> Table:
    """Return Figure 4.1 as numbers."""
    by = {(row["table"], row["p"], row["f"]): row["size"] for row in sizes}
    lines = [
        (table, f"{p:g}", *(f"{by[table, p, f]:,.1f}" if (table, p, f) in by else "" for f in _TENTHS))
        for table, p in dict.fromkeys((row["table"], row["p"]) for row in sizes)
    ]
    headings = ("table", "p", *(f"f = {f:g}" for f in _TENTHS))
    notes = ("By Eq 4.9, at lambda = delta = .3; ADULT has two values, OCC fifty.",)
    title = "Figure 4.1: the largest size of a group by its largest frequency"
    return Table(title, headings, lines, notes, on_screen=False)


def violation_table(violations: Sequence[Row], stand_in: str, default: int) -> Table:
    """Return Figures 4.2 and 4.4 as numbers."""
    by: dict[tuple[str, str, float], dict[str, Row]] = {}
    for row in violations:
        by.setdefault((row["table"], row["parameter"], row["at"]), {})[row["criterion"]] = row
    lines = [
        (
            table,
            NAMES[key],
            f"{at:,g}",
            *(f"{found[how][what]:.1%}" for how in CRITERIA for what in ("groups", "records")),
        )
        for (table, key, at), found in by.items()
    ]
    shares = tuple(f"{what}, {how}" for how in ("Eq 4.9", "exact, each tail") for what in ("groups", "records"))
    notes = (
        f"Groups as in Table 4.3. Eq 4.9 bounds each tail; the other columns are {EACH}. OCC: {stand_in}.",
        f"Where nothing else is said {default:,} records.",
    )
    title = "Figures 4.2 and 4.4: groups and records that violate the criterion"
    return Table(title, ("table", "parameter", "at", *shares), lines, notes, on_screen=False)
