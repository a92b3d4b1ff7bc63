"""The report as one HTML file that needs no network: what a privacy officer shows to a lawyer and a board.

Everything in it is public: the policy, the plans and the released values. What it looks like is in `report/page.py`
and the templates beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from tacit.amounts import error_text, rough, shown, shown_with_decimal
from tacit.plan.choose import Explanation
from tacit.plan.plans.plan import Plan
from tacit.policy.describe import Section, description, protections
from tacit.policy.policy import Policy
from tacit.release.results.record import ReleaseRecord
from tacit.release.results.value_files import planned_file_name
from tacit.report.charts.chart_parts import say
from tacit.report.charts.release_charts import (
    chart,
    chart_svg,
    chart_text,
    comparison_chart,
    condition,
    parts,
    question,
)
from tacit.report.page import inline, page, with_code
from tacit.report.shown_tables import shown_tables

FILES_SHOWN: Final = 13  # links; marginals of many attributes have a file for each table
ROWS_UNFOLDED: Final = 18  # longer tables are there, but closed until somebody opens them, and not on paper


@dataclass(frozen=True)
class _Block:
    """A heading of the policy's description with what stands below it; `warns`: it is about what is not protected."""

    heading: str = ""
    paragraphs: list[Markup] = field(default_factory=list)
    points: list[Markup] = field(default_factory=list)
    warns: bool = False


def html_report(
    job_name: str,
    policy: Policy,
    records: Mapping[str, ReleaseRecord],
    explanations: Mapping[str, Explanation] | Sequence[Explanation],
    *,
    budget: Fraction | None = None,
    analyst: str | None = None,
    charts: Mapping[str, str] | None = None,
    tables: Mapping[str, Sequence[str]] | None = None,
    learned: Sequence[str] = (),
    workbook: str = "",
) -> str:
    """Return the report of some releases as one self-contained HTML file.

    Args:
        job_name: The title.
        policy: The policy of all releases.
        records: The releases by name, in order.
        explanations: What was known about each before it was made: by name, or in the same order.
        budget: What might have been spent in all, if it is to be shown.
        analyst: Who asked.
        charts: The charts as SVG by name, where they were drawn before; drawing is the slow part.
        tables: The names of the files with the values of each release, where these are more than one called like it:
            each table of marginals, and cross tables.
        learned: What applications could have learned by now, and their limits, sentence by sentence.
        workbook: The name of a file beside the report with all values, if there is one.
    """
    given = dict(explanations if isinstance(explanations, Mapping) else zip(records, explanations, strict=True))
    explained = {name: given[name].after(record.done) for name, record in records.items()}
    releases, so_far = [], Fraction(0)
    for number, (name, record) in enumerate(records.items(), start=1):
        so_far += record.plan.epsilon
        svg = charts[name] if charts is not None else chart_svg(chart(record))
        shown_chart = inline(svg, f"chart-{number}")
        files = (tables or {}).get(name) or [planned_file_name(name, record.plan)]
        releases.append(_release(number, name, record, explained[name], so_far, shown_chart, files))
    certificates = [record.certificate for record in records.values()]
    last = explained[list(records)[-1]].remaining if records else None
    protects = " or ".join(dict.fromkeys(str(each["protects"]) for each in certificates)) or "one person's record"
    no_person = all(record.plan.policy.person is None for record in records.values()) and policy.person is None
    owners = next((record.plan.common for record in records.values()), policy)  # a job may name the person
    is_compared = any(explanation.plain_rmse != explanation.plan.rmse for explanation in explained.values())
    return page(
        "report.html.j2",
        job_name=job_name,
        policy_name=policy.name,
        policy_text=policy.to_yaml(),
        dataset=" and ".join(dict.fromkeys(str(each["dataset"]) for each in certificates)) or "none",
        analyst=analyst,
        made=_date(max((str(each["made"]) for each in certificates), default="")),
        protects=protects,
        secret=[with_code(line) for line in protections(policy)],
        one_row_each=no_person and not certificates,  # otherwise they say so themselves
        is_replayed=any(record.promise is not None and record.promise.replayed for record in records.values()),
        no_ledger=any(each.get("ledger") is None for each in certificates),
        spent=shown_with_decimal(so_far),
        factor=_factor(so_far),
        budget=None if budget is None else shown_with_decimal(budget),
        left=None if last is None else shown_with_decimal(last),
        description=_blocks(description(policy)),
        releases=releases,
        is_measured=any(record.done is not record.plan for record in records.values()),
        comparison=inline(chart_svg(comparison_chart(explained)), "comparison") if is_compared else "",
        comparison_text=_comparison_text(explained),
        kept=owners.scope_in_words,
        counted=None if owners.person is None else f"Of each person ({owners.person}) {owners.rows_in_words}.",
        plain_form=policy.plain_form,
        learned=learned,
        workbook=workbook,
        assumed=" or ".join(dict.fromkeys(plan.assumption for plan in _as_planned(records) if plan.assumption)),
        promised=promise_in_words(records),
    )


def _release(
    number: int,
    name: str,
    record: ReleaseRecord,
    explanation: Explanation,
    so_far: Fraction,
    drawn: Markup,
    files: Sequence[str],
) -> dict[str, Any]:
    plan = record.done
    domain = plan.policy.domain
    unit = plan.query.error_unit(domain)
    tables = shown_tables(record)
    moving = [reason for reason in plan.step.why if reason not in plan.step.unmoved_reasons]
    first, *others = [part.step.unmoved_reasons for part in plan.parts]
    still = [reason for reason in first if all(reason in other for other in others)]  # a line for each family
    # the policy stands in the report once, not once for every release; the certificate's own file has it
    certificate = {**record.certificate, "policy": "printed in this report, under: The policy as a file"}
    return {
        "id": f"release-{number}",
        "name": name,
        "question": question(record) + condition(plan.query),
        "parts": parts(record),
        "answers": plan.query.size_words(plan.answers, domain),
        "answer": record.summary() if plan.answers == 1 else plan.query.size_words(plan.answers, domain),
        "cost": shown_with_decimal(plan.epsilon),
        "so_far": shown_with_decimal(so_far),
        "left": "" if explanation.remaining is None else shown_with_decimal(explanation.remaining),
        "error": error_text(plan.rmse),
        "within": _within(plan),
        "is_exact": plan.rmse == 0,
        "plain_error": "" if explanation.plain_rmse is None else error_text(explanation.plain_rmse),
        "plain_refused": explanation.plain_refused,
        "unit": unit,
        "in_units": _in_units(unit, plan.query.unit_words(domain)),
        "error_of": plan.query.error_of,
        "times": f", {rough(explanation.gain, 3)} times larger" if 1.005 < explanation.gain < math.inf else "",
        "step": {size: shown(plan.unit * getattr(plan.step, size)) for size in ("up", "down", "l1")},
        "moved": plan.moved,
        "moving": [reason.replace(" -> ", f"; {plan.moved[0]} ") for reason in moving],
        "still": _still(len(still), len(moving)),
        "step_title": "Largest step" if plan.step.exact else "Largest step (proven bound)",
        "mechanism": plan.mechanism_words,
        "why": plan.why.rstrip("."),
        "fitting": _fitting(record),
        "chart": drawn,
        "chart_text": chart_text(record),
        "said": say(plan.query, record),
        "tables": tables,
        "folds": sum(len(shown.rows) for shown in tables) > ROWS_UNFOLDED,
        "is_whole": any(shown.adds_up for shown in tables),
        "predictions": _once(
            plan.cautions, plan.predictions(), filter(None, [plan.left_out]), record.certificate.get("terms", ())
        ),
        "files": [{"name": file, "href": quote(file, safe="")} for file in files[:FILES_SHOWN]],
        "more_files": len(files) - FILES_SHOWN if len(files) > FILES_SHOWN else 0,
        "certificate": json.dumps(certificate, indent=2, ensure_ascii=False),
    }


def _once(*sentences: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(sentences)))


def _within(plan: Plan) -> str:
    """Return how far off an answer may be, with 95%; nothing where it is exact, or not known before the release."""
    within = plan.half_width()
    return error_text(within) if within else ""


def _in_units(unit: str, of_values: str) -> str:
    """Return what an expected error is a number of, as it stands behind the number in a sentence."""
    if unit in ("people", "rows"):
        return unit
    return f"(in units of {unit})" if unit == of_values else f"({unit})"


def _still(still: int, moving: int) -> str:
    """Say in one sentence how many secrets leave the answers as they are; the certificate lists them."""
    if not moving:
        return "No secret of the policy moves these answers." if still else ""
    if not still:
        return ""
    return f"The other {still} secrets never move them." if still > 1 else "The other secret never moves them."


def _fitting(record: ReleaseRecord) -> str:
    """Say what was done to the noisy answers afterwards, and only what was."""
    query, base = record.plan.query, record.plan.base
    nonnegative = "No count was left below zero." if query.counted.counts_people else ""
    done = record.certificate["post_processing"]
    return " ".join(filter(None, (nonnegative if one == "nonnegative" else query.fitting(base) for one in done)))


def _blocks(sections: Sequence[Section]) -> list[_Block]:
    """Return the description of a policy with its code set as code; what has no points is a paragraph."""
    return [
        _Block(section.heading, points=[*map(with_code, section.points)], warns=section.warns)
        if section.points
        else _Block(paragraphs=[with_code(section.heading)])
        for section in sections
    ]


def _date(made: str) -> str:
    return f"{datetime.fromisoformat(made).astimezone(UTC):%Y-%m-%d %H:%M} UTC" if made else ""


def _comparison_text(explained: Mapping[str, Explanation]) -> str:
    errors = [
        f"{name}: {error_text(each.plan.rmse)} against "
        f"{'none' if each.plain_rmse is None else error_text(each.plain_rmse)}"
        for name, each in explained.items()
    ]
    forms = "; ".join(dict.fromkeys(each.plan.policy.plain_form for each in explained.values()))
    return f"Expected error under this policy against plain differential privacy ({forms}). {'; '.join(errors)}."


def _as_planned(records: Mapping[str, ReleaseRecord]) -> list[Plan]:
    """Return the plans whose expected errors nothing that was measured has changed."""
    return [record.plan for record in records.values() if record.done is record.plan]


def promise_in_words(records: Mapping[str, ReleaseRecord]) -> str:
    """Say in two sentences what is promised about all that is published together, and what is not."""
    factor = _factor(sum((record.plan.epsilon for record in records.values()), Fraction(0)))
    policies = [record.plan.common for record in records.values()]
    others = []
    if any(policy.moved_attributes for policy in policies) or not any(policy.absences for policy in policies):
        others.append("with one of their secret details replaced by another that the policy lets it pass for")
    if any(policy.absences for policy in policies):
        others.append("without the person, where taking part is secret")
    named = dict.fromkeys(policy.adversary.words()[0] for policy in policies if policy.adversary.is_named)
    reader = " and ".join(named) or "a reader who knows the data of everybody else"
    return (
        f"For every person, and {'' if named else 'even '}to {reader}, everything in this report together "
        f"is at most {factor} times as likely with the person’s true data as {', or '.join(others)}. What the "
        "policy does not call secret is not protected and may be shown exactly"
    )


def _factor(epsilon: Fraction) -> str:
    try:
        factor = math.exp(epsilon)
    except OverflowError:
        factor = math.inf
    return f"{math.ceil(factor * 100) / 100:,.2f}" if factor < 1e6 else "more than a million"
