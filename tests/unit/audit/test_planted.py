"""What the planted leaks say about themselves is true: their laws, written down again and enumerated.

A law is a list of independent parts, each a probability for every output that matters: the whole output if there is one
part, one column of it each if there are several.
"""

import inspect
import itertools
import math
import pickle
from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats

from tacit import noise
from tacit.audit.selfcheck.planted import PlantedLeak, planted

ALPHA = 1e-6
KEY = b"tacit planted leaks, unit tests1"
DRAWS = 40_000


@cache
def laplace(scale, z):
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(z)


def laplace_below(scale, z):
    """The probability of less than z."""
    q = math.exp(-1 / scale)
    return q ** (1 - z) / (1 + q) if z <= 0 else 1 - q**z / (1 + q)


def geometric(scale, z):
    return -math.expm1(-1 / scale) * math.exp(-z / scale) if z >= 0 else 0.0


def geometric_below(scale, z):
    return -math.expm1(-z / scale) if z > 0 else 0.0


def blurred(truths, scale, span):
    """One part for each true answer: what two-sided noise makes of it."""
    return [{y: laplace(scale, y - truth) for y in span} for truth in truths]


NEAR = range(-40, 50)
RELEASED = 0.632


def cluster_sums(points, broken):
    sums = [sum(x for x in points if (x <= 500) == first) for first in (True, False)]
    return blurred(sums, 20 if broken else 1010, range(-2500, 4500))


def ordered_hierarchical(values, broken):
    """|T|, theta, f = 64, 16, 16: four blocks, whose trees are a root and 16 leaves."""
    of_s, of_h = 0.226, 0.774
    nodes = []  # first value, end, epsilon that a step of one costs
    for block in range(4):
        own = (1 / 2 if block == 0 else of_h / 2) if broken else of_h / 2
        nodes += [(16 * block, 16 * block + 16, own)] if broken else []
        nodes += [(value, value + 1, own) for value in range(16 * block, 16 * block + 16)]
    nodes = [(0, 16 * block, of_s) for block in ((2, 3, 4) if broken else (1, 2, 3))] + nodes
    return [blurred([sum(first <= value < end for value in values)], 1 / cost, NEAR)[0] for first, end, cost in nodes]


def one_sided_sparse_vector(counts, broken):
    law = {}
    for output in itertools.product((-1, 0, *range(3, 18)), repeat=len(counts)):
        chance, given = 1.0, 0
        for count, shown in zip(counts, output, strict=True):
            stopped = given >= (2 if broken else 1)
            given += shown > 0
            if stopped or shown == -1:
                chance *= stopped and shown == -1
            else:
                chance *= geometric_below(1, 3 - count) if shown == 0 else geometric(1, shown - count)
        law[output] = chance
    return [law]


def zoomed(places, broken, how):
    below = sum(place < 2 for place in places)
    law = {}
    for look, count in itertools.product(NEAR, NEAR):
        half = 0 if (below if broken and how == "by truth" else look) >= 2 else 1
        scale = 1 if broken and how == "again" else 2
        law[look, half, count] = laplace(2, look - below) * laplace(scale, count - places.count(2 * half))
    return [law]


def first_above(counts, threshold_scale, count_scale):
    """For each noisy threshold the probability of each place."""
    law = dict.fromkeys(range(len(counts) + 1), 0.0)
    for shift in range(-150, 151) if threshold_scale else [0]:
        going = laplace(threshold_scale, shift) if threshold_scale else 1.0
        for place, count in enumerate(counts):
            below = laplace_below(count_scale, 1 + shift - count)
            law[place] += going * (1 - below)
            going *= below
        law[len(counts)] += going
    return [law]


def with_one_draw(counts, broken):
    if not broken:
        return first_above(counts, 2, 4)
    law = dict.fromkeys(range(len(counts) + 1), 0.0)
    for shift, draw in itertools.product(range(-80, 81), range(-160, 161)):
        above = [place for place, count in enumerate(counts) if count + draw >= 1 + shift]
        law[above[0] if above else len(counts)] += laplace(2, shift) * laplace(4, draw)
    return [law]


def with_values(counts, broken):
    threshold_scale, count_scale = (2, 2) if broken else (4, 8)
    span = range(-40, 45)
    law = {(place, value): 0.0 for place in range(len(counts)) for value in span}
    law[len(counts), 0] = 0.0
    for shift in range(-150, 151):
        going = laplace(threshold_scale, shift)
        for place, count in enumerate(counts):
            below = laplace_below(count_scale, 1 + shift - count)
            for value in span:
                if not broken:
                    law[place, value] += going * (1 - below) * laplace(2, value - count)
                elif value >= 1 + shift:
                    law[place, value] += going * laplace(count_scale, value - count)
            going *= below
        law[len(counts), 0] += going
    return [law]


def monitor(arrivals, by_data, scale):
    """Window and threshold 2. A queue of visitors who are in the window, and whether they were counted."""
    law = {}
    for output in itertools.product((-1, 0, 2, 3, 4, 5), repeat=len(arrivals)):
        chance, queue, resumes = 1.0, [], 0
        for step, (visitors, shown) in enumerate(zip(arrivals, output, strict=True)):
            queue = [[came, counted] for came, counted in queue if step - came < 2] + [[step, False]] * visitors
            paused = any(counted for _, counted in queue) if by_data else step < resumes
            if paused or shown == -1:
                chance *= paused and shown == -1
            elif shown == 0:
                chance *= geometric_below(scale, 2 - len(queue))
            else:
                chance *= geometric(scale, shown - len(queue))
                queue, resumes = [[came, True] for came, _ in queue], step + 2
        law[output] = chance
    return [law]


def places_map(slots, broken):
    law = {}
    for output in itertools.product((-1, 0, *range(2, 9)), repeat=4):
        chance = 1.0
        for place in range(2):
            shown, count = False, 0
            for slot in range(2):
                count += slots[slot][place]
                cell = output[2 * slot + place]
                if shown or cell == -1:
                    chance *= shown and cell == -1
                elif cell == 0:
                    chance *= geometric_below(1, 2 - count) if broken else laplace_below(4, 2 - count)
                else:
                    chance *= geometric(1, cell - count) if broken else laplace(4, cell - count)
                    shown = True
        law[output] = chance
    return [law]


def mixed_top(counts, broken):
    def exactly(at, value):
        if not broken:
            return laplace(2, value - counts[at])
        return geometric(1, value - counts[0]) if at == 0 else geometric(1, counts[1] - value)

    def below(at, value):
        if not broken:
            return laplace_below(2, value - counts[at])
        return geometric_below(1, value - counts[0]) if at == 0 else 1 - geometric_below(1, counts[1] - value + 1)

    # ties go to the first
    law = {(0, v): exactly(0, v) * below(1, v + 1) for v in NEAR}
    return [law | {(1, v): exactly(1, v) * below(0, v) for v in NEAR}]


def two_winners(counts, broken):
    truths = [2 * count if broken else count for count in counts]
    law = {}
    for (i, j), v, w in itertools.product(itertools.permutations(range(4), 2), range(30), range(30)):
        if v > w or (v == w and i < j):
            others = [loser for loser in range(4) if loser not in (i, j)]
            # a tie with the second winner is lost by those behind it
            lost = math.prod(geometric_below(2, w + (loser > j) - truths[loser]) for loser in others)
            law[i, v, j, w] = geometric(2, v - truths[i]) * geometric(2, w - truths[j]) * lost
    return [law]


def debiased_winner(counts, broken):
    law = Counter()
    if not broken:
        for i, v in itertools.product(range(3), range(40)):
            lost = math.prod(geometric_below(1, v + (loser > i) - counts[loser]) for loser in range(3) if loser != i)
            law[i, v - 1] = geometric(1, v - counts[i]) * lost
        return [law]
    for draws in itertools.product(range(25), repeat=3):
        noisy = [count + draw for count, draw in zip(counts, draws, strict=True)]
        winner = noisy.index(max(noisy))
        law[winner, noisy[winner] - max(draws)] += math.prod(geometric(1, draw) for draw in draws)
    return [law]


def listed_cells(cells, broken):
    parts = blurred([cells.count(cell) for cell in range(3)], 2, NEAR)
    for cell, part in enumerate(parts):
        part[-1000] = 0.0
        if broken and cell not in cells:
            part.update(dict.fromkeys(part, 0.0))
            part[-1000] = 1.0
    return parts


def released_records(records, broken):
    parts = []
    for record in records:
        released = 0.0 if record == 2 else 1.0 if broken else 0.632
        parts.append({0: 0.0, 1: 0.0, -1: 1 - released} | {record: released})
    return parts


def repeated_record(record, broken):
    law = {}
    for output in itertools.product((-1, 1), repeat=3):
        released = 0.0 if record == 2 else 0.632
        coins = [released if shown == 1 else 1 - released for shown in output]
        law[output] = math.prod(coins) if broken else coins[0] * (len(set(output)) == 1)
    return [law]


def coins_of_values(records, broken):
    law = {}
    names = [record if broken else place for place, record in enumerate(records)]
    for kept in itertools.product((True, False), repeat=3):
        coins = dict(zip(range(3), kept, strict=True))
        chance = math.prod(0.632 if coin else 0.368 for coin in kept)
        output = tuple(
            record if record != 2 and coins[name] else -1 for record, name in zip(records, names, strict=True)
        )
        law[output] = law.get(output, 0.0) + chance
    return [law]


def allowed_sample(f, error, chance):
    """The size that the thesis allows at retention 1/2 and two values."""
    return -2 * (f / 2 + 1 / 4) * math.log(chance) / (error * f / 2) ** 2


def rounded_shares(counts, size):
    """Each value's share of a sample of this size, rounded at random."""
    shares, samples = [count * size / sum(counts) for count in counts], {}
    for up in itertools.product((0, 1), repeat=2):
        chances = [share % 1 if one else 1 - share % 1 for share, one in zip(shares, up, strict=True)]
        samples[tuple(int(share) + one for share, one in zip(shares, up, strict=True))] = math.prod(chances)
    return samples


def scaled_table(counts, broken):
    if broken:
        samples = rounded_shares(counts, allowed_sample(max(counts) / 12, 0.9, 0.7))
    else:
        samples = {
            (i, 3 - i): math.comb(counts[0], i) * math.comb(counts[1], 3 - i) / math.comb(12, 3) for i in range(4)
        }
    return [copied(samples, 12)]


def copied(samples, people):
    """Replace half of the values by a random one, and make copies until there are as many as people."""
    law = Counter()
    for (first, second), chance in samples.items():
        many = first + second
        stay, leave = stats.binom.pmf(range(first + 1), first, 3 / 4), stats.binom.pmf(range(second + 1), second, 1 / 4)
        for after, p in enumerate(np.convolve(stay, leave)):
            more = people / many % 1
            for i, j in itertools.product(range(after + 1), range(many - after + 1)):
                copies = after * (people // many) + i, (many - after) * (people // many) + j
                extra = stats.binom.pmf(i, after, more) * stats.binom.pmf(j, many - after, more)
                law[copies] += chance * float(p * extra)
    return law


def two_sessions(counts, broken):
    if not broken:
        return blurred(counts, 2, NEAR)
    return [{(counts[0] + z, counts[1] + z): laplace(2, z) for z in NEAR}]


def count_of_the_oldest(ages, broken):
    assert not broken, "a release that raises has no law"
    return blurred([sum(age > 100 for age in ages)], 1, NEAR)


def count_or_text(people, broken):
    if broken and people < 5:
        return [{f"refused: {people} people are too few": 1.0}]
    if broken:
        return [{str(people + z): laplace(1, z) for z in NEAR}]
    refused = {"refused: too few people": laplace_below(1, 5 - people)}
    return [refused | {str(y): laplace(1, y - people) for y in NEAR if y >= 5}]


def histogram_of_rows(rows, broken):
    counts = [rows.count(cell) for cell in range(6)]
    return blurred(counts, 2 if broken else 6, range(-150, 150))


def never_negative(counts, broken):
    if broken:
        return [{0: 1.0} if count == 0 else blurred([count], 2, NEAR)[0] for count in counts]
    return [{0: laplace_below(2, 1 - count)} | {y: laplace(2, y - count) for y in NEAR if y > 0} for count in counts]


def two_largest(counts, broken):
    law = {}
    for a, b in itertools.product(NEAR, repeat=2):
        first = counts[0] % 2 if broken else int(b > a)
        noisy = (a, b)
        law[first, noisy[first], 1 - first, noisy[1 - first]] = laplace(1, a - counts[0]) * laplace(1, b - counts[1])
    return [law]


def joint_running_counts(values, broken):
    """Weights exp(-0.4 (|a| + |b|) - cell (|a| + |b - a| + |b|)), less 2^-16, of noise on two running counts."""
    first, second = (sum(value <= most for value in values) for most in (0, 1))
    drawn, cell = 1 - 2**-16, 0.6 if broken else 0.3
    law = {}
    for output in itertools.product(NEAR, repeat=2):
        a, b = output[0] - first, output[1] - second
        norm = 0.4 * (abs(a) + abs(b)) + cell * (abs(a) + abs(b - a) + abs(b))
        law[(*output, len(values))] = math.exp(-drawn * norm)
    total = sum(law.values())
    return [{output: weight / total for output, weight in law.items()}]


def forgotten_coins(record, broken):
    shown, anew, law = -1 if record == 2 else record, 0.1 if broken else 0.0, {}
    for first in (True, False):
        again = {True: anew * RELEASED, False: anew * (1 - RELEASED)}
        again[first] += 1 - anew
        for others in itertools.product((True, False), repeat=4):
            chance = (RELEASED if first else 1 - RELEASED) * math.prod(again[one] for one in others)
            output = tuple(shown if one else -1 for one in (first, *others))
            law[output] = law.get(output, 0.0) + chance
    return [law]


def mean_of_ages(ages, broken):
    many, law = len(ages), {}
    counts = (
        {many: 1.0} if broken else {1: laplace_below(2, 2 - many)} | {m: laplace(2, m - many) for m in range(2, 45)}
    )
    for noisy, (count, chance) in itertools.product(range(-400, 450), counts.items()):
        law[noisy / count] = law.get(noisy / count, 0.0) + laplace(18, noisy - sum(ages)) * chance
    return [law]


LAWS = {
    "noise-for-one-row-of-three": histogram_of_rows,
    "truth-in-post-processing": never_negative,
    "order-by-a-true-count": two_largest,
    "kmeans-two-theta": cluster_sums,
    "hierarchical-printed-budget": ordered_hierarchical,
    "constraint-sensitivity": lambda values, broken: blurred(
        [values.count(v) for v in range(4)], 2 if broken else 4, NEAR
    ),
    "list-with-the-step-of-one-query": lambda counts, broken: [
        {y: geometric(1 if broken else 3, y - count) for y in NEAR} for count in counts
    ],
    "sparse-vector-one-more-answer": one_sided_sparse_vector,
    "sparse-vector-no-fresh-threshold-noise": lambda counts, broken: first_above(counts, None if broken else 2, 4),
    "sparse-vector-noise-reused": with_one_draw,
    "sparse-vector-values-from-same-noise": with_values,
    "monitor-pauses-by-data": lambda arrivals, broken: monitor(arrivals, broken, 1),
    "monitor-person-with-several-visits": lambda arrivals, broken: monitor(arrivals, False, 1 if broken else 2),
    "map-moves-between-places": places_map,
    "mixed-directions-top-k": mixed_top,
    "top-k-adds-count-twice": two_winners,
    "debias-by-realised-maximum": debiased_winner,
    "zoom-by-true-counts": partial(zoomed, how="by truth"),
    "zoom-spends-again": partial(zoomed, how="again"),
    "one-sided-noise-two-directions": lambda count, broken: [
        {y: geometric(1, y - count) if broken else laplace(1, y - count) for y in NEAR}
    ],
    "sensitivity-one-for-replaced-records": lambda counts, broken: blurred(counts, 1 if broken else 2, NEAR),
    "composition-unpaid": lambda count, broken: blurred([count, count], 1 if broken else 2, NEAR),
    "noise-scale-rounded": lambda count, broken: blurred([count], 1 if broken else 5 / 3, NEAR),
    "randomised-response-second-coin": lambda answer, broken: [
        {answer: 7 / 8, 1 - answer: 1 / 8} if broken else {answer: 3 / 4, 1 - answer: 1 / 4}
    ],
    "bounds-from-data": lambda values, broken: blurred(
        [sum(values)], max(values) if broken else 100, range(-2000, 2000)
    ),
    "cells-read-off-the-data": listed_cells,
    "joint-noise-one-cell": joint_running_counts,
    "naive-suppression": released_records,
    "coin-tossed-anew": repeated_record,
    "coin-forgotten-at-times": forgotten_coins,
    "coin-of-the-value": coins_of_values,
    "mean-over-the-true-count": mean_of_ages,
    "scaled-tables": scaled_table,
    "forked-noise-reuse": two_sessions,
    "error-raised-on-value": count_of_the_oldest,
    "error-text-quotes-value": count_or_text,
}
RAISES = "error-raised-on-value"
UNBOUNDED = "bounds-from-data"
# Of doubles: no law is written down, see the test of its digits.
WITHOUT_LAW = "floating-point-laplace"
# Of twelve counts together: too many outputs to go through, see the test of its gaps.
RARE = "noise-left-out-at-times"
VERSIONS = [(name, broken) for name in LAWS for broken in (True, False) if (name, broken) != (RAISES, True)]


@cache
def laws(name, broken):
    leak = planted[name]
    return LAWS[name](leak.hidden, broken), LAWS[name](leak.cover, broken)


def log_ratios(hidden, cover):
    """For every output of a part that is possible at hidden: log ratio, probability at hidden and at cover."""
    for output, p in hidden.items():
        if p > 0:
            q = cover.get(output, 0.0)
            yield (math.log(p) - math.log(q) if q > 0 else math.inf), p, q


def worst_loss(hidden, cover):
    """Parts are independent, so the worst output is the worst of each part."""
    return sum(max(ratio for ratio, _, _ in log_ratios(a, b)) for a, b in zip(hidden, cover, strict=True))


def best_event(hidden, cover, least):
    """Return the largest loss of a set of outputs whose probability at hidden is at least so much (Neyman, Pearson)."""
    joint = {0.0: (1.0, 1.0)}
    for a, b in zip(hidden, cover, strict=True):
        if a == b:
            continue
        ratios = {}
        for ratio, p, q in log_ratios(a, b):
            before = ratios.get(round(ratio, 9), (0.0, 0.0))
            ratios[round(ratio, 9)] = before[0] + p, before[1] + q
        product = {}
        for (r, (p, q)), (s, (x, y)) in itertools.product(joint.items(), ratios.items()):
            before = product.get(round(r + s, 9), (0.0, 0.0))
            product[round(r + s, 9)] = before[0] + p * x, before[1] + q * y
        joint = product
    p = q = 0.0
    best = -math.inf
    for ratio in sorted(joint, reverse=True):
        p, q = p + joint[ratio][0], q + joint[ratio][1]
        if p >= least:
            best = max(best, math.log(p / q) if q > 0 else math.inf)
    return best


def test_every_leak_is_listed_once_under_its_name():
    assert set(LAWS) | {WITHOUT_LAW, RARE} == set(planted)
    for name, leak in planted.items():
        assert isinstance(leak, PlantedLeak)
        assert leak.name == name
        assert name == name.lower().replace("_", "-").replace(" ", "-")
        assert leak.mistake
        assert leak.source
        assert 0.5 <= leak.claimed_epsilon <= 1.5
        assert leak.exact_loss >= 1.15 * leak.claimed_epsilon
    with pytest.raises(TypeError):
        planted["another"] = leak


@pytest.mark.parametrize("name", planted)
def test_every_leak_is_explained_and_its_broken_line_is_marked(name):
    draw = planted[name].release.func
    mistake, _, explained = (draw.__doc__ or "").partition(".\n\n")
    assert mistake[0].lower() + mistake[1:] == planted[name].mistake
    assert explained.strip()
    called = [one for word in draw.__code__.co_names if callable(one := draw.__globals__.get(word))]
    assert any("# BROKEN: " in inspect.getsource(one) for one in (draw, *called) if inspect.isfunction(one))


@pytest.mark.parametrize("name", planted)
def test_releases_can_be_sent_to_another_process_and_return_what_was_asked_for(name):
    leak = pickle.loads(pickle.dumps(planted[name]))  # noqa: S301 - made here
    for release, data in itertools.product((leak.release, leak.repaired), (leak.hidden, leak.cover)):
        if name == RAISES and release == leak.release and data == leak.hidden:
            continue
        for size in (1, 7):
            assert len(np.asarray(release(data, size))) == size


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", [name for name in LAWS if name not in (RAISES, UNBOUNDED)])
def test_the_exact_loss_is_what_enumeration_finds(name):
    assert worst_loss(*laws(name, True)) == pytest.approx(planted[name].exact_loss, rel=1e-9)


def test_a_sum_with_bounds_from_the_data_loses_more_the_further_out_it_is():
    """Every output is possible at both; the ratio of the two tails grows by 1/30 - 1/100 with every unit."""
    (hidden,), (cover,) = laws(UNBOUNDED, True)
    assert planted[UNBOUNDED].exact_loss == math.inf
    losses = [math.log(hidden[y]) - math.log(cover[y]) for y in range(175, 1000)]
    assert np.diff(losses) == pytest.approx(1 / 30 - 1 / 100)


@pytest.mark.parametrize("name", LAWS)
def test_the_repaired_version_keeps_the_claim(name):
    assert worst_loss(*laws(name, False)) <= planted[name].claimed_epsilon + 1e-9


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", [name for name in LAWS if name != RAISES])
def test_the_leak_is_no_matter_of_rare_outputs(name):
    """An event of probability 0.01 at hidden shows 15 percent more than the claim."""
    assert best_event(*laws(name, True), least=0.01) >= 1.15 * planted[name].claimed_epsilon


@pytest.mark.one_in(16)
@pytest.mark.parametrize(("name", "broken"), VERSIONS)
def test_draws_follow_the_law(name, broken):
    leak = planted[name]
    for data, law in zip((leak.hidden, leak.cover), laws(name, broken), strict=True):
        with noise.replayed(noise.Keystream(key=KEY)):
            drawn = (leak.release if broken else leak.repaired)(data, DRAWS)
        columns = [drawn] if len(law) == 1 else drawn.T
        for column, part in zip(columns, law, strict=True):
            seen = Counter(map(tuple, column.tolist()) if column.ndim == 2 else column.tolist())
            assert all(part[output] > 0 for output in seen if output in part)
            frequent = [output for output, p in part.items() if p * DRAWS > 10]
            expected = np.array([part[output] * DRAWS for output in frequent])
            rest = DRAWS - expected.sum()
            counts = np.array([seen[output] for output in frequent])
            if rest > 10:
                expected, counts = np.append(expected, rest), np.append(counts, DRAWS - counts.sum())
            else:
                assert DRAWS - counts.sum() <= 60
                expected *= counts.sum() / expected.sum()
            assert len(counts) == 1 or stats.chisquare(counts, expected).pvalue > ALPHA / 100


def test_noise_in_doubles_shows_what_it_was_added_to():
    """Between -1 and 1 every output of cover is a multiple of 2^-53, and many of hidden are not."""
    leak = planted[WITHOUT_LAW]

    def finer(outputs):
        return np.mean((np.abs(outputs) < 1) & (outputs * 2.0**53 % 1 != 0))

    with noise.replayed(noise.Keystream(key=KEY)):
        hidden, cover = (leak.release(data, 400_000) for data in (leak.hidden, leak.cover))
        lattice = np.concatenate([leak.repaired(data, 400_000) for data in (leak.hidden, leak.cover)])
    assert finer(hidden) == pytest.approx(0.27, abs=0.01)
    assert finer(cover) == 0
    assert np.all(lattice * 1024 % 1 == 0)
    assert np.mean(hidden >= 1) == pytest.approx(math.exp(-1) / 2, abs=0.005)
    assert np.mean(lattice[:400_000] >= 1) == pytest.approx(1 - laplace_below(1024, 1024), abs=0.005)
    assert np.mean(lattice[400_000:] >= 2) == pytest.approx(1 - laplace_below(1024, 1024), abs=0.005)
    # On the lattice the loss is that of integer noise: a step of 1024 at scale 1024.
    assert worst_loss(blurred([0], 1024, range(-3000, 3000)), blurred([1024], 1024, range(-3000, 3000))) <= 1 + 1e-9


def test_noise_that_is_left_out_shows_at_the_true_counts():
    """The loss is largest there: two of the counts differ by one, so that noise alone loses 1."""
    leak, share = planted[RARE], 1 / 2000
    alone = laplace(2, 0) ** 12
    at_cover = laplace(2, 0) ** 10 * laplace(2, 1) ** 2
    by_hand = math.log(share + (1 - share) * alone) - math.log((1 - share) * at_cover)
    assert leak.exact_loss == pytest.approx(by_hand, rel=1e-9)
    assert math.log(alone / at_cover) == pytest.approx(leak.claimed_epsilon)
    with noise.replayed(noise.Keystream(key=KEY)):
        drawn = leak.release(leak.hidden, 400_000)
        mended = leak.repaired(leak.hidden, 400_000)
    shown = (drawn == leak.hidden).all(axis=1).sum()
    assert stats.binomtest(int(shown), 400_000, share).pvalue > ALPHA
    assert not (mended == leak.hidden).all(axis=1).any()


def test_a_release_that_raises_does_so_on_one_side_only():
    leak = planted[RAISES]
    with pytest.raises(ValueError, match="age 104 is not plausible"):
        leak.release(leak.hidden, 5)
    assert len(leak.release(leak.cover, 5)) == 5


def test_a_public_size_alone_does_not_mend_scaled_tables():
    """Rounding each value's share at random rules out sizes of the sample at one of two neighbours, here of 20."""
    size = allowed_sample(1, 0.6, 0.8)
    hidden, cover = (copied(rounded_shares(counts, size), 20) for counts in ((17, 3), (16, 4)))
    assert worst_loss([hidden], [cover]) == math.inf
