"""The plan of `true_records`: which columns a coin decides about, at which epsilon, and what all of it costs.

Guarantee   All releases along the same lines together, however often they are asked for: for every secret edge hidden
            -> cover of one person and every set O of outputs, Pr[M(hidden) in O] <= exp(sum of what `cost` returned) *
            Pr[M(cover) in O].
Assumes     `plan/plans/visible_records.py` for one record. With a key, the coin of a line and a key is the same each
            time (`noise/kept_coins.py`), and a record under a key does not change between two askings of one version: a
            new state of the world has a new key, such as the day, or a new version. In a ledger, another file has other
            coins (`ledger/coins.py`); frames and queries of one data set are one table. Nothing else that is
            known couples people (refused otherwise).
            Where an edge changes a key: in no possible data set is a key missing, there twice, or a moment that is no
            day. That is taken as known, and the promise is for edges of one person between such data sets.
Why         A line is a rule with its coins; its epsilon e is the largest that was ever asked for. What is shown at a
            smaller one is a part of what is shown at e, since coins are compared with a threshold that rises with
            epsilon; so all answers along a line follow from that at e. Of one record the loss along an edge is the sum
            of e over the lines that go from hidden to shown along it; a person with up to p rows moves up to p
            records, each along an edge. So the loss is at most p times the largest such sum. `cost` is p times the
            largest sum of what the lines rise by: sums of maxima are at least maxima of sums.
            Without a key there are no lines: nothing tells a record from its likes, a coin that hung on the value would
            be known once the value is, and places in a file change. Every asking has coins of its own and costs all.
            Released rows without a key are sorted by what they show, so that their order is a function of the bag of
            released records; rows with a public key are sorted by the key. How many there are is an output, and
            counted in.
            A key that an edge changes is no public name: a row of gaps under it would tell it. So records are then
            shown as a whole or leave nothing, and the key is one of the columns that decide on it: what is planned is
            the release without a key of the asked columns and the attributes of the key. The key names the coin, and
            sorts. A shown record tells its key, so that output and order are functions of the bag of shown records.
            No two records share a key, so that each has a coin of its own, and coins have the same law whatever the
            key is: the law of the bag is that of the release without a key. At hidden nothing is shown of the record
            that moves, and at cover nothing with probability exp(-e), under whichever key. Asking again, or for more,
            is as above. Columns that were not asked for are dropped from what is shown.
Checked by  tests/unit/release/test_true_records.py, tests/unit/release/test_whole_records.py,
            tests/unit/release/test_record_lines.py, tests/property/test_showing.py,
            tests/property/test_whole_records.py, tests/statistical/test_true_records.py
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from tacit.amounts import shown
from tacit.errors import PlanError
from tacit.noise.kept_coins import share_kept
from tacit.noise.law import Law
from tacit.plan.leakage.shown import CERTAIN, Shown, apart
from tacit.plan.plans.plan import Plan
from tacit.plan.plans.visible_records import Showing, changes, changing_edge, showing, tells_presence
from tacit.plan.question import in_words
from tacit.plan.sensitivity.steps import LargestStep, touched_facts
from tacit.policy.describe import edge_that_changes, record_words
from tacit.policy.policy import ABSENT, Policy

if TYPE_CHECKING:
    from tacit.plan.measure.measured import Measured
    from tacit.plan.questions.true_records import TrueRecords

NO_COIN: Final = "open"  # the line of what needs no coin
# how names are spelled (`rows/cells/row_names.py`): with another spelling, records have other coins
_SPELLING: Final = "one case, days alone"


@dataclass(frozen=True)
class RecordsPlan(Plan):
    """How records will be shown. `showing` has a rule for columns that share a coin."""

    query: TrueRecords
    showing: Showing = field(compare=False, repr=False)

    @property
    def is_whole(self) -> bool:
        """Whether records are shown as a whole or leave nothing: there is no key, or one that a secret edge changes."""
        return self.showing.is_whole

    @property
    def hideable(self) -> tuple[str, ...]:
        """The attributes that a coin may hide: those that are asked for, and of whole records also the key."""
        return _hideable(self.query, self.policy, is_whole=self.is_whole)

    @property
    def rows_each(self) -> int:
        """How many rows one person may own."""
        return self.policy.per_person

    @property
    def each(self) -> Fraction:
        """The epsilon of one coin."""
        return self.epsilon / (max(1, self.showing.together) * self.rows_each)

    @property
    def share(self) -> float:
        """The share of the records without a secret that is shown, in the long run."""
        if not all(rule.shows for rule in self.showing.rules):
            return 0.0
        return share_kept(self.each) if any(rule.tosses for rule in self.showing.rules) else 1.0

    @property
    def deciding_attributes(self) -> tuple[str, ...]:
        """The attributes that decide on what is shown, and those that pick rows."""
        rules = self.showing.rules
        where = () if self.query.where is None else sorted(self.query.where.columns())
        return tuple(dict.fromkeys([*(axis.attribute for rule in rules for axis in rule.axes), *where]))

    @property
    def records(self) -> RecordsPlan:
        return self

    @property
    def naming(self) -> tuple[str, ...]:
        """The columns that name rows and are no attributes."""
        return tuple(name for name in self.query.key if name not in self.policy.domain)

    # ---- lines, whose coins are remembered ----

    @property
    def coin_lines(self) -> dict[str, Fraction]:
        if not self.query.key:
            return {}
        digests = [rule.digest for rule in self.showing.rules if rule.tosses] or [NO_COIN]
        return {self.line(digest): self.each for digest in digests}

    def line(self, digest: str) -> str:
        """Return the name of a line: the policy, what is hidden, the key, who asks, and the state of the records."""
        key, domain = self.query.key, self.policy.domain
        numbered = [(name, domain[name].document() if name in domain else _SPELLING) for name in key]
        return repr((self.policy.fingerprint, digest, numbered, self.query.application, self.query.version))

    def cost(self, reached: Mapping[str, Fraction]) -> Fraction:
        lines = self.coin_lines
        if not lines:
            return self.epsilon
        risen = {name: max(Fraction(0), at - reached.get(name, Fraction(0))) for name, at in lines.items()}
        if not self.showing.patterns:
            return self.rows_each * max(risen.values())
        of_rule = [risen.get(self.line(rule.digest), Fraction(0)) for rule in self.showing.rules]
        sums = [sum((of_rule[at] for at in pattern), Fraction(0)) for pattern in self.showing.patterns]
        return self.rows_each * max(sums)

    @property
    def shows(self) -> tuple[Shown, ...]:
        """What is shown of single records, and to whom."""
        who = self.query.application
        # a key is shown of every record, and whoever is told of a record knows that it was picked
        picked = () if self.query.where is None else sorted(self.query.where.columns())
        public = _read_alike((*self.showing.public, *self.query.key, *picked), self.policy)
        found = [Shown(who, name, CERTAIN, "public", is_public=True) for name in public]
        for rule in self.showing.rules:
            line = self.line(rule.digest) if self.query.key else ""
            epsilon = self.each if rule.tosses else CERTAIN
            # without a key the columns share one coin that nobody remembers
            epsilon = epsilon if line else apart(epsilon, len(rule.names))
            found += [Shown(who, name, epsilon, line) for name in rule.names]
        return tuple(found)

    def never_shown(self, attribute: str) -> frozenset[Any] | None:
        """Return the values of an attribute that are never shown, if it alone decides and the others are alike."""
        rule = next((one for one in self.showing.rules if attribute in one.names), None)
        if rule is None or rule.axes != self.policy.domain[attribute].axes(attribute):
            return None
        found = rule.hidden_positions()
        return None if found is None else frozenset(self.policy.domain[attribute].value(at) for at in found)

    # ---- what every plan has ----

    @property
    def parts(self) -> tuple[RecordsPlan, ...]:
        """The plan itself: it has one part."""
        return (self,)

    @property
    def tallied(self) -> tuple[Measured, ...]:
        """Nothing: no answer is a count."""
        return ()

    @property
    def noise(self) -> Law | None:
        """No number has noise: a record is true, or missing."""
        return None

    @property
    def answers(self) -> int:
        """One table."""
        return 1

    @property
    def rmse(self) -> float:
        """The root of the share that is missing: a record that is missing counts as an error of one."""
        return math.sqrt(1 - self.share)

    @property
    def mechanism(self) -> str:
        return "exact" if self.is_exact else "one-sided randomised response"

    @property
    def is_exact(self) -> bool:
        """Whether no coin is tossed and nothing is hidden."""
        return not self.showing.rules

    def plain(self) -> RecordsPlan:
        why = _no_step("any record looks like any other")
        return RecordsPlan(self.query, self.policy.plain(), self.epsilon, why, "", Showing.nothing(self.hideable))

    def fit_together(self, taken: Any, record: Any) -> bool:
        """Say whether a made-up record can stand beside these: no key is there twice."""
        if self.naming:
            return True  # made-up rows are numbered
        places = [place for place, name in enumerate(self.policy.domain) if name in self.query.key]
        key = tuple(record[place] for place in places)
        return not key or all(tuple(other[place] for place in places) != key for other in taken)

    def predictions(self) -> list[str]:
        if not self.share:
            return ["no record is shown"]
        public = self.showing.public
        lines = [f"shown of every record: {in_words(public)}"] if public else []
        for rule in self.showing.rules:
            share = f"with probability {share_kept(self.each):.4g}" if rule.tosses else "always"
            lines.append(f"shown {share} where it is no secret: {in_words(rule.names)}")
        return lines

    def predicted(self) -> dict[str, Any]:
        coin, kept = {"epsilon": str(self.each)}, share_kept(self.each)
        rules = self.showing.rules
        coins = [{"columns": list(one.names), **coin, "share_shown": kept if one.tosses else 1.0} for one in rules]
        return {"shown_always": list(self.showing.public), "coins": coins}

    def terms(self) -> list[str]:
        if self.is_exact and self.query.key:
            return ["every row is shown; a gap is a cell that held no value of its attribute"]
        if self.is_exact:
            return ["every record of the rows that the domain keeps is shown"]
        unique = (
            "records are shown as a whole, since a secret edge changes the key; that every record has one, and no two "
            "the same, is taken as known: the promise is for edges between data sets of which that is true"
        )
        gap = "what is missing may be a secret, or lost to the coin"
        return [gap, unique] if self.query.key and self.is_whole else [gap]

    def coin_terms(self, *, in_ledger: bool) -> list[str]:
        """Return in words what asking again costs: coins are remembered in a ledger, or else in one session."""
        if self.is_exact:
            return []
        if not self.query.key:
            return ["no coin is remembered, since no key names a record: every asking costs all of its epsilon"]
        again = (
            "the same question has the same answer and costs nothing again, a larger epsilon shows more and costs the "
            "difference, as long as records do not change under their keys; records that have changed must be asked "
            "for under another version, which is charged anew"
        )
        if in_ledger:
            return [f"coins are remembered for each key: {again}"]
        return [
            f"coins are remembered for each key, but within this run or session only, since no ledger keeps them: "
            f"within it {again}; another run tosses new coins, and what both show tells more than this epsilon says"
        ]

    def noise_document(self) -> dict[str, Any] | None:
        if not any(rule.tosses for rule in self.showing.rules):
            return None
        return {"shape": "coin", "kept": f"1 - exp(-{self.each})", "coins_of_one_edge": self.showing.together}

    def lines(self, *, reasons: bool) -> list[str]:
        because = [f"    because {reason}" for reason in (*self.step.why, self.why) if reason] if reasons else []
        return [
            f"{self.query}: true records for epsilon {shown(self.epsilon)}",
            f"  mechanism: {self.mechanism}",
            *because,
            *(f"  {line}" for line in self.predictions()),
            f"  expected error of one record (one if it is missing; root mean square): {self.rmse:.4g}",
        ]


def _no_step(*why: str) -> LargestStep:
    return LargestStep(0, 0, 0, 0, (), tuple(why))


def plan_records(query: TrueRecords, policy: Policy, epsilon: Fraction) -> RecordsPlan:
    """Return the plan of a checked question, or refuse with what forbids it."""
    _check_key(query, policy)
    _check_naming(query, policy)
    _check_people(query, policy)
    _check_known(policy)
    _check_where(query, policy)
    is_whole = not query.key or bool(_changed(query.key, policy))
    found = showing(_hideable(query, policy, is_whole=is_whole), policy, keyed=not is_whole)
    return RecordsPlan(query, policy, epsilon, _no_step(*_reasons(query, policy, found)), _why(found), showing=found)


def _check_where(query: TrueRecords, policy: Policy) -> None:
    """Refuse a predicate that a secret edge changes: who is picked would tell."""
    changed = {} if query.where is None else _changed(sorted(query.where.columns()), policy)
    if query.where is not None and changed and changes(query.where.compile(policy.domain), policy):
        name, edge = next(iter(changed.items()))
        rule = f"must not ask about {name}, which a secret edge changes ({edge})"
        fix = "Ask about attributes that are no secret, or so that no edge changes who is picked."
        raise PlanError(rule, key="true_records.where", given=str(query.where), fix=fix)


def _changed(names: Sequence[str], policy: Policy) -> dict[str, str]:
    """Return those of these attributes that a secret edge changes, each with one in words."""
    moved = [name for name in names if name in policy.moved_attributes]
    return {name: edge for name in moved if (edge := changing_edge(name, policy))}


def _hideable(query: TrueRecords, policy: Policy, *, is_whole: bool) -> tuple[str, ...]:
    key = [name for name in query.key if name in policy.domain] if is_whole else []
    return (*key, *query.shown)


def _check_key(query: TrueRecords, policy: Policy) -> None:
    changed = _changed(query.key, policy)
    owner = None if policy.person is None else owner_in(query.key, policy)
    if owner is not None and owner in changed:
        raise PlanError(
            f"must be public, since it says whose row it is, and a secret edge changes it ({changed[owner]})",
            key="true_records.key",
            given=owner,
            fix="Leave it out of the domain, whose records alone an edge changes; or say which attributes are a "
            "secret (`values`, or `attributes` with `where`).",
        )
    if query.key and not changed and tells_presence(policy):
        rule = f"would show who takes part, which is a secret (somebody -> {record_words(policy.domain, ABSENT)})"
        fix = "Leave the key out, or let the policy say that presence is public."
        raise PlanError(rule, key="true_records.key", given=list(query.key), fix=fix)


def _check_people(query: TrueRecords, policy: Policy) -> None:
    """Refuse people with several rows, unless the key says whose row it is."""
    if policy.person is not None and owner_in(query.key, policy) is None:
        raise PlanError(
            f"must name {policy.person}, which says whose row it is: which rows of a person count is otherwise up to "
            "what is in them",
            key="true_records.key",
            given=list(query.key),
            fix=f"Add {policy.person} to the key.",
        )


def owner_in(key: Sequence[str], policy: Policy) -> str | None:
    """Return what in a key says whose row it is: an attribute or a column; None if nothing does."""
    for name in key:
        read = policy.domain[name].read_from(name, policy.item) if name in policy.domain else (name,)
        if read == (policy.person,):
            return name
    return None


def _check_naming(query: TrueRecords, policy: Policy) -> None:
    """Refuse a key whose column is read as an attribute that a secret edge changes."""
    for name, attribute in policy.domain.items():
        for column in attribute.read_from(name, policy.item):
            is_named = column in query.key and column not in policy.domain
            if is_named and name in policy.moved_attributes and (edge := changing_edge(name, policy)):
                rule = f"must be public, and {name} is read from it, which a secret edge changes ({edge})"
                raise PlanError(rule, key="true_records.key", given=column, fix="Name another column.")


def _read_alike(told: Sequence[str], policy: Policy) -> list[str]:
    """Return the attributes that some attributes and columns tell about: every one that is read from the same cells."""
    domain = policy.domain
    read = {name: attribute.read_from(name, policy.item) for name, attribute in domain.items()}
    columns = {column for name in told for column in read.get(name, (name,))}
    return [name for name in domain if columns.intersection(read[name])]


def _check_known(policy: Policy) -> None:
    """Refuse knowledge that couples people: somebody else's record would tell about a hidden one."""
    for fact in touched_facts(policy):
        edge = edge_that_changes(fact, policy)
        rule = f"couples people, and no bound is proved for true records{f' ({edge} changes it)' if edge else ''}"
        fix = "Release counts, or choose secrets that leave what is known alone."
        raise PlanError(rule, key="what is known", given=fact.words(), fix=fix)


def _reasons(query: TrueRecords, policy: Policy, found: Showing) -> list[str]:
    reasons = [f"{in_words(found.public)}: no secret edge changes it"] if found.public else []
    for rule in found.rules:
        example = next((f", for instance {edge}" for edge in _changed(rule.names, policy).values()), "")
        reasons.append(f"{in_words(rule.names)}: never shown where a chain of secret edges changes it{example}")
    return reasons


def _why(found: Showing) -> str:
    if not any(rule.tosses for rule in found.rules):
        return "no secret edge leads from a record that is hidden to one that is shown: no coin is needed"
    many = f"{found.together} coins share epsilon, since one edge may tell them all"
    each = "its coin has all of epsilon" if found.together == 1 else many
    return f"a gap must be as likely where nothing is a secret, up to exp(epsilon): {each}"
