"""Values within one block of an attribute."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final

from tacit.errors import PolicyError
from tacit.policy.attributes.attribute import Value
from tacit.policy.domain import Domain, Record, canonical
from tacit.policy.edges.intervals import Intervals
from tacit.policy.edges.relations import Blocks, FromTo
from tacit.policy.edges.shapes import EdgeShape
from tacit.policy.keys import PART, Key, Keys, Row, Schema, together
from tacit.policy.secrets.family import (
    ExamplePair,
    Fields,
    PolicyContext,
    Promise,
    Secrets,
    changed,
    read_names,
    read_value,
)
from tacit.policy.yaml_entries import YamlEntry

_POSITIVE: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
_VALUES: Final[Schema] = {"type": "array", "items": PART}
_RANGE: Final[Schema] = {"type": "string", "pattern": r"^\s*-?[0-9][^\s]*\s*\.\."}
_NAME: Final = Key("attribute", {"type": "string"}, read=together, required=True)
_WIDTH: Final = Key(
    "width",
    {"anyOf": [_POSITIVE, {"type": "array", "items": _POSITIVE, "minItems": 1, "maxItems": 2}]},
    read=together,
    required=True,
)
_BLOCKS: Final = Key(
    "blocks",
    {"type": "array", "minItems": 1, "items": {"anyOf": [_VALUES, _RANGE]}},
    "Lists of values, or ranges like 0..17.",
    read=together,
    required=True,
)


@dataclass(frozen=True)
class Partition(Secrets):
    """Values within one block of an attribute; either blocks of a width, or listed ones."""

    name: str
    width: tuple[int | Fraction, ...] | None = None
    blocks: tuple[tuple[Value, ...] | str, ...] | None = None
    keyword: ClassVar[str] = "partition"
    example: ClassVar[str] = "{partition: {attribute: age, width: 10}}"
    rows: ClassVar[tuple[Row, ...]] = (
        Row(
            "partition",
            "`partition: {attribute: age, width: 10}`",
            "values in one block of a width; which block it is stays public",
            Keys(_NAME, _WIDTH).schema(),
        ),
        Row(
            "",
            "`partition: {attribute: age, blocks: [0..17, 18..64]}`",
            "values in one listed block; which block it is stays public",
            Keys(_NAME, _BLOCKS).schema(),
        ),
    )

    def check(self, domain: Domain) -> None:
        attribute = domain.attribute(self.name, key="secrets.partition")
        key = f"secrets.partition.{self.name}"
        if (self.width is None) == (self.blocks is None):
            raise PolicyError("must have either width or blocks", key=key, fix="Give one of the two.")
        if attribute.is_set:
            raise PolicyError("must not be a set of items", key=key, fix="Use within to protect some of the items.")
        if self.width is not None:
            axes = domain.axes_of(self.name)
            if not all(axis.ordered for axis in axes):
                fix = "Write blocks=[[a, b], ..] (in a file: `blocks: [[a, b], ..]`)."
                raise PolicyError("must list blocks for unordered categories", key=key, fix=fix)
            widths = self.width * len(axes) if len(self.width) == 1 else self.width
            if len(widths) != len(axes):
                raise PolicyError(f"must have {len(axes)} widths", key=key, given=self.width, fix="One for each axis.")
            for axis, width in zip(axes, widths, strict=True):
                if not isinstance(width, int) and axis.spacing == int(axis.spacing):
                    fix = "Round it."
                    raise PolicyError("must be a whole number", key=f"{key}.width", given=_plain_width(width), fix=fix)
                is_number = isinstance(width, int | Fraction) and not isinstance(width, bool)
                if not is_number or width <= 0 or width % axis.spacing:
                    rule = f"must be a positive whole number of steps of {axis.spacing}"
                    raise PolicyError(rule, key=f"{key}.width", given=_plain_width(width), fix="Change the width.")
            return
        if len(domain.axes_of(self.name)) > 1:
            fix = "Write width=[rows, columns] (in a file: `width: [..]`)."
            raise PolicyError("must have a width on a grid", key=key, fix=fix)
        if not self.blocks:
            raise PolicyError("must list at least one block", key=f"{key}.blocks", given=[], fix="Write [[a, b], ..].")
        blocks = self.block_positions(domain)
        for block, found in zip(self.blocks, blocks, strict=True):
            if not found:
                given = block if isinstance(block, str) else list(block)
                raise PolicyError("must not have an empty block", key=f"{key}.blocks", given=given, fix="Remove it.")
        # what overlaps is counted once in the union
        together = Intervals.of(part for block in blocks for part in block)
        if together.count < sum(block.count for block in blocks):
            raise PolicyError("must not overlap", key=f"{key}.blocks", given=list(self.blocks or ()), fix="Fix it.")

    def block_positions(self, domain: Domain) -> list[Intervals]:
        """Return the positions of each listed block, or refuse."""
        attribute = domain[self.name]
        found = []
        for block in self.blocks or ():
            try:
                if isinstance(block, str):
                    low, high = attribute.read_range(block)
                    found.append(Intervals.of([(attribute.position(low), attribute.position(high))]))
                else:
                    found.append(Intervals.points(attribute.position(value) for value in block))
            except PolicyError as refusal:
                raise refusal.located(key=f"secrets.partition.{self.name}.blocks") from None
        return found

    def widths(self, domain: Domain) -> list[int]:
        """Return how many positions a block has on each axis."""
        axes = domain.axes_of(self.name)
        given = self.width or ()
        widths = given * len(axes) if len(given) == 1 else given
        return [int(width // axis.spacing) for axis, width in zip(axes, widths, strict=True)]

    def has_edge(self, domain: Domain, hidden: Record, cover: Record) -> bool:
        if changed(domain, hidden, cover) != [self.name]:
            return False
        attribute, place = domain[self.name], list(domain).index(self.name)
        a, b = (list(attribute.places(self.name, side[place]).values()) for side in (hidden, cover))
        if self.blocks is not None:
            return any(a[0] in block and b[0] in block for block in self.block_positions(domain))
        return all(x // w == y // w for x, y, w in zip(a, b, self.widths(domain), strict=True))

    def shapes(self, domain: Domain) -> list[EdgeShape]:
        """Return one shape for a width, one for each listed block."""
        axes = domain.axes_of(self.name)
        if self.blocks is not None:
            return [
                EdgeShape({axes[0].name: FromTo(block, block)})
                for block in self.block_positions(domain)
                if block.count > 1
            ]
        relations = {axis.name: Blocks(width, axis.size) for axis, width in zip(axes, self.widths(domain), strict=True)}
        return [EdgeShape(relations)]

    def canonical(self, domain: Domain) -> Secrets:
        if self.blocks is None:
            return self
        attribute = domain[self.name]
        blocks = tuple(
            block if isinstance(block, str) else tuple(canonical(attribute, value, key=self.name) for value in block)
            for block in self.blocks
        )
        return Partition(self.name, None, blocks)

    def without_attributes(self, names: frozenset[str], domain: Domain) -> Secrets | None:
        return None if self.name in names else self

    def document(self) -> Any:
        document: dict[str, Any] = {"attribute": self.name}
        if self.width is not None:
            widths = [_plain_width(width) for width in self.width]
            document["width"] = widths[0] if len(widths) == 1 else widths
        if self.blocks is not None:
            document["blocks"] = [block if isinstance(block, str) else list(block) for block in self.blocks]
        return {self.keyword: document}

    @classmethod
    def read(cls, entry: YamlEntry, domain: Domain) -> Secrets:
        if not entry.is_mapping:
            name = str(entry.node.value) if not entry.is_list else "age"
            fix = f"Write partition: {{attribute: {name}, width: 10}}, or blocks: [[a, b], ..] instead of width."
            raise entry.refuse("must say how wide the blocks are, or list them", given=entry.plain(), fix=fix)
        entries = Keys(_NAME, replace(_WIDTH, required=False), replace(_BLOCKS, required=False)).entries(entry)
        if len({"width", "blocks"} & set(entries)) != 1:
            raise entry.refuse("must have either width or blocks", given=sorted(entries), fix="Give one of the two.")
        if entries["attribute"].is_list:
            raise entries["attribute"].refuse("must be one attribute", fix="Write one entry for each.")
        name = read_names(entries["attribute"], domain)[0]
        if "width" in entries:
            widths = [domain[name].read_width(width) for width in entries["width"].one_or_more()]
            return cls(name, tuple(exact_width(width) for width in widths))
        blocks = tuple(
            tuple(read_value(value, domain[name]) for value in block.listed()) if block.is_list else block.text()
            for block in entries["blocks"].listed()
        )
        return cls(name, None, blocks)

    def promise(self, domain: Domain) -> Promise:
        if self.width is not None:
            size = " x ".join(str(_plain_width(width)) for width in self.width)
            within = f"{self.name} within its block of width {size}"
        else:
            within = f"{self.name} within each of {len(self.blocks or ())} listed blocks"
        return Promise(f"{within}: which block it is", " stays public", " is protected at twice the epsilon only")

    def why_empty(self, domain: Domain) -> str:
        if self.width is None:
            single = all(not isinstance(block, str) and len(block) < 2 for block in self.blocks or ())
        else:
            axes = domain.axes_of(self.name)
            single = all(min(w, axis.size) < 2 for w, axis in zip(self.widths(domain), axes, strict=True))
        return f"every block of {self.name} has one value" if single else ""

    def warnings(self, domain: Domain, setting: PolicyContext) -> Iterator[str]:
        yield (
            f"`partition` leaves the block public: which block of {self.name} somebody is in may be released exactly."
            if setting.certain
            else f"`partition` protects {self.name} only within its block, not which block somebody is in."
        )
        if self.blocks is None:
            return
        attribute = domain[self.name]
        covered = Intervals.of([ends for block in self.block_positions(domain) for ends in block])
        outside = Intervals.full(attribute.size).without(covered)
        if outside.count:
            shown = attribute.words(attribute.value(outside.lowest))
            whole = f"{outside.count:,} values of {self.name}, for instance {shown}, are"
            if outside.count == 1:
                whole = f"the value {shown} of {self.name} is"
            yield f"`partition` protects listed blocks only: {whole} in no block and not protected by it."

    def candidates(self, domain: Domain, base: Fields) -> Iterator[ExamplePair]:
        name, attribute = self.name, domain[self.name]
        inside, outside = "in one block", "in different blocks"
        if self.blocks is not None:
            blocks = self.block_positions(domain)
            wide = [block for block in blocks if block.count > 1]
            for block in wide[:1]:
                low, high = attribute.value(block.lowest), attribute.value(block.highest)
                yield ExamplePair({**base, name: low}, {**base, name: high}, inside)
            if len(blocks) > 1:
                low, high = attribute.value(blocks[0].lowest), attribute.value(blocks[1].lowest)
                yield ExamplePair({**base, name: low}, {**base, name: high}, if_not=outside)
            return
        first, last, after = attribute.block(base[name], self.widths(domain))
        start = {**base, name: first}
        if last is not None and last != first:
            yield ExamplePair(start, {**start, name: last}, inside)
        if after is not None:
            yield ExamplePair(start, {**start, name: after}, if_not=outside)


def exact_width(width: Any) -> Any:
    """Return a width as it is written: 0.1 is a tenth."""
    if isinstance(width, float) and math.isfinite(width):
        width = Fraction(float.__repr__(width))
    return int(width) if isinstance(width, Fraction) and width.denominator == 1 else width


def _plain_width(width: Any) -> Any:
    return float(width) if isinstance(width, Fraction) else width
