"""One row of each set: of rows that agree in a column, such as a household, one is picked by a fair coin.

Guarantee   Of every set one row is left, each of its rows with the same chance, independent of all other sets. Rows
            that are in no set are left out.
Assumes     The keystream (`noise/keystream.py`). The column is public: who belongs to which set is no secret.
Why         A uniform number below the size of the set says which row it is. It looks at no cell but that of the column,
            so who is picked depends on nobody's values. Rows with the same cells were counted before, by the engine:
            which of them is picked makes no difference.
Checked by  tests/unit/rows/test_one_of_each.py.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Ints
from tacit.noise.draws import uniform_upto
from tacit.noise.keystream import current_stream


def one_of_each(sets: Ints, counts: Ints) -> Ints:
    """Return which lines have the row that was picked of each set; `sets` is -1 for lines that have none.

    A line stands for as many rows as are counted.
    """
    order = np.argsort(sets, kind="stable")
    order = order[np.searchsorted(sets[order], 0) :]
    upto = np.cumsum(counts[order])
    ends = upto[np.flatnonzero(np.diff(sets[order], append=-1))]
    starts = np.concatenate([[0], ends])[: len(ends)]
    number = uniform_upto(current_stream(), (ends - starts).astype(np.uint64), wide=True)
    return np.asarray(order[np.searchsorted(upto, starts + number, "right")])
