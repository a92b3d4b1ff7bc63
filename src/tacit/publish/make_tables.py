"""Tables of perturbed rows, tables that satisfy the (lambda, delta) criterion, and new versions of both.

Of the methods that keep the criterion the best is used, as far as public facts tell: the sizes of groups, the number of
values, the promise. A version adds rows that came later, perturbed, to what is published already.

Guarantee   A table that a session paid for grows only through a session of the same policy and data set, which charges
            the epsilon of a record again, before rows are opened; the new version says the sum. A table of plain rows
            promises epsilon to each record, and its new version names no policy, data set or ledger. A table that keeps
            the (lambda, delta) criterion grows only where the criterion holds for all versions together.
Assumes     Of plain rows, that each record is given once: nobody else can know.
Why         Each record is perturbed by itself, and what is published of old records is not drawn again. So a version
            loses what its new rows lose. A session's new rows may be of people who are in the table already, which the
            table cannot tell, since it knows nobody: losses of one person in several versions add up (sequential
            composition). The method is made anew of its numbers: what draws is never an object that was handed in. A
            criterion is about groups. A group whose records are all old, or all new, is published once, so what was
            promised about it stands: samples, retentions and masks of different groups are independent. A group in
            two versions has two estimates, and both together are better than one; only where old records, new ones
            and all of them have the same retention is the sum of both versions what one version would have been.
            Masked counts of one column are masked once more, around both versions (`publish/methods/grown.py`).
            Tables beside this one are another matter: a session holds versions against them
            (`ledger/clauses.py`).
Reference   docs/tables.md.
Checked by  tests/unit/publish/test_table_versions.py, tests/unit/publish/test_published_tables.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np

from tacit.amounts import as_share, shown
from tacit.arrays import Ints
from tacit.errors import PlanError, kind_of, sealed
from tacit.publish.groups import Columns
from tacit.publish.methods.criterion import Channel, Criterion, as_retention, check_known
from tacit.publish.methods.groupwise import Groupwise
from tacit.publish.methods.grown import GrownMasks, grown
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.masked_columns import MaskedColumns
from tacit.publish.methods.method import Method, PromisingMethod
from tacit.publish.methods.perturbation import Uniform, retention_for
from tacit.publish.methods.sampled import Sampled
from tacit.publish.paid_tables import Choice, columns_for, published
from tacit.publish.table import AGAIN, PaidAccount, PublishedTable
from tacit.release.planner import yes_or_no
from tacit.release.session import Session
from tacit.rows.cells.row_names import name_of


@sealed
def perturbed(
    rows: Any,
    *,
    public: Any,
    sensitive: Any,
    values: Any = None,
    retention: Any = None,
    epsilon: Any = None,
    rho: Any = None,
    groups: Any = None,
    one_per: Any = None,
    again: bool = False,
) -> PublishedTable:
    """Publish a table in which each record keeps its sensitive value with probability `retention`.

    Args:
        rows: a path or a frame of any kind; or a `Session`, whose policy then must allow it and whose budget pays.
        public: the columns that are published as they are; they make personal groups.
        sensitive: the column that is perturbed; several are perturbed jointly, as one.
        values: every value that it may have; of several columns, a list for each. Of a session, its domain says it.
        retention: the probability that a record keeps its value; or say what is promised instead:
        epsilon: what one record may lose at most.
        rho: a pair (rho1, rho2), see `retention_for`.
        groups: what values of public columns become, so that some make one group: `{column: {value: name}}`, or what
            `generalise` returns.
        one_per: a public column that says which records belong together, such as a household: one record of each is
            picked by a fair coin, so that epsilon holds for all of them together. A session says `person` instead.
        again: publish it although another table about these columns was published; a session refuses it otherwise where
            one of both promises a criterion. The certificate then says that no criterion is promised any more.
    """
    columns = columns_for(rows, public, sensitive, values)
    choice = replace(uniform_choice(columns, retention, epsilon, rho), again=yes_or_no(again, AGAIN))
    return published(rows, columns, choice, groups, one_per)


def uniform_choice(columns: Columns, retention: Any = None, epsilon: Any = None, rho: Any = None) -> Choice:
    """Return uniform perturbation with the retention that was given, or that follows from what is promised."""
    method = Uniform(chosen_channel(columns, retention, epsilon, rho))
    return Choice(method.epsilon, lambda sizes: method, promises=False)


def chosen_channel(columns: Columns, retention: Any, epsilon: Any, rho: Any) -> Channel:
    """Return the perturbation with the retention that was given, or that follows from what is promised."""
    values = math.prod(columns.shape)
    if sum(one is not None for one in (retention, epsilon, rho)) != 1:
        rule = "must be given, or one of epsilon and rho instead"
        raise PlanError(rule, key="retention", fix="For instance retention=0.5.")
    given = retention if retention is not None else retention_for(values, epsilon=epsilon, rho=rho)
    return Channel(as_retention(given), values, columns.shape)


BEST: Final = "best"


def _masked(channel: Channel, criterion: Criterion, bound: Fraction) -> PromisingMethod:
    return (MaskedColumns if channel.shape else Masked)(channel, criterion)  # masks hide every frequency


_MAKERS: Final[Mapping[str, Callable[[Channel, Criterion, Fraction], PromisingMethod]]] = {
    Masked.name: _masked,
    Sampled.name: Sampled,
    Groupwise.name: Groupwise,
}
METHODS: Final = (BEST, *_MAKERS)


@sealed
def reconstruction_private(
    rows: Any,
    *,
    public: Any,
    sensitive: Any,
    values: Any = None,
    retention: Any = None,
    epsilon: Any = None,
    rho: Any = None,
    lam: Any,
    delta: Any,
    criterion: str = "exact",
    tails: str = "together",
    method: str = "best",
    largest_frequency: Any = 1,
    groups: Any = None,
    one_per: Any = None,
    again: bool = False,
) -> PublishedTable:
    """Publish a table from which no frequency in a personal group can be estimated too well.

    Args:
        rows: a path or a frame of any kind; or a `Session`, whose policy then must allow it and whose budget pays.
        public: the columns that are published as they are; they make personal groups.
        sensitive: the column that is hidden. Of several, each is hidden, and so are all combinations of them.
        values: every value that it may have; of several columns, a list for each. Of a session, its domain says it.
        retention: the probability that a record keeps its value, which sets epsilon; or epsilon itself, or rho.
        epsilon: what one record may lose at most.
        rho: a pair (rho1, rho2), see `retention_for`.
        lam: an error above `lam` times the true frequency is large enough.
        delta: how likely such an error must be.
        criterion: `exact`, or `chernoff`: the thesis' bound, which lets larger groups through than it should; masked
            counts keep the exact one only.
        tails: `together`: an error to one side or the other is that likely. `each`, as the thesis defines it: too low
            and too high an estimate are each that likely, which costs 1.3 times the error of two values, twice that of
            more.
        method: `sample`, `retention`, `masked`, or `best`: the one with the least expected error of aggregates.
        largest_frequency: a public bound on the frequency of any value of any sensitive column in any group; sampling
            and retention use it.
        groups: what values of public columns become, as in `perturbed`.
        one_per: a public column that says which records belong together, as in `perturbed`.
        again: publish it although another table about these columns was published, which a session refuses otherwise.
            The certificate then says that no criterion is promised any more.
    """
    columns = columns_for(rows, public, sensitive, values)
    channel = chosen_channel(columns, retention, epsilon, rho)
    paid = isinstance(rows, Session)
    choice = private_choice(channel, lam, delta, criterion, tails, method, largest_frequency, paid=paid)
    choice = replace(choice, again=yes_or_no(again, AGAIN))
    return published(rows, columns, choice, groups, one_per)


def private_choice(
    channel: Channel,
    lam: Any,
    delta: Any,
    criterion: str = "exact",
    tails: str = "together",
    method: str = "best",
    largest_frequency: Any = 1,
    *,
    paid: bool = True,
) -> Choice:
    """Return the method that was named, or the best one, with a perturbation that sets epsilon; or refuse.

    If it is `paid`, the sizes of groups are seen after the charge, so only what has every size is taken.
    """
    promise = Criterion(lam, delta, criterion, tails)
    promise.check(channel)
    if promise.each and promise.delta >= Fraction(1, 2):
        rule = "must be below 0.5 for tails='each': an estimate is too low or too high, not both"
        raise PlanError(rule, key="delta", given=shown(promise.delta), fix="For instance 0.3.")
    bound = as_share(largest_frequency, key="largest_frequency")
    if not 0 < bound <= 1:
        rule = "must lie above 0 and at most 1"
        raise PlanError(rule, key="largest_frequency", given=largest_frequency, fix="Leave it out.")
    return Choice(channel.epsilon, _method_chooser(channel, promise, method, bound, paid=paid), promises=True)


def _method_chooser(
    channel: Channel, criterion: Criterion, method: str, bound: Fraction, *, paid: bool
) -> Callable[[Ints], Method]:
    """Return a function that chooses a method by the public sizes of groups."""
    if method == BEST:
        # masks follow the exact criterion, whatever `criterion` is
        exact = replace(criterion, how="exact")
        every = [make(channel, exact if make is _masked else criterion, bound) for make in _MAKERS.values()]
        usable = [one for one in every if _can_be_used(one, paid=paid)]
        if not usable:
            every[0].check()
            _check_sizes(every[1])
        return lambda sizes: best_method(sizes, usable)
    check_known(method, METHODS, "method")
    named = _MAKERS[method](channel, criterion, bound)
    named.check()
    if paid:
        _check_sizes(named)
    return lambda sizes: named


def _can_be_used(method: PromisingMethod, *, paid: bool) -> bool:
    try:
        method.check()
    except PlanError:  # it follows from public parameters alone
        return False
    return method.has_every_size or not paid


def _check_sizes(method: PromisingMethod) -> None:
    if not method.has_every_size:
        raise PlanError(
            f"must be 'together' for {method.name!r} here: whether a group can keep each tail depends on its size, "
            "which is seen after the charge",
            key="tails",
            given="each",
            fix="Take method='masked', which keeps each tail at every size, or publish plain rows.",
        )


def best_method(sizes: Ints, every: Sequence[Method]) -> Method:
    """Return the method with the least expected error of the count of a value among all people; see `errors_of`."""
    errors = errors_of(sizes, every)
    return min(errors, key=lambda one: errors[one])


def errors_of(sizes: Ints, every: Sequence[Method]) -> dict[Method, float]:
    """Return the expected error of each method that can be used, if each value is as frequent as any other."""
    errors: dict[Method, float] = {}
    for one in every:
        values = one.channel.values
        # proving a retention for every size takes long: it is done only if it can be the best
        if errors and one.least_error(sizes, values) >= min(errors.values()):
            continue
        try:
            errors[one] = one.expected_error(sizes, values)
        except PlanError:  # no sample, or no retention, is small enough; both follow from public sizes
            continue
    return errors


@sealed
def append(table: PublishedTable, rows: Any, *, again: bool = False) -> PublishedTable:
    """Return a new version of a perturbed table with rows that came later.

    Rows that are in it already keep their coins: nothing about them is drawn again. A table that a session paid for
    takes a `Session` of the same policy and data set with the new rows, whose budget pays epsilon again: its people may
    be in the table already, so the epsilons of all versions add up. A table of plain rows takes plain rows, and epsilon
    holds for each record. Give only new ones: a record that is given twice is perturbed twice, and loses twice as much.

    A table that keeps a criterion takes plain rows of groups that it does not have yet: of another year, if the year is
    a public column. Masked counts of one sensitive column, with both tails together, also of groups that it has: they
    are masked once more, and errors grow by a quarter to a half. With method `retention` also of groups so small that
    their retention stays what it was. Uniform perturbation promises no criterion: audit the new sizes
    (`tc.audit.reconstruction`).

    A session refuses a version of a table about columns that another table of its data set promises a criterion about,
    unless `again` says that this promise is given up, or said so of the table.
    """
    again = yes_or_no(again, AGAIN)
    if not isinstance(table, PublishedTable):
        raise PlanError(f"must be a published table, not {kind_of(table)}", key="table", fix="Make one first.")
    method = _made_anew(table.method)
    if table.one_per is not None:
        rule = "must have every record: of some sets one was picked, and a set might be in two versions"
        raise PlanError(rule, key="table", given=table.one_per, fix="Publish all rows anew, which costs epsilon again.")
    _check_payer(table.account, rows)
    columns = replace(table.groups.columns, public=table.merges.before(table.groups.columns.public))
    if isinstance(rows, Session):
        if isinstance(method, PromisingMethod):
            raise PlanError(
                "must be perturbed uniformly to grow through a session: which groups new rows are in is seen after it "
                "has paid, and a group in two versions may break the criterion",
                key="table",
                given=method.name,
                fix="Nothing was charged. Publish all rows anew, which costs epsilon again.",
            )
        columns = columns_for(rows, columns.public, list(columns.sensitive), None)
    choice = Choice(
        method.epsilon, lambda sizes: method, promises=isinstance(method, PromisingMethod), again=again or table.again
    )
    new = published(rows, columns, choice, table.merges)
    return joined(table, new)


def _made_anew(given: Method) -> Method:
    """Return a method made anew of the numbers of another, or refuse one of an unknown kind."""
    channel = Channel(given.channel.retention, given.channel.values, given.channel.shape)
    if type(given) is Uniform:
        return Uniform(channel)
    if type(given) in (Groupwise, GrownMasks, Masked, MaskedColumns, Sampled):
        old = cast(PromisingMethod, given).criterion
        criterion = Criterion(old.lam, old.delta, old.how, old.tails)
        return replace(given, channel=channel, criterion=criterion)  # type: ignore[type-var]
    rule = "must be made by a method of this library"
    raise PlanError(rule, key="table", given=given.name, fix="Publish all rows anew, which costs epsilon again.")


def _check_payer(account: PaidAccount | None, rows: Any) -> None:
    """Refuse plain rows for a table that a session has paid for, and a session for other tables."""
    if not isinstance(rows, Session):
        if account is not None:
            raise PlanError(
                "must come through a session, since one has paid for the table",
                key="rows",
                given=kind_of(rows),
                fix=f"Write append(table, session), with the policy of the table and data set {account.dataset!r}.",
            )
        return
    if account is None:
        raise PlanError(
            "must be plain rows, since no session has paid for the table",
            key="rows",
            given="a session",
            fix="Nothing was charged. Publish a table of the session, and append to that.",
        )
    for key, ours, theirs in (
        ("policy", account.policy.fingerprint, rows.policy.fingerprint),
        ("dataset", account.dataset, rows.dataset),
    ):
        if ours != theirs:
            rule = f"must be that of the session which has paid for the table, {ours[:40]}"
            raise PlanError(rule, key=key, given=theirs[:40], fix="Nothing was charged. Open such a session.")


def joined(table: PublishedTable, new: PublishedTable) -> PublishedTable:
    """Return a table with the published counts of another added to its own, and what both promise together."""
    values, old_codes, new_codes = [], [], []
    for at, (ours, theirs) in enumerate(zip(table.groups.values, new.groups.values, strict=True)):
        if isinstance(new.method, PromisingMethod):
            _check_spelled_alike(new.groups.columns.public[at], ours, theirs)
        union = sorted({*ours, *theirs}, key=lambda value: (str(type(value)), value))
        place = {value: number for number, value in enumerate(union)}
        values.append(tuple(union))
        old_codes.append(np.array([place[value] for value in ours], np.int64)[table.groups.which[:, at]])
        new_codes.append(np.array([place[value] for value in theirs], np.int64)[new.groups.which[:, at]])
    if values:
        codes = np.concatenate([np.stack(old_codes, axis=1), np.stack(new_codes, axis=1)])
        which, of = np.unique(codes, axis=0, return_inverse=True)
    else:  # one group of everybody, which a version in which nobody is counted does not have
        of = np.zeros(len(table.sizes) + len(new.sizes), np.int64)
        which = np.zeros((min(of.size, 1), 0), np.int64)
    counts = np.zeros((len(which), new.published.shape[1]), np.int64)
    np.add.at(counts, of.ravel(), np.concatenate([table.published, new.published]))
    old_sizes, new_sizes = np.zeros(len(which), np.int64), np.zeros(len(which), np.int64)
    np.add.at(old_sizes, of.ravel()[: len(table.sizes)], table.sizes)
    np.add.at(new_sizes, of.ravel()[len(table.sizes) :], new.sizes)
    if not new.method.holds_together(old_sizes, new_sizes).all():
        raise PlanError(
            f"must have groups that are all old or all new, since {table.method.name!r} keeps a criterion: whoever "
            "adds up two versions of a group knows more than is promised",
            key="rows",
            fix="Name a public column that sets new rows apart, such as the year, publish all rows anew, or use masked "
            "counts of one column, with both tails together.",
        )
    method, both = new.method, (old_sizes > 0) & (new_sizes > 0)
    if isinstance(method, Masked) and both.any():
        added = np.zeros_like(counts)
        np.add.at(added, of.ravel()[len(table.sizes) :], new.published)
        method, counts[both] = grown(method, counts[both], added[both], (old_sizes + new_sizes)[both])
    account = None
    if table.account is not None and new.account is not None:
        account = replace(
            new.account,
            epsilon=table.account.epsilon + new.account.epsilon,
            receipts=(*table.account.receipts, *new.account.receipts),
        )
    return replace(
        new,
        groups=replace(table.groups, values=tuple(values), which=which),
        method=method,
        sizes=old_sizes + new_sizes,
        published=counts,
        account=account,
        version=table.version + 1,
        replayed=table.replayed or new.replayed,
    )


def _check_spelled_alike(column: str, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Refuse new values that are old ones with another spelling: their group would be in two versions unnoticed."""
    known = {_spelled(value): value for value in ours}
    for value in theirs:
        old = known.get(_spelled(value), value)
        if old != value or type(old) is not type(value):
            rule = f"must be written as in the table, which has {old!r} ({kind_of(old)})"
            fix = "Convert the column to the type and spelling that it had."
            raise PlanError(rule, key=f"rows.{column}", given=f"{value!r} ({kind_of(value)})", fix=fix)


def _spelled(value: Any) -> Any:
    """Return a value in the spelling of names of rows, where it has one."""
    name = name_of(value)
    return str(value).strip().casefold() if callable(name) else name
