"""Yes/no questions about one record: `col("age") < 18`, or the same as a text, `"age < 18"`.

A predicate is a tree of `and`, `or`, `not` over *atoms*; an atom is a set of positions on one axis, so it has the same
answer for a record, for whole classes of records, and for an engine's column of positions. Python's own parser reads
texts; nothing in them is ever run.
"""

from __future__ import annotations

import ast
import datetime
import keyword
import re
import unicodedata
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import groupby
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Axis, Value
from tacit.policy.domain import Domain
from tacit.policy.edges.intervals import Intervals
from tacit.policy.genuine import as_plain, is_genuine, settle, stranger

_SYMBOLS: Final = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_DEEPEST: Final = 250  # predicates are walked recursively
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


class Where(ABC):
    """A predicate. Combine with `&`, `|`, `~`."""

    def __and__(self, other: Where) -> Where:
        return Both(self, _predicate(other))

    def __or__(self, other: Where) -> Where:
        return Either(self, _predicate(other))

    def __invert__(self) -> Where:
        return Not(self)

    def __bool__(self) -> bool:
        raise PolicyError("must be combined with & and |, not `and` and `or`", key="where", fix="Add parentheses.")

    @property
    @abstractmethod
    def words(self) -> str:
        """The predicate as part of a sentence."""

    @abstractmethod
    def compile(self, domain: Domain) -> Test:
        """Turn the predicate into sets of positions, refusing names and values that the domain does not have."""

    @abstractmethod
    def columns(self) -> frozenset[str]:
        """Return the attributes that the predicate asks about."""

    def check(self, domain: Domain, *, key: str) -> None:
        """Refuse what the domain cannot answer, naming the key where the predicate stands."""
        try:
            self.compile(domain)
        except PolicyError as refusal:
            raise refusal.located(key=key) from None


_IN_WORDS: Final = {
    **{"==": "is", "!=": "is not", "in": "is", "has": "has"},
    **{"<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least"},
}


@dataclass(frozen=True)
class Compare(Where):
    """One comparison of one attribute with constants. `part` is the axis of a grid, or the hour or year of a time."""

    column: str
    symbol: str
    operand: Value
    part: str = ""

    def __post_init__(self) -> None:
        # numpy's numbers and sets would print as something that does not read back, or in another order each time
        object.__setattr__(self, "operand", _plain_operand(self.operand))
        settle(self)

    def __str__(self) -> str:
        name = _quoted(self.column) + (f".{self.part}" if self.part else "")
        if self.symbol == "has":
            return f"{name}.has({_written(self.operand)})"
        return f"{name} {self.symbol} {_written(self.operand)}"

    @property
    def words(self) -> str:
        """The comparison as part of a sentence.

        >>> Compare("age", "<", 30).words, Compare("sex", "in", ("f", "m", "x")).words
        ('age is below 30', 'sex is f, m or x')
        """
        values = [*map(str, self.operand)] if self.symbol == "in" else [str(self.operand)]
        listed = " or ".join(filter(None, [", ".join(values[:-1]), *values[-1:]]))
        return f"{self.column}{'.' * bool(self.part)}{self.part} {_IN_WORDS[self.symbol]} {listed}"

    def columns(self) -> frozenset[str]:
        return frozenset({self.column})

    def compile(self, domain: Domain) -> Test:
        attribute = domain.attribute(self.column, key="where")
        # equal operands of other types need not mean the same
        key = (self.column, self.part, self.symbol, type(self.operand), repr(self.operand))
        try:
            return domain.once(
                key, lambda: Test.atom(*attribute.atom(self.column, self.part, self.symbol, self.operand))
            )
        except PolicyError as refusal:
            raise refusal.located(key=f"where: {self}") from None


@dataclass(frozen=True)
class _Joined(Where):
    left: Where
    right: Where
    word: ClassVar[str]

    def __str__(self) -> str:
        # `a and b and c` reads as (a and b) and c
        left = str(self.left) if type(self.left) is type(self) else _bracketed(self.left)
        return f"{left} {self.word} {_bracketed(self.right)}"

    @property
    def words(self) -> str:
        parts = (
            one.words if type(one) in (Compare, type(self)) else f"({one.words})" for one in (self.left, self.right)
        )
        return f" {self.word} ".join(parts)

    def columns(self) -> frozenset[str]:
        return self.left.columns() | self.right.columns()

    def compile(self, domain: Domain) -> Test:
        return self.left.compile(domain).joined(self.right.compile(domain), self.word)


class Both(_Joined):
    """`left` and `right`."""

    word = "and"


class Either(_Joined):
    """`left` or `right`."""

    word = "or"


@dataclass(frozen=True)
class Not(Where):
    """The opposite of `inner`."""

    inner: Where

    def __str__(self) -> str:
        return f"not {_bracketed(self.inner)}"

    @property
    def words(self) -> str:
        return f"not ({self.inner.words})"

    def columns(self) -> frozenset[str]:
        return self.inner.columns()

    def compile(self, domain: Domain) -> Test:
        inner = self.inner.compile(domain)
        return Test(inner.atoms, ("not", inner.tree))


Tree: TypeAlias = Any  # an atom's number, or ("not", tree), or ("and" | "or", tree, tree)


@dataclass(frozen=True)
class Test:
    """A compiled predicate: atoms (axis, positions) and a tree over their numbers."""

    __test__ = False  # pytest collects names that start with Test

    atoms: tuple[tuple[Axis, Intervals], ...]
    tree: Tree

    @classmethod
    def atom(cls, axis: Axis, positions: Intervals) -> Test:
        """Return the predicate that is one atom."""
        return cls(((axis, positions),), 0)

    def joined(self, other: Test, word: str) -> Test:
        """Return both predicates under `and` or `or`."""
        return Test(self.atoms + other.atoms, (word, self.tree, _shifted(other.tree, len(self.atoms))))

    def holds(self, atom_is_true: Callable[[Axis, Intervals], Any], negate: Callable[[Any], Any]) -> Any:
        """Evaluate the tree; `atom_is_true` may return booleans, arrays or expressions of an engine."""

        def walk(tree: Tree) -> Any:
            if isinstance(tree, int):
                return atom_is_true(*self.atoms[tree])
            if tree[0] == "not":
                return negate(walk(tree[1]))
            left, right = walk(tree[1]), walk(tree[2])
            return left & right if tree[0] == "and" else left | right

        return walk(self.tree)

    def of_record(self, positions: Mapping[str, int]) -> bool:
        """Return the answer for one record, given its position on every axis that is asked about."""
        return bool(self.holds(lambda axis, found: positions[axis.name] in found, lambda answer: not answer))


class ColumnTest:
    """An attribute, ready to be compared: `col("age") < 18`, `col("clicked").has(7)`, `col("place").row >= 3`."""

    def __init__(self, name: str, part: str = "") -> None:
        self._name, self._part = name, part

    def _compare(self, symbol: str, operand: Value) -> Compare:
        listed = operand if symbol == "in" else (operand,)
        if not all(isinstance(value, str | int | float | datetime.date | Decimal | np.generic) for value in listed):
            raise PolicyError("must compare an attribute with a constant", key="where", fix="Write the number or text.")
        return Compare(self._name, symbol, operand, self._part)

    def __lt__(self, operand: Value) -> Where:
        return self._compare("<", operand)

    def __le__(self, operand: Value) -> Where:
        return self._compare("<=", operand)

    def __gt__(self, operand: Value) -> Where:
        return self._compare(">", operand)

    def __ge__(self, operand: Value) -> Where:
        return self._compare(">=", operand)

    def __eq__(self, operand: Value) -> Where:  # type: ignore[override]
        return self._compare("==", operand)

    def __ne__(self, operand: Value) -> Where:  # type: ignore[override]
        return self._compare("!=", operand)

    __hash__ = None  # type: ignore[assignment]

    def is_in(self, operands: Iterable[Value]) -> Where:
        """Ask whether the value is one of these."""
        if isinstance(operands, str) or not isinstance(operands, Iterable):
            raise PolicyError("must be followed by a list", key="where", given=operands, fix="Write in [a, b].")
        return self._compare("in", operands if isinstance(operands, set | frozenset) else tuple(operands))

    isin = is_in

    def is_between(self, low: Value, high: Value) -> Where:
        """Ask whether the value is from low to high, both included."""
        return Both(self._compare(">=", low), self._compare("<=", high))

    between = is_between

    def has(self, item: Value) -> Where:
        """Ask whether a set of items contains this one."""
        return self._compare("has", item)

    @property
    def row(self) -> ColumnTest:
        """The row of a grid cell."""
        return ColumnTest(self._name, "row")

    @property
    def column(self) -> ColumnTest:
        """The column of a grid cell."""
        return ColumnTest(self._name, "column")

    @property
    def hour(self) -> ColumnTest:
        """The hour of a time, from 0 to 23."""
        return ColumnTest(self._name, "hour")

    @property
    def weekday(self) -> ColumnTest:
        """The weekday of a day or a time, from 1 (Monday) to 7."""
        return ColumnTest(self._name, "weekday")

    @property
    def month(self) -> ColumnTest:
        """The month of a date or a time, from 1 to 12."""
        return ColumnTest(self._name, "month")

    @property
    def year(self) -> ColumnTest:
        """The year of a date or a time."""
        return ColumnTest(self._name, "year")


def col(name: str) -> ColumnTest:
    """Return an attribute to build a predicate with."""
    return ColumnTest(name)


def where(predicate: Where | str) -> Where:
    """Read a predicate written as a text; predicates pass through.

    >>> str(where("age < 18 and not disease in ['flu', 'cold']"))
    "age < 18 and not (disease in ['flu', 'cold'])"
    """
    if not isinstance(predicate, str):
        return _predicate(predicate)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escape sequences
            body = ast.parse(_identifiers(predicate), mode="eval").body
        return _read(body, predicate, _DEEPEST)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        if not predicate.strip():
            raise PolicyError("must not be empty", key="where", fix="Leave it out to ask about everybody.") from None
        rule = "must read like `age < 18 and disease == 'flu'`"
        raise PolicyError(rule, key="where", given=predicate, fix=_spelling(predicate)) from None


_WORDS: Final = frozenset({"and", "or", "not", "in", "is", "True", "False", "None", "if", "else", "for", "lambda"})
_DATE: Final = re.compile(r"(?<![\w.-])[0-9]{4}-([0-9]{2}(-[0-9]{2})?|W[0-9]{2}|Q[1-4])(?![\w.-])")
_OTHER_SPELLINGS: Final = (
    (r"&&|(?<!&)&(?!&)", "Write and instead of &."),
    (r"\|\|?", "Write or instead of |."),
    (r"!(?!=)|~", "Write not instead of !."),
    (r"<>", "Write != instead of <>."),
    (r"(?<![<>=!])=(?!=)", "Write == instead of =."),
    (r"\b(AND|OR|NOT|IN)\b", "Write and, or, not and in with small letters."),
)


def _spelling(text: str) -> str:
    """Return how to write what looks like another language."""
    bare = _QUOTED.sub(lambda found: "0" if found[1] is not None else "x", text)
    if "'" in bare or '"' in bare:
        return "Close the quotes."
    if between := re.search(r"(?i)([\w.]+|`[^`]+`)\s+between\s+(\S+)\s+and\s+([^\s()]+)", text):
        return f"Write {between[2]} <= {between[1]} <= {between[3]}."
    for pattern, fix in _OTHER_SPELLINGS:
        if re.search(pattern, bare):
            return fix
    if fix := _unquoted_date(text):
        return fix
    for found in re.finditer(r"[^\W\d]\w*(?:\s+[^\W\d]\w*)+", bare):
        words = found[0].split()
        spaced = [list(group) for plain, group in groupby(words, lambda word: word not in _WORDS) if plain]
        for name in spaced:
            if len(name) > 1:
                return f"Put a name with spaces in backticks: `{' '.join(name)}`."
    if any(bare.count(left) != bare.count(right) for left, right in ("()", "[]")):
        return "Check the brackets."
    return _EXAMPLE


def _unquoted_date(text: str) -> str:
    """Return how to write a date that has no quotes around it, or nothing."""
    date = _DATE.search(_QUOTED.sub("x", text))
    return f"Put dates in quotes: '{date[0]}'." if date else ""


# Attribute names that are no identifiers are written in backticks; the parser sees a stand-in.
_STAND_IN: Final = "_tacit_quoted_"


# a quoted text (backticks inside it mean nothing), a name in backticks, or a backtick that nothing closes
_QUOTED: Final = re.compile(r"""('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|`([^`]*)`|`""", re.DOTALL)


def _identifiers(text: str) -> str:
    def stand_in(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        if found[2] is None:
            raise PolicyError("must close every backtick", key="where", given=text, fix="Add the second backtick.")
        return _STAND_IN + found[2].encode().hex()

    return _QUOTED.sub(stand_in, text).strip()


def _plain(identifier: str) -> str:
    if identifier.startswith(_STAND_IN):
        return bytes.fromhex(identifier.removeprefix(_STAND_IN)).decode()  # a ValueError is refused by `where`
    return identifier


def _read(node: ast.expr, text: str, deep: int) -> Where:
    if deep <= 0:
        fix = "List values with `in [..]`."
        raise PolicyError(f"must not be nested deeper than {_DEEPEST} levels", key="where", given=text, fix=fix)
    match node:
        case ast.BoolOp(op=operator, values=values):
            # a chain of n values becomes n - 1 nested pairs
            parts = [_read(value, text, deep - len(values) + 1) for value in values]
            return reduce(Both if isinstance(operator, ast.And) else Either, parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Not(_read(operand, text, deep - 1))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            sides = [left, *rights]
            return reduce(Both, [_link(sides[i], op, sides[i + 1], text) for i, op in enumerate(ops)])
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="has"), args=[item], keywords=[]):
            return Compare(_plain(name), "has", _constant(item, text))
        case ast.Name(id=name):
            return Compare(_plain(name), "==", True)
    raise _unreadable(text)


def _link(left: ast.expr, op: ast.cmpop, right: ast.expr, text: str) -> Where:
    left_name, right_name = _column(left), _column(right)
    if isinstance(op, ast.In | ast.NotIn) and left_name:
        listed = _constant(right, text)
        if not isinstance(listed, list | tuple):
            raise _unreadable(text, "Write in [a, b].")
        inside = Compare(left_name[0], "in", tuple(listed), left_name[1])
        return Not(inside) if isinstance(op, ast.NotIn) else inside
    symbol = _SYMBOLS.get(type(op))
    if left_name and right_name:
        raise _unreadable(text, _needs_quotes(right_name[0]))
    if symbol is None or (left_name is None) == (right_name is None):
        raise _unreadable(text)
    if left_name:
        return Compare(left_name[0], symbol, _constant(right, text), left_name[1])
    assert right_name is not None  # noqa: S101 - exactly one side is a column, tested above
    return Compare(right_name[0], _MIRRORED[symbol], _constant(left, text), right_name[1])


_PARTS: Final = ("row", "column", "hour", "weekday", "month", "year")


def _column(node: ast.expr) -> tuple[str, str] | None:
    match node:
        case ast.Name(id=name):
            return _plain(name), ""
        case ast.Attribute(value=ast.Name(id=name), attr=part) if part in _PARTS:
            return _plain(name), part
    return None


def _constant(node: ast.expr, text: str) -> Value:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
        raise _unreadable(text, _needs_quotes(_plain(names[0])) if names else "") from None


_EXAMPLE: Final = "For instance: age < 18 and disease in ['flu', 'hiv'], or clicked.has(7)."


def _needs_quotes(word: str) -> str:
    return f"An attribute is compared with constants: put quotes around {word} if it is a text: {word!r}."


def _unquoted_name(text: str) -> str:
    """Point to a name in quotes, or with a hyphen, which belongs in backticks; nothing where there is none."""
    quoted = re.match(r"""\s*(?:not\s+)?(['"])([^'"`\n]+)\1\s*(?:[=!<>]|(?:not\s+)?in\b)""", text)
    hyphened = re.search(r"(?<![\w.])[^\W\d]\w*(?:-[^\W\d]\w*)+(?!\w)", _QUOTED.sub("", text))
    name = quoted[2] if quoted else hyphened[0] if hyphened else ""
    return f"Put a name with spaces or signs in backticks: `{name}`." if name else ""


def _unreadable(text: str, fix: str = "") -> PolicyError:
    if not fix and re.search(r"[&|~]", _QUOTED.sub("", text)):
        fix = _spelling(text)
    fix = _unquoted_date(text) or fix or _unquoted_name(text)
    return PolicyError(
        "must compare attributes with constants, joined by and, or, not", key="where", given=text, fix=fix or _EXAMPLE
    )


def _predicate(candidate: Any) -> Where:
    if isinstance(candidate, Where):
        if not is_genuine(candidate):
            rule = f"must be built of tc.col or read from a text; found {stranger(candidate)}"
            fix = "A predicate of another class might say something else each time; write tc.col('age') < 18."
            raise PolicyError(rule, key="where", fix=fix)
        return candidate
    if type(candidate) is ColumnTest:
        return Compare(candidate._name, "==", True, candidate._part)
    raise PolicyError("must be a predicate", key="where", given=candidate, fix="For instance tc.col('age') < 18.")


def _shifted(tree: Tree, by: int) -> Tree:
    if isinstance(tree, int):
        return tree + by
    return (tree[0], *(_shifted(branch, by) for branch in tree[1:]))


def _bracketed(inner: Where) -> str:
    stands_alone = isinstance(inner, Not) or (isinstance(inner, Compare) and inner.symbol != "in")
    return str(inner) if stands_alone else f"({inner})"


def _quoted(name: str) -> str:
    # Python's parser has words of its own and reads some letters as others
    plain = name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name
    return name if plain and not name.startswith(_STAND_IN) else f"`{name}`"


def _plain_operand(operand: Value) -> Value:
    if isinstance(operand, set | frozenset):
        return tuple(sorted((_plain_operand(part) for part in operand), key=lambda part: (str(type(part)), part)))
    if isinstance(operand, list | tuple):
        return tuple(_plain_operand(part) for part in operand)
    if isinstance(operand, np.generic):
        return operand.item()
    if isinstance(operand, Decimal):
        return float(operand)  # decimals that an attribute can have are read back from how the float prints
    return str(operand) if isinstance(operand, datetime.date) else as_plain(operand)


def _written(operand: Value) -> str:
    if isinstance(operand, tuple):
        return f"[{', '.join(_written(part) for part in operand)}]"
    # `inf` would read as a name
    return repr(operand).replace("inf", "1e999") if isinstance(operand, float) else repr(operand)
