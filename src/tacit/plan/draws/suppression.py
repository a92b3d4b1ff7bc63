"""Show columns of records as they are, where they are no secret and their coin is kept: one-sided randomised response.

Guarantee   For every secret edge hidden -> cover of one person and every set O of outputs,
            Pr[M(hidden) in O] <= exp(epsilon) * Pr[M(cover) in O], with the epsilon of the plan. Nothing is promised
            from cover to hidden: a record that is shown is none that is hidden.
Assumes     The rules of the plan (`plan/plans/visible_records.py`), and coins that are kept with probability 1 -
            exp(-plan.each), one for each rule and record, all independent.
Why         `plan/plans/visible_records.py` bounds the loss of one record by k times the epsilon of a coin, where k is
            how many rules
            go from hidden to shown along its edge, at most `plan.showing.together`; a person moves at most
            `plan.rows_each` records; and `plan.each` is epsilon over both. Coins are looked at for every record,
            whatever its mark, so that the time does not tell.
Reference   One-sided differential privacy, arXiv:1712.05888, section 4.
Checked by  tests/property/test_showing.py, tests/statistical/test_true_records.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.arrays import Bools
from tacit.plan.plans.visible_records import COIN, OPEN, Rule


def shown(rule: Rule, marks: npt.NDArray[np.uint8], coins: Callable[[int], Bools]) -> Bools:
    """Return which rows show the columns of a rule; `coins` returns so many of them, one for each row."""
    if not rule.tosses:
        return np.asarray(marks == OPEN)
    kept = coins(len(marks))
    return np.asarray((marks == OPEN) | ((marks == COIN) & kept))
