"""The samplers and their stream: shapes, refusals, exact thresholds, and that nothing is ever drawn twice."""

import copy
import multiprocessing
import os
import pickle
import sys
import threading
import warnings
from bisect import bisect_right
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tacit import noise
from tacit.errors import PlanError
from tacit.noise import keystream
from tacit.noise.cube import Cube
from tacit.noise.cube_radius import RejectedRadius, radius_sampler
from tacit.noise.draws import TabledDraws, two_scale_sampler
from tacit.noise.two_scale import TwoScale

F = Fraction
KEY = bytes(range(32))


def replay(key=KEY):
    return noise.replayed(noise.Keystream(key=key))


def as_words(rest):
    return [rest & (2**64 - 1), rest >> 64]  # bits() reads little end first


class Scripted(noise.Keystream):
    """Hands out the words that a test wrote down, and remembers how many bytes were asked for."""

    def __init__(self, *script):
        super().__init__(key=KEY)
        self.script, self.taken = list(script), 0

    def words(self, kind, count):
        self.taken += count * np.dtype(kind).itemsize
        return np.array(self.script.pop(0), dtype=kind) if self.script else super().words(kind, count)


# What comes back

DRAWS = {
    "laplace": lambda size: noise.discrete_laplace(3, size),
    "laplace-large": lambda size: noise.discrete_laplace(10**12, size),
    "geometric": lambda size: noise.geometric("1/2", size),
    "two-scale": lambda size: noise.two_scale(5, 900, size),
    "uniform": lambda size: noise.uniform_below(10, size),
    "sample": lambda size: noise.sample(TwoScale(F(2), F(0)), size),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_size_is_the_shape_and_no_size_is_one_number(draw):
    assert type(draw(None)) is int
    for size in (0, 1, 7, (2, 3), (), (4, 0), 40_000):
        drawn = draw(size)
        assert drawn.shape == (size if isinstance(size, tuple) else (size,))
        assert drawn.dtype == np.int64


@pytest.mark.parametrize("sides", ["right", "left", "both"])
@pytest.mark.parametrize(("scale", "d"), [(2, 1), (2, 5), (10**12, 3), ("0.01", 4), (5, 40_000)])
def test_a_cube_appends_its_axis_and_keeps_its_sides(scale, d, sides):
    assert noise.cube(scale, d, sides=sides).shape == (d,)
    drawn = noise.cube(scale, d, (2, 3), sides)
    assert drawn.shape == (2, 3, d)
    assert drawn.dtype == np.int64
    assert noise.cube(scale, d, 0, sides).shape == (0, d)
    assert noise.sample(Cube(F(scale), d, sides), 2).shape == (2, d)
    if sides != "both":
        assert np.all(drawn * (1 if sides == "right" else -1) >= 0)


def test_sides_that_carry_nothing():
    assert np.all(noise.geometric(50, 1000) >= 0)
    assert np.all(noise.two_scale(0, 50, 1000) <= 0)
    assert np.all(noise.two_scale(0, 5000, 1000) <= 0)
    assert np.all(noise.two_scale(0, 0, 1000) == 0)
    assert np.all(noise.discrete_laplace("0.01", 1000) == 0)  # exp(-100) away from it


def test_coins_and_orders():
    assert type(noise.bernoulli(F(1, 2))) is bool
    assert noise.bernoulli(F(1, 2), (2, 3)).dtype == np.bool_
    assert noise.bernoulli(1, 100).all()
    assert not noise.bernoulli(0, 100).any()
    assert noise.permutation(0).shape == (0,)
    assert sorted(noise.permutation(1000)) == list(range(1000))
    assert noise.permutation(5).dtype == np.int64


def test_large_scales_stay_inside_64_bits():
    huge = noise.discrete_laplace(10**12, 10_000)
    assert 10**12 < np.abs(huge).max() < 128 * 10**12
    wide = noise.cube(10**12, 10**6, sides="both")
    assert np.abs(wide).max() < 2 * 10**18
    radius = radius_sampler(F(10**12), 10**6, both_signs=True)
    assert 2 * radius.largest + 1 < 2**62


# What is refused, before anything is drawn


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: noise.discrete_laplace(0, 5), "scale must be positive; got 0"),
        (lambda: noise.geometric(-1), "scale must be positive; got -1"),
        (lambda: noise.geometric(1e13), "scale must lie between 0.01 and 10^12; got 10000000000000.0"),
        (lambda: noise.two_scale(1, 0.001), "left must lie between 0.01 and 10^12; got 0.001"),
        (lambda: noise.cube(1, 0), "dimensions must be a whole number from 1 to 1000000; got 0"),
        (lambda: noise.cube(1, 10**6 + 1), "dimensions must be a whole number from 1 to 1000000; got 1000001"),
        (lambda: noise.cube(1, 2, sides="up"), 'sides must be "right", "left" or "both"; got \'up\''),
        (lambda: noise.geometric(1, -1), "size must be a whole number, zero or more; got -1"),
        (lambda: noise.geometric(1, 2.5), "size must be a whole number, zero or more; got 2.5"),
        (lambda: noise.geometric(1, (2, -3)), "size must be a whole number, zero or more; got -3"),
        (lambda: noise.geometric(1, 1 << 40), "size must stay below 2^40 draws in all; got 1099511627776"),
        (lambda: noise.uniform_below(0, 3), "n must lie between 1 and 2^63; got 0"),
        (lambda: noise.uniform_below(2**63 + 1), "n must lie between 1 and 2^63; got 9223372036854775809"),
        (lambda: noise.uniform_below(2.0), "n must be a whole number, zero or more; got 2.0"),
        (lambda: noise.bernoulli(F(3, 2)), "p must lie between 0 and 1; got 1.5"),
        (lambda: noise.bernoulli("nan"), "p must be a finite number; got 'nan'"),
    ],
)
def test_refusals_say_what_was_wrong(call, sentence):
    with noise.replayed(Scripted()) as stream:
        with pytest.raises(PlanError) as refused:
            call()
        assert stream.taken == 0
    assert str(refused.value).startswith(sentence)


def test_every_cube_in_range_is_supported():
    assert noise.cube_is_supported(1, 1)
    assert noise.cube_is_supported("0.01", 10**6)
    assert noise.cube_is_supported(10**12, 10**6)
    assert not noise.cube_is_supported(1, 10**6 + 1)
    assert not noise.cube_is_supported(2 * 10**12, 1)
    with pytest.raises(PlanError, match="no sampler for a text"):
        noise.sample("laplace", 3)


# Exact thresholds


def thresholds_of(table):
    return [
        int(top) << 128 | int(high) << 64 | int(low)
        for top, (high, low) in zip(table._top64, table._low128, strict=True)
    ]


def distance(table, chances):
    """Twice the total variation between a table and exact probabilities of first, first+1, .."""
    with localcontext() as context:
        context.prec = 150
        edges = [0, *thresholds_of(table), 1 << 192]
        drawn = [Decimal(b - a) / Decimal(1 << 192) for a, b in pairwise(edges)]
        chances = list(chances)
        beyond = abs(1 - sum(chances[: len(drawn)]))
        return sum(abs(a - b) for a, b in zip(drawn, chances, strict=False)) + beyond


TINY = Decimal(2) ** -170


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("right", "left"),
    [("1/2", "1/2"), ("10/3", "10/3"), ("2", "0"), ("1/100", "5"), ("0", "7"), ("120", "120"), ("3", "11")],
)
def test_a_direct_table_is_closer_than_2_to_the_minus_170(right, left):
    right, left = F(right), F(left)
    table = two_scale_sampler(right, left)._top
    with localcontext() as context:
        context.prec = 150
        qr, ql = ((-Decimal(s.denominator) / s.numerator).exp() if s else Decimal(0) for s in (right, left))
        total = 1 / (1 - qr) + ql / (1 - ql)
        below = [ql**-z / total for z in range(table.first, 0)]
        above = [(qr**z if z else Decimal(1)) / total for z in range(table.last + 1)]
    assert distance(table, below + above) < TINY


@pytest.mark.parametrize("scale", ["121", "1000", "1e6", "1e12", "1e15"])
def test_digits_of_large_scales_are_closer_than_2_to_the_minus_170(scale):
    scale = F(scale)
    sampler = two_scale_sampler(scale, scale)
    assert len(sampler._lower) >= 1
    with localcontext() as context:
        context.prec = 150
        off = Decimal(0)
        for place, table in enumerate(reversed(sampler._lower)):
            unit = 256**place
            q = (-Decimal(scale.denominator * unit) / scale.numerator).exp()
            weights = [q**k for k in range(256)]
            off += distance(table, [w / sum(weights) for w in weights])
        q_one = (-Decimal(scale.denominator) / scale.numerator).exp()
        q_top = (-Decimal(scale.denominator * 256 ** len(sampler._lower)) / scale.numerator).exp()
        top, left = sampler._top, q_one / (1 + q_one)
        chances = [left * (1 - q_top) * q_top ** (-1 - z) for z in range(top.first, 0)]
        chances += [(1 - left) * (1 - q_top) * q_top**z for z in range(top.last + 1)]
        off += distance(top, chances)
    assert off < TINY


@pytest.mark.parametrize("both_signs", [False, True])
@pytest.mark.parametrize(("scale", "d"), [("1/100", 1), ("1/100", 3000), ("2", 3), ("1/2", 2000), ("20", 1)])
def test_a_radius_table_is_closer_than_2_to_the_minus_170(scale, d, both_signs):
    scale, step = F(scale), 2 if both_signs else 1
    sampler = radius_sampler(scale, d, both_signs=both_signs)
    assert isinstance(sampler, TabledDraws)
    table = sampler._top
    with localcontext() as context:
        context.prec = 150
        q = (-Decimal(scale.denominator) / scale.numerator).exp()
        everything = range(max(0, table.first - 300), table.last + 300)  # what lies further out is below 2^-200
        weights = {m: Decimal(step * m + 1) ** d * q**m for m in everything}
        total = sum(weights.values())
        outside = sum(w for m, w in weights.items() if not table.first <= m <= table.last) / total
        assert outside < Decimal(2) ** -183
        assert distance(table, [weights[m] / total for m in range(table.first, table.last + 1)]) < TINY


@pytest.mark.parametrize("both_signs", [False, True])
@pytest.mark.parametrize(("scale", "d"), [("1000", 1), ("300", 7), ("1e12", 2), ("100", 50_000), ("1e12", 1_000_000)])
def test_proposal_times_acceptance_is_the_law_of_the_radius(scale, d, both_signs):
    scale, step = F(scale), 2 if both_signs else 1
    sampler = RejectedRadius(scale, d, both_signs=both_signs)
    width, peak = sampler._width, sampler._peak
    away = np.unique((np.linspace(-8, 12, 161) * width).astype(np.int64))
    away = away[away >= -peak]
    exact = [sampler.exact_chance(int(a)) for a in away]
    assert max(exact) <= 1 << 192
    assert max(exact) > 0.99 * (1 << 192)  # the bound is tight: no draw is wasted
    with localcontext() as context:
        context.prec = 80
        for a, chance in zip(away.tolist(), exact, strict=True):
            size, at_peak = step * (peak + a) + 1, step * peak + 1
            law = d * (Decimal(size) / at_peak).ln() - Decimal(a) * scale.denominator / scale.numerator
            proposal = -Decimal(abs(a)) / width
            expected = (law - proposal - sampler._bound).exp()
            assert abs(Decimal(chance) / (1 << 192) - expected) < Decimal(2) ** -190
    # The float that decides almost always is never further from the truth than it admits.
    floats, errors = sampler._chance(away)
    truth = np.array([chance / (1 << 192) for chance in exact])
    assert np.all(np.abs(floats - truth) <= errors)
    assert errors.max() < 1e-8


def test_a_proposal_outside_the_support_is_never_accepted():
    sampler = RejectedRadius(F(1000), 1, both_signs=False)
    away = np.array([-sampler._peak - 1, -sampler._peak - 500])
    assert not sampler.accept(Scripted([0, 0]), away).any()
    assert sampler.exact_chance(-sampler._peak - 1) == 0


def test_a_coin_too_close_for_floats_is_decided_by_192_bits():
    sampler = RejectedRadius(F(1000), 3, both_signs=False)
    chance = sampler.exact_chance(700)
    top, rest = chance >> 128, chance & ((1 << 128) - 1)
    away = np.array([700])
    assert sampler.accept(Scripted([top], as_words(rest - 1)), away).tolist() == [True]
    assert sampler.accept(Scripted([top], as_words(rest)), away).tolist() == [False]


def test_a_word_that_equals_a_threshold_is_decided_by_192_bits():
    table = two_scale_sampler(F(10), F(10))._top
    i = len(table._top64) // 2
    threshold = thresholds_of(table)[i]
    word, next48, rest = threshold >> 176, (threshold >> 128) & (2**48 - 1), threshold & (2**128 - 1)
    for low, value in [(rest - 1, table.first + i), (rest, table.first + i + 1)]:
        stream = Scripted([word], [next48 << 16], as_words(low))
        assert table.draw(stream, 1).tolist() == [value]
    # One above and one below in 64 bits need nothing more.
    assert table.draw(Scripted([word], [(next48 - 1) << 16]), 1).tolist() == [table.first + i]
    assert table.draw(Scripted([word], [(next48 + 1) << 16]), 1).tolist() == [table.first + i + 1]


class Extended(noise.Keystream):
    """Hands out given 16-bit words and extends every one of them by the same 64 bits."""

    def __init__(self, roots, extension):
        super().__init__(key=KEY)
        self.roots, self.extension = roots, extension

    def words(self, kind, count):
        return self.roots if kind is np.uint16 else np.full(count, self.extension, dtype=kind)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("scales", [("1/2", "1/2"), ("2", "0"), ("3", "50"), ("120", "120"), ("1e6", "1e6")])
@pytest.mark.parametrize("extension", [0, 2**63, 2**64 - 1])
def test_every_root_word_leads_to_the_value_that_its_thresholds_say(scales, extension):
    sampler = two_scale_sampler(*map(F, scales))
    for table in (sampler._top, *sampler._lower):
        exact = thresholds_of(table)
        for half in (0, 1 << 15):
            roots = np.arange(half, half + (1 << 15), dtype=np.uint16)
            drawn = table.draw(Extended(roots, extension), roots.size)
            # 192 bits: the root, 48 bits of the extension, and the 128 bits of a tie, which are the extension again.
            rest = (extension >> 16) << 128 | extension << 64 | extension
            expected = [table.first + bisect_right(exact, int(root) << 176 | rest) for root in roots]
            assert drawn.tolist() == expected


def test_a_coin_with_any_rational_chance_is_exact():
    # 1/3 is 0.010101.. in binary: the first 64 bits tie, the next decide.
    tie = int(F(1, 3) * 2**64)
    for following, heads in [(tie - 1, True), (tie + 1, False)]:
        with noise.replayed(Scripted([tie], [following])):
            assert noise.bernoulli(F(1, 3)) is heads
    # One half has no more digits: the tie itself is already too large.
    with noise.replayed(Scripted([2**63])):
        assert noise.bernoulli(F(1, 2)) is False
    with noise.replayed(Scripted([2**63 - 1])):
        assert noise.bernoulli(F(1, 2)) is True


def test_uniform_integers_reject_exactly_the_surplus_words():
    # 2^32 mod 3 = 1: one word of 2^32 is too many, the one whose product with 3 ends in a half below 1: the word 0.
    with noise.replayed(Scripted([0], [2**31])):
        assert noise.uniform_below(3) == 1
    n = 2**62 + 2**61  # 2^64 mod n = 2^64 - 2n
    with noise.replayed(Scripted([2 * n], [2 * n - 1])):
        assert noise.uniform_below(n) == n - 1


def test_a_permutation_with_equal_keys_is_drawn_again():
    with noise.replayed(Scripted([5, 5, 1], [3, 2, 1])):
        assert noise.permutation(3).tolist() == [2, 1, 0]


# The time of a draw


@pytest.mark.parametrize("count", [1, 5, 1000, 40_000])
@pytest.mark.parametrize("scales", [(F(3), F(3)), (F(100), F(0)), (F(1000), F(1000)), (F(10) ** 12, F(7))])
def test_the_work_of_a_draw_does_not_depend_on_what_is_drawn(scales, count):
    taken = set()
    for key in range(20):
        stream = Scripted()
        stream._fixed = bytes([key]) * 32
        stream._start()
        with noise.replayed(stream):
            noise.two_scale(*scales, count)
        taken.add(stream.taken)
    assert len(taken) == 1


def test_tables_are_kept_and_few():
    two_scale_sampler(F(7), F(7))
    hits = two_scale_sampler.cache_info().hits
    noise.discrete_laplace(7.0, 3)
    noise.discrete_laplace("7", 3)
    assert two_scale_sampler.cache_info().hits == hits + 2
    assert two_scale_sampler.cache_info().maxsize <= 64


# Nothing is drawn twice


def test_draws_differ_and_a_replay_does_not():
    assert not np.array_equal(noise.discrete_laplace(100, 50), noise.discrete_laplace(100, 50))
    with replay():
        first = noise.cube(1000, 3, 50, "both"), noise.discrete_laplace(10**6, 50), noise.permutation(20)
    with replay():
        again = noise.cube(1000, 3, 50, "both"), noise.discrete_laplace(10**6, 50), noise.permutation(20)
    with replay(bytes(32)):
        other = noise.cube(1000, 3, 50, "both")
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other)


def test_a_release_can_see_that_noise_is_replayed():
    assert not noise.is_replayed()
    with replay():
        assert noise.is_replayed()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(noise.is_replayed()))
        thread.start()
        thread.join()
        assert seen == [False]  # another thread draws real noise
    assert not noise.is_replayed()


@pytest.mark.parametrize("seed", [0, 42, "secret", b"short", bytes(33), bytearray(32), 1.5])
def test_there_are_no_seeds(seed):
    with pytest.raises(PlanError, match="releases take no seed"):
        noise.Keystream(key=seed)
    with pytest.raises(PlanError, match="there are no seeds"), noise.replayed(seed):
        pass
    with pytest.raises(TypeError):
        noise.Keystream(KEY)  # by name only


def test_a_stream_is_never_copied():
    for stream in (noise.Keystream(), noise.Keystream(key=KEY)):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="never copied"):
                attempt(stream)


def test_the_stream_is_aes_256_in_counter_mode():
    # FIPS 197, appendix C.3, checks the cipher; here the first block is the encryption of the counter 0.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    encryptor = Cipher(algorithms.AES(KEY), modes.ECB()).encryptor()  # noqa: S305 - one block, as a reference
    expected = encryptor.update((0).to_bytes(16, "big") + (1).to_bytes(16, "big"))
    assert noise.Keystream(key=KEY).words(np.uint8, 32).tobytes() == expected


def test_a_new_key_comes_after_the_stated_number_of_bytes(monkeypatch):
    monkeypatch.setattr(keystream, "REKEY_AFTER", 64)
    keys = []

    def urandom(n):
        keys.append(bytes([len(keys)]) * n)
        return keys[-1]

    monkeypatch.setattr(os, "urandom", urandom)
    stream = noise.Keystream()
    assert len(keys) == 1
    whole = stream.words(np.uint8, 64).tobytes()
    assert len(keys) == 1
    beyond = stream.words(np.uint8, 100).tobytes()
    assert len(keys) == 3
    monkeypatch.setattr(keystream, "REKEY_AFTER", 1 << 24)
    assert noise.Keystream(key=keys[0]).words(np.uint8, 64).tobytes() == whole
    assert noise.Keystream(key=keys[1]).words(np.uint8, 64).tobytes() == beyond[:64]
    assert noise.Keystream(key=keys[2]).words(np.uint8, 36).tobytes() == beyond[64:]


def test_a_replay_crosses_a_new_key_wherever_the_reads_end(monkeypatch):
    monkeypatch.setattr(keystream, "REKEY_AFTER", 48)
    whole = noise.Keystream(key=KEY).words(np.uint8, 400).tobytes()
    stream = noise.Keystream(key=KEY)
    assert b"".join(stream.words(np.uint8, n).tobytes() for n in (1, 46, 2, 100, 0, 251)) == whole
    blocks = {whole[i : i + 16] for i in range(0, 400, 16)}
    assert len(blocks) == 25


def test_threads_share_no_bytes():
    seen, barrier = [], threading.Barrier(4)

    def draw():
        barrier.wait()
        stream = keystream.current_stream()
        for _ in range(50):
            seen.extend(bytes(block) for block in stream.words(np.uint8, 160).reshape(-1, 16))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == len(seen) == 4 * 50 * 10


def test_one_stream_shared_by_threads_hands_out_every_byte_once(monkeypatch):
    # Short pieces and a restless scheduler: without its lock, a read would be interleaved with another one.
    monkeypatch.setattr(keystream, "_ZEROS", bytes(16))
    stream, seen, barrier = noise.Keystream(key=KEY), [], threading.Barrier(4)

    def draw():
        barrier.wait()
        for _ in range(100):
            seen.append(stream.words(np.uint8, 320).tobytes())

    threads = [threading.Thread(target=draw) for _ in range(4)]
    patience = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(patience)
    whole = noise.Keystream(key=KEY).words(np.uint8, 320 * 400).tobytes()
    assert sorted(seen) == sorted(whole[i : i + 320] for i in range(0, len(whole), 320))


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_forked_child(work):
    """Return what `work()` returns as bytes, run in a forked child."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # From Python 3.12 on, forking while any thread runs warns; the child below only draws and leaves.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, work())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return answer


def some_bytes():
    return noise.uniform_below(256, 64).astype(np.uint8).tobytes()


@needs_fork
def test_a_forked_child_never_repeats_its_parent():
    some_bytes()  # the parent's stream is already running
    children = [in_forked_child(some_bytes) for _ in range(3)]
    grandchild = in_forked_child(lambda: in_forked_child(some_bytes))
    everyone = [*children, grandchild, some_bytes()]
    assert all(len(draw) == 64 for draw in everyone)
    assert len(set(everyone)) == len(everyone)


@needs_fork
def test_a_stream_held_across_a_fork_changes_its_key():
    stream = noise.Keystream()
    stream.words(np.uint8, 5)
    child = in_forked_child(lambda: stream.words(np.uint8, 64).tobytes())
    assert len(child) == 64
    assert child != stream.words(np.uint8, 64).tobytes()


@needs_fork
@pytest.mark.parametrize("blind", ["hook", "process id"])
def test_the_hook_and_the_process_id_each_see_a_fork_alone(blind):
    stream = noise.Keystream()

    def draw():
        if blind == "hook":
            keystream._forks = stream._fork_seen[0]
        else:
            os.getpid = lambda: stream._fork_seen[1]  # in the child only, which leaves at once
        return stream.words(np.uint8, 64).tobytes()

    child = in_forked_child(draw)
    assert len(child) == 64
    assert child != stream.words(np.uint8, 64).tobytes()


@needs_fork
def test_a_replayed_stream_refuses_to_cross_a_fork():
    def draw():
        try:
            some_bytes()
        except RuntimeError as refused:
            return str(refused).encode()
        return b"drew"

    with replay():
        assert b"must not cross a fork" in in_forked_child(draw)


def _draw_into(pipe):
    pipe.send(some_bytes())
    pipe.close()


@needs_fork
def test_multiprocessing_children_draw_their_own_noise():
    some_bytes()
    context, draws = multiprocessing.get_context("fork"), []
    for _ in range(3):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_draw_into, args=(writer,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        writer.close()
        draws.append(reader.recv())
        process.join()
    draws.append(some_bytes())
    assert len(set(draws)) == 4
