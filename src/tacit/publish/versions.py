"""New versions of a table: rows that came later are perturbed and added to what is published already.

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
            Tables beside this one are another matter: a session holds versions against them
            (`ledger/clauses.py`).
Reference   docs/tables.md.
Checked by  tests/unit/publish/test_table_versions.py, tests/unit/publish/test_published_tables.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tacit.errors import PlanError, kind_of, sealed
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.groupwise import Groupwise
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.masked_columns import MaskedColumns
from tacit.publish.methods.method import Method, PromisingMethod
from tacit.publish.methods.perturbation import Uniform
from tacit.publish.methods.sampled import Sampled
from tacit.publish.paid_tables import Choice, columns_for, published
from tacit.publish.table import AGAIN, PaidAccount, PublishedTable
from tacit.release.planner import yes_or_no
from tacit.release.session import Session
from tacit.rows.cells.row_names import name_of


@sealed
def append(table: PublishedTable, rows: Any, *, again: bool = False) -> PublishedTable:
    """Return a new version of a perturbed table with rows that came later.

    Rows that are in it already keep their coins: nothing about them is drawn again. A table that a session paid for
    takes a `Session` of the same policy and data set with the new rows, whose budget pays epsilon again: its people may
    be in the table already, so the epsilons of all versions add up. A table of plain rows takes plain rows, and epsilon
    holds for each record. Give only new ones: a record that is given twice is perturbed twice, and loses twice as much.

    A table that keeps a criterion takes plain rows of groups that it does not have yet: of another year, if the year is
    a public column. With method `retention` also of groups so small that their retention stays what it was. Uniform
    perturbation promises no criterion: audit the new sizes (`tc.audit.reconstruction`).

    A session refuses a version of a table about columns that another table of its data set promises a criterion about,
    unless `again` says that this promise is given up, or said so of the table.
    """
    again = yes_or_no(again, AGAIN)
    if not isinstance(table, PublishedTable):
        raise PlanError(f"must be a published table, not {kind_of(table)}", key="table", fix="Make one first.")
    method = _made_anew(table.method)
    if table.one_per is not None:
        raise PlanError(
            "must have every record: of some sets one was picked, and a set might be in two versions",
            key="table",
            given=table.one_per,
            fix="Publish all rows anew, which costs epsilon again.",
        )
    _check_payer(table.account, rows)
    columns = replace(table.groups.columns, public=table.merges.before(table.groups.columns.public))
    if isinstance(rows, Session):
        if isinstance(method, PromisingMethod):
            raise PlanError(
                "must be perturbed uniformly to grow through a session: which groups new rows are in is seen after it "
                "has paid, and a group in two versions would break the criterion",
                key="table",
                given=method.name,
                fix="Nothing was charged. Publish all rows anew, which costs epsilon again.",
            )
        columns = columns_for(rows, columns.public, list(columns.sensitive), None)
    choice = Choice(
        method.epsilon,
        lambda sizes: method,
        promises=isinstance(method, PromisingMethod),
        again=again or table.again,
    )
    new = published(rows, columns, choice, table.merges)
    return joined(table, new)


def _made_anew(given: Method) -> Method:
    """Return the same method, made of its numbers, or refuse one of another kind."""
    channel = Channel(given.channel.retention, given.channel.values, given.channel.shape)
    if type(given) is Uniform:
        return Uniform(channel)
    if type(given) in (Groupwise, Masked, MaskedColumns, Sampled):
        old = cast(PromisingMethod, given).criterion
        asked = Criterion(old.lam, old.delta, old.how, old.tails)
        return replace(given, channel=channel, criterion=asked)  # type: ignore[type-var]
    raise PlanError(
        "must be made by a method of this library",
        key="table",
        given=given.name,
        fix="Publish all rows anew, which costs epsilon again.",
    )


def _check_payer(account: PaidAccount | None, rows: Any) -> None:
    """Refuse rows that nobody pays for where somebody has paid for the table, and the other way round."""
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
    old, late = (np.stack(codes, axis=1) if codes else None for codes in (old_codes, new_codes))
    if old is None or late is None:
        which, of = table.groups.which[:1], np.zeros(len(table.sizes) + len(new.sizes), np.int64)
    else:
        which, of = np.unique(np.concatenate([old, late]), axis=0, return_inverse=True)
    counts = np.zeros((len(which), new.published.shape[1]), np.int64)
    sizes = np.zeros(len(which), np.int64)
    np.add.at(counts, of.ravel(), np.concatenate([table.published, new.published]))
    np.add.at(sizes, of.ravel(), np.concatenate([table.sizes, new.sizes]))
    old_sizes, new_sizes = (np.zeros(len(which), np.int64) for _ in range(2))
    np.add.at(old_sizes, of.ravel()[: len(table.sizes)], table.sizes)
    np.add.at(new_sizes, of.ravel()[len(table.sizes) :], new.sizes)
    if not new.method.holds_together(old_sizes, new_sizes).all():
        raise PlanError(
            f"must have groups that are all old or all new, since {table.method.name!r} keeps a criterion: whoever "
            "adds up what two versions say about a group knows more than is promised",
            key="rows",
            fix="Name a public column that sets new rows apart, such as the year, or publish all rows anew.",
        )
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
        sizes=sizes,
        published=counts,
        account=account,
        version=table.version + 1,
        replayed=table.replayed or new.replayed,
    )


def _check_spelled_alike(column: str, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Refuse new values that are old ones, written in another way: a group would be in two versions unnoticed."""
    known = {_spelled(value): value for value in ours}
    for value in theirs:
        old = known.get(_spelled(value), value)
        if old != value or type(old) is not type(value):
            raise PlanError(
                f"must be written as in the table, which has {old!r} ({kind_of(old)})",
                key=f"rows.{column}",
                given=f"{value!r} ({kind_of(value)})",
                fix="Convert the column to the type and spelling that it had.",
            )


def _spelled(value: Any) -> Any:
    """Return a value in the one spelling that names of rows have, where it has one."""
    name = name_of(value)
    return str(value).strip().casefold() if callable(name) else name
