"""Networks over days and people: the tables of one day of one person, written once, for all of them.

    arrival@3       arrival on day 3
    arrival@ana     arrival of Ana
    arrival@ana@3   arrival of Ana on day 3

A parent `arrival@before` is the attribute on the day before. So a Markov chain is a table that looks back, and a hidden
Markov model is a chain of something that nobody is shown, with tables that look at it. What people share, such as their
household, has one table for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Final

from tacit.dependence.given import as_mapping, checked_names, listed, parents_of
from tacit.errors import PolicyError, nearest, word_or_kind

AT: Final = "@"
BEFORE: Final = "@before"
MOST_STEPS: Final = 10_000  # tables of all days and people


def base_of(name: str) -> str:
    """Return what a name is about, without its person and its day."""
    return name.partition(AT)[0]


def unrolled(tables: Any, *, days: Any, people: Any, first: Any, shared: Any) -> dict[str, Any]:
    """Return the tables of all days and people by their full names, as `Dependence.from_network` takes them."""
    names = _names_of(tables, "tables")
    odd = next((name for name in names if AT in name), None)
    if odd is not None:
        rule = f"must have names without {AT}: people and days are added to them"
        raise PolicyError(rule, key="tables", given=odd, fix="Choose another name.")
    on, of = _labels(days, "days", 30), _labels(people, "people", ["ana", "bob"])
    if on is None and of is None:
        rule = "must be given, or people: without both this is a network of one record"
        raise PolicyError(rule, key="days", given=None, fix="Say days=30, or use from_network.")
    starts, together = _part(first, "first", names, on), _part(shared, "shared", names, of)
    steps = len(on or "1") * len(of or "1") * len(names)
    if steps > MOST_STEPS:
        rule = f"makes {steps:,} tables with {len(names)} attributes, and {MOST_STEPS:,} is the most"
        raise PolicyError(rule, key="days", given=len(on or "1"), fix="Take fewer days or people.")
    found: dict[str, Any] = {}
    for at, day in enumerate(on or [""]):
        for name in names:
            table = as_mapping(first[name] if at == 0 and name in starts else tables[name])
            above = parents_of(name, table, [*names, *(one + BEFORE for one in names)])
            _check_parents(name, above, together, is_first=at == 0, has_days=on is not None)
            for person in [""] if name in together else of or [""]:
                full = {
                    parent: _full(
                        base_of(parent),
                        "" if base_of(parent) in together else person,
                        on[at - 1] if on and parent.endswith(BEFORE) else day,
                    )
                    for parent in above
                }
                given = [full[parent] for parent in above]
                found[_full(name, person, day)] = {"given": given, "table": table["table"]} if above else table
    return found


def _full(name: str, person: str, day: str) -> str:
    return AT.join(part for part in (name, person, day) if part)


def _names_of(given: Any, key: str) -> tuple[str, ...]:
    if not isinstance(given, Mapping):
        rule = "must be a mapping of names to tables"
        raise PolicyError(rule, key=key, given=word_or_kind(given), fix="Give a table for each name.")
    return checked_names(given, key=key)


def _labels(given: Any, key: str, example: Any) -> list[str] | None:
    """Return what is added to names for each day or person; a whole number counts from 1."""
    if given is None:
        return None
    fix = f"Say {key}={example}."
    is_number = isinstance(given, Integral) and not isinstance(given, bool)
    if is_number and given < 1:
        raise PolicyError("must be at least 1", key=key, given=given, fix=fix)
    found = [str(one) for one in (range(1, min(given, MOST_STEPS) + 2) if is_number else listed(given) or ())]
    found = found[:given] if is_number else found
    if not found or len(set(found)) < len(found) or not all(one and AT not in one for one in found):
        rule = f"must be a whole number, or different labels without {AT}, at least one"
        raise PolicyError(rule, key=key, given=word_or_kind(given), fix=fix)
    return found


def _part(given: Any, key: str, names: Sequence[str], axis: Sequence[str] | None) -> tuple[str, ...]:
    """Return the attributes that have another table on the first day, or one table for all people."""
    if not given:
        return ()
    found = _names_of(given, key) if key == "first" else checked_names(given, key=key, fix='Write shared=["home"].')
    if axis is None:
        needs = "days" if key == "first" else "people"
        raise PolicyError(f"needs {needs}", key=key, given=list(found), fix=f"Give {needs}, or leave {key} out.")
    for name in found:
        if name not in names:
            raise PolicyError("must be attributes with a table", key=key, given=name, fix=nearest(name, list(names)))
    return found


def _check_parents(name: str, above: Sequence[str], shared: Sequence[str], *, is_first: bool, has_days: bool) -> None:
    """Refuse tables that look at a day or a person that there is not."""
    back = next((parent for parent in above if parent.endswith(BEFORE)), None)
    if back is not None and not has_days:
        raise PolicyError("looks at the day before, and there are no days", key=name, given=back, fix="Say days=30.")
    if back is not None and is_first:
        fix = f'Say first={{"{name}": ..}}, a table that does not look back.'
        raise PolicyError("must have a table for the first day, which has no day before", key=name, given=back, fix=fix)
    own = next((parent for parent in above if base_of(parent) not in shared), None) if name in shared else None
    if own is not None:
        fix = "Turn the arrow round, or write the network of all people with from_network."
        raise PolicyError("is shared by people and must not depend on what each has", key=name, given=own, fix=fix)
