"""How much leakage can change when the dependence does.

Guarantee   If two dependences are at most `distance` apart in total variation, and releases are made by the same coins,
            then a mutual information between a target with `values` values and what is seen changes by at most
            `largest_change(distance, values)` nats.
Assumes     Total variation of the attributes that are involved; it is never larger than that of all attributes.
Why         Let (X, Y) be target and what is seen under one dependence, (X', Y') under the other. What is seen is made
            from attributes by the same coins, so the laws of (X, Y) and (X', Y') are at most d apart too, and can be
            coupled with Pr[E = 1] <= d, where E says that the pairs differ. Then
                H(X | Y) <= H(E) + H(X | Y, E) <= h(d) + (1 - d) H(X | Y, E = 0) + d log |X|
            and where E = 0 the pairs are equal: (1 - d) H(X' | Y', E = 0) <= H(X' | Y', E) <= H(X' | Y').
            So H(X | Y) <= H(X' | Y') + h(d) + d log |X|, and the same without Y and with the two exchanged. An
            information is H(X) - H(X | Y), so it changes by at most twice that; and it never exceeds log |X|.
            (h is the binary entropy. Where Pr[E = 1] < d, a coupling with exactly d can be had by letting equal
            pairs count as different now and then, so d itself may be used.)
Reference   Fannes' inequality, in its classical form.
Checked by  tests/unit/plan/test_leakage_plan.py.
"""

from __future__ import annotations

import math


def largest_change(distance: float, values: int) -> float:
    """Return how much one mutual information can change, in nats.

    >>> largest_change(0.0, 3), round(largest_change(0.01, 2), 4), round(largest_change(0.5, 2), 4)
    (0.0, 0.1259, 0.6931)
    """
    d = min(max(distance, 0.0), 1.0)
    entropy = 0.0 if d in (0.0, 1.0) else -d * math.log(d) - (1 - d) * math.log1p(-d)
    return min(math.log(max(values, 1)), 2 * (entropy + d * math.log(max(values, 1))))
