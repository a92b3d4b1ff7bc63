"""The sampled audit on mechanisms of every form: what they return, how they fail, and what is refused."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tacit as tc
from tacit import noise
from tacit.audit import Verdict, assert_no_leak, sampled
from tacit.audit.sampled_audits.draws import FIRST_LOOK, numbers_of
from tacit.audit.sampled_audits.events import find_events, lower_bound
from tacit.audit.sampled_audits.views import columns_of

KEY = b"tacit sampled audit, unit tests."
FEW = 2_000
FEWEST = 1_000  # that an audit takes
LEAK, NONE = Verdict.LEAK_FOUND, Verdict.NONE_FOUND


@pytest.fixture(autouse=True)
def _replay():
    with noise.replayed(noise.Keystream(key=KEY)):
        yield


def verdict(release, hidden=0, cover=1, epsilon=1, samples=FEW, **more):
    return sampled(release, hidden, cover, epsilon, samples, **more).verdict


def laplace(count, size):
    return count + tc.noise.discrete_laplace(1, size)


# --- forms of output


def shows(form):
    """Return a mechanism that shows its data in this form, and one that shows noise only."""

    def broken(count, size):
        return form(count + 3 * tc.noise.bernoulli("1/8", size))

    def right(count, size):
        return form(0 * count + 3 * tc.noise.bernoulli("1/8", size))

    return broken, right


FORMS = {
    "whole numbers": lambda counts: counts,
    "a list": lambda counts: counts.tolist(),
    "a tuple": lambda counts: tuple(counts.tolist()),
    "fractions of numbers": lambda counts: counts / 7,
    "one column": lambda counts: counts[:, None],
    "many columns": lambda counts: np.stack([0 * counts, counts, 5 + 0 * counts], axis=1),
    "tables": lambda counts: np.stack([counts, counts, 0 * counts, counts], axis=1).reshape(-1, 2, 2),
    "small numbers": lambda counts: counts.astype(np.int8),
    "numbers without sign": lambda counts: counts.astype(np.uint64) + np.uint64(2**63),
    "half floats": lambda counts: counts.astype(np.float16),
    "huge numbers": lambda counts: counts + 2**62,
    "huge numbers of Python": lambda counts: [2**80 + int(count) for count in counts],
    "both ends of int64": lambda counts: np.where(counts % 2, 2**63 - 1, -(2**63)),
    "booleans": lambda counts: counts % 2 == 0,
    "complex numbers": lambda counts: 1j * counts,
    "dates": lambda counts: np.datetime64("2020-01-01") + counts.astype("timedelta64[D]"),
    "texts": lambda counts: np.array([f"seen {count} times" for count in counts]),
    "bytes": lambda counts: np.array([b"seen %d times" % count for count in counts]),
    "objects": lambda counts: np.array([{"count": int(count)} for count in counts]),
    "names or nothing": lambda counts: [None if count % 3 else "Ann" for count in counts],
    "rows of different lengths": lambda counts: [[1] * int(count) for count in counts],
    "rows of names": lambda counts: [["Ann", "Bob"][: 1 + int(count) % 2] for count in counts],
    "infinity": lambda counts: np.where(counts % 2, math.inf, -math.inf),
    "not a number": lambda counts: np.where(counts % 2, math.nan, 1.0),
    "not a number among others": lambda counts: np.stack([np.where(counts % 2, math.nan, 1.0), 1.0 * counts], axis=1),
    "nothing but not a number": lambda counts: np.stack([np.full(len(counts), math.nan), 1.0 * counts], axis=1),
}


@pytest.mark.one_in(16)
@pytest.mark.parametrize("form", FORMS)
def test_a_leak_shows_in_every_form_of_output(form):
    broken, right = shows(FORMS[form])
    found = sampled(broken, 0, 1, 1, FEW)
    assert found.verdict == LEAK, str(found)
    assert math.isfinite(found.lower_bound)
    assert found.witness.event
    assert verdict(right) == NONE


@pytest.mark.parametrize(
    "output",
    [lambda n: np.zeros(n, int), lambda n: np.full(n, math.nan), lambda n: ["same"] * n, lambda n: np.zeros((n, 0))],
    ids=["zeros", "not a number", "texts", "empty rows"],
)
def test_constant_outputs_show_nothing(output):
    found = sampled(lambda data, size: output(size), 0, 1, 1, FEW)
    assert (found.verdict, found.lower_bound) == (NONE, 0)


def test_a_shape_that_depends_on_the_data_is_a_leak():
    """Even if no output ever comes twice."""

    def release(columns, size):
        return tc.noise.uniform_below(2**50, (size, columns)) / 2**50

    found = sampled(release, 3, 2, 1, FEW)
    assert found.verdict == LEAK
    assert found.witness.event == "form of the output = array <f8 (3,) [#, #, #]"
    assert verdict(release, 3, 3) == NONE


def test_a_length_that_depends_on_the_data_rarely_is_found_in_time():
    """The first outputs look alike; one in fifty of `hidden` has another length."""

    def release(rare, size):
        longer = tc.noise.bernoulli("1/50", size).astype(bool) & rare
        return [[0.5, 0.25] if more else [0.5] for more in longer]

    found = sampled(release, True, False, 1, 40_000)
    assert found.verdict == LEAK
    assert found.witness.cover == 0
    assert 0.015 < found.witness.hidden / found.witness.samples < 0.025


# Each shows something but its value that a reader sees: at `hidden` the first, at `cover` the second.
SEEN = {
    "kinds of arrays": (lambda n: n.astype(np.int64), lambda n: n.astype(np.float64)),
    "sizes of whole numbers": (lambda n: n.astype(np.int32), lambda n: n.astype(np.int64)),
    "order of bytes": (lambda n: n.astype("<i4"), lambda n: n.astype(">i4")),
    "numbers in a list": (lambda n: n.tolist(), lambda n: [float(one) for one in n]),
    "yes and one": (lambda n: [bool(one % 2) for one in n], lambda n: [int(one % 2) for one in n]),
    "numbers in rows": (lambda n: [[int(one), 1] for one in n], lambda n: [[int(one), 1.0] for one in n]),
    "tuples and lists": (lambda n: [(int(one),) for one in n], lambda n: [[int(one)] for one in n]),
    "containers": (lambda n: n.tolist(), lambda n: tuple(n.tolist())),
    "signs of zero": (lambda n: np.where(n % 2, 0.0, 1.0), lambda n: np.where(n % 2, -0.0, 1.0)),
    "signs of zero in a list": (lambda n: [0.0, None] * (len(n) // 2), lambda n: [-0.0, None] * (len(n) // 2)),
    "a trailing NUL": (lambda n: [f"{one}" for one in n], lambda n: [f"{one}\0" for one in n]),
    "texts and bytes": (lambda n: [f"{one}" for one in n], lambda n: [f"{one}".encode() for one in n]),
    "what looks like an address": (lambda n: ["at 0x11"] * len(n), lambda n: ["at 0x12"] * len(n)),
    "units of time": (lambda n: n.astype("M8[D]"), lambda n: n.astype("M8[h]")),
    "masks": (lambda n: np.ma.array(n, mask=n % 2 == 0), lambda n: np.ma.array(n, mask=n % 2 == 1)),
    "below a mask": (lambda n: np.ma.array(0 * n + 3, mask=True), lambda n: np.ma.array(0 * n + 4, mask=True)),
    "digits of a long double": (
        lambda n: n.astype(np.longdouble),
        lambda n: n.astype(np.longdouble) + np.longdouble(2) ** -60,
    ),
    "names of columns": (lambda n: pd.DataFrame({"a": n}), lambda n: pd.DataFrame({"b": n})),
    "an index": (lambda n: pd.DataFrame({"a": n}, index=n), lambda n: pd.DataFrame({"a": n}, index=n + 100)),
    "the name of an index": (lambda n: pd.Series(n, index=pd.RangeIndex(len(n), name="x")), lambda n: pd.Series(n)),
    "names of polars": (lambda n: pl.DataFrame({"a": n}), lambda n: pl.DataFrame({"b": n})),
    "kinds of Arrow": (lambda n: pa.table({"a": n}), lambda n: pa.table({"a": n.astype(np.int32)})),
    "columns of small frames": (
        lambda n: [pd.DataFrame({"a": [one]}) for one in n],
        lambda n: [pd.DataFrame({"b": [one]}) for one in n],
    ),
    "far inside an array in a dict": (
        lambda n: [{"table": np.arange(1_100)} for _ in n],  # NumPy prints 1,000 in full
        lambda n: [{"table": np.arange(1_100) + (np.arange(1_100) == 550)} for _ in n],
    ),
    "order of a dict": (lambda n: [{"a": 1, "b": 2} for _ in n], lambda n: [{"b": 2, "a": 1} for _ in n]),
    "fields": (lambda n: [Point(int(one), 1) for one in n], lambda n: [Point(int(one), 2) for one in n]),
    "kinds of errors": (lambda n: [ValueError("no") for _ in n], lambda n: [KeyError("no") for _ in n]),
}
FEWER = 1_000  # some are drawn one at a time


@dataclass
class Point:
    x: int
    y: int

    def __repr__(self) -> str:
        return "a point"


@pytest.mark.one_in(16)
@pytest.mark.parametrize("shown", SEEN)
def test_what_a_reader_sees_is_an_output(shown):
    def broken(data, size):
        return SEEN[shown][data](tc.noise.uniform_below(6, size))

    def right(data, size):
        return SEEN[shown][0](tc.noise.uniform_below(6, size))

    found = sampled(broken, 0, 1, 1, FEWER)
    assert found.verdict == LEAK, str(found)
    found = sampled(right, 0, 1, 0.1, FEWER)
    assert (found.verdict, found.lower_bound) == (NONE, 0)


def test_a_kind_of_number_that_hangs_on_what_else_was_drawn_is_no_output():
    """One half among many whole numbers makes an array of doubles of all of them; alone each has its own kind."""

    def release(odds, size):
        drawn = tc.noise.bernoulli("1/2", size).tolist()
        rare = tc.noise.bernoulli(odds, size).tolist()
        return np.array([0.5 if odd else one for one, odd in zip(drawn, rare, strict=True)])

    for hidden, cover in (("1/100", "1/150"), ("1/150", "1/100")):
        found = sampled(release, hidden, cover, 1, FEW)
        assert found.verdict == NONE, str(found)
        assert found.lower_bound < math.log(1.5)

    def mixed(odds, size):
        return release(odds, size).tolist() if size == 1 else [release(odds, 1).tolist()[0] for _ in range(size)]

    assert verdict(mixed, "1/100", "1/150", samples=FEWEST) == NONE


def shuffled(letters, size):
    """Return so many orders of these letters, each as likely as any other."""
    orders = np.argsort(tc.noise.uniform_below(2**60, (size, len(letters))), axis=1)
    return [[letters[at] for at in order] for order in orders.tolist()]


def odd_ones(order):
    return sum(order[i] > order[j] for i in range(len(order)) for j in range(i + 1, len(order))) % 2


def swapped(order, *, when):
    return [order[1], order[0], *order[2:]] if when else order


def random_names(size):
    return [f"{one:016x}" for one in tc.noise.uniform_below(2**60, size).tolist()]


# outputs that never come twice, or hardly ever: `hidden` is 1 and `cover` is 0, or None for both
HIDDEN_IN_MANY = {
    "a suffix": lambda data, size: [f"{one}{'ab'[data or 0]}" for one in random_names(size)],
    "a prefix": lambda data, size: [f"{'ab'[data or 0]}{one}" for one in random_names(size)],
    "a length": lambda data, size: [one * (1 + (data or 0)) for one in random_names(size)],
    "the end of a name in a list": lambda data, size: [[one, f"{one}{'ab'[data or 0]}"] for one in random_names(size)],
    "two letters in order": lambda data, size: [
        "".join(ordered(one, data)) for one in shuffled("abcdefghijklmn", size)
    ],
    "two names in order": lambda data, size: [
        ordered(one, data) for one in shuffled(["a", "b", "cat", "dog", "elk", "fox", "gnu", "hen", "ibex"], size)
    ],
    "parity of an order": lambda data, size: [
        "".join(swapped(one, when=data is not None and odd_ones(one) != data)) for one in shuffled("abcdefghijkl", size)
    ],
    "parity of an order of numbers": lambda data, size: np.array(
        [swapped(one, when=data is not None and odd_ones(one) != data) for one in shuffled(range(12), size)]
    ),
    "a difference of two among many": lambda data, size: tied(tc.noise.discrete_laplace(9, (size, 12)), data),
    "parity of one large number": lambda data, size: 2 * tc.noise.uniform_below(2**50, size) + (data or 0),
    "one value, far too often": lambda data, size: often(tc.noise.uniform_below(2**50, size), data),
    "one row, far too often": lambda data, size: often(tc.noise.uniform_below(2**50, (size, 3)), data),
}


def ordered(order, data):
    """Return an order in which a stands before b, or after it."""
    if data is None or (order.index("a") < order.index("b")) == bool(data):
        return order
    return [{"a": "b", "b": "a"}.get(one, one) for one in order]


def tied(rows, data):
    rows[:, 9] = rows[:, 2] + (data or 0)
    return rows


def often(rows, data):
    rows[tc.noise.bernoulli("1/10", len(rows)).astype(bool)] = 7 + (data or 0)
    return rows


@pytest.mark.one_in(8)
@pytest.mark.parametrize("case", HIDDEN_IN_MANY)
def test_a_leak_is_found_where_hardly_an_output_comes_twice(case):
    found = sampled(HIDDEN_IN_MANY[case], 1, 0, 1, FEW)
    assert found.verdict == LEAK, str(found)
    assert verdict(HIDDEN_IN_MANY[case], None, None, 0.2) == NONE


def test_what_has_no_canonical_form_is_refused():
    for output in (lambda: 1, (one for one in ()), threading.Lock()):
        with pytest.raises(tc.PlanError, match="release must return what can be compared") as refusal:
            sampled(lambda data, size, output=output: [output] * size, 0, 1, 1, FEW)
        assert refusal.value.fix


def test_what_stays_beyond_so_many_samples_is_said():
    found = sampled(laplace, 0, 1, 1, 20_000)
    assert found.rarest == pytest.approx(1 / 115, rel=0.1)
    assert str(found).endswith(
        "An event that only hidden can show is beyond so many samples if fewer than about 1 in 110 outputs of hidden "
        "show it."
    )
    assert "private" not in str(found)
    assert sampled(laplace, 0, 1, 6, 1_000).beyond.startswith("So few samples find no leak at all")
    assert sampled(laplace, 0, 1, 3, 1_000).beyond == "So few samples find only what almost every output shows."


@pytest.mark.parametrize("often", [0.6, 2])
def test_an_event_is_found_from_about_that_probability_on(often):
    """Above the rarest it is found most of the time, and below it hardly ever."""
    rarest = sampled(laplace, 0, 1, 1, 20_000).rarest

    def release(data, size):
        return laplace(0, size) + 1000 * data * tc.noise.bernoulli(
            Fraction(often * rarest).limit_denominator(10**6), size
        )

    found = [sampled(release, 1, 0, 1, 20_000).verdict == LEAK for _ in range(10)]
    assert sum(found) >= 8 if often > 1 else sum(found) <= 2


def test_where_an_object_lies_in_memory_is_no_output():
    kept = []

    def release(data, size):
        kept.append([object() for _ in range(size)])  # never the same address twice
        return kept[-1]

    found = sampled(release, 0, 1, 1, FEW)
    assert (found.verdict, found.lower_bound) == (NONE, 0)


def test_frames_are_read_row_by_row():
    def release(data, size):
        return pd.DataFrame({"name": ["Ann" if data else "Bob"] * size, "count": laplace(0, size)})

    assert verdict(release, 0, 1) == LEAK
    assert verdict(release, 0, 0) == NONE
    assert verdict(lambda data, size: pd.Series(laplace(data, size)), 0, 3) == LEAK


def test_numbers_keep_their_values():
    assert numbers_of([1.0, 2.5]).tolist() == [1.0, 2.5]
    assert numbers_of(np.array([2**63 + 5, 7], dtype=np.uint64)).tolist() == [5 - 2**63, 7]
    assert numbers_of([True, False]).tolist() == [1, 0]
    assert numbers_of(np.array([1 + 2j])).tolist() == [[1.0, 2.0]]
    for other in (["a"], [[1], [1, 2]], [None], [], np.zeros((3, 0)), [2**80], [1, 2.5], [[1, 2.0]], [1, True]):
        assert numbers_of(other) is None


# --- mechanisms that raise


def raises(when, text="no"):
    def release(data, size):
        if when(data):
            raise ValueError(text.format(data))
        return laplace(0, size)

    return release


def test_raising_on_one_side_only_is_a_leak_in_both_directions():
    found = sampled(raises(lambda data: data == 0), 0, 1, 1, FEW)
    assert (found.verdict, found.witness.event) == (LEAK, "it raises")
    assert found.witness.samples == found.samples  # an event that no sample chose may use all of them
    found = sampled(raises(lambda data: data == 1), 0, 1, 1, FEW)
    assert found.verdict == LEAK
    assert found.witness.event in ("it does not raise", "form of the output = array <i8 (1,) [#]")


@pytest.mark.one_in(5)
@pytest.mark.parametrize("error", [tc.PlanError("must not"), tc.PolicyError("must not"), KeyError("no"), MemoryError()])
def test_whatever_is_raised_counts(error):
    """Also what the audit itself raises when it refuses something."""

    def release(data, size):
        if data == 0:
            raise error
        return laplace(0, size)

    assert sampled(release, 0, 1, 1, FEW).witness.event == "it raises"


def test_raising_with_different_texts_is_a_leak():
    always = raises(lambda data: True, "age {} is not plausible")
    found = sampled(always, 104, 99, 1, FEW)
    assert found.verdict == LEAK
    assert found.witness.event == "text of the output = raises ValueError('age 104 is not plausible')"


def test_very_long_texts_of_errors_are_told_apart():
    found = sampled(raises(lambda data: True, "x" * 10**5 + "{}"), 104, 99, 1, FEWEST)
    assert found.verdict == LEAK
    assert len(found.witness.event) < 200


def test_raising_whatever_the_data_is_is_refused_and_not_called_safe():
    with pytest.raises(tc.PlanError, match="must return outputs; it raises ValueError\\('no'\\), whichever data set"):
        sampled(raises(lambda data: True), 0, 1, 1, FEW)
    with pytest.raises(tc.PlanError, match=r"it raises TypeError.*positional argument.*release\(data, size\)"):
        sampled(lambda people: sum(people), [0], [1], 1, FEW)
    with pytest.raises(tc.PlanError, match="must return outputs"):
        assert_no_leak(lambda people, size, scale: 0, [0], [1], 1, FEW)


def test_raising_at_times_is_counted():
    def at_times(often):
        def release(data, size):
            if tc.noise.bernoulli(often[data], size).any():
                raise ValueError
            return laplace(0, size)

        return release

    found = sampled(at_times(["3/10", "1/10"]), 0, 1, 0.5, FEW)
    assert (found.verdict, found.witness.event) == (LEAK, "it raises")
    assert 0.5 < found.lower_bound < math.log(3)
    assert verdict(at_times(["3/10", "1/10"]), epsilon=1.2, samples=FEWEST) == NONE
    assert verdict(at_times(["1/10", "1/10"]), epsilon=0.3, samples=FEWEST) == NONE
    # so rarely that it happens in the middle of many draws at once, perhaps in the second half of them
    assert verdict(at_times(["1/3000", "1/3000"])) == NONE


def test_a_mechanism_that_raises_late_starts_over():
    """Alpha is shared by all starts; what was drawn before the exception is not used."""
    calls = []

    def release(data, size):
        calls.append(size)
        if len(calls) == 6:  # the last one of all
            raise ValueError
        return laplace(data, size)

    found = sampled(release, 0, 1, 1, FEW)
    assert found.verdict == NONE
    assert found.samples == FEW
    assert calls.count(1) >= 2 * FEW


# --- what is returned is not what was asked for


@pytest.mark.parametrize(
    ("outputs", "given"),
    [
        (5, "'int'"),
        (np.array(5), "'ndarray'"),
        ([1, 2, 3], "'list of 3'"),
        (np.zeros((3, 16)), "'ndarray of 3'"),
        ("x" * FIRST_LOOK, "'str of 16'"),
        (None, "'NoneType'"),
        ({"a": 1}, "'dict'"),
        ((count for count in range(16)), "'generator'"),
    ],
)
def test_a_wrong_number_of_outputs_is_refused(outputs, given):
    with pytest.raises(tc.PlanError, match="release must return 16 outputs, one along the first axis") as refusal:
        sampled(lambda data, size: outputs, 0, 1, 1, FEW)
    assert f"got {given}" in str(refusal.value)
    assert refusal.value.key == "release"


def test_a_wrong_number_of_outputs_is_no_leak_where_another_draw_raises():
    def release(data, size):
        if data == 0:
            raise ValueError
        return 5

    with pytest.raises(tc.PlanError, match="release must return 1 outputs"):
        sampled(release, 0, 1, 1, FEW)


@pytest.mark.parametrize("release", [5, None, "laplace", [laplace]])
def test_what_cannot_be_called_is_refused(release):
    with pytest.raises(tc.PlanError, match="release must be a function"):
        sampled(release, 0, 1, 1, FEW)


@pytest.mark.parametrize(
    ("key", "given"),
    [
        *(("samples", given) for given in (0, 999, -5, 1e6, "many", None, True, math.nan)),
        *(
            ("alpha", given)
            for given in (0, 1, -1e-6, 2, math.nan, math.inf, "small", None, True, 1e-200, Fraction(1, 9))
        ),
        *(("epsilon", given) for given in (0, -1, 1001, math.nan, math.inf, "much", None, True)),
        *(("workers", given) for given in (0, -1, 1.5, "2", True, None)),
    ],
)
def test_numbers_out_of_range_are_refused_with_key_and_fix(key, given):
    with pytest.raises(tc.PlanError) as refusal:
        sampled(laplace, 0, 1, **{"samples": FEW, key: given})
    assert refusal.value.key == key
    assert refusal.value.fix
    assert "must" in refusal.value.rule


def test_epsilon_is_what_was_written():
    for epsilon in (1, 0.5, "1/3", Fraction(1, 3), np.float64(0.25)):
        assert sampled(laplace, 0, 0, epsilon, FEW).epsilon == pytest.approx(float(Fraction(str(epsilon))))


# --- data sets and policies

FLAG = tc.Domain({"sick": tc.Flag()})
ONE_WAY = tc.Policy(FLAG, tc.secrets.values({"sick": [True]}))
SICK, WELL = {"sick": True}, {"sick": False}


def count(people, size):
    return sum(person["sick"] if isinstance(person, dict) else bool(person) for person in people) + tc.noise.geometric(
        1, size
    )


def test_along_an_edge_one_sided_noise_is_right_and_backward_it_is_not_asked_about():
    assert verdict(count, [SICK, WELL], [WELL, WELL], policy=ONE_WAY) == NONE
    with pytest.raises(tc.PolicyError, match=r"sick=False -> sick=True is none, only the way back is\. Swap the two"):
        sampled(count, [WELL, WELL], [SICK, WELL], 1, FEW, policy=ONE_WAY)
    assert verdict(count, [WELL, WELL], [SICK, WELL]) == LEAK  # without a policy whoever asks is answered


@pytest.mark.parametrize(
    ("hidden", "cover", "reason"),
    [
        ([SICK], [SICK], "must differ from `hidden` in one person"),
        ([SICK, SICK], [WELL, WELL], "in one person, not in 2. Keep the others as they are"),
        ([SICK], [SICK, WELL], "as many people as `hidden`, 1, since taking part is not secret in this policy; got 2"),
        ([SICK, SICK], [SICK], "as many people as `hidden`, 2, since"),
        ([{"sick": "perhaps"}], [WELL], "perhaps"),
        ([{"age": 5}], [WELL], "age"),
        (SICK, [WELL], "hidden must be a list of records where a policy is given"),
        (5, 6, "hidden must be a list of records where a policy is given"),
        ([SICK], "sick", "cover must be a list of records where a policy is given"),
    ],
)
def test_a_pair_that_is_no_edge_is_refused_with_the_reason(hidden, cover, reason):
    calls = []
    with pytest.raises(tc.PolicyError) as refusal:
        sampled(lambda *asked: calls.append(asked), hidden, cover, 1, FEW, policy=ONE_WAY)
    assert reason in str(refusal.value)
    assert calls == []


def test_with_secret_presence_one_person_may_be_missing():
    policy = tc.Policy(FLAG, tc.secrets.values({"sick": [True]}), presence="secret")

    def size(people, draws):
        return len(people) + tc.noise.discrete_laplace(1, draws)

    for hidden, cover in (
        ([SICK, WELL, WELL], [WELL, WELL]),
        ([WELL, SICK], [WELL]),
        ([WELL], [WELL, SICK]),
        ([WELL], [tc.ABSENT]),
        ([SICK], [WELL]),
    ):
        assert verdict(size, hidden, cover, policy=policy) == NONE
    for hidden, cover, reason in (
        ([WELL, WELL, WELL], [WELL], "which has 3 people, in one person; got 1"),
        ([SICK, WELL, WELL], [WELL, SICK], "in one person, not in 2"),
        ([WELL, WELL], [WELL, SICK], "only the way back is. Swap"),
    ):
        with pytest.raises(tc.PolicyError, match=reason):
            sampled(size, hidden, cover, 1, FEW, policy=policy)


def test_with_knowledge_others_move_as_well_but_no_more_than_needed():
    domain = tc.Domain({"x": tc.Integers(0, 3)})
    policy = tc.Policy(domain, tc.secrets.everything(), [tc.known.count("x < 2")])

    def first(people, size):
        return people.count(0) + tc.noise.discrete_laplace(2, size)

    assert verdict(first, [0, 3], [2, 1], policy=policy) == NONE  # one leaves x < 2, another enters
    assert verdict(first, [0, 3], [1, 3], policy=policy) == NONE  # nobody leaves it
    for hidden, cover, reason in (
        ([0, 3], [2, 3], "must agree with `hidden` on everything that is known. Let others restore it"),
        ([0, 3, 0, 3], [2, 1, 2, 1], "2 of the 4 moves already agree with everything that is known"),
        ([0, 3, 0], [2, 1, 1], "1 of the 3 moves already agree"),
        ([0] * 20, [1] * 20, "must not move more than 16 people"),
    ):
        with pytest.raises(tc.PolicyError, match=reason):
            sampled(first, hidden, cover, 1, FEW, policy=policy)


def test_somebody_with_several_rows_may_move_all_of_them():
    policy = tc.Policy(FLAG, tc.secrets.values({"sick": [True]}), person="id", per_person=2)

    def halved(people, size):
        return sum(person["sick"] for person in people) + tc.noise.geometric(2, size)

    assert verdict(halved, [SICK, SICK, SICK], [WELL, WELL, SICK], policy=policy) == NONE
    with pytest.raises(tc.PolicyError, match="in 2 rows of one person, not in 3"):
        sampled(halved, [SICK] * 3, [WELL] * 3, 1, FEW, policy=policy)
    with pytest.raises(tc.PolicyError, match="Swap the two"):
        sampled(halved, [SICK, WELL], [WELL, SICK], 1, FEW, policy=policy)


# --- the outcome


def test_the_outcome_says_what_was_found_and_never_that_something_is_private():
    leak, none = sampled(laplace, 0, 3, 1, 20_000), sampled(laplace, 0, 1, 1, 20_000)
    assert str(leak).startswith("LEAK_FOUND: the loss is at least 2.")
    assert "more than the claimed 1 (wrong with probability below 1e-06). output <= " in str(leak)
    assert str(none).startswith("NONE_FOUND at alpha 1e-06 with 20,000 samples a side: every epsilon below 0.")
    assert "the claimed 1 is not" in str(none)
    assert "private" not in str(leak) + str(none)
    assert set(Verdict) == {"LEAK_FOUND", "NONE_FOUND"}
    assert none.tightness == none.lower_bound / 1
    assert (none.samples, none.alpha, none.epsilon) == (20_000, 1e-6, 1.0)
    share = none.witness.hidden / none.witness.samples
    assert f"{share:.4%} of the outputs of hidden" in str(none.witness)


def test_an_event_was_never_chosen_by_the_samples_that_count_it():
    """Outputs that never come twice: on the samples that chose it, any event would look perfect."""

    def release(data, size):
        return tc.noise.uniform_below(2**60, size)

    found = sampled(release, 0, 1, 1, 20_000, alpha=0.5)
    assert found.verdict == NONE
    assert found.lower_bound < 0.1


def test_a_fixed_stream_gives_the_same_outcome_however_many_threads_are_allowed():
    outcomes = []
    for workers in (1, 2):
        with noise.replayed(noise.Keystream(key=KEY)):
            outcomes.append(sampled(laplace, 0, 1, 1, FEW, workers=workers))
    assert outcomes[0] == outcomes[1]


def test_one_worker_never_calls_from_two_threads():
    callers = set()

    def release(data, size):
        callers.add(threading.get_ident())
        return np.zeros(size)

    sampled(release, 0, 1, 1, FEW, workers=1)
    assert callers == {threading.get_ident()}


@pytest.mark.parametrize("samples", [1_000, 1_001, 300_001])
def test_progress_only_grows_and_ends_at_one(samples):
    seen = []
    found = sampled(laplace, 0, 1, 1, samples, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert 0 < seen[0] <= 1
    assert found.samples == samples


def test_progress_ends_at_one_also_after_starting_over():
    seen, calls = [], []

    def release(data, size):
        calls.append(size)
        if len(calls) > 4 and size > 1:
            raise ValueError
        return laplace(data, size)

    sampled(release, 0, 1, 1, FEW, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_a_test_in_three_lines():
    found = assert_no_leak(laplace, 5, 6, epsilon=1, samples=FEW)
    assert found.verdict == NONE
    with pytest.raises(AssertionError, match=r"LEAK_FOUND: the loss is at least .* more than the claimed 0\.5"):
        assert_no_leak(laplace, 5, 6, epsilon=0.5, samples=20_000)
    with pytest.raises(tc.PolicyError, match="Swap"):
        assert_no_leak(count, [WELL], [SICK], samples=FEW, policy=ONE_WAY)


def test_the_first_64_columns_are_not_the_only_ones_that_are_looked_at():
    def release(data, size):
        out = tc.noise.discrete_laplace(1, (size, 200))
        out[:, 170] += data
        return out

    found = sampled(release, 0, 2, 1, FEW)
    assert found.verdict == LEAK
    assert "output[170]" in found.witness.event or "classifier" in found.witness.event or "ratio" in found.witness.event


def test_a_leak_in_how_columns_hang_together_is_found():
    """Either number alone is a fair coin."""

    def release(data, size):
        first = tc.noise.bernoulli("1/2", size)
        other = tc.noise.bernoulli("9/10" if data else "1/10", size)
        return np.stack([first, first ^ other, tc.noise.bernoulli("1/2", size)], axis=1)

    assert verdict(release, 0, 1) == LEAK


def test_bounds_are_those_of_clopper_and_pearson():
    from scipy.stats import beta

    for a, b in ((30, 3), (1, 0), (1000, 1000), (0, 5), (1000, 0), (500, 499)):
        low = beta.ppf(0.005, a, 1000 - a + 1) if a else 0.0
        high = beta.ppf(0.995, b + 1, 1000 - b) if b < 1000 else 1.0
        expected = math.log(low) - math.log(high) if low else -math.inf
        assert float(lower_bound(a, b, 1000, 1000, 0.01)) == pytest.approx(expected)
    for alpha in (0.5, 1e-6, 1e-50, 1e-100):
        grid = np.arange(1001)
        bounds = lower_bound(grid[:, None], grid[None, :], 1000, 1000, alpha)
        assert not np.isnan(bounds).any()
        assert (np.diff(bounds[1:], axis=0) > 0).all()  # more at hidden says more, more at cover less
        assert (np.diff(bounds[1:], axis=1) <= 0).all()


def test_events_are_found_on_what_they_are_given_alone():
    hidden, cover = np.zeros(400, dtype=np.int64), np.ones(400, dtype=np.int64)
    best = find_events(hidden, cover, 0.01, 4)[0]
    assert best.holds(columns_of(hidden)).all()
    assert not best.holds(columns_of(cover)).any()
    assert best.words == "output <= 0"


MEMORY = """
import numpy as np, resource, tacit as tc
def release(data, size):
    return tc.noise.discrete_laplace(1, (size, 64)) {kind}
found = tc.audit.sampled(release, 0, 1, samples=10**6)
print(found.samples, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["", "* 0.1"])
def test_a_million_outputs_of_64_numbers_fit_into_two_gigabytes(kind):
    done = subprocess.run([sys.executable, "-c", MEMORY.format(kind=kind)], capture_output=True, text=True, check=True)
    samples, megabytes = map(int, done.stdout.split())
    assert samples == 10**6
    assert megabytes < 2_000
