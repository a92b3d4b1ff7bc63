"""What is asked, and at what cost: everything here is computed from the policy and public parameters.

In reading order:

    query            the contract of a question
    keys             what job files may write for one
    tally            what rows are counted for
    responses        how answers move with one record
    labels           columns of labels, each label once
    cells            counts of people in cells, and how they move
    weighted_sums    sums of one number times another, and how they move
    cell_weights     from noisy counts of cells to weights
    memberships      people shared out between the cells of a coarse grid
    zoom             which of these cells are cut, after a look
    cluster_grids    which of these grids, for clusters
    lloyd            k-means on released numbers
    fault            what is said when planning itself fails
    line             what questions about ordered values share
    examples         what audits ask about
    spread           the laws of the errors of estimates
    sums             sums of noisy cells with exact totals
    runs             runs of values, and how wrong their counts are
    strategy         a way to answer
    strategies       ways to measure a line, and what follows from them
    queries          the questions, one module each
    questions        questions as job files write them
    steps            how far they move along secret edges
    coupling         the same under public knowledge
    disjoint         groups whose costs do not add up
    directions       which answers can rise, which can fall
    noise_for        the least noise that hides a step
    totals           what no secret edge changes
    line_moves       how people move on a line
    line_errors      how wrong counts on a line are, for noise made for lines
    line_strategies  every way to measure a line that is worth trying
    predict          the expected error
    any_plan         what every plan has
    counted_tables   tables of counts: the noise of each cell, and exact sums
    choose           a whole plan
    coverage         bounds on the noise of one answer
    weighted_tables  several tables, each with its own noise
    grids            plans of rectangles on a grid
    derived          plans of questions that are made of several parts
    showing          which records may be shown as they are
    records_plan     plans that show records
    knowledge_cost   what it costs that something is known
    explain          a plan in words
    leakage          which epsilons let nobody learn too much where attributes depend on each other

Questions whose answer is a choice have plans of their own kind:

    selection_plan   what such plans share
    selection_noise  the least noise that hides a choice
    verdicts         `below` and `above`
    ranking          `top_k`
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.plan.leakage.budget import leakage_budget as leakage_budget
    from tacit.plan.leakage.leakage_plan import LeakagePlan as LeakagePlan

__all__ = ["LeakagePlan", "leakage_budget"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: most plans need no optimisation."""
    if name == "leakage_budget":
        from tacit.plan.leakage.budget import leakage_budget

        return leakage_budget
    if name == "LeakagePlan":
        from tacit.plan.leakage.leakage_plan import LeakagePlan

        return LeakagePlan
    raise AttributeError(f"module 'tacit.plan' has no attribute {name!r}")
