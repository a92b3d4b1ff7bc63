"""The questions, one module each, and the list of the words that job files have for them.

In reading order:

    count        how many people
    marginals    people in each cell: `histogram` and `marginals`
    cumulative   people up to each value
    ranges       people between two values
    rectangles   the same for two attributes at once, or for a map
    total        sums of numbers
    mean         sums over counts
    quantiles    values up to which shares of the people reach: `median` and `quantiles`
    clusters     centres that people lie close to
    true_records  records as they are, where they are no secret
    selection    what questions share whose answer is a choice
    below        whether fewer people than a threshold are picked
    above        which items at least so many people have
    top_k        the items that most people have
"""

from typing import Final

from tacit.plan.keys import Question
from tacit.plan.queries.above import ABOVE, Above, above
from tacit.plan.queries.below import BELOW, Below, below
from tacit.plan.queries.clusters import CLUSTERS, Clusters, clusters
from tacit.plan.queries.count import COUNT, Count, count
from tacit.plan.queries.cumulative import CUMULATIVE, Cumulative, cumulative
from tacit.plan.queries.marginals import HISTOGRAM, MARGINALS, Marginals, histogram, marginals
from tacit.plan.queries.mean import MEAN, Mean, mean
from tacit.plan.queries.quantiles import MEDIAN, QUANTILES, Quantiles, median, quantiles
from tacit.plan.queries.ranges import RANGES, Ranges, ranges
from tacit.plan.queries.rectangles import RECTANGLES, Rectangles, rectangles
from tacit.plan.queries.top_k import TOP_K, TopK, top_k
from tacit.plan.queries.total import TOTAL, Total, total
from tacit.plan.queries.true_records import TRUE_RECORDS, TrueRecords, true_records

QUESTIONS: Final[tuple[Question, ...]] = (
    COUNT,
    HISTOGRAM,
    MARGINALS,
    CUMULATIVE,
    RANGES,
    RECTANGLES,
    TOTAL,
    MEAN,
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
]
