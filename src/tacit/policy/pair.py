"""What a policy promises about two records that a user names, in words: `tacit check --pair age=30 age=42`."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from tacit.errors import PolicyError
from tacit.policy.attributes import Attribute
from tacit.policy.describe import plain_fields, record_words
from tacit.policy.domain import Domain, Record
from tacit.policy.edges.chains import Distance
from tacit.policy.policy import ABSENT, Policy
from tacit.policy.secrets.family import plain
from tacit.policy.yaml_entries import YamlSource

NOBODY: Final = "absent"  # somebody who is not in the data
_MOST_LISTED: Final = 1000  # records of a chain in a document
_MOST_SHOWN: Final = 8  # in words
_EXAMPLE_EPSILON: Final = 0.5
_PLAIN: Final = re.compile(r"[-+]?\w[\w.+/ -]*")  # numbers, dates and words, which YAML reads as they are


@dataclass(frozen=True)
class Pair:
    """Two records and the distance in both directions; both have an ordinary value in the `assumed` attributes."""

    policy: Policy
    hidden: Any
    cover: Any
    there: Distance
    back: Distance
    assumed: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the pair as plain data, with the first records of the chain."""
        domain = self.policy.domain
        return {
            "hidden": plain_fields(domain, self.hidden),
            "cover": plain_fields(domain, self.cover),
            "distance": None if math.isinf(self.there) else int(self.there),
            "path": [plain_fields(domain, one) for one in islice(self.there.records(), _MOST_LISTED)],
            "distance_back": None if math.isinf(self.back) else int(self.back),
            "keeps_known": self.there.keeps_known,
            "assumed": list(self.assumed),
            "promise": self.promise,
        }

    @property
    def promise(self) -> str:
        """What a release promises about the pair."""
        if math.isinf(self.there):
            return "No chain of secret edges leads from the first to the second: nothing is promised about this pair."
        many = int(self.there)
        if not many:
            return "The two are the same record."
        if not self.there.keeps_known:
            facts = ", ".join(fact.words() for fact in self.policy.known)
            return (
                f"The chain changes what a person adds to what is known ({facts}), so other people have to change as "
                "well: only data sets that agree on what is known are compared, and nothing is claimed about this pair "
                "alone."
            )
        times = "epsilon" if many == 1 else f"{many:,} times epsilon"
        power = many * _EXAMPLE_EPSILON
        factor = f"{math.exp(power):.4g}" if power < 700 else "more than 10^300"
        return (
            f"A release at epsilon: no output is more likely for the first than exp({times}) times its probability for "
            f"the second; at epsilon {_EXAMPLE_EPSILON:g} that is a factor of {factor}."
        )

    @property
    def lines(self) -> list[str]:
        """The pair in words."""
        domain = self.policy.domain
        given = [name for name in domain if name not in self.assumed]
        ends = [record_words(domain, side, given) for side in (self.hidden, self.cover)]
        lines = [f"From {ends[0]} to {ends[1]}: {_edges(self.there)}."]
        if self.there > 1 and not math.isinf(self.there):
            lines.append(f"  {self._chain()}")
        back = "the same" if self.back == self.there else _edges(self.back)
        return [*lines, self.promise, f"The other way round: {back}.", *self._assumptions()]

    def _assumptions(self) -> list[str]:
        somebody = self.cover if self.hidden is ABSENT else self.hidden
        if not self.assumed or somebody is ABSENT:
            return []
        shown = record_words(self.policy.domain, somebody, list(self.assumed[:_MOST_SHOWN]))
        more = f" and {len(self.assumed) - _MOST_SHOWN:,} more" if len(self.assumed) > _MOST_SHOWN else ""
        both = " for both" if ABSENT not in (self.hidden, self.cover) else ""
        return [f"Assumed{both}: {shown}{more}. Name them to ask about other values."]

    def _chain(self) -> str:
        domain, many = self.policy.domain, int(self.there)
        first = list(islice(self.there.records(), _MOST_SHOWN))
        seen = [one for one in [*first, self.cover] if one is not ABSENT]
        names = [name for place, name in enumerate(domain) if len({one[place] for one in seen}) > 1]
        shown = [record_words(domain, one, names) for one in first]
        left = many + 1 - len(first)
        if left > 1:
            shown.append(f".. {left - 1:,} more ..")
        return " -> ".join([*shown, *([record_words(domain, self.cover, names)] if left > 0 else [])])


def check_pair(policy: Policy, hidden: str, cover: str) -> Pair:
    """Return what a policy promises about two records as people type them.

    The second has the values of the first where it gives none; the first has ordinary values where it gives none.
    """
    domain = policy.domain
    usual = {name: attribute.usual() for name, attribute in domain.attributes}
    given = [_read(text, domain) for text in (hidden, cover)]
    first = {**usual, **(given[0] or {})}
    records = [
        ABSENT if found is None else _record(domain, {**others, **found})
        for found, others in zip(given, (usual, first), strict=True)
    ]
    a, b = records
    assumed = tuple(name for name in domain if all(name not in (found or {}) for found in given))
    return Pair(policy, a, b, policy.distance(a, b), policy.distance(b, a), assumed)


def _read(text: str, domain: Domain) -> dict[str, Any] | None:
    """Read a record: age=30,sex=F; a list of items or a cell of a grid in brackets. None: absent."""
    if text.strip() == NOBODY:
        return None
    found: dict[str, Any] = {}
    for piece in _pieces(text):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not name or not equals:
            rule = f"must be written as name=value,name=value, or {NOBODY}"
            fix = f"For instance {next(_example(attribute, name) for name, attribute in domain.attributes)}."
            raise PolicyError(rule, key="--pair", given=text, fix=fix)
        if name in found:
            raise PolicyError("must be given once", key=f"--pair: {name}", given=text, fix="Remove one of the two.")
        try:
            attribute = domain.attribute(name)
            if not value:
                raise PolicyError("must have a value", key=name, fix=f"For instance {_example(attribute, name)}.")
            # lists, quoted texts and plain words are YAML already; words with other signs are quoted
            is_yaml = value[0] in "[\"'" or _PLAIN.fullmatch(value)
            written = value if is_yaml else json.dumps(value, ensure_ascii=False)
            found[name] = attribute.read_value(YamlSource(written, "--pair", name).read())
        except PolicyError as refusal:
            raise refusal.retold(PolicyError, key=f"--pair: {name}") from None
    return found


def _record(domain: Domain, fields: dict[str, Any]) -> Record:
    try:
        return domain.record(fields)
    except PolicyError as refusal:
        raise refusal.retold(PolicyError, key=f"--pair: {refusal.key}") from None


def _example(attribute: Attribute, name: str) -> str:
    return f"{name}={json.dumps(plain(attribute.usual()), ensure_ascii=False)}"


def _pieces(text: str) -> list[str]:
    """Split at the commas before a name and its equals sign, outside of brackets and quotes.

    >>> _pieces("age=30,job=cook, chef,place=[1,2],of='a,b=c'")
    ['age=30', 'job=cook, chef', 'place=[1,2]', "of='a,b=c'"]
    """
    found, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"" and found[-1].rstrip().endswith("="):
            quote = sign
        depth += 0 if quote else (sign in "[{(") - (sign in "]})")
        if sign == "," and depth <= 0 and not quote:
            found.append("")
            depth = 0
        else:
            found[-1] += sign
    joined = found[:1]
    for piece in found[1:]:
        if "=" in piece:
            joined.append(piece)
        elif piece.strip():  # a comma within a value
            joined[-1] += f",{piece}"
    return joined


def _edges(far: Distance) -> str:
    if math.isinf(far):
        return "no chain of secret edges"
    return {0: "the same record", 1: "one secret edge"}.get(int(far), f"{int(far):,} secret edges")
