"""The questions, one module each, and the list of the words that job files have for them.

In reading order:

    count         how many people
    marginals     people in each cell: `histogram` and `marginals`
    cumulative    people up to each value
    ranges        people between two values
    rectangles    the same for two attributes at once, or for a map
    total         sums of numbers
    mean          sums over counts
    variance      sums and sums of squares over counts
    quantiles     values up to which shares of the people reach: `median` and `quantiles`
    clusters      centres that people lie close to
    true_records  records as they are, where they are no secret
    selection     what questions share whose answer is a choice
    below         whether fewer people than a threshold are picked
    above         which items at least so many people have
    top_k         the items that most people have
    on_a_line     what questions about ordered values share
    written       questions as job files write them
"""

from typing import Final

from tacit.plan.question_keys import Question
from tacit.plan.questions.above import ABOVE, Above, above
from tacit.plan.questions.below import BELOW, Below, below
from tacit.plan.questions.clusters import CLUSTERS, Clusters, clusters
from tacit.plan.questions.count import COUNT, Count, count
from tacit.plan.questions.cumulative import CUMULATIVE, Cumulative, cumulative
from tacit.plan.questions.marginals import HISTOGRAM, MARGINALS, Marginals, histogram, marginals
from tacit.plan.questions.mean import MEAN, Mean, mean
from tacit.plan.questions.quantiles import MEDIAN, QUANTILES, Quantiles, median, quantiles
from tacit.plan.questions.ranges import RANGES, Ranges, ranges
from tacit.plan.questions.rectangles import RECTANGLES, Rectangles, rectangles
from tacit.plan.questions.top_k import TOP_K, TopK, top_k
from tacit.plan.questions.total import TOTAL, Total, total
from tacit.plan.questions.true_records import TRUE_RECORDS, TrueRecords, true_records
from tacit.plan.questions.variance import VARIANCE, Variance, variance

QUESTIONS: Final[tuple[Question, ...]] = (
    COUNT,
    HISTOGRAM,
    MARGINALS,
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
    "Marginals",
    "Mean",
    "Quantiles",
    "Ranges",
    "Rectangles",
    "TopK",
    "Total",
    "TrueRecords",
    "Variance",
    "above",
    "below",
    "clusters",
    "count",
    "cumulative",
    "histogram",
    "marginals",
    "mean",
    "median",
    "quantiles",
    "ranges",
    "rectangles",
    "top_k",
    "total",
    "true_records",
    "variance",
]
