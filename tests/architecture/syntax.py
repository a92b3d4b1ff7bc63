"""The syntax of source texts, parsed and walked once for all tests that look at it."""

from __future__ import annotations

import ast
from functools import cache


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return every node of a module, outer ones first. Nobody changes them."""
    return tuple(ast.walk(ast.parse(text)))
