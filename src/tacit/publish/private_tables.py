"""Tables that satisfy the (lambda, delta) criterion: statistics of many can be learnt from them, those of few cannot.

Which method is used follows from public things alone: the sizes of groups, the number of values, the promise. Its words
say which criterion is kept, and what no such table prevents.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tacit.amounts import as_fraction
from tacit.errors import PlanError, nearest, sealed, word_or_kind
from tacit.publish.criterion import Channel, Criterion
from tacit.publish.groupwise import Groupwise
from tacit.publish.masked import Masked
from tacit.publish.method import Ints, Method
from tacit.publish.perturbation import epsilon_of
from tacit.publish.perturbed_table import chosen_retention
from tacit.publish.sampled import Sampled
from tacit.publish.source import columns_for, published
from tacit.publish.table import PublishedTable

METHODS: Final = ("best", "sample", "retention", "masked")


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
    method: str = "best",
    largest_frequency: Any = 1,
    groups: Any = None,
) -> PublishedTable:
    """Publish a table from which no frequency in a personal group can be estimated too well.

    Args:
        rows: a path or a frame of any kind; or a `Session`, whose policy then must allow it and whose budget pays.
        public: the columns that are published as they are; they make personal groups.
        sensitive: the column that is hidden; several are hidden jointly, as one.
        values: every value that it may have; of several columns, a list for each. Of a session, its domain says it.
        retention: the probability that a record keeps its value, which sets epsilon; or epsilon itself, or rho.
        epsilon: what one record may lose at most.
        rho: a pair (rho1, rho2), see `retention_for`.
        lam: an error above `lam` times the true frequency is large enough.
        delta: how likely such an error must be, on one side or the other.
        criterion: `exact`, or `chernoff`: the thesis' bound, which lets larger groups through than it should.
        method: `sample`, `retention`, `masked`, or `best`: the one with the least expected error of aggregates.
        largest_frequency: a public bound on the frequency of any value in any group; sampling and retention use it.
        groups: what values of public columns become, so that some make one group: `{column: {value: name}}`, or what
            `generalise` returns.
    """
    columns = columns_for(rows, public, sensitive, values)
    channel = Channel(chosen_retention(columns, retention, epsilon, rho), int(np.prod(columns.shape)))
    asked = Criterion(lam, delta, criterion, "together")
    asked.check(channel)
    choose = method_chooser(channel, asked, method, _bound(largest_frequency))
    return published(rows, columns, choose, epsilon_of(channel), groups)


def _bound(given: Any) -> Fraction:
    bound = as_fraction(given, key="largest_frequency")
    if not 0 < bound <= 1:
        raise PlanError("must lie above 0 and at most 1", key="largest_frequency", given=given, fix="Leave it out.")
    return bound


def method_chooser(channel: Channel, asked: Criterion, method: str, bound: Fraction) -> Callable[[Ints], Method]:
    """Return what chooses a method by the public sizes of groups."""
    if method not in METHODS:
        rule, fix = f"must be one of {', '.join(METHODS)}", nearest(str(word_or_kind(method)), METHODS)
        raise PlanError(rule, key="method", given=word_or_kind(method), fix=fix)
    masked, sampled = Masked(channel, asked), Sampled(channel, asked, bound)
    groupwise = Groupwise(channel, asked, bound)
    named: dict[str, Method] = {"sample": sampled, "retention": groupwise, "masked": masked}

    if method == "best":
        if not any(_can_be_used(one) for one in named.values()):
            masked.check()
        return lambda sizes: best_method(sizes, masked, sampled, groupwise)
    named[method].check()
    return lambda sizes: named[method]


def _can_be_used(method: Method) -> bool:
    try:
        method.check()
    except PlanError:  # it follows from public parameters alone
        return False
    return True


def best_method(sizes: Ints, masked: Masked, sampled: Sampled, groupwise: Groupwise) -> Method:
    """Return the method with the least expected error of the count of a value among all people; see `errors_of`."""
    errors = errors_of(sizes, masked, sampled, groupwise)
    return min(errors, key=lambda one: errors[one])


def errors_of(sizes: Ints, masked: Masked, sampled: Sampled, groupwise: Groupwise) -> dict[Method, float]:
    """Return the expected error of each method that can be used, if each value is as frequent as any other."""
    values = masked.channel.values
    errors: dict[Method, float] = {masked: masked.expected_error(sizes, values)} if _can_be_used(masked) else {}
    for one in (sampled, groupwise):
        # proving a retention for every size takes long: it is done only if it can be the best
        if one is groupwise and groupwise.least_error(sizes, values) >= min(errors.values(), default=np.inf):
            continue
        try:
            errors[one] = one.expected_error(sizes, values)
        except PlanError:  # no sample, or no retention, is small enough; both follow from public sizes
            continue
    return errors
