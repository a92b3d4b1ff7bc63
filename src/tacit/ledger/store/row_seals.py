"""One seal over all rows of a ledger that are no entries: a tree of hashes whose root the head row seals.

Guarantee   A row that `Page.rows` returns, or says not to be there, is as the last transaction left it: a row that was
            changed, taken out, put in, exchanged or put back from an earlier time does not fit, and is refused before
            anything rests on it. `whole` finds every such row of every table, and everything in the tree that does not
            belong there.
Assumes     As `ledger/store/chain.py`: with a key nobody else can make a seal; without one, whoever recomputes all
            hashes up to the head row is not noticed.
Why         The place of a row is the hash of its table and key. Rows whose places begin alike are under one node, nodes
            likewise, and each node's seal covers what is under it with its places, so that the root covers all rows:
            what is there and what is not. The head row seals the root together with the last entry. So whatever fits
            is what the whole ledger was at one moment: an old row beside a newer head does not fit. A charge reads the
            nodes above the rows that it looks at, at most 16 children each, and not the other rows.
Limits      An old copy of the whole ledger is a good ledger.
Reference   Merkle, A digital signature based on a conventional encryption function, CRYPTO 1987.
Checked by  tests/unit/ledger/test_ledger_sealed.py, tests/contract/test_ledger_backends.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import Table

from tacit.ledger.store.chain import Seal, Stored

DEPTH: Final = 3  # nodes above a row, without the root: 4,096 of them hold rows

Key = tuple[Any, ...]
Tree = dict[str, dict[str, str]]
"""The seals under each node, by their places. The root is ""; a node without anything under it is not there."""


def key_of(table: Table, row: Stored) -> Key:
    """Return the key of a row."""
    return tuple(row[column.name] for column in table.primary_key)


def place_of(table: Table, key: Key) -> str:
    """Return where a row hangs in the tree, whether it is there or not."""
    text = json.dumps([table.name, *key], separators=(",", ":"), ensure_ascii=True, default=repr)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def nodes_above(place: str) -> list[str]:
    """Return the nodes above a place, the root first."""
    return [place[:length] for length in range(DEPTH + 1)]


def row_seal(table: Table, row: Stored, seal: Seal) -> str:
    """Return the seal of a row."""
    fields = {column.name: row[column.name] for column in table.columns}
    return seal.of({"ledger": "row", "table": table.name, "row": fields})


def node_seal(under: Mapping[str, str], seal: Seal) -> str:
    """Return the seal of a node, from what is under it."""
    return seal.of({"ledger": "rows", "under": dict(under)})


def whole(places: Mapping[str, str], seal: Seal) -> Tree:
    """Return the tree over rows, from the seal of each by its place."""
    tree: Tree = {"": {}}
    for place, one in places.items():
        tree.setdefault(place[:DEPTH], {})[place] = one
    grown(tree, [node for node in tree if node], seal)
    return tree


def listed(tree: Tree) -> list[dict[str, str]]:
    """Return a tree as a ledger keeps it."""
    return [{"place": place, "under": node, "seal": one} for node in tree for place, one in tree[node].items()]


def grown(tree: Tree, nodes: Iterable[str], seal: Seal) -> dict[str, str | None]:
    """Seal nodes that rows hang under anew, and all above them; return what each is now, None if it is gone."""
    changed: dict[str, str | None] = {}
    level = sorted(nodes)
    while level:
        for node in level:
            above = tree.setdefault(node[:-1], {})
            if tree[node]:
                changed[node] = above[node] = node_seal(tree[node], seal)
            else:
                changed[node] = None
                above.pop(node, None)
        level = sorted({node[:-1] for node in level} - {""})
    return changed
