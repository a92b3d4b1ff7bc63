"""YAML files with the line of every key and value; and plain data written as YAML.

`YamlSource` and `YamlEntry` know YAML and lines but no policies: they read policy files (`policy_file.py`) and job
files (`jobs/job_file.py`). Nothing in a file is ever run: tags are refused. A file is also refused if YAML would
silently change what was written (`no`, `01234`, `2024-05-01`, a key given twice).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from tacit.errors import PolicyError, Refused, decimal_comma, is_possible_path, nearest, path_words

# suffixes of files of rows, which are read in one place and refused in others
CSV_NAMES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_NAMES: Final = (".parquet", ".pq")
TABLE_NAMES: Final = (*CSV_NAMES, *PARQUET_NAMES)  # that Tacit reads
NAMES_WITH_ROWS: Final = (*TABLE_NAMES, ".xlsx", ".jsonl")  # that hold rows, so nothing of them may be quoted

LARGEST_FILE: Final = 10_000_000  # bytes; a policy is read by people
_LARGEST_TREE: Final = 2_000_000  # values after aliases are followed: a few nested anchors could stand for billions
_DEEPEST: Final = 40
_LONGEST_SHOWN: Final = 60  # letters: a file that is no mapping is repeated in a refusal only if it is one such line

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = frozenset({"str", "int", "float", "bool", "null", "timestamp", "merge"})
_DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_GROUPED: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
# a text for our YAML reader, but a number for other readers or for people: 1e3, 08, 0o17
_LIKE_A_NUMBER: Final = re.compile(r"[-+]?(\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|0[oOxXbB][0-9a-fA-F_]+)")
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same safe reader, ten times as fast
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True)
class YamlSource:
    """The text of a YAML file, its file's name in messages, its class of refusals, its folder, and its variables."""

    text: str
    file: str
    whole: str = "the policy"
    refusal: type[Refused] = PolicyError
    folder: Path = Path()
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        file: str,
        whole: str,
        refusal: type[Refused],
        kind: str,
        if_table: str,
        if_missing: str,
    ) -> YamlSource:
        """Open a file that people write, or refuse; `kind` is what it should be, and the last two are fixes."""
        named = path_words(path)
        if Path(path).name.lower().endswith(NAMES_WITH_ROWS):
            # by its name, before anything is read: a message of the YAML reader may quote a row
            raise refusal(f"looks like a table, not {kind}", key=named, fix=if_table)
        try:
            with Path(path).open("rb") as stream:
                content = stream.read(LARGEST_FILE + 1)  # no more, even if the file is huge
        except FileNotFoundError:
            refused = refusal("must exist", key=named, fix=if_missing)
        except (OSError, ValueError) as fault:
            reason = getattr(fault, "strerror", None) or "not a path"
            refused = refusal(f"must be a readable file ({reason.lower()})", key=named, fix="Check the path.")
        else:
            try:
                return cls(content.decode("utf-8-sig"), file, whole, refusal, Path(path).parent)
            except UnicodeDecodeError as fault:
                line = content[: fault.start].count(b"\n") + 1
                fix = "Save the file as UTF-8."
                refused = refusal("must be a text in UTF-8", key=whole, file=file, line=line, fix=fix)
        raise refused

    def refuse(self, rule: str, *, line: int | None = None, fix: str = "", key: str = "") -> Refused:
        """Return the refusal of the file as a whole, or of one line."""
        return self.refusal(rule, key=key or self.whole, file=self.file, line=line, fix=fix)

    def table(self, line: int | None = None) -> Refused | None:
        """Return the refusal of a table of rows given instead of a file like this; it repeats nothing of it."""
        if not _is_table(self.text):
            return None
        return self.refuse(
            f"must be YAML; this looks like a table, not a {self.whole.removeprefix('the ')}",
            line=line,
            fix=f"`tacit init {self.file}` drafts a policy for it.",
        )

    def read(self) -> YamlEntry:
        """Return the top of the file, or refuse a text that is no plain YAML."""
        if len(self.text) > LARGEST_FILE:
            fix = "Give the number of items instead of their names."
            raise self.refuse(f"must not be larger than {LARGEST_FILE // 1_000_000} MB", fix=fix)
        node = self._composed(self.text.removeprefix("\ufeff"))
        if node is None or (_tag(node) == "null"):
            raise self.refuse("must not be empty", fix="Draft one with `tacit init DATA`.")
        self._check(node, "", 0, [0])
        return YamlEntry(node, "", self)

    def _composed(self, text: str) -> yaml.Node | None:
        try:
            self._check_depth(text)
            node: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as fault:
            mark = fault.problem_mark or fault.context_mark
            problem = fault.problem or fault.context or "unreadable"
            refusal = self._unreadable(text, None if mark is None else mark.line, problem)
        except yaml.reader.ReaderError as fault:
            line = text[: fault.position].count("\n") + 1 if isinstance(fault.position, int) else None
            refusal = self.refuse("must not contain control characters", line=line, fix="Remove them.")
        except (yaml.YAMLError, UnicodeError, ValueError):
            refusal = self.refuse("must be YAML", fix="Check the brackets, quotes and indentation.")
        else:
            return node
        # raised outside the handlers, so that it has no YAML traceback
        raise refusal

    def _check_depth(self, text: str) -> None:
        """Refuse deep nesting while it is only a stream of events: composing recurses, in C without a limit."""
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                line = None if event.start_mark is None else event.start_mark.line + 1
                fix = "Remove brackets."
                raise self.refuse(f"must not be nested deeper than {_DEEPEST} levels", line=line, fix=fix)

    def _unreadable(self, text: str, at: int | None, problem: str) -> Refused:
        if (table := self.table()) is not None:
            return table
        lines = text.split("\n")
        # the reader may stop one line after the tab, at the first unexpected token
        for place in [] if at is None else [at, at - 1]:
            if 0 <= place < len(lines) and re.match(r" *\t", lines[place]):
                return self.refuse("must be indented with spaces, not tabs", line=place + 1, fix="Replace the tab.")
        if "document" in problem:
            return self.refuse("must be one document", line=None if at is None else at + 1, fix="Remove the `---`.")
        if at is not None and at < len(lines) and re.search(r":\s*,\s*(#.*)?$", lines[at]):
            return self.refuse("must have a comma in quotes", line=at + 1, fix='Write ",".')
        if "alias" in problem:
            problem = "found undefined alias"  # its name may come from anywhere
            fix = "Define the anchor first, or quote the text."
        elif "character" in problem and "token" in problem:
            fix = "Quote the text."
        else:
            fix = "Check the brackets, quotes, colons and indentation there."
        return self.refuse(f"must be YAML: {problem}", line=None if at is None else at + 1, fix=fix)

    def _check(self, node: yaml.Node, path: str, depth: int, seen: list[int]) -> None:
        """Refuse tags, keys given twice, and trees that are too large or too deep once aliases are followed."""
        line = node.start_mark.line + 1
        seen[0] += 1
        if depth > _DEEPEST:
            raise self.refuse(f"must not be nested deeper than {_DEEPEST} levels", line=line, fix="Remove brackets.")
        if seen[0] > _LARGEST_TREE:
            raise self.refuse("must not repeat anchors inside anchors", line=line, fix="Write the values out.")
        allowed = _SCALARS if isinstance(node, yaml.ScalarNode) else {"seq", "map"}
        if _tag(node) not in allowed:
            tag = node.tag.replace(_TAG, "!!")
            raise self.refuse(f"must not have the tag {tag}", line=line, key=path, fix="Remove it.")
        match node:
            case yaml.SequenceNode():
                for number, child in enumerate(node.value):
                    self._check(child, f"{path}[{number}]", depth + 1, seen)
            case yaml.MappingNode():
                first: dict[tuple[str, str], int] = {}
                for key, child in node.value:
                    at = key.start_mark.line + 1
                    if not isinstance(key, yaml.ScalarNode):
                        raise self.refuse("must have texts as keys", line=at, fix="Write name: value.", key=path)
                    self._check(key, path, depth + 1, seen)
                    inner = _joined(path, key.value)
                    if (key.tag, key.value) in first:
                        fix = f"Remove one of the two; the first is in line {first[key.tag, key.value]}."
                        raise self.refuse("must not be given twice", line=at, key=inner, fix=fix)
                    first[key.tag, key.value] = at
                    self._check(child, inner, depth + 1, seen)


_LEFT_OUT: Final = object()


@dataclass(frozen=True)
class YamlEntry:
    """One value of a YAML file with its place: the path of keys that leads to it, and its line."""

    node: yaml.Node
    path: str
    source: YamlSource

    @property
    def line(self) -> int:
        """The line it starts in, from 1."""
        return int(self.node.start_mark.line) + 1

    def refuse(self, rule: str, *, given: Any = _LEFT_OUT, fix: str = "") -> Refused:
        """Return the refusal of this value."""
        if not self.path and not self.is_mapping:
            if (table := self.source.table(self.line)) is not None:
                return table
            text = self.source.text.strip()
            if self.is_list or len(text) > _LONGEST_SHOWN or len(text.splitlines()) > 1:
                given = _LEFT_OUT  # this may be a file of people's rows
        place: dict[str, Any] = {"key": self.path or self.source.whole, "file": self.source.file, "line": self.line}
        if given is not _LEFT_OUT:
            place["given"] = given
        return self.source.refusal(rule, fix=fix, **place)

    @contextmanager
    def blamed(self, places: Mapping[str, YamlEntry] = MappingProxyType({})) -> Iterator[None]:
        """Give each refusal inside without a line the place of this entry, or of the entry that its key ends with."""
        try:
            yield
        except Refused as refusal:
            if refusal.line is not None:
                raise
            ending = re.split(r"[.:\s]", refusal.key)[-1]
            blame = places.get(ending, self)
            located = refusal.located(file=self.source.file, line=blame.line, key=blame.path or self.source.whole)
        else:
            return
        raise located

    @property
    def tag(self) -> str:
        """The type that YAML gives it: str, int, float, bool, null, timestamp, merge, seq or map."""
        return _tag(self.node)

    def _at(self, node: yaml.Node, path: str) -> YamlEntry:
        return YamlEntry(node, path, self.source)

    @property
    def is_mapping(self) -> bool:
        """Whether it is `key: value` pairs."""
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written."""
        return self.tag == "null"

    @property
    def is_single(self) -> bool:
        """Whether it is one value, and not empty."""
        return isinstance(self.node, yaml.ScalarNode) and not self.is_empty

    def plain(self) -> Any:
        """Return the whole value as it was written, to be shown in a refusal."""
        if self.is_mapping:
            return {name: entry.plain() for name, entry in self.mapping().items()}
        if self.is_list:
            return [entry.plain() for entry in self.listed()]
        if self.is_empty:
            return None
        if self.tag == "int" and _GROUPED.fullmatch(self.node.value) and len(self.node.value) < 40:
            return int(self.node.value.replace("_", ""))
        if self.tag == "bool":
            return _boolean(self.node)
        try:
            return float(self.node.value) if self.tag == "float" else self.node.value
        except ValueError:
            return self.node.value

    def mapping(self) -> dict[str, YamlEntry]:
        """Return the values by key; keys that a merge (`<<`) brings in come last and do not override."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refuse("must be a mapping", given=self.plain(), fix="Write key: value.")
        found: dict[str, YamlEntry] = {}
        merged: dict[str, YamlEntry] = {}
        for place, (key, value) in enumerate(self.node.value):
            if place and (comma := _decimal_comma(self.node.value[place - 1][1], key, value)):
                name, number = self.node.value[place - 1]
                at = self._at(number, _joined(self.path, str(name.value)))
                raise at.refuse("must be a number", given=comma, fix=decimal_comma(comma))
            if _tag(key) == "merge":
                brought = self._at(value, self.path)
                for part in brought.listed() if brought.is_list else [brought]:
                    merged = {**self._at(part.node, self.path).mapping(), **merged}
                continue
            name = self._at(key, self.path).text(what="key")
            found[name] = self._at(value, _joined(self.path, name))
        return found | {name: entry for name, entry in merged.items() if name not in found}

    def pairs(self) -> list[tuple[YamlEntry, YamlEntry]]:
        """Return keys with their values, where keys may be numbers, dates, or true and false."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refuse("must be a mapping", given=self.plain(), fix="Write key: value.")
        found = []
        for key, value in self.node.value:
            path = _joined(self.path, str(key.value))
            if _tag(key) == "merge":
                raise self._at(key, path).refuse("must not be brought in by <<", fix="Write it out.")
            found.append((self._at(key, path), self._at(value, path)))
        return found

    def fields(self, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, YamlEntry]:
        """Return the values by key, refusing unknown keys and missing ones."""
        found = self.mapping()
        for name, entry in found.items():
            if name not in known:
                at = next((key for key, _ in self.node.value if key.value == name), entry.node)
                fix = nearest(name, list(known))
                raise self._at(at, entry.path).refuse("is not a key that may stand here", fix=fix)
        for name in required:
            if name not in found:
                raise self.refuse(f"must have the key {name}", given=sorted(found), fix=f"Add `{name}: ..`.")
        return found

    def listed(self) -> list[YamlEntry]:
        """Return the members of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.refuse("must be a list", given=self.plain(), fix="Write [a, b, ..].")
        return [self._at(child, f"{self.path}[{number}]") for number, child in enumerate(self.node.value)]

    def one_or_more(self) -> list[YamlEntry]:
        """Return the members of a list, or a single value as a list of one."""
        return self.listed() if self.is_list else [self]

    def text(self, *, what: str = "") -> str:
        """Return a text, refusing what YAML reads as something else."""
        if not self.is_single:
            raise self.refuse(f"{what} must be a text".strip(), given=self.plain(), fix="Write one text.")
        if self.tag != "str":
            raise self._misread(what)
        return str(self.node.value)

    def file_path(self) -> Path:
        """Return the path that is written here, seen from the folder of the file; refuse one that no file can have."""
        written = self.text()
        found = self.source.folder / written
        if not is_possible_path(found.absolute()):
            rule = "must be a path, with names of at most 255 bytes and 4,095 in all"
            raise self.refuse(rule, given=written, fix="Name another.")
        return found

    def amount(self) -> str:
        """Return the text of a number: 0.1 is one tenth, not the nearest binary number."""
        if not self.is_single:
            raise self.refuse("must be a number", given=self.plain(), fix="Write 0.5, or 1/3.")
        return str(self.node.value).replace("_", "")

    def whole(self) -> int:
        """Return a whole number."""
        written = self.node.value
        if isinstance(self.node, yaml.ScalarNode) and self.tag == "int":
            if len(written) > 40:
                raise self.refuse("must fit into 62 bits", fix="Use a smaller number.")
            if _GROUPED.fullmatch(written):
                return int(written.replace("_", ""))
            rule = f"must be a decimal number without leading zeros: YAML reads {written} as {_number(self.node)}"
            raise self.refuse(rule, fix="Write it out.")
        fix = "Write it without a fraction, a quote or an exponent."
        if isinstance(written, str) and (comma := decimal_comma(written)):
            fix = comma
        if self.tag in ("str", "float") and _LIKE_A_NUMBER.fullmatch(written):
            exact = _exact(written)
            fix = f"Write {exact}." if isinstance(exact, int) else "Round it."
        raise self.refuse("must be a whole number", given=self.plain(), fix=fix)

    def real(self) -> float | int:
        """Return a finite number."""
        if self.tag == "int":
            return self.whole()
        try:
            found = float(self.node.value.replace("_", "")) if self.tag == "float" else math.nan
        except ValueError:
            found = math.nan
        if math.isfinite(found):
            return found
        written = self.node.value if isinstance(self.node, yaml.ScalarNode) else ""
        exact = _exact(written)
        fix = decimal_comma(written) or ("Write a number." if exact is None else f"Write {exact}.")
        raise self.refuse("must be a finite number", given=self.plain(), fix=fix)

    def yes_or_no(self) -> bool:
        """Return a truth value in any spelling."""
        if self.tag != "bool":
            raise self.refuse("must be true or false", given=self.plain(), fix="Write true or false.")
        return _boolean(self.node)

    def value(self) -> str | int | bool:
        """Return a text, whole number or truth value that every YAML reader and every person reads in the same way."""
        if self.is_list or self.is_mapping:
            raise self.refuse("must be one value", given=self.plain(), fix="Remove the brackets.")
        written, tag = self.node.value, self.tag
        is_bare = isinstance(self.node, yaml.ScalarNode) and not self.node.style
        if tag == "str" and not (is_bare and _LIKE_A_NUMBER.fullmatch(written)):
            return str(written)
        if tag == "int" and _DECIMAL.fullmatch(written) and len(written) <= 40:
            return int(written)
        if tag == "bool" and written.lower() in ("true", "false"):
            return _boolean(self.node)
        raise self._misread("")

    def _misread(self, what: str) -> Refused:
        """Return the refusal of a value that YAML reads in an unexpected way."""
        written = self.node.value
        read_as = {
            "bool": "true or false",
            "int": "a number" if _DECIMAL.fullmatch(written) else "another number",
            "float": "a fraction",
            "timestamp": "a date",
            "null": "nothing",
            "merge": "a merge",
            "str": "a text, other readers as a number",
        }[self.tag]
        shown = written if written else "an empty place"
        fix = f"Write {quoted(written)}."
        if self.tag == "str":
            fix = f"Write {quoted(written)} for the text, or {_exact(written)} for the number."
        return self.refuse(f"{what} must be quoted: YAML reads {shown} as {read_as}".strip(), fix=fix)


def _is_table(text: str) -> bool:
    lines = [line for line in text.removeprefix("\ufeff").splitlines()[:20] if line.strip()][:2]
    if not lines or lines[0].lstrip()[:1] in ("{", "[", "-", "#") or re.search(r":(\s|$)", lines[0]):
        return False
    return any(all(line.count(mark) for line in lines) for mark in (",", ";", "\t", "|"))


def _joined(path: str, name: str) -> str:
    if not re.fullmatch(r"[\w-]+", name):
        return f"{path}[{quoted(name)}]"
    return f"{path}.{name}" if path else name


def quoted(text: str) -> str:
    """Return a text in YAML's double quotes, on one line."""
    written: str = yaml.dump(text, Dumper=yaml.SafeDumper, default_style='"', width=2**31, allow_unicode=True)
    return written.rstrip("\n")


def _decimal_comma(before: yaml.Node, key: yaml.Node, value: yaml.Node) -> str:
    """Return what was written as 0,5 in braces, where YAML reads a 0 and then a key 5 without a value; or nothing."""
    if [_tag(before), _tag(key), _tag(value)] != ["int", "int", "null"] or value.value:
        return ""
    end, start = before.end_mark, key.start_mark
    touches = end.line == start.line and start.column == end.column + 1
    return f"{before.value},{key.value}" if touches else ""


def _tag(node: yaml.Node) -> str:
    return str(node.tag).removeprefix(_TAG)


def _boolean(node: yaml.Node) -> bool:
    return str(node.value).lower() in ("true", "yes", "on")


def _number(node: yaml.ScalarNode) -> Any:
    try:
        return yaml.constructor.SafeConstructor().construct_yaml_int(node)
    except ValueError:
        return "something else"


def _exact(written: str) -> int | float | None:
    try:
        found = float(written.replace("_", ""))
    except ValueError:
        return None
    return int(found) if found.is_integer() and abs(found) < 2**53 else found


def write_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML with one line for each attribute, family and fact, quoted wherever it is in doubt."""
    node = yaml.representer.SafeRepresenter(sort_keys=False).represent_data(dict(data))
    _laid_out(node, 0)
    text: str = yaml.serialize(node, Dumper=_DUMPER, allow_unicode=True, width=110)
    return text


def _laid_out(node: yaml.Node, depth: int, *, in_a_list: bool = False) -> None:
    """Choose lines for the outer two levels and brackets below; quote what other readers take for a number."""
    if isinstance(node, yaml.MappingNode):
        in_a_list = in_a_list and depth == 2 and len(node.value) == 1  # `- attributes: [disease]`
        node.flow_style = not node.value or (depth > 1 and not in_a_list)
        for key, value in node.value:
            _laid_out(key, depth + 1)
            _laid_out(value, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        node.flow_style = depth > 1 or not node.value
        for value in node.value:
            _laid_out(value, depth + 1, in_a_list=True)
    elif isinstance(node, yaml.ScalarNode) and _tag(node) == "str" and _in_doubt(node.value):
        node.style = "'"


def _in_doubt(text: str) -> bool:
    return bool(_LIKE_A_NUMBER.fullmatch(text)) or text.lower() in ("y", "n")


def one_line(value: Any) -> str:
    """Return a value as YAML that stays on one line however long it is."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{one_line(key)}: {one_line(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(one_line(part) for part in value) + "]"
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", value):
        return quoted(value)
    return write_yaml({"x": value}).removeprefix("x: ").strip()
