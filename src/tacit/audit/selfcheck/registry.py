"""Every mechanism of the package under audit, one case for each kind of noise, and the table of all audits.

A test compares this list with the questions and the mechanism modules that exist, so that a new one cannot go without
an audit. Each case names the modules that it uses. Monitors, people who answer for themselves, and tables answer no
question: their case is one place at one time, one person, or one group of people of whom one changes to another
sensitive value. (Records of a group are exchangeable and groups are drawn independently, so one group shows the loss of
a record. The law of a published table is written down where it is finite; masked counts have no largest value, so they
are audited by samples.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import combinations, product
from typing import Any, Final

import numpy as np

from tacit.arrays import Ints
from tacit.audit.exact_audit import exact
from tacit.audit.loss import ExactAudit, Loss
from tacit.audit.sampled_audits.sampled_audit import Verdict, sampled
from tacit.audit.sampled_audits.subjects import (
    ALPHA,
    HEADINGS,
    SAMPLES,
    AuditRow,
    Subject,
    audit_subject,
    decision_subject,
    local_subject,
    records_subject,
    subject_of,
    visits_policy,
)
from tacit.audit.selfcheck.attacked_tables import AttackRow, attacked_tables
from tacit.audit.selfcheck.planted import planted
from tacit.plan.choose import choose
from tacit.plan.plans.linear import every_plan
from tacit.plan.plans.plan import Plan
from tacit.plan.question import resolve
from tacit.plan.questions import (
    QUESTIONS,
    above,
    below,
    clusters,
    count,
    counts,
    cumulative,
    histogram,
    marginals,
    mean,
    median,
    quantiles,
    ranges,
    rectangles,
    top_k,
    total,
    true_records,
)
from tacit.policy.attributes import Categories, Flag, Grid, Integers, Items
from tacit.policy.domain import Domain
from tacit.policy.knowledge import count as known_count
from tacit.policy.knowledge import size
from tacit.policy.policy import Policy
from tacit.policy.secrets import (
    Secrets,
    attributes,
    everything,
    partition,
    policies,
    records,
    taking_part,
    values,
    within,
)
from tacit.publish.local import RandomisedResponse, mangat, warner
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.groupwise import Groupwise
from tacit.publish.methods.grown import GrownMasks
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.masked_columns import MaskedColumns
from tacit.publish.methods.method import Method
from tacit.publish.methods.perturbation import Uniform
from tacit.publish.methods.sampled import Sampled

PEOPLE: Final = 4  # of the group
MOST_MASKED: Final = 200_000  # samples: drawing is slow, since widths of masks of many values need a bisection

Values = tuple[int, ...]  # of the people of a group
Law = Mapping[tuple[int, ...], float]  # of published counts


def group_policy(values: int) -> Policy:
    """Return the policy of one group: any of its values looks like any other."""
    return Policy(Domain({"value": Integers(0, values - 1)}), everything())


def table_subject(name: str, method: Method) -> Subject:
    """Return a table of one group, with what one record loses."""
    values, law = method.channel.values, law_of_group(method)
    found: ExactAudit | None = None
    hidden: Values = (0,) * PEOPLE
    cover: Values = (*hidden[1:], 1)
    if law is not None:
        found = exact(lambda people: law(_values(people)), group_policy(values), method.epsilon, people=PEOPLE)
        if found.witness is not None:
            hidden, cover = _values(found.witness.hidden), _values(found.witness.cover)

    def release(counts: Ints, size: int) -> Ints:
        return method.draw(np.tile(counts, (size, 1)))

    counts = np.bincount(hidden, minlength=values), np.bincount(cover, minlength=values)
    most = MOST_MASKED if law is None and values > 2 else 10**9
    return Subject(name, method.words()[0], float(method.epsilon), *counts, release, found, most)


def _values(people: Sequence[Any]) -> Values:
    return tuple(value for (value,) in people)


@singledispatch
def law_of_group(method: Method) -> Callable[[Values], Law] | None:
    """Return the law of what is published for people with these values; None where it has no end."""
    raise TypeError(type(method).__name__)


@law_of_group.register
def _(method: Masked) -> None:
    return None


@law_of_group.register
def _(method: Uniform) -> Callable[[Values], Law]:
    return lambda values: _perturbed(values, method.channel)


@law_of_group.register
def _(method: Groupwise) -> Callable[[Values], Law]:
    def law(values: Values) -> Law:
        (retention,) = method.retentions(np.array([len(values)]))
        return _perturbed(values, Channel(retention, method.channel.values))

    return law


@law_of_group.register
def _(method: Sampled) -> Callable[[Values], Law]:
    def law(values: Values) -> Law:
        many = int(method.samples(np.array([len(values)]))[0])
        samples = list(combinations(values, many))
        found: dict[tuple[int, ...], float] = {}
        for sample in samples:
            for output, chance in _perturbed(sample, method.channel).items():
                found[output] = found.get(output, 0.0) + chance / len(samples)
        return found

    return law


def _perturbed(values: Values, channel: Channel) -> Law:
    """Return the law of the counts after each record kept its value or got a random one."""
    found: dict[tuple[int, ...], float] = {}
    other = float(channel.spread)
    for shown in product(range(channel.values), repeat=len(values)):
        chance = math.prod(channel.kept if one == own else other for one, own in zip(shown, values, strict=True))
        output = tuple(np.bincount(shown, minlength=channel.values).tolist())
        found[output] = found.get(output, 0.0) + chance
    return found


EPSILON: Final = 1
IN_A_CORNER: Final = 2  # epsilon, where few outputs show the whole loss: a larger one is seen with fewer samples

TABLE: Final = "table"  # the keyword of tables of people, which are no question
_CHANNEL: Final = Channel(Fraction(1, 2), 3)
_TWO_COLUMNS: Final = Channel(Fraction(1, 2), 4, (2, 2))
_CRITERION: Final = Criterion(Fraction(2, 5), Fraction(2, 5))  # of four records three are sampled
_HALF: Final = Fraction(EPSILON, 2)
_PEOPLE: Final = Domain({"age": Integers(0, 5), "disease": Categories(["flu", "hiv", "none"]), "sick": Flag()})
_FEW: Final = Domain({"age": Integers(0, 2), "sick": Flag()})
_DOSES: Final = Domain({"age": Integers(0, 3), "dose": Integers(-1, 2)})
_PLANE: Final = Domain({"age": Integers(0, 5), "stage": Integers(0, 4)})
_MAP: Final = Domain({"place": Grid(4, 3)})
_NEAR_AGE: Final = Policy(Domain({"age": Integers(0, 7)}), within(3, "age"))
_MAY_LEAVE: Final = Policy(Domain({"age": Integers(0, 3)}), within(2, "age"), presence="secret")
_CLICKS: Final = Domain({"clicked": Items(3)})
_EVERYTHING: Final = Policy(_PEOPLE, everything())
_ONE_WAY: Final = Policy(_PEOPLE, values({"disease": ["hiv"]}))
_SOME_SECRET: Final = Policy(_PEOPLE, records("disease == 'hiv'"))
_TWO_VALUES: Final = Policy(_PEOPLE, values({"disease": ["hiv"], "sick": [True]}))
_NEAR: Final = Policy(_PEOPLE, within(2, "age"))
_FEW_NEAR: Final = Policy(Domain({"place": Integers(0, 29)}), within(1, "place"), [size(60)])
_MANY_NEAR: Final = Policy(Domain({"place": Integers(0, 99)}), within(2, "place"), [size(1500)])
_CHOSEN: Final = policies(
    "sick", {"hides": values({"disease": ["hiv"]}), "shows": None}, chosen={True: "hides", False: "shows"}
)
_FALLING: Final = Policy(_CLICKS, values({"clicked": [1]}))
_RISING: Final = Policy(_CLICKS, values({"clicked": [0]}))
_BOTH: Final = Policy(_CLICKS, attributes("clicked"))
_LISTED: Final = ["age < 4", "age < 2 and disease == 'hiv'", "disease != 'flu'"]
_FALL_TOGETHER: Final = [f"disease == 'hiv'{more}" for more in ("", " and age < 4", " and age < 2")]


@dataclass(frozen=True)
class AuditCase:
    """A mechanism, the modules in `plan/plans/` or `publish/` that it uses, and its policy.

    `plan` makes what a session would execute for `query`, or one of the ways that it compares; monitors, tables and
    several questions at once have neither.
    """

    keyword: str
    modules: tuple[str, ...]
    epsilon: int | Fraction
    policy: Policy
    make: Callable[[], Subject]
    query: Any = None
    plan: Callable[[], Plan] | None = None


def _case(name: str, query: Any, policy: Policy, *modules: str, epsilon: int = EPSILON) -> tuple[str, AuditCase]:
    return _planned(name, query, policy, modules or ("linear",), epsilon, lambda: choose(query, policy, epsilon))


def _planned(
    name: str, query: Any, policy: Policy, modules: tuple[str, ...], epsilon: int, plan: Callable[[], Plan]
) -> tuple[str, AuditCase]:
    keyword = next(iter(query.document()))
    return name, AuditCase(keyword, modules, epsilon, policy, lambda: subject_of(name, plan()), query, plan)


def _line_case(name: str, query: Any, policy: Policy, strategy: str) -> tuple[str, AuditCase]:
    """Return a question about a line with this strategy, even if another one is better at this size."""

    def plan() -> Plan:
        plans = every_plan(resolve(query, policy.domain).counted, policy, Fraction(IN_A_CORNER))
        return next(plan for plan in plans if plan.strategy.startswith(strategy))

    return _planned(name, query, policy, ("linear",), IN_A_CORNER, plan)


def _decision(name: str, *, step: int) -> tuple[str, AuditCase]:
    """Return one decision of a monitor about one place, where a person has at most `step` visits."""
    policy = visits_policy(step)
    return name, AuditCase(
        "monitor", ("alarm",), EPSILON, policy, lambda: decision_subject(name, Fraction(EPSILON), step=step)
    )


def _asked(name: str, *asked: tuple[Any, Fraction], policy: Policy) -> tuple[str, AuditCase]:
    """Return several questions for true records, asked one after the other; together they cost EPSILON."""

    def plans() -> list[Any]:
        return [choose(query, policy, epsilon) for query, epsilon in asked]

    return name, AuditCase(
        "true_records", ("visible_records",), EPSILON, policy, lambda: records_subject(name, plans())
    )


def _local(name: str, rule: RandomisedResponse, secret: Secrets) -> tuple[str, AuditCase]:
    """Return the answer of one person, who need not trust anybody."""
    policy = Policy(Domain({"sick": Flag()}), secret)
    return name, AuditCase("local", ("local",), EPSILON, policy, lambda: local_subject(name, rule, policy))


def _table(name: str, method: Method, *modules: str) -> tuple[str, AuditCase]:
    """Return a way to publish a table of people."""
    policy = group_policy(method.channel.values)
    return name, AuditCase(TABLE, modules, method.epsilon, policy, lambda: table_subject(name, method))


def _with_examples(named: Sequence[tuple[str, AuditCase]]) -> dict[str, AuditCase]:
    """Return these cases, and an example of each question that has no case, under the policy of all secrets."""
    asked = {case.keyword for _, case in named}
    missing = [question for question in QUESTIONS if question.keyword not in asked]
    examples = [_case(question.keyword, question.example(_EVERYTHING), _EVERYTHING) for question in missing]
    return dict([*named, *examples])


MECHANISMS: Final[Mapping[str, AuditCase]] = _with_examples(
    [
        _case("count-two-sided", count("sick == True"), _EVERYTHING),
        _case("count-one-sided", count("disease == 'hiv'"), _ONE_WAY),
        _case("count-with-secret-presence", count(), Policy(_PEOPLE, attributes("sick"), presence="secret")),
        _case("count-with-knowledge", count("age < 3"), Policy(_PEOPLE, attributes("age"), [known_count("age < 2")])),
        _case("histogram-two-sided", histogram("disease"), _EVERYTHING),
        _case("histogram-sides-by-cell", histogram("disease"), _ONE_WAY),
        _case("histogram-sensitive-records", histogram("disease"), Policy(_PEOPLE, records("disease == 'hiv'"))),
        _case("histogram-taking-part", histogram("disease"), Policy(_PEOPLE, taking_part())),
        _case(
            "histogram-of-some-people", histogram("age", "sick"), Policy(_FEW, within(1, "age", where="sick == True"))
        ),
        _case("histogram-of-chosen-policies", histogram("disease", "sick"), Policy(_PEOPLE, _CHOSEN)),
        _case("count-of-some-who-take-part", count(), Policy(_PEOPLE, taking_part(where="sick == True"))),
        _case("histogram-blocks", histogram("age"), Policy(_PEOPLE, partition("age", width=3))),
        _case("marginals", marginals("age", "disease", ways=1), Policy(_PEOPLE, attributes("age", "disease"))),
        _case("marginals-weighted", marginals(sets=[["sick"], ["age", "disease"]]), _EVERYTHING, epsilon=IN_A_CORNER),
        _case("counts-of-a-list", counts(_LISTED), _EVERYTHING),
        _case("counts-of-a-list-falling", counts(_FALL_TOGETHER), _ONE_WAY),
        _case("cumulative", cumulative("age"), _NEAR),
        _line_case("cumulative-through-cells", cumulative("age"), _EVERYTHING, "by adding up"),
        _case("ranges", ranges("age", "all"), _NEAR),
        _case("rectangles", rectangles("age", "stage", "all"), Policy(_PLANE, within(2, "age", "stage"))),
        _case("rectangles-listed", rectangles("age", "stage", [[0, 2, 0, 1]]), Policy(_PLANE, everything())),
        _case("rectangles-blocks", rectangles("place", "all"), Policy(_MAP, partition("place", width=[2, 2]))),
        _line_case("ranges-joint-noise", ranges("age", "all"), _NEAR_AGE, "joint noise"),
        _line_case("cumulative-joint-noise-with-secret-presence", cumulative("age"), _MAY_LEAVE, "joint noise"),
        _line_case("cumulative-ramps-and-cells", cumulative("age"), _MAY_LEAVE, "ramps"),
        _line_case("cumulative-tree-of-cells", cumulative("age"), _MAY_LEAVE, "tree"),
        _case("total-two-scale", total("age"), Policy(_PEOPLE, records("age == 1"))),
        _case("total", total("age"), _NEAR),
        _case(
            "total-weighted", total("age", weight="dose"), Policy(_DOSES, within(2, "age", "dose")), epsilon=IN_A_CORNER
        ),
        _case("total-by-cell", total("age", by="sick"), Policy(_FEW, everything()), epsilon=IN_A_CORNER),
        _case("total-by-cell-one-way", total("age", by="disease"), _ONE_WAY),
        _case("mean", mean("age"), _EVERYTHING),
        _case("mean-by-cell", mean("age", by="sick"), Policy(_FEW, attributes("age", "sick")), epsilon=IN_A_CORNER),
        _case("mean-with-secret-presence", mean("age"), Policy(_PEOPLE, attributes("sick"), presence="secret")),
        _case("median", median("age"), _NEAR),
        _case("median-by-rank", median("age"), Policy(_FEW, taking_part()), "rank_plan", epsilon=IN_A_CORNER),
        _case(
            "quantiles",
            quantiles("age", [0.25, 0.75]),
            Policy(_FEW, attributes("age"), presence="secret"),
            epsilon=IN_A_CORNER,
        ),
        _case("clusters", clusters("age", k=2), _EVERYTHING),
        _case("clusters-with-ramps", clusters("place", k=2), _FEW_NEAR),
        _case("clusters-look-then-zoom", clusters("place", k=1), _MANY_NEAR, "linear", "zoom", epsilon=IN_A_CORNER),
        _case("items-one-sided-cube", histogram("clicked"), _FALLING),
        _case("items-cube", histogram("clicked"), _BOTH),
        _case("top-k-falling", top_k("clicked", 2), _FALLING, "top_k"),
        _case("top-k-rising", top_k("clicked", 1), _RISING, "top_k"),
        _case("top-k-both", top_k("clicked", 1), _BOTH, "top_k"),
        _case("below-falling", below(item=("clicked", 0), threshold=3), _FALLING, "thresholds"),
        _case("below-both", below(item=("clicked", 0), threshold=3), _BOTH, "thresholds"),
        _case("above-falling", above("clicked", 3, at_most=2), _FALLING, "thresholds"),
        _case("above-thresholds", above("clicked", [2, 4, 3], at_most=2), _FALLING, "thresholds"),
        _case("above-rising", above("clicked", 3, at_most=2), _RISING, "thresholds"),
        _case("above-both", above("clicked", 3, at_most=1), _BOTH, "thresholds"),
        _case("top-k-of-a-list-falling", top_k(_FALL_TOGETHER, 2), _ONE_WAY, "top_k"),
        _case("top-k-of-a-list", top_k(_LISTED, 1), _EVERYTHING, "top_k"),
        _case("above-of-a-list-falling", above(_FALL_TOGETHER, 3, at_most=2), _ONE_WAY, "thresholds"),
        _case("above-of-a-list", above(_LISTED, 3, at_most=1), _EVERYTHING, "thresholds"),
        _case("true-records", true_records(["disease", "sick"]), _SOME_SECRET, "visible_records"),
        _case("true-records-with-a-key", true_records(["age", "disease"], key="id"), _SOME_SECRET, "visible_records"),
        _case("true-records-whole", true_records("disease", key=["age", "sick"]), _SOME_SECRET, "visible_records"),
        _case("true-records-two-coins", true_records(["disease", "sick"], key="id"), _TWO_VALUES, "visible_records"),
        _asked(
            "true-records-asked-again",  # and with a larger epsilon, of which the coins are a superset
            *((true_records(["age", "disease"], key="id"), each) for each in (_HALF, Fraction(EPSILON), _HALF)),
            policy=_SOME_SECRET,
        ),
        _asked(
            "true-records-for-two-applications",
            (true_records("disease", key="id", application="one"), _HALF),
            (true_records("sick", key="id", application="other"), _HALF),
            policy=_TWO_VALUES,
        ),
        _local("local-warner", warner(EPSILON), attributes("sick")),
        _local("local-mangat", mangat(EPSILON), values({"sick": [True]})),
        _table("table-perturbed", Uniform(_CHANNEL), "perturbation"),
        _table("table-of-samples", Sampled(_CHANNEL, _CRITERION, Fraction(1)), "perturbation", "sampled"),
        _table("table-by-group-wise-retention", Groupwise(_CHANNEL, _CRITERION, Fraction(1)), "groupwise"),
        _table("table-masked", Masked(Channel(Fraction(1, 2), 2), _CRITERION), "masked"),
        _table("table-masked-of-three-values", Masked(_CHANNEL, _CRITERION), "masked"),
        _table("table-of-a-group-that-grew", GrownMasks(_CHANNEL, _CRITERION, 2), "grown"),
        _table("table-masked-of-two-columns", MaskedColumns(_TWO_COLUMNS, _CRITERION), "masked_columns"),
        _decision("place-decision", step=1),
        _decision("place-decision-of-several-visits", step=2),
    ]
)


# ---- the table of all audits ---------------------------------------------------------------------------------------


def names() -> list[str]:
    """Return the names of all that can be audited without a policy: mechanisms, planted leaks, and attacked tables."""
    return [*MECHANISMS, *planted, *attacked_tables]


def claimed_by(name: str) -> float | None:
    """Return the epsilon that one of them claims; None for tables under attack, which claim no epsilon."""
    if name in MECHANISMS:
        return float(MECHANISMS[name].epsilon)
    return planted[name].claimed_epsilon if name in planted else None


def audit_named(
    name: str, samples: int = SAMPLES, alpha: float = ALPHA, progress: Callable[[float], None] | None = None
) -> AuditRow | AttackRow:
    """Audit one mechanism of the package, one planted leak or one table under attack, by its name."""
    if name in attacked_tables:
        return attacked_tables[name].audit(alpha, progress)
    if name in MECHANISMS:
        return audit_subject(MECHANISMS[name].make(), samples, alpha, progress)
    leak = planted[name]
    found = sampled(leak.release, leak.hidden, leak.cover, leak.claimed_epsilon, samples, alpha, progress=progress)
    exact_loss = Loss(leak.exact_loss, leak.exact_loss)
    return AuditRow(name, leak.mistake, leak.claimed_epsilon, exact_loss, found, Verdict.LEAK_FOUND)


def as_markdown(rows: Iterable[AuditRow | AttackRow]) -> str:
    """Return the table as a page."""
    rows = list(rows)
    audits = [row for row in rows if row.headings == HEADINGS]
    attacks = [row for row in rows if row.headings != HEADINGS]
    parts = [
        "# Every mechanism and every planted leak, audited",
        "",
        "Made by `tacit audit all --write docs/audit-table.md`. The numbers differ a little from run to run, because "
        "samples are fresh each time.",
        "",
        *_section("Mechanisms of the package", "what", audits, Verdict.NONE_FOUND),
        *_section("Planted leaks", "mistake", audits, Verdict.LEAK_FOUND),
        *_section("Tables under attack", "what", attacks, Verdict.NONE_FOUND),
        *_section("Planted tables", "mistake", attacks, Verdict.LEAK_FOUND),
    ]
    return "\n".join(parts)


def _section(title: str, about: str, rows: Iterable[AuditRow | AttackRow], expected: Verdict) -> list[str]:
    """Return the rows that must get this verdict, as lines of the page."""
    chosen = [row for row in rows if row.expected == expected]
    if not chosen:
        return []
    headings = (*chosen[0].headings, about)
    many, alpha = max(row.found.samples for row in chosen), chosen[0].found.alpha
    counted = "samples a side" if chosen[0].headings == HEADINGS else "groups"
    return [
        f"## {title}",
        "",
        f"At most {many:,} {counted}, alpha {alpha:g} each.",
        "",
        f"| {' | '.join(headings)} |",
        f"|{'---|' * len(headings)}",
        *(f"| {' | '.join(row.cells())} | {row.what} |" for row in chosen),
        "",
    ]
