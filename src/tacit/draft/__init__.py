"""A first draft of a policy file from column names and types: `tacit init DATA`.

A domain must be declared, not read off the data: a category that only one person has, or the largest income, is a
disclosure. So a draft is for the publisher only. Every line with values from the data is marked with `REVIEW`, the
secrets are those of ordinary differential privacy, and a column that cannot be declared is a comment with the reason.

In reading order:

    metadata  what a description of a table says of its columns
    way       how a table writes its numbers and dates
    columns   what a draft declares for each column
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tacit.draft.columns import CLIP_NOTE, LONGEST_NAME, REVIEW, DraftColumn, drafted, line_of, plain, typed
from tacit.draft.metadata import Description
from tacit.draft.way import found_way, plainly
from tacit.errors import sealed
from tacit.policy.attributes.attribute import CLIP
from tacit.policy.yaml_entries import one_line, quoted, write_yaml
from tacit.rows.files.headers import looks_like_a_value
from tacit.rows.files.sample import sample_of
from tacit.rows.files.table_files import encoding_of
from tacit.rows.files.written import UTF_8, Written, written

_LONGEST_STEM: Final = 100

_TITLE: Final = """\
# A draft of a Tacit policy, made from column names, types and a random sample of {rows} rows at most.
# It is not a policy yet, and not public yet. Before you use it:
#   1. Go through the lines marked REVIEW and write what you know to be possible, not what happens to occur.
#   2. Delete the columns that nobody will ask about.
#   3. Choose the secrets, then read what `tacit check` says about them.
"""

_AFTER: Final = """
# What a release must not give away. `taking_part` is ordinary differential privacy: one person is added or removed.
# `everything` with `presence: secret` also covers one record replaced by another at the same epsilon: up to twice the
# noise.
secrets: taking_part
# Weaker secrets give more accurate releases. With those below, who is in the data is public; add `presence: secret` if
# it is not. Instead of the line above, for instance:
# secrets:
{alternatives}
# What is public about the data set anyway: size, {{marginal: [..]}}, {{count: ".."}}. It raises the noise.
known: []
"""

_DOMAIN_NOTE: Final = (
    "# The values that a person's record may have. Unexpected ones go to `otherwise`, or the row is dropped."
)
_UNREACHED: Final = "The data have {unreached} more columns. Declare those that somebody will ask about yourself."
_PERSON_NOTE: Final = """
# Each row counts as one person. If a person may own several rows, name the column that says whose row it is, and how
# many rows of one person count (more of them raise the noise):
"""
_SEVERAL_NOTE: Final = "In the sample {several} values of {name} stand in several rows, one in {most}."
_JOB: Final = """\
# A draft of a Tacit job, to be kept private like its policy. Before you run it:
{todo}
policy: {policy}
rows: {rows}
{way}budget: 1  # what all runs of this job may spend; with `ledger: ledger.db` it holds over several runs
releases:
{releases}
"""
_PER_RELEASE: Final = "{{name: {name}, query: {query}, epsilon: {epsilon}}}"
_MOST_RELEASES: Final = 3  # beside the count
_QUERIES: Final = {
    "categories": "histogram",
    "flag": "histogram",
    "dates": "histogram",
    "times": "histogram",
    "integers": "median",
}


@dataclass(frozen=True)
class DraftedLine:
    """A line of a draft to check, and its column.

    `column` is None if the name of the column may be a value, which must not be on the screen. `reason` says why a
    column is left out; it is empty for a line with values from the data.
    """

    number: int
    column: str | None
    reason: str = ""


@dataclass(frozen=True)
class PolicyDraft:
    """The text of a draft policy, and the lines to check. `columns_left` is the number of columns without a line.

    `way` says how the table is written, and `found` which of that was found in it. `questions` are for whoever knows
    the data.
    """

    text: str
    review: tuple[DraftedLine, ...]
    left_out: tuple[DraftedLine, ...]
    columns_left: int
    way: Written = field(default_factory=lambda: Written(None))
    found: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()

    def job(self, policy: str, rows: str) -> str:
        """Return the text of a draft job beside it; the arguments are paths as the job writes them."""
        lines = ", ".join(str(line.number) for line in self.review) or "none"
        check = [
            policy,
            "--rows",
            rows,
            *(word for key, value in self.way.keys.items() for word in (f"--{key}", value)),
        ]
        todo = [
            f"Review {policy}, lines {lines}: write what is possible, not what happens to occur.",
            *self.questions,
            "Choose what is asked, and how much of the budget each answer gets.",
            f"`tacit check {shlex.join(check)}` shows you which rows do not fit; `tacit plan` shows the errors.",
        ]
        noted = [line for number, item in enumerate(todo, 1) for line in _comment(f"  {number}. {item}")]
        marks = dict.fromkeys(self.found, f"  {REVIEW}")
        way = "".join(f"{line_of({key: value})}{marks.get(key, '')}\n" for key, value in self.way.keys.items())
        releases = "\n".join(f"  - {release}" for release in self.releases)
        named = {"policy": one_line(policy), "rows": one_line(rows), "way": way, "releases": releases}
        return _JOB.format(todo="\n".join(noted), **named)


@sealed
def draft_policy(path_or_frame: Any, *, rows_to_look_at: int = 10_000, has_header: bool = False) -> str:
    """Return the text of a draft policy file for a CSV or parquet file or a frame; it reads back as a policy.

    It reads a random sample of the rows. The first line of a CSV file must look like names, or `has_header` is true.
    """
    return draft(path_or_frame, rows_to_look_at=rows_to_look_at, has_header=has_header).text


@sealed
def draft(
    path_or_frame: Any,
    *,
    rows_to_look_at: int = 10_000,
    has_header: bool = False,
    description: Description | None = None,
) -> PolicyDraft:
    """Return the draft with the lines to check; a description says what is public about the columns."""
    told = written(path_or_frame)
    source, described = told.rows, {} if description is None else description.domain
    is_path = isinstance(source, str | Path)
    if description is not None:
        told = Written(source, **{**description.written.keys, **told.keys})
    if is_path and told.encoding == UTF_8:
        told = replace(told, encoding=encoding_of(Path(source)))
    sample = sample_of(source, rows_to_look_at, has_header=has_header, encoding=told.encoding)
    cells = [(name, plain(found)) for name, found in sample.columns]
    way = found_way(cells, told)
    columns = [(name, typed(found) if is_path else found) for name, found in plainly(cells, way)]
    file = "" if description is None else description.file
    drafts = [drafted(name, found, sample, described.get(name), file) for name, found in columns]
    stem = re.sub(r"[^\w-]+", "_", Path(source).stem) if is_path else "draft"
    lines = _TITLE.format(rows=f"{rows_to_look_at:,}").splitlines()
    lines += write_yaml({"name": stem[:_LONGEST_STEM] or "draft"}).splitlines()
    if way.keys:
        said = ", ".join(line_of({key: value}) for key, value in way.keys.items())
        lines += _comment(f"The texts of this table are written in another way, which the job declares: {said}.")
    lines += ["", _DOMAIN_NOTE, "domain:"]
    review: list[DraftedLine] = []
    left_out: list[DraftedLine] = []
    for place, column in enumerate(drafts):
        shown = None if place in sample.unsure else _for_the_screen(column.name)
        if column.reason:
            left_out.append(DraftedLine(len(lines) + 1, shown, column.reason))
            how = f", person: {quoted(column.name)}" if column.kind == "person" else ""
            lines += (f"  {line}" for line in _comment(f"{_named(column.name)}: {column.reason}{how}"))
            continue
        for line in column.lines:
            lines.append(f"  {line}")
            if line.endswith(REVIEW):
                review.append(DraftedLine(len(lines), shown))
    unreached = sample.columns_in_all - len(drafts)
    if unreached:
        lines += (f"  {line}" for line in _comment(_UNREACHED.format(unreached=f"{unreached:,}")))
    lines += (f"  # {line}" for line in _map_of(drafts))
    if not any(column.is_attribute for column in drafts):
        lines += ["  # No column can be declared as it is. Replace this line:", "  replace_me: flag"]
    text = "\n".join(lines) + "\n" + _AFTER.format(alternatives=_alternatives(drafts)) + _PERSON_NOTE
    people = sorted((one for one in drafts if one.kind == "person"), key=lambda one: -one.several)
    questions: list[str] = []
    if people and people[0].several:
        owner = people[0]
        seen = {"several": f"{owner.several:,}", "name": _named(owner.name), "most": f"{owner.most:,}"}
        note = f"{_SEVERAL_NOTE.format(**seen)} {REVIEW.removeprefix('# ')}"
        text += "".join(f"{line}\n" for line in _comment(note))
        if _for_the_screen(owner.name) is not None and drafts.index(owner) not in sample.unsure:
            questions.append(
                f"May one person own several rows, and does {_named(owner.name)} say whose row it is? Its values "
                "repeat. If so, write `person` and `per_person` at the end of the policy; else each row is protected "
                "by itself."
            )
    name = people[0].name if people else "patient_id"
    text += f"# {line_of({'person': name})}\n# per_person: 1\n"
    found = tuple(key for key, value in way.keys.items() if written(path_or_frame).keys.get(key) != value)
    if description is not None:
        found = tuple(key for key in found if description.written.keys.get(key) != way.keys[key])
    return PolicyDraft(
        text, tuple(review), tuple(left_out), unreached, way, found, tuple(questions), tuple(_releases(drafts))
    )


def _releases(drafts: Sequence[DraftColumn]) -> list[str]:
    """Return a count of everybody, and questions about the first attributes."""
    asked = [column for column in drafts if column.is_attribute and column.kind in _QUERIES][:_MOST_RELEASES]
    lines = [_PER_RELEASE.format(name="everybody", query="count", epsilon="0.1")]
    for number, column in enumerate(asked, 1):
        query = f"{{{line_of({_QUERIES[column.kind]: column.name})}}}"
        lines.append(_PER_RELEASE.format(name=f"question {number}", query=query, epsilon="0.3"))
    return lines


def _for_the_screen(name: Any) -> str | None:
    """Return the name of a column, or None if it may be a value."""
    return None if not isinstance(name, str) or looks_like_a_value(name) else name


def _named(name: Any) -> str:
    """Return the name of a column for a comment: in quotes, and shortened."""
    text = str(name)
    return quoted(text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}..")


def _map_of(columns: list[DraftColumn]) -> list[str]:
    """Suggest a grid if two columns of decimals have names of coordinates."""
    fractions = [column.name for column in columns if column.kind == "decimals"]
    rows = [name for name in fractions if re.match(r"(?i)lat", name)]
    across = [name for name in fractions if re.match(r"(?i)(lon|lng)", name)]
    if not rows or not across:
        return []
    of = f"of: [{quoted(rows[0])}, {quoted(across[0])}]"
    return [
        "Coordinates can be cells of a map instead; write the corners of the area that you serve:",
        f"place: {{grid: {{rows: 100, columns: 100, {of}, low: [-90, -180], high: [90, 180], otherwise: {CLIP}}}}}",
        f"({CLIP_NOTE.removeprefix('# ')})",
    ]


def _alternatives(columns: list[DraftColumn]) -> str:
    """Return commented examples of weaker secrets with the columns of the draft."""
    by_kind = {column.kind: column.name for column in reversed(columns) if column.is_attribute}
    numbers, texts = by_kind.get("integers"), by_kind.get("categories")
    some = texts if texts is not None else next(iter(by_kind.values()), "replace_me")
    examples: list[tuple[dict[str, Any], str]] = [
        ({"attributes": [some]}, "one attribute at a time, the others may be released exactly")
    ]
    if numbers is not None:
        examples += [
            ({"within": {"theta": 5, "attributes": [numbers]}}, "the rough value stays public"),
            ({"partition": {"attribute": numbers, "width": 10}}, "the block stays public"),
        ]
    if texts is not None:
        examples.append(
            ({"values": {texts: ["a category"]}}, "this value looks like any other; the others are not secret")
        )
    examples.append(({"records": ".. < .."}, "everything about these people, nothing about the others"))
    return "\n".join(f"#   - {line_of(entry)}  # {meaning}" for entry, meaning in examples)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, 110, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
    )
