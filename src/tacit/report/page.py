"""What every page of ours has in common: one look, for screens and paper, without a network; and safe charts and texts.

A page is one HTML file. Every text that a user wrote is escaped by the templates; charts are taken apart and put
together again from a list of allowed elements, so that no name or category can become markup; and a page forbids
scripts and fetches of any kind to itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tacit.report.charts.chart_parts import BLUE, LINE
from tacit.report.shown_tables import ShownTable

_ELEMENTS: Final = frozenset(
    ["svg", "g", "path", "text", "tspan", "rect", "line", "circle", "defs", "clipPath", "linearGradient", "stop"]
)
_IN_BACKTICKS: Final = re.compile("`([^`]+)`")
_OWN_REFERENCE: Final = re.compile(r"url\(#([\w-]+)\)")


@dataclass(frozen=True)
class PlainSection:
    """A part of a page that is no report of a job: a heading, and what stands below it."""

    heading: str
    points: Sequence[str] = ()
    table: ShownTable | None = None
    charts: Sequence[Mapping[str, Any]] = ()  # the `name` of each and what is `drawn`
    warns: bool = False


def plain_page(title: str, about: str, sections: Sequence[PlainSection], *, marks: Sequence[str] = ()) -> str:
    """Return a page of these sections; `marks` are warnings above all of them."""
    return page("plain.html.j2", title=title, about=about, sections=sections, marks=marks)


def page(template: str, **said: Any) -> str:
    """Return a page from one of the templates of this folder."""
    from tacit import __version__

    return _environment().get_template(template).render(version=__version__, ink=LINE, blue=BLUE, **said)


@cache
def _environment() -> Environment:
    # a name that a template misspells is an error, not an empty place in a report
    found = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=PackageLoader("tacit", "report"),
    )
    found.filters["code"] = with_code
    return found


def with_code(text: str) -> Markup:
    """Escape a text first, then set what stands in backticks as code."""
    return Markup(_IN_BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped in this line


def inline(svg: str, prefix: str) -> Markup:
    """Return a chart as elements of the page: only drawing elements, and ids that no other chart has."""
    top = ElementTree.fromstring(svg)  # noqa: S314 - our own renderer's output, taken apart to be checked
    if len(top) and top[0].tag.endswith("rect") and top[0].get("fill") == "white":
        top.remove(top[0])  # the paper: here the page is the paper, light or dark
    for element in top.iter():
        element.tag = element.tag.rpartition("}")[2]
        if element.tag not in _ELEMENTS:
            raise ValueError(f"a chart must not have the element {element.tag}")
        for key, value in list(element.attrib.items()):
            if key.startswith("on") or key.endswith("href") or key.startswith("{"):
                del element.attrib[key]
            elif key == "id":
                element.set(key, f"{prefix}-{value}")
            else:
                element.set(key, _OWN_REFERENCE.sub(rf"url(#{prefix}-\1)", value))
    return Markup(ElementTree.tostring(top, encoding="unicode"))  # noqa: S704 - escaped by the serializer
