"""The syntax of source texts, parsed and walked once for all tests that look at it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

RANDOM = ("random", "secrets", "numpy.random", "scipy.stats.sampling")
RANDOM_NAMES = ("urandom", "getrandom", "SystemRandom", "default_rng", "RandomState", "rvs")


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return every node of a module, outer ones first. Nobody changes them."""
    return tuple(ast.walk(ast.parse(text)))


@cache
def imports_of(text: str, *package: str) -> tuple[tuple[str, int], ...]:
    """Return what a module of a package imports, also inside functions and for type checkers, each with its line.

    `from tacit.plan import choose` gives `tacit.plan` and `tacit.plan.choose`.
    """
    return tuple(_imports_of(text, package))


def _imports_of(text: str, package: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for node in nodes_of(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            yield module, node.lineno
            for alias in node.names:
                yield f"{module}.{alias.name}", node.lineno


def randomness_in(text: str) -> list[str]:
    """Return where a module takes random numbers from anywhere but our own noise, with the lines."""
    found = [f"{line} imports {module}" for module, line in imports_of(text) if module in RANDOM]
    for node in nodes_of(text):
        if isinstance(node, ast.Attribute) and (
            node.attr in RANDOM_NAMES
            or (node.attr == "random" and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy"))
        ):
            found.append(f"{node.lineno} uses {node.attr}")
        if isinstance(node, ast.ImportFrom) and any(alias.name in RANDOM_NAMES for alias in node.names):
            found.append(f"{node.lineno} imports randomness")
    return found
