"""Case files: what they say, what they count, and how everything wrong in them is refused."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import tacit as tc
from tacit.audit.case_audit import audit_case
from tacit.jobs.case_file import case_schema, read_case
from tacit.jobs.job_file import read_job_or_case
from tacit.jobs.job_run import JobPlan, plan_job, refusals, run_job
from tacit.plan.leakage.shown import Shown
from tacit.report.audit_page import leakage_page
from tacit.report.charts.audit_charts import (
    LETTER,
    LINE_HEIGHT,
    graph_chart,
    meets,
    posterior_chart,
    trade_off_chart,
)

POLICY = {
    "domain": {"arrival": {"categories": ["late", "early"]}, "leaving": {"integers": [15, 17]}},
    "secrets": {"values": {"arrival": ["late"], "leaving": [15]}},
}
TABLE = {
    "names": ["arrival", "leaving"],
    "cells": [["late", 15, 0.2], ["late", 17, 0.1], ["early", 15, 0.2], ["early", 17, 0.5]],
}
NETWORK = {
    "arrival": {"late": 0.3, "early": 0.7},
    "leaving": {"given": ["arrival"], "table": {"late": {"15": 0.6, "17": 0.4}, "early": {"15": 0.2, "17": 0.8}}},
}
CASE: dict[str, Any] = {
    "policy": POLICY,
    "dependence": {"table": TABLE},
    "sensitive": {"arrival": ["late"], "leaving": [15]},
    "applications": {"lighting": ["arrival"], "space": ["leaving"]},
    "coalitions": {"lighting": ["lighting"], "both": ["lighting", "space"]},
    "limit": {"lighting": 0.1, "both": 0.2},
}
ROWS = "room,arrival,leaving\n" + "".join(
    f"r{number},{'late' if number % 3 == 0 else 'early'},{15 + number % 3}\n" for number in range(30)
)


def written(folder: Path, **changes: Any) -> Path:
    said = {key: value for key, value in {**CASE, **changes}.items() if value is not None}
    (folder / "rooms.csv").write_text(ROWS)
    (folder / "earlier.csv").write_text(ROWS.replace("r", "s", 0))
    path = folder / "case.yaml"
    path.write_text(yaml.safe_dump(said, sort_keys=False))
    return path


def release(name: str, attribute: str, application: str, epsilon: Any = "planned") -> dict[str, Any]:
    query = {"true_records": {"columns": [attribute], "key": ["room"], "application": application}}
    return {"name": name, "query": query, "epsilon": epsilon}


def test_a_case_is_planned_as_it_says(tmp_path: Path) -> None:
    case = read_case(written(tmp_path))
    plan = case.plan()
    expected = tc.plan.leakage_budget(
        case.dependence,
        sensitive=case.sensitive,
        limit=CASE["limit"],
        applications=case.applications,
        coalitions=case.coalitions,
    )
    assert plan.epsilon == expected.epsilon
    limits = case.limits()
    assert limits is not None
    assert limits.coalitions == case.groups
    jsonschema.Draft202012Validator(case_schema()).validate(json.loads(json.dumps(CASE)))


THREE = {"lighting": ["arrival"], "space": ["leaving"], "heating": ["arrival"]}
BOTH = ("lighting", "space")
ALONE = {name: (name,) for name in THREE}


@pytest.mark.parametrize(
    ("coalitions", "groups"),
    [
        ({"both": [*BOTH]}, {**ALONE, "both": BOTH}),
        (
            {"light": ["lighting"], "both": [*BOTH]},
            {"light": ("lighting",), "space": ("space",), "heating": ("heating",), "both": BOTH},
        ),
        ({"lighting": ["lighting"]}, ALONE),
        (None, {**ALONE, "everybody": tuple(THREE)}),
    ],
)
def test_audit_and_limits_are_about_the_same_groups(
    coalitions: Any, groups: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    given = dict.fromkeys(THREE, 0.1)
    case = read_case(written(tmp_path, applications=THREE, coalitions=coalitions, limit=0.05, epsilon=given))
    assert list(case.groups.items()) == list(groups.items())
    limits = case.limits()
    assert limits is not None
    assert limits.coalitions == groups
    assert list(dict.fromkeys(row.who for row in audit_case(case).rows)) == list(groups)


def test_an_audit_counts_all_that_is_seen_whatever_the_limits_leave_out(tmp_path: Path) -> None:
    case = read_case(written(tmp_path, limit={"leaving": 0.05}, own=False, cap=3))
    audit = audit_case(case)
    epsilon = {name: each for mine in case.epsilons().values() for name, each in mine.items()}
    (row,) = (one for one in audit.rows if (one.who, one.attribute) == ("lighting", "arrival"))
    leak = tc.audit.exclusion(case.dependence, case.sensitive, {"arrival": epsilon["arrival"]}, coins="remembered")
    assert row.worst == pytest.approx(leak.posterior("arrival", suppressed=["arrival"])["late"], rel=1e-12)
    assert row.worst > row.prior + 0.05
    assert row.value == pytest.approx(leak.mutual_information("arrival", ["arrival"]), rel=1e-12)
    assert row.free_at > 0
    assert row.after == "arrival suppressed"
    (said,) = audit.document()["remarks"]
    assert "`own: false`); this audit counts it." in said
    assert said.replace("`own: false`", "<code>own: false</code>") in leakage_page(audit, {})
    chart = trade_off_chart([{"share": 1.0, "leakage": 0.1, "reached": 1.0, "gap": 0.0}], own=False)
    assert "The limits leave out what" in " ".join(chart.to_dict()["title"]["subtitle"])
    assert audit_case(read_case(written(tmp_path))).remarks == ()


def test_lines_that_coincide_are_all_seen_and_named_as_they_are_drawn() -> None:
    rows = [{"who": who, "attribute": "a", "epsilon": 1, "posterior": 0.5} for who in ("x", "y", "z")]
    found = posterior_chart(rows).to_dict()["hconcat"][0]["encoding"]
    assert "strokeDash" not in found
    assert found["color"]["legend"] == found["strokeWidth"]["legend"]
    assert found["color"]["scale"]["domain"] == found["strokeWidth"]["scale"]["domain"] == ["x", "y", "z"]
    widths = found["strokeWidth"]["scale"]["range"]
    assert all(wide - thin >= 1 for wide, thin in itertools.pairwise(widths))


def test_no_line_of_the_graph_runs_through_a_name(tmp_path: Path) -> None:
    asked = {"lighting": ["arrival", "leaving"], "space planning": ["leaving"], "heating": ["arrival"]}
    layers = graph_chart(read_case(written(tmp_path, applications=asked, coalitions=None, limit=0.1))).to_dict()[
        "layer"
    ]
    lines, _, names = (layer["data"]["values"] for layer in layers)
    assert {line["kind"] for line in lines} == {"asks", "depends", "colludes"}
    for name in names:
        box = (len(name["name"]) * LETTER / 2, LINE_HEIGHT / 2)
        for line in lines:
            ends = (line["x"], line["y"]), (line["x2"], line["y2"])
            assert not meets(ends, (name["x"], name["y"]), box), (name, line)
    drawn = layers[0]["encoding"]
    assert drawn["color"]["legend"] == drawn["strokeDash"]["legend"]


def test_one_application_alone_is_one_group(tmp_path: Path) -> None:
    case = read_case(written(tmp_path, applications={"everybody": ["arrival"]}, coalitions=None, limit=0.05))
    assert case.groups == {"everybody": ("everybody",)}


@pytest.mark.parametrize(
    "given", [{"limit": {"lighting": 5}}, {"limit": {"leaving": 5}}, {"limit": {"leaving": 5}, "own": False}]
)
def test_a_posterior_of_a_case_holds_for_all_in_its_plan_and_in_its_run(given: Any, tmp_path: Path) -> None:
    apart = {"lighting": ["lighting"], "space": ["space"]}
    case = read_case(written(tmp_path, coalitions=apart, posterior=0.5, cap=4, **given))
    plan, limits = case.plan(), case.limits()
    assert limits is not None
    # .3 / (.3 + .7 exp(-epsilon)) and .4 / (.4 + .6 exp(-epsilon)) are .5
    assert plan.epsilon["lighting"]["arrival"] == pytest.approx(math.log(7 / 3), abs=1e-6)
    assert plan.epsilon["space"]["leaving"] == pytest.approx(math.log(3 / 2), abs=1e-6)
    for who, name in (("lighting", "arrival"), ("space", "leaving")):
        planned = Fraction(plan.epsilon[who][name])
        limits.weigh([], [Shown(who, name, planned)])
        with pytest.raises(tc.BudgetExceeded, match=f"posterior of {who} must stay at most 0.5"):
            limits.weigh([], [Shown(who, name, planned + Fraction(1, 10**5))])


@pytest.mark.parametrize("coalitions", [{"ends": ["space"]}, None])
def test_what_is_planned_is_what_is_audited_and_may_be_released(coalitions: Any, tmp_path: Path) -> None:
    run = {"rows": "rooms.csv", "budget": 9, "releases": [release("starts", "arrival", "lighting")], "cap": 3}
    path = written(tmp_path, coalitions=coalitions, limit=0.05, **run)
    case = read_case(path)
    plan, limits = case.plan(), case.limits()
    assert limits is not None
    assert max(plan.epsilon["lighting"].values()) < 3  # also of an application that no coalition names
    shown = [
        Shown(who, name, Fraction(epsilon), f"{who} {name}")
        for who, each in plan.epsilon.items()
        for name, epsilon in each.items()
    ]
    stands = limits.weigh([], shown)
    assert [use.seen_by for use in plan.limits] == [one.coalition for one in stands] == list(case.groups)
    assert [one.leakage for one in stands] == pytest.approx([use.leakage for use in plan.limits], rel=1e-9)
    rows = audit_case(case).rows
    audited = [max(row.worst for row in rows if row.who == one.coalition) for one in stands]
    assert [one.posterior for one in stands] == pytest.approx(audited, rel=1e-9)
    session = tc.Session(case.policy, str(tmp_path / "rooms.csv"), 9, leakage=limits)
    (starts,) = read_job_or_case(path).releases
    session.release(starts.query, epsilon=starts.epsilon)


def test_a_network_and_a_table_of_the_same_are_the_same(tmp_path: Path) -> None:
    table = read_case(written(tmp_path)).dependence
    cells = [["late", 15, 0.18], ["late", 17, 0.12], ["early", 15, 0.14], ["early", 17, 0.56]]
    table = read_case(written(tmp_path, dependence={"table": {**TABLE, "cells": cells}})).dependence
    network = read_case(written(tmp_path, dependence={"network": NETWORK})).dependence
    assert network.total_variation(table) == pytest.approx(0, abs=1e-12)


def test_counts_are_read_as_the_policy_reads_rows(tmp_path: Path) -> None:
    counts = {"file": "earlier.csv", "attributes": ["arrival", "leaving"], "smoothing": 1}
    found = read_case(written(tmp_path, dependence={"counts": counts})).dependence
    assert found.values == {"arrival": ("late", "early"), "leaving": (15, 16, 17)}
    assert found.marginal("arrival", "leaving")[0].tolist() == pytest.approx([11 / 36, 1 / 36, 1 / 36])
    assert not found.unprotected


def test_the_private_rows_are_counted_only_with_the_mark(tmp_path: Path) -> None:
    counts = {"file": "rooms.csv", "attributes": ["arrival", "leaving"], "smoothing": 1}
    run = {"rows": "rooms.csv", "budget": 2, "releases": [release("starts", "arrival", "lighting", 0.1)]}
    with pytest.raises(tc.JobError, match="must be public: it is the rows of the case"):
        read_case(written(tmp_path, dependence={"counts": counts}, **run))
    marked = written(tmp_path, dependence={"counts": {**counts, "unprotected": True}}, **run)
    assert read_case(marked).dependence.unprotected


def counted_with(folder: Path, rows: Any, **more: Any) -> Path:
    counts = {"file": "rooms.csv", "attributes": ["arrival", "leaving"], "smoothing": 1, **more}
    releases = [release("starts", "arrival", "lighting", 0.1)]
    return written(folder, dependence={"counts": counts}, rows=rows, dataset="rooms", budget=2, releases=releases)


NAMES_OF_THE_ROWS = ["roo*.csv", "**/*.csv", "r[o]oms.csv", ".", "link.csv", "hard.csv", "linked", "lin*", "linked/*"]


@pytest.mark.parametrize("rows", [*NAMES_OF_THE_ROWS, ["earlier.csv", "roo*.csv"]])
def test_private_rows_are_known_by_whatever_name(rows: Any, tmp_path: Path) -> None:
    path = counted_with(tmp_path, rows)
    (tmp_path / "link.csv").symlink_to("rooms.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "rooms.csv")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.csv").symlink_to(tmp_path / "rooms.csv")
    (tmp_path / "linked").symlink_to("more")
    with pytest.raises(tc.JobError, match="must be public: it is the rows of the case"):
        read_case(path)
    assert read_case(counted_with(tmp_path, rows, unprotected=True)).dependence.unprotected


def test_rows_that_lead_nowhere_could_be_those_that_are_counted(tmp_path: Path) -> None:
    for rows in ("gone.csv", "gone*.csv", ["earlier.csv", "gone"]):
        with pytest.raises(tc.JobError, match=r"rows.*must lead to a file, or nobody can tell"):
            read_case(counted_with(tmp_path, rows))
    assert not read_case(counted_with(tmp_path, ["earlier.csv", "earl*"])).dependence.unprotected


def test_nothing_that_is_released_follows_from_an_unprotected_dependence(tmp_path: Path) -> None:
    counts = {"file": "rooms.csv", "attributes": ["arrival", "leaving"], "smoothing": 1, "unprotected": True}
    case = {"dependence": {"counts": counts}, "rows": "rooms.csv", "budget": 2}
    planned, fixed = release("starts", "arrival", "lighting"), release("starts", "arrival", "lighting", 0.1)
    for read in (read_case, read_job_or_case):
        with pytest.raises(tc.JobError, match="epsilon must be a number: the dependence is unprotected") as refused:
            read(written(tmp_path, **case, releases=[planned]))
        assert "Count a public or an earlier data set" in refused.value.fix
    with pytest.raises(tc.JobError, match="limit must be left out where releases are made: the dep") as refused:
        read_job_or_case(written(tmp_path, **case, releases=[fixed]))
    assert refused.value.line is not None
    # what the file says itself follows from nobody's rows
    given = {"limit": None, "coalitions": None, "epsilon": {"lighting": {"arrival": 0.25}, "space": {"leaving": 0.1}}}
    job = read_job_or_case(written(tmp_path, **{**case, **given}, releases=[planned]))
    assert (job.leakage, float(job.releases[0].epsilon)) == (None, 0.25)
    # whoever holds the rows may look at the plan
    looked = read_case(written(tmp_path, dependence={"counts": counts}))
    assert looked.plan().epsilon["lighting"]["arrival"] > 0


def test_a_release_has_the_planned_epsilon_and_the_limits(tmp_path: Path) -> None:
    releases = [release("starts", "arrival", "lighting"), release("ends", "leaving", "space", 0.1)]
    path = written(tmp_path, rows="rooms.csv", budget=2, releases=releases)
    job = read_job_or_case(path)
    planned = read_case(path).plan().epsilon["lighting"]["arrival"]
    assert 0 < planned - float(job.releases[0].epsilon) <= 1e-4
    assert float(job.releases[1].epsilon) == 0.1
    assert job.leakage is not None
    jsonschema.Draft202012Validator(case_schema()).validate(yaml.safe_load(path.read_text()))


def test_epsilons_of_the_file_come_first(tmp_path: Path) -> None:
    given = {"lighting": 0.3, "space": {"leaving": 0.2}}
    case = read_case(written(tmp_path, epsilon=given, limit=None))
    assert case.epsilons() == {"lighting": {"arrival": 0.3}, "space": {"leaving": 0.2}}
    assert case.limits() is None
    with pytest.raises(tc.JobError, match="limit must be given for a plan"):
        case.plan()


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "key": ({"coalition": {}}, "coalition is not a key that may stand here. Did you mean 'coalitions'?"),
    "nothing": ({"limit": None}, "must have the key limit or the key epsilon"),
    "two forms": ({"dependence": {"table": TABLE, "network": NETWORK}}, "must have one of the keys table, counts"),
    "attribute": (
        {"dependence": {"table": {"names": ["arrival", "exit"], "cells": [["late", 15, 1]]}}},
        "must be about attributes of the policy; got 'exit'",
    ),
    "value": ({"dependence": {"table": {**TABLE, "cells": [["late", 99, 1.0]]}}}, "dependence.table.cells[0][1]"),
    "sum": ({"dependence": {"table": {**TABLE, "cells": [["late", 15, 0.9]]}}}, "must sum to one; got 0.9"),
    "cell": ({"dependence": {"table": {**TABLE, "cells": [["late", 0.9]]}}}, "must have a value for each of arrival"),
    "twice": ({"dependence": {"table": {**TABLE, "cells": [["late", 15, 0.5]] * 2}}}, "must not be given twice"),
    "cycle": (
        {
            "dependence": {
                "network": {
                    "arrival": {"given": "leaving", "table": {"15": {"late": 1}, "17": {"early": 1}}},
                    "leaving": {"given": "arrival", "table": {"late": {"15": 1}, "early": {"17": 1}}},
                }
            }
        },
        "dependence.network.arrival must not depend on itself",
    ),
    "no file": (
        {"dependence": {"counts": {"file": "gone.csv", "attributes": ["arrival"]}}},
        "dependence.counts.file must be a file; got 'gone.csv'",
    ),
    "misspelt in a network": (
        {
            "dependence": {
                "network": {**NETWORK, "leaving": {"gven": ["arrival"], "table": NETWORK["leaving"]["table"]}}
            }
        },
        "gven is not a key that may stand here. Did you mean 'given'?",
    ),
    "smoothing": (
        {"dependence": {"counts": {"file": "earlier.csv", "attributes": ["arrival"], "smoothing": -1}}},
        "dependence.counts.smoothing must be zero or more; got -1.0. Write 0.5",
    ),
    "sensitive": ({"sensitive": {"arrival": ["never"]}}, "sensitive.arrival"),
    "impossible": ({"sensitive": {"leaving": [16]}}, "must be a value of leaving in the dependence; got 16"),
    "application": ({"applications": {"lighting": ["exit"]}}, "must be an attribute of the dependence; got 'exit'"),
    "coalition": ({"coalitions": {"both": ["lightning"]}}, "Did you mean 'lighting'?"),
    "limit": ({"limit": {"bth": 0.1}}, "Did you mean 'both'?"),
    "name of another": (
        {"coalitions": {"lighting": ["lighting", "space"]}},
        "must not have the name of an application, unless it is alone in it; got 'lighting'",
    ),
    "application everybody": (
        {"applications": {"everybody": ["arrival"], "space": ["leaving"]}, "coalitions": None, "limit": 1},
        "must not be called everybody",
    ),
    "limit of what": (
        {"applications": {"arrival": ["arrival"], "space": ["leaving"]}, "coalitions": None, "limit": {"arrival": 1}},
        "must not be both an attribute and an application or coalition; got 'arrival'",
    ),
    "negative": ({"limit": -1}, "limit must be a finite number, zero or more; got -1"),
    "measure": ({"measure": "bits"}, "measure must be value or bit; got 'bits'"),
    "epsilon": ({"epsilon": {"lighting": -1, "space": 1}}, "must not be negative"),
    "epsilon missing": ({"epsilon": {"lighting": 1}}, "must have the key space"),
    "posterior": ({"posterior": 2}, "posterior must be a probability"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_with_file_line_and_key(name: str, tmp_path: Path) -> None:
    changes, said = WRONG[name]
    path = written(tmp_path, **changes)
    with pytest.raises((tc.JobError, tc.PlanError, tc.PolicyError)) as refused:
        read_case(path)
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{path}:")
    assert refused.value.line is not None
    assert refused.value.fix


def test_a_limit_that_binds_nothing_needs_a_cap_as_a_file_gives_it(tmp_path: Path) -> None:
    path = written(tmp_path, limit=50)
    with pytest.raises(
        tc.JobError,
        match=r"case.yaml:\d+: cap must be given, the largest epsilon that a plan may use: without it the epsilon of",
    ) as refused:
        read_case(path).plan()
    assert refused.value.fix == "Add `cap: 5`, which releases 99 of 100, or lower the limit."
    assert read_case(written(tmp_path, limit=50, cap=5)).plan().epsilon["lighting"]["arrival"] == pytest.approx(5)


def test_a_planned_release_needs_an_application_of_the_case(tmp_path: Path) -> None:
    run = {"rows": "rooms.csv", "budget": 2}
    with pytest.raises(tc.JobError, match="must be a number, unless one attribute is shown to an application"):
        read_case(written(tmp_path, **run, releases=[{"name": "a", "query": {"count": None}, "epsilon": "planned"}]))
    with pytest.raises(tc.JobError, match=r"true_records\.application must be an application of the case") as refused:
        read_case(written(tmp_path, **run, releases=[release("a", "arrival", "lightning")]))
    assert (refused.value.given, refused.value.fix) == ("lightning", "Did you mean 'lighting'?")
    policy = {**POLICY, "secrets": {"values": {"leaving": [15]}}}
    with pytest.raises(tc.JobError, match="must be a number: no secret of the policy is about arrival, which is shown"):
        read_case(written(tmp_path, **run, policy=policy, releases=[release("a", "arrival", "lighting")]))
    with pytest.raises(tc.JobError, match="leaves nothing for arrival for lighting"):
        read_case(written(tmp_path, **run, limit=0, releases=[release("a", "arrival", "lighting")]))


def test_a_case_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, rows="rooms.csv", budget=2, releases=[release("starts", "arrival", "lighting", 0.1)])
    opened: list[Path] = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *more, **named: opened.append(self) or real(self, *more, **named))
    read_job_or_case(path)
    assert opened.count(path) == 1


def test_a_case_without_rows_cannot_be_run(tmp_path: Path) -> None:
    with pytest.raises(tc.JobError, match="the case must have the keys rows and releases to be run"):
        read_job_or_case(written(tmp_path))


def check_leakage(plan: JobPlan) -> None:
    """Refuse a plan as a dry run of paying for it would."""
    for refused in refusals(plan.job, plan.plans).values():
        raise refused


def test_a_planned_job_is_refused_for_what_its_run_would_be(tmp_path: Path) -> None:
    def job(epsilon: float, *, ledger: str | None = "ledger.db", **changes: Any) -> Any:
        releases = [release("starts", "arrival", "lighting", epsilon)]
        where = {"rows": "rooms.csv", "ledger": ledger, "budget": 5, "out": f"out{epsilon}"}
        return read_job_or_case(written(tmp_path, releases=releases, **where, **changes))

    check_leakage(plan_job(job(0.3)))
    with pytest.raises(tc.BudgetExceeded, match="leakage of lighting must stay at most"):
        check_leakage(plan_job(job(1.5)))  # the ledger is not there yet
    for check in (check_leakage, run_job):  # nobody would remember what was shown
        with pytest.raises(tc.JobError, match="ledger must be given where a limit holds"):
            check(plan_job(job(0.3, ledger=None)))
    run_job(job(0.3))
    before = tc.Ledger(tmp_path / "ledger.db").entries()
    check_leakage(plan_job(job(0.3)))  # its coins are remembered
    for wrong, kind, said in (
        (job(1.5), tc.BudgetExceeded, "leakage of lighting must stay at most"),
        (job(0.3, limit=0.3), tc.LedgerError, "must be those that hold for dataset 'rooms' already"),
    ):
        with pytest.raises(kind, match=said) as planned:
            check_leakage(plan_job(wrong))
        with pytest.raises(kind) as ran:
            run_job(wrong)
        assert str(planned.value) == str(ran.value)
    assert tc.Ledger(tmp_path / "ledger.db").entries() == before
