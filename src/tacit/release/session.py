"""A session: one policy, one set of rows, one budget. Plans, charges, and only then opens the rows.

Order of a release: make the plan from public things (refuse here if anything is wrong), charge the budget in one
transaction, open and count the rows, add noise, estimate, certify. A crash after the charge loses budget, never
privacy. The plan is made once (`plan`): what is explained, checked, charged, executed and certified is one object.
Several releases may be paid for in one transaction (`reserve`); each is then made at most once, since what was drawn
the first time may have been seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from tacit.amounts import as_epsilon, shown
from tacit.drawing import Held
from tacit.errors import DataRefused, InternalError, LedgerError, PlanError, kind_of, sealed
from tacit.ledger.applications import Applications
from tacit.ledger.ledger import Ledger, Receipt
from tacit.plan.accuracy import cost_of
from tacit.plan.choose import Explanation
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.thresholds import BelowPlan
from tacit.plan.sensitivity.parallel_composition import disjoint_groups
from tacit.policy.policy import Policy, as_policy
from tacit.release.budget import NOTHING_PAID, Due, LeakageWatch, Paid, Purse, fixed
from tacit.release.certificate import Certificate, certify
from tacit.release.estimate.measure import check_answerable, counts_of
from tacit.release.execute import Drawn, Reserved, count_plans
from tacit.release.interactive import Asking, allow
from tacit.release.planner import Planner, yes_or_no
from tacit.release.publication import Publication, check_announced
from tacit.release.results.record import ReleaseRecord
from tacit.release.results.selections import SelectionRecord, select
from tacit.release.split import Costs, Parent, Pay, Split
from tacit.rows.files.identity import FileContents
from tacit.rows.files.table_files import is_file, source_files, source_name
from tacit.rows.files.written import written
from tacit.rows.guard import closed, paid_for
from tacit.rows.rows import Rows, open_rows
from tacit.rows.sources.source import columns_of


class Session(Held):
    """One policy, one set of rows, one budget.

    `rows` is a path (csv, parquet, glob), a frame (pandas, polars, pyarrow), a DuckDB relation, a Spark DataFrame, an
    Ibis table, or `ItemCounts`. `person` names the column that says who owns a row; of each person at most `per_person`
    rows that fit the domain count (the first ones by `order`, a column that must be public; without it some that are
    chosen as at random), and the others are left out; `item` names the column of items, if it is not called like the
    attribute. All four may stand in the policy. What is given here comes first, and is part of the policy that is
    charged. Without a person every row is a person of its own.

    With a `ledger` the budget is shared with other processes: if the data set has no budget there yet, `budget` is
    granted, otherwise the ledger's own budget holds as well. Without one, the budget is this object's alone.

    `leakage` limits what coalitions of applications learn from single records that are shown to them. With a ledger it
    holds there from then on, in every process.
    """

    @sealed
    def __init__(
        self,
        policy: Policy,
        rows: Any,
        budget: Any = None,
        *,
        ledger: str | Path | Ledger | None = None,
        analyst: str | None = None,
        dataset: str | None = None,
        person: str | None = None,
        per_person: int | None = None,
        order: str | None = None,
        item: str | None = None,
        leakage: Applications | None = None,
    ) -> None:
        policy = as_policy(policy)
        _check_texts(analyst=analyst, dataset=dataset, person=person, order=order, item=item)
        if per_person is not None and (isinstance(per_person, bool) or not isinstance(per_person, int)):
            raise PlanError(f"must be a whole number, not {kind_of(per_person)}", key="per_person", fix="Leave it out.")
        if ledger is not None and not isinstance(ledger, str | Path) and type(ledger) is not Ledger:
            fix = "Name the file of the ledger."
            raise LedgerError(f"must be a path, not {kind_of(ledger)}", key="ledger", fix=fix)
        policy = policy.about(person, per_person, order, item)
        check_public_columns(policy)
        self.policy = policy
        self.analyst = analyst
        own = None if budget is None else as_epsilon(budget, key="budget")
        self._planner = Planner(policy)
        if own is None and ledger is None:
            raise PlanError("must be given", key="budget", fix="Say budget=1.0, or name a ledger with one.")
        self.dataset = dataset or _name_of(rows, named_in_ledger=ledger is not None)
        watch = LeakageWatch(leakage, policy)
        self._rows = self.open_rows(rows)
        self.texts_read = written(rows).texts_read
        # after the rows: a refused source leaves no new ledger behind
        opened = Ledger(ledger) if isinstance(ledger, str | Path) else ledger
        if opened is not None:
            if problem := opened.problem():
                raise LedgerError(f"is damaged ({problem})", key="ledger", fix="Restore it before spending.")
            if own is not None:
                opened.grant_once(dataset=self.dataset, epsilon=own, policy=self.policy)
            watch.begin(opened, self.dataset)
        files = source_files(rows) if opened is not None else []
        content = FileContents(files) if files else None
        whom: dict[str, Any] = {"dataset": self.dataset, "analyst": analyst}
        self._purse = Purse(policy, own, opened, watch, **whom, source=source_name(rows), content=content)

    def __repr__(self) -> str:
        return f"Session({self.dataset!r}, policy {self.policy.name!r}, {shown(self.remaining)} remains)"

    def __copy__(self) -> Session:
        raise PlanError("must not be copied, since its budget would be spent twice", key="session", fix="Share it.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Session:
        return self.__copy__()

    def __reduce__(self) -> str:
        raise PlanError("must not be pickled, since it holds rows and a budget", key="session", fix="Make a new one.")

    @property
    def remaining(self) -> Fraction:
        """What may still be spent in this session."""
        return self._purse.remaining

    @sealed
    def plan(
        self,
        query: Any,
        epsilon: Any = None,
        *,
        error: Any = None,
        within: Any = None,
        level: Any = None,
        consistent: bool = False,
        nonnegative: bool = False,
        application: str | None = None,
    ) -> Plan:
        """Return how a question will be answered at this cost: to look at, to print, to save, and to release.

        Instead of `epsilon`, `error` says how large the expected error may be (root mean square, in the unit of the
        answers), or `within` and `level` (0.95 if not given) how far each answer may be off with this probability. The
        smallest epsilon is found that reaches it; where what remains cannot, the plan is refused.

        `consistent` makes marginals agree with each other and cumulative counts never fall; `nonnegative` lets no
        count be below zero. Both are post-processing and cost nothing. `application` says who asks, where the policy
        declares who may. Nothing is charged, no row is opened.
        """
        cost = cost_of(query, epsilon, error, within, level)
        options = {"consistent": consistent, "nonnegative": nonnegative}
        plan = self._planner.plan(query, cost, self._left, **options, application=application)
        self._check(plan)
        return plan

    @sealed
    def explain(
        self,
        query: Any,
        epsilon: Any = None,
        *,
        error: Any = None,
        within: Any = None,
        level: Any = None,
        show: bool | None = None,
        application: str | None = None,
    ) -> Explanation:
        """Say what a release would cost and how wrong it would be, for a plan or for a question.

        The question's cost is an epsilon, or what reaches an accuracy, as in `plan`.
        Prints it, unless `show` is False; a notebook shows it once.
        Also whether it would be refused for limits on what applications learn, or because files have changed.
        Nothing is charged, no row is opened.
        """
        is_shown = show is None or yes_or_no(show, "show")
        given = {"epsilon": epsilon, "error": error, "within": within, "level": level, "application": application}
        plan = self._own(query, given)
        if plan is None:
            asked = cost_of(query, epsilon, error, within, level)
            plan = self._planner.plan(query, asked, self._left, application=application)
        cost = plan.cost(self._purse.reached(plan.coin_lines) if plan.coin_lines else {})
        refused = self._purse.refusals([plan])
        words = refused.words("leakage"), refused.words("files")
        explanation = Explanation(plan, self.remaining - cost, *words)
        if is_shown:
            explanation.show()
        return explanation

    @sealed
    def release(
        self,
        query: Any,
        epsilon: Any = None,
        *,
        error: Any = None,
        within: Any = None,
        level: Any = None,
        consistent: bool = False,
        nonnegative: bool = False,
        application: str | None = None,
    ) -> ReleaseRecord:
        """Answer a question with the policy's guarantee at this cost, or execute a plan of this session.

        All options are those of `plan`, and part of a plan that is given.
        """
        options = yes_or_no(consistent, "consistent"), yes_or_no(nonnegative, "nonnegative")
        given = {"epsilon": epsilon, "error": error, "within": within, "level": level, "application": application}
        given |= {"consistent": options[0] or None, "nonnegative": options[1] or None}
        plan = self._own(query, given)
        if plan is None:
            cost = cost_of(query, epsilon, error, within, level)
            chosen = {"consistent": consistent, "nonnegative": nonnegative}
            plan = self._planner.plan(query, cost, self._left, **chosen, application=application)
        (reserved,) = self._reserve([plan])
        return reserved.make()

    @sealed
    def reserve(self, plans: Sequence[Plan], *, run: str | None = None, job: str = "") -> list[Reserved]:
        """Pay for several plans at once, all of them or none, and return what makes each release, once.

        Everything that can be refused is refused before anything is charged. With a ledger and a `run`, the ledger
        keeps that the run is under way until it is told that it has ended. The rows of all of them are counted in one
        go, when the first release is made.
        """
        listed = _listed_plans(plans)
        for plan in listed:
            self._own(plan, {})
        return self._reserve(listed, run=run, job=job)

    def open_rows(self, rows: Any) -> Rows:
        """Open rows as the policy says whose they are; an audit counts what it made up once for many releases."""
        return open_for(self.policy, rows)

    def adopt(self, planner: Planner) -> None:
        """Take plans that were made before the rows were opened for this session's own."""
        if type(planner) is not Planner:
            fix = "Nothing was charged. Plan the job with tacit, or ask this session: session.plan(query, epsilon=..)."
            raise PlanError(f"must be a Planner itself, not {kind_of(planner)}", key="planner", fix=fix)
        if planner.policy != self.policy:
            raise _not_ours(under_another_policy=True)
        self._planner = planner

    def _own(self, given: Any, options: Mapping[str, Any]) -> Plan | None:
        """Return what was given if it is a plan of this session, None if it is a question; refuse any other plan."""
        if not isinstance(given, Plan):
            return None
        for key, option in options.items():
            if option is not None:
                fix = f"Leave it out, or plan anew: session.plan(query, .., {key}=..). Nothing was charged."
                raise PlanError("is part of the plan already", key=key, fix=fix)
        if not self._planner.has_made(given):  # and what it has made is under this policy, or an application's own
            raise _not_ours(under_another_policy=given.policy.charged != self.policy)
        return given

    def _left(self) -> Fraction:
        return self.remaining

    def _check(self, plan: Plan) -> None:
        for base in plan.tallied:
            check_answerable(self._rows, base, plan.policy)
        if plan.records is not None:
            self._rows.check_naming(plan.records.query.key)

    @sealed
    def split(self, by: Any) -> Split:
        """Return a session for each group of people, which together cost as much as the dearest of them.

        `by` is an attribute, or a list of predicates that never hold at once. Refused where a secret edge leads from
        one group to another, and where something is known that a secret edge changes: one group would show another.
        """
        groups = disjoint_groups(by, self.policy)

        def make(plan: Plan, pay: Pay, part_of: str) -> ReleaseRecord:
            (reserved,) = self._reserve([plan], pay=pay, part_of=part_of)
            return reserved.make()

        return Split(groups, Parent(self.policy, lambda: self.remaining, self._check, make))

    def _reserve(
        self, plans: list[Plan], *, run: str | None = None, job: str = "", pay: Pay | None = None, part_of: str = ""
    ) -> list[Reserved]:
        for plan in plans:
            self._check(plan)
            if plan.asked_by is not None:
                plan.asked_by.check_day()  # it may have ended since it was planned
        shows = self._purse.leakage.of(plans)
        if pay is None:
            due = [Due(plan.title, plan.cost, plan.coin_lines) for plan in plans]
            paid = self._purse.pay(due, run=run, job=job, shows=shows)
            receipts = paid.receipts
        else:
            lines = [line for plan in plans for line in plan.coin_lines]

            def charge(costs: Costs) -> Sequence[Receipt | None]:
                nonlocal paid
                paid = self._purse.pay(fixed(costs), shows=shows, lines=lines)
                return paid.receipts

            paid = NOTHING_PAID  # until it is
            receipts = pay([(plan.epsilon, plan.title) for plan in plans], charge)
        drawn = Drawn(plans, self._rows, paid.coins)
        return [
            Reserved(plan, partial(self._make, plan, receipt, paid, drawn, number, part_of))
            for number, (plan, receipt) in enumerate(zip(plans, receipts, strict=True))
        ]

    def _make(
        self, plan: Plan, receipt: Receipt | None, paid: Paid, drawn: Drawn, number: int, part_of: str
    ) -> ReleaseRecord:
        with paid_for(plan.epsilon):
            try:
                record = closed(lambda: drawn.take(number)(), InternalError("rows were open"))
            except DataRefused:  # all that was reserved with it waits for the same rows
                self._purse.were_not_shown(paid)
                raise
        self._purse.were_shown(paid, plan.coin_lines)
        promise = self._certified(record.done, receipt, part_of)
        return replace(record, promise=promise, _make_frame=self._rows.frame)

    def _certified(self, plan: Plan, receipt: Receipt | None, part_of: str) -> Certificate:
        in_ledger = self._purse.ledger is not None
        return certify(plan, dataset=self.dataset, receipt=receipt, in_ledger=in_ledger, part_of=part_of)

    @sealed
    def publish(
        self,
        publication: Publication,
        *,
        run: str | None = None,
        job: str = "",
        on_paid: Callable[[], None] | None = None,
    ) -> object:
        """Pay for a table, count the rows and return what is published of the counts; see `tc.publish`.

        Only what `tc.publish` made is accepted: it sees true counts. `run` and `job` are what the ledger calls it;
        `on_paid` is called once it is charged, before rows are opened. A table that would undo what another one of
        this data set promises is refused before.
        """
        self.policy.check_open("a table")
        paid = check_announced(publication)
        if paid.policy != self.policy:
            raise _not_ours(under_another_policy=True)
        epsilon = as_epsilon(paid.epsilon)
        for tally in paid.tallies:
            self._rows.check(tally)
        due = [Due(paid.title, lambda _: epsilon)]
        (receipt,) = self._purse.pay(due, run=run, job=job, table=paid.table).receipts
        if on_paid is not None:
            on_paid()

        def made() -> object:
            return paid.make(counts_of(paid.tallies, self._rows, self.policy), self._rows.frame, self.dataset, receipt)

        with paid_for(epsilon):
            return closed(made, InternalError("rows were open"))

    @sealed
    def asking(self, at_most: int, epsilon: Any) -> Asking:
        """Begin to ask whether counts are above thresholds, one at a time; the whole cost is charged now.

        Answers that are certain are free. After `at_most` others it refuses.
        """
        self.policy.check_open("an asking")
        allowance = allow(self.policy, at_most, as_epsilon(epsilon))
        rows = self._rows
        (receipt,) = self._purse.pay(fixed([(allowance.epsilon, str(allowance))])).receipts

        def check(question: BelowPlan) -> None:
            check_answerable(rows, question.base, self.policy)

        def answer(question: BelowPlan) -> SelectionRecord:
            part_of = f"{allowance}, for epsilon {shown(allowance.epsilon)} in all"
            promise = self._certified(question, receipt, part_of)
            record = closed(
                lambda: select(question, *count_plans([question], rows)[0]), InternalError("rows were open")
            )
            return replace(record, promise=promise, _make_frame=rows.frame)

        return Asking(allowance, check, answer)


def _listed_plans(given: Any) -> list[Plan]:
    try:
        listed = list(given)
        is_right = all(isinstance(one, Plan) for one in listed)
    except Exception:  # whatever an object does when it is asked what it has
        is_right = False
    if is_right:
        return listed
    fix = "Nothing was charged. For one question, write session.release(query, epsilon=..)."
    raise PlanError("must be a list of plans, each made by `session.plan`", key="plans", fix=fix)


def _not_ours(*, under_another_policy: bool) -> PlanError:
    rule = (
        "must be under the policy of this session" if under_another_policy else "must be a plan that this session made"
    )
    fix = "Make it here: session.plan(query, epsilon=..). Nothing was charged."
    return PlanError(f"{rule}, and unchanged", key="plan", fix=fix)


def _check_texts(**given: Any) -> None:
    for key, value in given.items():
        if value is not None and not isinstance(value, str):
            raise PlanError(f"must be a text, not {kind_of(value)}", key=key, fix="Leave it out, or give a name.")


def open_for(policy: Policy, rows: Any) -> Rows:
    """Return rows that are ready to be counted, as a policy says whose they are and which are kept."""
    return open_rows(
        rows,
        policy.domain,
        person=policy.person,
        per_person=policy.per_person,
        order=policy.order,
        item=policy.item,
        moved=policy.moved_attributes,
    )


def check_public_columns(policy: Policy) -> None:
    """Refuse to tell people apart, or to choose their rows, by something that a secret edge changes."""
    columns = columns_of(policy.domain, policy.item)
    secret_columns = {column for name in policy.moved_attributes for column in columns[name]}
    for key, column in (("person", policy.person), ("order", policy.order)):
        if column in secret_columns:
            fix = "Name a column that is no attribute of the policy, such as a number of the person or of the visit."
            if key == "order":
                fix += " Or leave it out: rows are then chosen as at random."
            raise PlanError("must not be a column that the policy keeps secret", key=key, given=column, fix=fix)


def _name_of(rows: Any, *, named_in_ledger: bool) -> str:
    """Return the name of a data set: a single file's own, and in a ledger no other is made up."""
    rows = written(rows).rows
    if isinstance(rows, str | Path) and is_file(rows):
        return Path(rows).stem
    if named_in_ledger:
        fix = "Say dataset='clinic', and always the same for the same people."
        raise PlanError("must be named, because the ledger keeps the budget under this name", key="dataset", fix=fix)
    return "data"
