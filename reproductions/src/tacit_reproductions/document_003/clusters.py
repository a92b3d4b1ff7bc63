"""Figure 1 of document 003: k-means with the printed noise (invalid), with valid noise, and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from tacit.plan.questions import clusters
from tacit.policy.attributes import Grid, Integers
from tacit.policy.domain import Domain
from tacit.policy.knowledge import size
from tacit.policy.policy import Policy
from tacit.policy.secrets import attributes, everything, partition, within
from tacit.release.session import Session
from tacit_reproductions.data import SYNTHETIC_STEPS, Points
from tacit_reproductions.document_003.kmeans import (
    ITERATIONS,
    Floats,
    K,
    Weighted,
    best_objective,
    lloyd,
    noisy_lloyd,
    random_centres,
)
from tacit_reproductions.document_003.ranges import KM
from tacit_reproductions.measured import OURS, Runs
from tacit_reproductions.results import Claim, Table, about, check, said, spread

PRINTED: Final = "as printed (invalid)"
VALID: Final = "valid noise"
NO_NOISE: Final = "no privacy, same starts"
SHOWN: Final = (PRINTED, VALID, OURS)
FULL: Final = "full"
ONE_ATTRIBUTE: Final = "one attribute"
_ORDER: Final = 8.0  # what counts as ten times, or an order of magnitude, at least
_GRID: Final = "place"
_AXES: Final = "abcd"


@dataclass(frozen=True)
class Setting:
    """A line that may be in several figures: a data set, what is secret, and how long secret edges are."""

    data: str
    label: str
    reach: int
    secret: Any = field(compare=False, repr=False)  # from the names of the attributes to a family of secrets
    is_plane: bool = field(default=False, compare=False)
    on_grid: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.data}, {self.label}"

    def policy(self, points: Points) -> Policy:
        """Return the policy: everybody knows how many people there are."""
        if self.on_grid:
            rows, columns = (highest + 1 for highest in points.highest)
            return Policy(
                Domain({_GRID: Grid(rows, columns, of=("a", "b"))}), self.secret(_GRID), [size(points.people)]
            )
        lines = {axis: Integers(0, highest) for axis, highest in zip(_AXES, points.highest, strict=False)}
        return Policy(Domain(lines), self.secret(*lines), [size(points.people)])


@dataclass(frozen=True)
class Effort:
    """How often each mechanism runs, and at which epsilons; ours takes longest."""

    epsilons: tuple[Fraction, ...]
    runs: int
    runs_on_many: int  # on data sets with many different points
    our_epsilons: tuple[Fraction, ...]
    our_runs: int


@dataclass(frozen=True, eq=False)
class Starts:
    """A data set with the starts of all runs, and the objective without privacy: the best known, and from the starts.

    Starts are drawn anywhere in the box, since they must not depend on the data.
    """

    points: Points
    centres: Floats

    @classmethod
    def drawn(cls, points: Points, effort: Effort) -> Starts:
        """Draw the starts of a data set."""
        runs = effort.runs if len(points.at) < 40_000 else effort.runs_on_many
        return cls(points, random_centres(np.array(points.highest, dtype=np.float64), runs))

    @cached_property
    def data(self) -> Weighted:
        """The points as numbers."""
        return Weighted.of(self.points)

    @cached_property
    def best(self) -> float:
        """The best objective without privacy."""
        return best_objective(self.data)

    @cached_property
    def no_noise(self) -> Runs:
        """The objective without privacy from the same starts, over the best."""
        return Runs.of(self.data.objective(lloyd(self.data, self.centres)) / self.best)

    def trial(self, setting: Setting, epsilon: Fraction, *, printed: bool) -> Runs:
        """Return the objective of noisy k-means over the best."""
        found = noisy_lloyd(self.data, self.centres, setting.reach, epsilon, printed=printed)
        return Runs.of(self.data.objective(found) / self.best)

    def ours(self, setting: Setting, epsilon: Fraction, runs: int) -> Runs:
        """Return the objective of our releases over the best."""
        import pandas as pd

        policy = setting.policy(self.points)
        names = [_GRID] if setting.on_grid else list(policy.domain)
        everybody = pd.DataFrame(self.points.everybody(), columns=list(_AXES[: len(self.points.highest)]))
        session = Session(policy, everybody, budget=runs * epsilon)
        plan = session.plan(clusters(*names, k=K), epsilon=epsilon)
        # rows are counted once for all of them; noise is drawn for each
        releases: list[Any] = [reserved.make() for reserved in session.reserve([plan] * runs)]
        found = [np.asarray(release.centres) for release in releases]
        return Runs.of(self.data.objective(np.stack(found)) / self.best)


Measured: TypeAlias = Mapping[Setting, Mapping[Fraction, Mapping[str, Runs]]]
Figures: TypeAlias = dict[str, list[Setting]]


def figures(tweets: Points, skin: Sequence[Points], synthetic: Points, *, few: bool = False) -> Figures:
    """Return the lines of Figures 1(a) to 1(f), everything secret first. `skin` has several sizes, smallest last."""
    smallest = skin[-1]
    kilometres = {f"{km:,} km": round(km / KM) for km in (2000, 1000, 500, 100)}
    colours = {str(theta): theta for theta in (256, 128, 64, 32)}
    steps = {f"{theta / SYNTHETIC_STEPS:g}": theta for theta in (40, 20, 10, 4)}
    found: Figures = {}
    for figure, points, thetas in (("1a", tweets, kilometres), ("1b", smallest, colours), ("1c", synthetic, steps)):
        kept = list(thetas.items())[1::2] if few else list(thetas.items())
        found[figure] = [_whole(points), *(_within(points, label, theta) for label, theta in kept)]
    found["1d"] = [setting for points in skin for setting in (_whole(points), _within(points, "128", 128))]
    small = (smallest, synthetic, tweets)
    found["1e"] = [setting for points in small for setting in (_whole(points), _one_attribute(points))]
    widths = [(40, 30), (1, 1)] if few else [(40, 30), (10, 10), (1, 1)]
    found["1f"] = [_whole(tweets), *(_blocks(tweets, rows, columns) for rows, columns in widths)]
    return found


def measured(starts: Starts, setting: Setting, effort: Effort) -> dict[Fraction, dict[str, Runs]]:
    """Run all mechanisms on one line of a figure."""
    found: dict[Fraction, dict[str, Runs]] = {}
    for epsilon in effort.epsilons:
        found[epsilon] = {
            PRINTED: starts.trial(setting, epsilon, printed=True),
            VALID: starts.trial(setting, epsilon, printed=False),
            NO_NOISE: starts.no_noise,
        }
        if epsilon in effort.our_epsilons:
            found[epsilon][OURS] = starts.ours(setting, epsilon, effort.our_runs)
    return found


def cluster_tables(found: Measured, drawn: Figures) -> list[Table]:
    """Return Figure 1 as tables: the smallest and the largest epsilon, and all of them on the page."""
    lines, every = [], []
    for setting, by_epsilon in found.items():
        where = ", ".join(_panel(figure) for figure, settings in drawn.items() if setting in settings)
        for epsilon, by in by_epsilon.items():
            cells = [_cell(by[name]) if name in by else "" for name in (NO_NOISE, *SHOWN)]
            line = (where, setting.data, setting.label, f"{float(epsilon):g}", *cells)
            every.append(line)
            if epsilon in (min(by_epsilon), max(by_epsilon)):
                lines.append(line)
    headings = ("figure", "data set", "secret", "epsilon", NO_NOISE, *SHOWN)
    notes = (
        "Mean objective of k-means over the best without privacy that 20 spread starts find, and in brackets lower "
        "and upper quartile of the runs. Both noisy versions go "
        f"{ITERATIONS} iterations from starts anywhere in the domain; the column without privacy shows what these "
        "starts alone cost. As printed, nothing keeps centres in the domain.",
    )
    title = "Figure 1: objective of k-means over the best without privacy"
    return [Table(title, headings, lines, notes), Table(f"{title}, every epsilon", headings, every, on_screen=False)]


def _cell(runs: Runs) -> str:
    return f"{runs.written(',.3f')} ({runs.lower:,.3f} to {runs.upper:,.3f})"


def cluster_claims(found: Measured, drawn: Figures, effort: Effort) -> list[Claim]:
    """Return what section 6.1 says, beside what is found. As in the paper, over k-means from the same starts."""
    swept = [drawn[figure] for figure in ("1a", "1b", "1c")]
    full = [value for full, *_ in swept for value in _over_starts(found, full, PRINTED)]
    narrow, valid = (
        [value for _, *others in swept for one in others for value in _over_starts(found, one, name)]
        for name in (PRINTED, VALID)
    )
    worst = [max(_over_starts(found, full, PRINTED)) for full, *_ in swept]
    ours = [by[OURS].value for settings in swept for one in settings for by in found[one].values() if OURS in by]
    ours_too = f"; Tacit {spread(ours, '{:.3f}'.format)} times the best" if ours else ""
    names = dict.fromkeys(one.data for settings in swept for one in settings)
    run = f"as printed (invalid); {effort.runs} runs; {', '.join(map(_origin, names))}"
    return [
        Claim(
            "1(a)-(c)",
            "Laplace (full), objective over no privacy",
            run,
            "up to 100 times",
            f"{spread(full, _times)} with the printed noise",
            (about("largest ratio", max(full), 100, 2),),
        ),
        Claim(
            "1(a)-(c)",
            "within theta, objective over no privacy",
            run,
            "below 5 times",
            f"{spread(narrow, _times)} with the printed noise (invalid), {spread(valid, _times)} with valid{ours_too}",
            (check("ratio with the printed noise, each theta and epsilon,", narrow, "below", 5),),
            "and the printed noise is invalid",
        ),
        *(_gain_claim(found, drawn[figure], figure, effort) for figure in ("1b", "1c")),
        Claim(
            "1(a)-(c)",
            "Laplace (full): two, three and four dimensions, largest ratio",
            run,
            "larger with more dimensions",
            ", ".join(map(_times, worst)),
            (check("largest ratio in three, in four dimensions", worst[1:], "above", worst[0]),),
        ),
        _theta_claim(found, swept, run),
        _size_claim(found, drawn["1d"], effort),
        *(_attribute_claim(found, full, one, effort) for full, one in _by_twos(drawn["1e"])),
        *(_block_claim(found, drawn["1f"][0], one, effort) for one in drawn["1f"][1:]),
    ]


def cluster_goals(found: Measured, drawn: Figures) -> list[Table]:
    """Return our own goals on places and on small sets, where our column is there."""
    lines = []
    for figure in ("1a", "1b", "1c"):
        full, *_ = drawn[figure]
        for setting in drawn[figure]:
            for epsilon, by in found[setting].items():
                if OURS in by:
                    ours, plain = by[OURS], found[full][epsilon][OURS]
                    most = 1.01 if figure == "1a" else 1 + (by[VALID].value - 1) / 2
                    more = ours.less(plain)
                    is_met = ours.value - 2 * ours.margin <= most
                    no_worse = setting is full or more.value <= 2 * more.margin
                    where = (_panel(figure), setting.data, setting.label, f"{float(epsilon):g}")
                    verdicts = map(said, (is_met, no_worse))
                    lines.append((*where, f"{most:.3f}", ours.written(",.3f"), *verdicts))
    headings = ("figure", "data set", "secret", "epsilon", "at most", OURS, "met", "no worse than full")
    notes = (
        "Places: at most 1.01. Small sets: half of the excess of valid noise, and no worse than our own under plain "
        "differential privacy; both within two standard errors.",
    )
    return [Table("Our own goals for clusters", headings, lines, notes)] if lines else []


def _gain_claim(found: Measured, settings: Sequence[Setting], figure: str, effort: Effort) -> Claim:
    full, *others = settings
    gains = {name: max(max(_gains(found, full, one, name)) for one in others) for name in (PRINTED, VALID)}
    return Claim(
        _panel(figure),
        f"{full.data}: largest gain of a policy over full",
        _run(effort, full.data),
        "about 10 times",
        f"printed noise (invalid) {_times(gains[PRINTED])}, valid noise {_times(gains[VALID])}",
        (check("largest gain with printed noise, with valid noise", list(gains.values()), "at least", _ORDER),),
        "what was gained was not paid for: a valid sensitivity hardly knows theta",
    )


def _theta_claim(found: Measured, swept: Sequence[Sequence[Setting]], run: str) -> Claim:
    """Judge that a narrower secret may cost more: where the mean rises by more than two standard errors."""
    risen = []
    for settings in swept:
        pairs = [
            (found[a][epsilon][PRINTED], by[PRINTED]) for a, b in pairwise(settings) for epsilon, by in found[b].items()
        ]
        more = [narrow.less(wide) for wide, narrow in pairs]
        risen.append((sum(one.value > 2 * one.margin for one in more), len(more)))
    return Claim(
        "1(a)-(c)",
        "the next smaller theta, at the same epsilon: pairs whose error is larger by two standard errors",
        run,
        "error need not fall with theta, in each of the three figures",
        ", ".join(f"{many} of {of}" for many, of in risen),
        (check("pairs in each figure", [many for many, _ in risen], "above", 0),),
    )


def size_ratios(found: Measured, settings: Sequence[Setting]) -> dict[str, dict[str, dict[Fraction, float]]]:
    """Return Figure 1(d): the objective of Laplace over that within 128, by mechanism, data set and epsilon."""
    return {
        name: {
            full.data: {
                epsilon: found[full][epsilon][name].value / by[name].value
                for epsilon, by in found[one].items()
                if name in by
            }
            for full, one in _by_twos(settings)
        }
        for name in SHOWN
    }


def _size_claim(found: Measured, settings: Sequence[Setting], effort: Effort) -> Claim:
    """Judge Figure 1(d): Laplace over within 128, by size."""
    gains = {
        full.data: (_gains(found, full, one, PRINTED), _gains(found, full, one, VALID))
        for full, one in _by_twos(settings)
    }
    printed = [of_printed for of_printed, _ in gains.values()]
    ends = [(of[0], of[-1]) for of in printed]
    sizes = [(larger, smaller) for both in pairwise(printed) for larger, smaller in zip(*both, strict=True)]
    return Claim(
        "1(d)",
        "Laplace over within 128",
        _run(effort, *gains),
        "above 1 always, less so for larger sets and larger epsilon",
        "with the printed noise "
        + "; ".join(f"{data}: {spread(a, _times)} (valid {spread(b, _times)})" for data, (a, b) in gains.items()),
        (
            check("printed noise, each set and epsilon,", [gain for of in printed for gain in of], "above", 1),
            check("at the largest epsilon, beside the smallest,", [b for _, b in ends], "below", [a for a, _ in ends]),
            check("on a set, beside a tenth of it,", [a for a, _ in sizes], "below", [b for _, b in sizes]),
            check("valid noise", [gain for _, of in gains.values() for gain in of], "above", 1),
        ),
    )


def _attribute_claim(found: Measured, full: Setting, one: Setting, effort: Effort) -> Claim:
    gains = {name: _gains(found, full, one, name) for name in (PRINTED, VALID)}
    largest = [max(of) for of in gains.values()]
    what = "largest gain with printed noise, with valid noise"
    checked = check(what, largest, "at most", 2) if one.is_plane else check(what, largest, "at least", _ORDER)
    return Claim(
        "1(e)",
        f"{one.data}: one attribute against full",
        _run(effort, one.data),
        "little gain" if one.is_plane else "an order of magnitude less error",
        f"printed noise (invalid) {spread(gains[PRINTED], _times)}, valid {spread(gains[VALID], _times)}",
        (checked,),
    )


def _block_claim(found: Measured, full: Setting, one: Setting, effort: Effort) -> Claim:
    if not one.reach:
        apart = max(abs(by[VALID].value - by[NO_NOISE].value) for by in found[one].values())
        return Claim(
            "1(f)",
            f"{one.data}: {one.label}",
            _run(effort, one.data),
            "exact: no secret edge changes anything",
            "the same as without privacy" if apart < 1e-9 else f"{apart:.1g} apart",
            (check("distance from no privacy", apart, "below", 1e-9),),
        )
    printed, valid = ([1 / gain for gain in _gains(found, full, one, name)] for name in (PRINTED, VALID))
    return Claim(
        "1(f)",
        f"{one.data}: {one.label}, over full",
        _run(effort, one.data),
        "below 1",
        f"printed noise (invalid) {spread(printed, '{:.2f}'.format)}, valid {spread(valid, '{:.2f}'.format)}",
        (check("printed noise, each epsilon,", printed, "below", 1), check("valid noise", valid, "below", 1)),
        "the starts matter more than the noise",
    )


def _run(effort: Effort, *names: str) -> str:
    runs = f"{effort.runs} runs ({effort.runs_on_many} on sets with many different points)"
    return f"as printed (invalid) and with valid noise; {runs}; {', '.join(map(_origin, names))}"


def _origin(name: str) -> str:
    """Say whether a data set is the paper's."""
    if name == "Twitter":
        return "Twitter (placed at random in cells of a public histogram)"
    if name.startswith("Skin"):
        return f"{name} (the paper's{', sampled anew' * (name != 'Skin')})"
    return f"{name} (drawn anew, as the paper says)" if name == "synthetic" else name


def _over_starts(found: Measured, setting: Setting, name: str) -> list[float]:
    return [by[name].value / by[NO_NOISE].value for by in found[setting].values()]


def _gains(found: Measured, full: Setting, one: Setting, name: str) -> list[float]:
    """Return how many times smaller the objective is than with everything secret, by epsilon."""
    return [found[full][epsilon][name].value / by[name].value for epsilon, by in found[one].items()]


def _by_twos(settings: Sequence[Setting]) -> list[tuple[Setting, Setting]]:
    return list(zip(settings[::2], settings[1::2], strict=True))


def _panel(figure: str) -> str:
    return f"1({figure[-1]})"


def _whole(points: Points) -> Setting:
    return Setting(points.name, FULL, sum(points.highest), _everything)


def _within(points: Points, label: str, theta: int) -> Setting:
    return Setting(points.name, label, theta, partial(within, theta))


def _one_attribute(points: Points) -> Setting:
    is_plane = len(points.highest) == 2
    return Setting(points.name, ONE_ATTRIBUTE, max(points.highest), attributes, is_plane=is_plane)


def _blocks(points: Points, rows: int, columns: int) -> Setting:
    many = (points.highest[0] + 1) // rows * ((points.highest[1] + 1) // columns)
    secret = partial(partition, width=[rows, columns])
    return Setting(points.name, f"{many:,} blocks", rows - 1 + columns - 1, secret, on_grid=True)


def _everything(*names: str) -> Any:
    return everything()


def _times(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
