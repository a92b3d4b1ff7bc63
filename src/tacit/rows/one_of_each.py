"""One row of each set: of rows that agree in a column, such as a household, one is picked by a fair coin.

Guarantee   Of every set one row is left, each of its rows with the same chance, independent of all other sets. Rows
            that miss the column are left out.
Assumes     The keystream (`noise/keystream.py`). The column is public: who belongs to which set is no secret.
Why         A uniform number below the size of the set says which row it is. It looks at no cell but that of the column,
            so who is picked depends on nobody's values. Rows with the same cells were counted before, by the engine:
            which of them is picked makes no difference.
Checked by  tests/unit/test_one_of_each.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from tacit.noise.draws import uniform_upto
from tacit.noise.keystream import current_stream


def one_of_each(lines: pa.Table, key: str, counted: str) -> pa.Table:
    """Return one row of each set, of lines that say how many rows they stand for; `key` says which set it is."""
    column = lines.column(key)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    there = np.flatnonzero(pc.is_valid(column).to_numpy())
    sets = pa.chunked_array(column).combine_chunks().dictionary_encode().indices.fill_null(0).to_numpy()[there]
    order = there[np.argsort(sets, kind="stable")]
    upto = np.cumsum(np.asarray(lines.column(counted).to_numpy(), np.int64)[order])
    last = np.flatnonzero(np.append(np.diff(np.sort(sets)), 1)) if len(sets) else np.zeros(0, np.int64)
    ends = upto[last]
    starts = np.concatenate([[0], ends])[: len(ends)]
    number = uniform_upto(current_stream(), (ends - starts).astype(np.uint64), wide=True)
    picked = lines.take(pa.array(order[np.searchsorted(upto, starts + number, "right")]))
    at = picked.column_names.index(counted)
    return picked.set_column(at, counted, pa.array(np.ones(picked.num_rows, np.int64)))
