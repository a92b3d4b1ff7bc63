"""Tables that satisfy the (lambda, delta) criterion: statistics of many can be learnt from them, those of few cannot.

Which method is used follows from public things alone: the sizes of groups, the number of values, the promise. Its words
say which criterion is kept, and what no such table prevents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from tacit.amounts import as_share
from tacit.arrays import Ints
from tacit.errors import PlanError, nearest, sealed, word_or_kind
from tacit.publish.methods.criterion import Channel, Criterion
from tacit.publish.methods.groupwise import Groupwise
from tacit.publish.methods.masked import Masked
from tacit.publish.methods.masked_columns import MaskedColumns
from tacit.publish.methods.method import Method
from tacit.publish.methods.sampled import Sampled
from tacit.publish.paid_tables import Choice, columns_for, published
from tacit.publish.perturbed_table import chosen_channel
from tacit.publish.table import AGAIN, PublishedTable
from tacit.release.planner import yes_or_no

BEST: Final = "best"


def _masked(channel: Channel, asked: Criterion, bound: Fraction) -> Method:
    return (MaskedColumns if channel.shape else Masked)(channel, asked)  # masks hide every frequency


_MAKERS: Final[Mapping[str, Callable[[Channel, Criterion, Fraction], Method]]] = {
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
        delta: how likely such an error must be, on one side or the other.
        criterion: `exact`, or `chernoff`: the thesis' bound, which lets larger groups through than it should; masked
            counts keep the exact one only.
        method: `sample`, `retention`, `masked`, or `best`: the one with the least expected error of aggregates.
        largest_frequency: a public bound on the frequency of any value of any sensitive column in any group; sampling
            and retention use it.
        groups: what values of public columns become, so that some make one group: `{column: {value: name}}`, or what
            `generalise` returns.
        one_per: a public column that says which records hang together, such as a household: one record of each is
            picked by a fair coin, so that epsilon holds for all of them together. A session says `person` instead.
        again: publish it although another table about these columns was published, which a session refuses otherwise.
            The certificate then says that no criterion is promised any more.
    """
    columns = columns_for(rows, public, sensitive, values)
    channel = chosen_channel(columns, retention, epsilon, rho)
    choice = private_choice(channel, lam, delta, criterion, method, largest_frequency)
    choice = replace(choice, again=yes_or_no(again, AGAIN))
    return published(rows, columns, choice, groups, one_per)


def private_choice(
    channel: Channel, lam: Any, delta: Any, criterion: str = "exact", method: str = "best", largest_frequency: Any = 1
) -> Choice:
    """Return the method that was named, or the best one, with a perturbation that sets epsilon; or refuse."""
    asked = Criterion(lam, delta, criterion, "together")
    asked.check(channel)
    chooser = method_chooser(channel, asked, method, _bound(largest_frequency))
    return Choice(channel.epsilon, chooser, promises=True)


def _bound(given: Any) -> Fraction:
    bound = as_share(given, key="largest_frequency")
    if not 0 < bound <= 1:
        raise PlanError("must lie above 0 and at most 1", key="largest_frequency", given=given, fix="Leave it out.")
    return bound


def method_chooser(channel: Channel, asked: Criterion, method: str, bound: Fraction) -> Callable[[Ints], Method]:
    """Return what chooses a method by the public sizes of groups."""
    if method == BEST:
        # masks follow the exact criterion, whatever bound is asked for
        exact = replace(asked, how="exact")
        every = [make(channel, exact if make is _masked else asked, bound) for make in _MAKERS.values()]
        usable = [one for one in every if _can_be_used(one)]
        if not usable:
            every[0].check()
        return lambda sizes: best_method(sizes, usable)
    if method not in METHODS:
        rule, fix = f"must be one of {', '.join(METHODS)}", nearest(str(word_or_kind(method)), METHODS)
        raise PlanError(rule, key="method", given=word_or_kind(method), fix=fix)
    named = _MAKERS[method](channel, asked, bound)
    named.check()
    return lambda sizes: named


def _can_be_used(method: Method) -> bool:
    try:
        method.check()
    except PlanError:  # it follows from public parameters alone
        return False
    return True


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
