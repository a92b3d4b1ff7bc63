"""Draws of noise on a line: exact near ties, the same whatever is worked on at once, and for every shape of line."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from line_laws import drawn_rates, tables_of
from tacit import noise
from tacit.errors import PlanError
from tacit.noise.keystream import Keystream
from tacit.noise.line import draws as line_draws
from tacit.noise.line.draws import SplitDraws
from tacit.noise.line.law import LineNoise
from tacit.noise.line.messages import Message, joined, sharpened, smoothed, unit_message
from tacit.noise.line.tables import make_tables

F = Fraction
KEY = bytes(range(32))


def two_sided(rate, reach):
    return np.exp(-rate * np.abs(np.arange(-reach, reach + 1)))


def even(half):
    return np.concatenate([half[:0:-1], half])


def test_messages_are_convolutions():
    reach, rate = 3000, 0.2
    expected, found = two_sided(rate, reach), unit_message(rate)
    for by in (0.03, 0.0, 0.1):
        expected = np.convolve(expected, expected, "same") * two_sided(by, reach)
        expected /= expected.sum()
        found = sharpened(joined(found, found), by)
        half = found.table(200)
        np.testing.assert_allclose(half / half[0], expected[reach : reach + 201] / expected[reach], rtol=1e-13)


def test_messages_of_different_cells_join():
    one, reach = unit_message(0.2), 3000
    three, single = joined(joined(one, one), one), two_sided(0.2, reach)
    expected = np.convolve(np.convolve(single, single, "same"), single, "same")
    half = three.table(300)
    np.testing.assert_allclose(half / half[0], expected[reach : reach + 301] / expected[reach], rtol=1e-13)


def test_long_messages_are_shortened_within_a_rounding():
    full = Message(np.convolve(np.full(200, 0.005), 0.7 ** np.arange(400)), 0.01)
    short = sharpened(full, 0.02)
    assert len(short.weights) < len(full.weights)
    reach = int(400 / short.rate)
    expected = full.table(reach) * np.exp(-0.02 * np.arange(reach + 1))
    found = short.table(reach)
    # far out both end of the table and rounding are at work: 2^-53 times 400 for the powers alone
    np.testing.assert_allclose(found / found[0], expected / expected[0], rtol=1e-11)


@pytest.mark.parametrize(("rate", "reach"), [(0.3, 200), (0.01, 900), (4.0, 150), (0.0, 20)])
def test_smoothing_is_a_convolution_also_far_out(rate, reach):
    message = joined(unit_message(rate), unit_message(rate)) if rate else unit_message(0)
    function, kernel = two_sided(0.05, reach), even(message.table(2 * reach))
    expected = [
        np.dot(kernel[2 * reach + x - np.arange(-reach, reach + 1)], function) for x in range(-reach, reach + 1)
    ]
    np.testing.assert_allclose(smoothed(message, function), expected, rtol=1e-11)


@pytest.mark.parametrize("width", [1, 4])
def test_ties_are_settled_by_whole_numbers_with_the_same_result(width):
    table = np.exp(-0.05 * np.arange(300.0))
    wholes = np.arange(-40, 41, 2, dtype=np.int64)
    usual, wide = SplitDraws(table, table, width), SplitDraws(table, table, width, band=0.1)
    # with a wide band whole numbers decide for many, with further bits that hardly ever matter
    rows = usual.rows(wholes)[0]
    stream, asked = Keystream(key=KEY), []
    first, second = stream.words(np.uint64, wholes.size), stream.words(np.uint64, wholes.size)

    def more(which, kind):
        asked.append((which, kind))
        return 12345

    words = second if width > 1 else None
    expected = usual.propose(wholes, rows, first, words, more)
    assert asked == []
    found = wide.propose(wholes, rows, first, words, more)
    assert len({which for which, kind in asked if kind == 0}) > wholes.size / 20
    if width > 1:
        assert any(kind == 1 for _, kind in asked)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_further_bits_decide_where_the_first_ones_are_equal():
    table = np.array([1.0, 0.5])
    split = SplitDraws(table, np.ones(3), 1, band=0.5)
    # weights 1/4, 1/2, 1/4: the first 53 bits of a word that stands exactly at one quarter
    words = np.array([1 << 62], dtype=np.uint64)
    rows = split.rows(np.zeros(1, np.int64))[0]
    for bits, value in ((0, 0), ((1 << 200) - 1, 0)):
        assert split.propose(np.zeros(1, np.int64), rows, words, None, lambda *_, bits=bits: bits)[0][0] == value
    below = np.array([(1 << 62) - (1 << 11)], dtype=np.uint64)
    assert split.propose(np.zeros(1, np.int64), rows, below, None, lambda *_: (1 << 200) - 1)[0][0] == -1


def test_blocks_of_values_have_the_same_law_as_single_ones():
    table = np.exp(-0.02 * np.arange(900.0))
    wholes = np.full(200_000, 7, np.int64)
    found = [np.bincount(SplitDraws(table, table, width).draw(Keystream(key=KEY), wholes) + 900) for width in (1, 16)]
    size = min(len(one) for one in found)
    a, b = (one[:size] for one in found)
    used = a + b > 20
    chi = ((a - b)[used] ** 2 / (a + b)[used]).sum()
    assert abs(chi - used.sum()) < 6 * np.sqrt(2 * used.sum())


@pytest.mark.parametrize("epsilon", [F(2), F(1, 30)])
def test_pieces_meet_and_give_what_one_pass_gives(epsilon, monkeypatch):
    law = LineNoise((700,), 1, epsilon * F(2, 50), (epsilon * F(3, 10),), None)
    tables = tables_of(law)
    chain = tables.chains[700]
    assert chain.steady is not None
    found = []
    for shortest in (16, 10_000):
        monkeypatch.setattr(line_draws, "_SHORTEST", shortest)
        found.append(line_draws.draw_segments(tables, chain, Keystream(key=KEY), 3))
    np.testing.assert_array_equal(found[0][:, : chain.near], found[1][:, : chain.near])
    assert np.abs(found[0]).max() > 0


@pytest.mark.parametrize(
    "law",
    [
        LineNoise((1,), 1, F(1), (F(1),), None),
        LineNoise((1,), 4, F(1), (F(1), F(0), F(1)), F(1)),
        LineNoise((5,), 16, F(0), (F(0), F(1), F(0), F(1), F(1)), None),
        LineNoise((5, 5, 3, 5), 2, F(1), (F(1), F(1)), None),
        LineNoise((40,), 4, F(0), (F(1), F(0), F(1)), None),
        LineNoise((40, 7), 4, F(1, 9), (F(1), F(0), F(1)), F(1, 7)),
        LineNoise((50,), 1, F(1, 3), (F(0),), None),
    ],
    ids=repr,
)
def test_every_shape_of_line_is_drawn(law):
    with noise.replayed(Keystream(key=KEY)):
        one, many = law.draw(), law.draw_for((2, 3, sum(law.segments)))
    assert one.shape == (sum(law.segments),)
    assert many.shape == (2, 3, sum(law.segments))
    exact = np.cumsum(law.segments) - 1
    if law.end_rate is not None:
        exact = exact[:-1]
    assert not many[..., exact].any()
    assert np.isfinite(law.joint_log_pmf(one))
    assert noise.sample(law, 2).shape == (2, sum(law.segments))


def test_equal_segments_share_tables():
    law = LineNoise((5, 5, 3, 5), 2, F(1), (F(1), F(1)), None)
    assert set(tables_of(law).chains) == {3, 5}


def test_rounding_that_costs_too_much_is_refused():
    tiny = F(1, 10**9)
    law = LineNoise((4,), 2, tiny, (tiny, tiny), None)
    with pytest.raises(PlanError, match=r"rounding|too large"):
        law.draw()


def test_a_table_too_large_is_refused():
    law = LineNoise((4_000_000,), 1, F(0), (F(1, 100),), None)
    with pytest.raises(PlanError, match=r"rounding|too large"):
        law.draw()


def test_the_wrong_shape_is_refused():
    with pytest.raises(PlanError, match="running counts"):
        LineNoise((4,), 1, F(1), (F(1),), None).draw_for((3,))


def test_tables_have_no_numbers_that_lost_digits():
    law = LineNoise((300,), 64, F(1, 50), (F(1, 8), *[F(1, 20)] * 5, F(1, 4)), None)
    tables = make_tables(law.segments, drawn_rates(law))
    assert tables.halves[-1].columns > 2
    with pytest.raises(PlanError, match="too far"):
        SplitDraws(np.array([1.0, exp(-720)]), np.ones(3), 1)


STEEP = [
    LineNoise((200,), 2, F(2727, 3500), (F(909, 875), F(2727, 1750)), F(909, 1750)),
    LineNoise((9,), 4, F(10701, 500), (F(10701, 1000), F(3567, 200), F(3567, 500)), F(3567, 500)),
    *(LineNoise((9,), 1, F(rate), (F(0),), None) for rate in (100, 299, 350, 700, 800, 1000)),
    *(LineNoise((9,), 16, F(0), (F(rate),) * 5, end) for rate in (8, 50, 200, 1000) for end in (None, F(rate))),
    LineNoise((9,), 2, F(100), (F(0), F(100)), None),
]


@pytest.mark.parametrize("law", STEEP, ids=repr)
def test_what_can_be_drawn_is_known_before(law):
    if law.is_drawable():
        assert law.draw().shape == (sum(law.segments),)
    else:
        with pytest.raises(PlanError):
            law.draw()


@pytest.mark.parametrize("law", STEEP, ids=repr)
def test_no_table_ends_where_noise_still_is(law):
    # noise that is always zero, since doubles end at exp(-745), would hide nothing
    if law.is_drawable():
        for chain in tables_of(law).chains.values():
            assert all(2 * table[-1] <= 2.0**-150 * table.sum() for table in chain.messages)


def test_some_steep_noise_can_be_drawn_and_some_cannot():
    assert {law.is_drawable() for law in STEEP} == {True, False}


def test_no_single_law():
    law = LineNoise((4,), 1, F(1), (F(1),), None)
    for ask in (law.pmf, law.cdf, law.survival, law.quantile):
        with pytest.raises(TypeError, match="run_variance"):
            ask(0)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("reach", [1, 100, 1022, 1023, 1185, 5000, 10**6])
@pytest.mark.parametrize("width", [1, 8])
def test_weights_of_numbers_that_are_drawn_in_a_row_are_one_part(reach, width):
    wide = line_draws.width_of_one_part(reach, width)
    assert wide >= width
    split = SplitDraws(np.full(reach + 1, 0.5), np.full(reach + 1, 0.5), wide)
    assert len(split.rows(np.arange(-reach, reach + 1, dtype=np.int64))) == 1
