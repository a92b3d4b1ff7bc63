"""The questions, one module each, and the list of the words that job files have for them.

In reading order:

    counts         how many people, in all or in each cell: `count`, `histogram` and `marginals`
    listed_counts  how many people each predicate of a list picks: `counts`
    time_parts     histograms by parts of times: hour, weekday, month or year
    cumulative     people up to each value
    ranges         people between two values
    rectangles     the same for two attributes at once, or for a map
    total          sums of numbers
    two_sums       a sum and a number of people from two sums with one epsilon
    moments        sums, and sums of squares, over counts: `mean` and `variance`
    quantiles      values up to which shares of the people reach: `median` and `quantiles`
    clusters       centres that people lie close to
    true_records   records as they are, where they are no secret
    selections     questions whose answer is a choice: `below`, `above` and `top_k`
    written        questions as job files write them
"""

from typing import Final

from tacit.plan.question_keys import Question
from tacit.plan.questions.clusters import CLUSTERS, Clusters, clusters
from tacit.plan.questions.counts import COUNT, HISTOGRAM, MARGINALS, Count, Marginals, count, histogram, marginals
from tacit.plan.questions.cumulative import CUMULATIVE, Cumulative, cumulative
from tacit.plan.questions.listed_counts import COUNTS, ListedCounts, counts
from tacit.plan.questions.moments import MEAN, VARIANCE, Mean, Variance, mean, variance
from tacit.plan.questions.quantiles import MEDIAN, QUANTILES, Quantiles, median, quantiles
from tacit.plan.questions.ranges import RANGES, Ranges, ranges
from tacit.plan.questions.rectangles import RECTANGLES, Rectangles, rectangles
from tacit.plan.questions.selections import ABOVE, BELOW, TOP_K, Above, Below, TopK, above, below, top_k
from tacit.plan.questions.total import TOTAL, Total, total
from tacit.plan.questions.true_records import TRUE_RECORDS, TrueRecords, true_records

QUESTIONS: Final[tuple[Question, ...]] = (
    COUNT,
    HISTOGRAM,
    MARGINALS,
    COUNTS,
    CUMULATIVE,
    RANGES,
    RECTANGLES,
    TOTAL,
    MEAN,
    VARIANCE,
    MEDIAN,
    QUANTILES,
    CLUSTERS,
    TRUE_RECORDS,
    TOP_K,
    ABOVE,
    BELOW,
)

__all__ = [
    "QUESTIONS",
    "Above",
    "Below",
    "Clusters",
    "Count",
    "Cumulative",
    "ListedCounts",
    "Marginals",
    "Mean",
    "Quantiles",
]
__all__ += ["Ranges", "Rectangles", "TopK", "Total", "TrueRecords", "Variance"]
__all__ += ["above", "below", "clusters", "count", "counts", "cumulative", "histogram", "marginals", "mean", "median"]
__all__ += ["quantiles", "ranges", "rectangles", "top_k", "total", "true_records", "variance"]
