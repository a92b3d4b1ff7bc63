"""Tables for everybody: rows whose sensitive values are perturbed, so that much is learnt about many, little about few.

perturbed(rows, public=.., sensitive=..)  each record keeps its sensitive value, or gets a random one
reconstruction_private(rows, ..)          tables that satisfy the criterion of reconstruction privacy
append(table, rows or session)            a new version of such a table
reconstruct(table, where, value)          what a table says about many people (also `tc.reconstruct`)
retention_for(values, epsilon=..)         how often a value may be kept
generalise(source, ..)                    public values that say the same become one

In reading order:

    groups           people who agree in every public column
    criterion        when an estimate about a few people is too good
    generalisation   which public values become one, and who may know that
    method           what every way to publish says about itself
    perturbation     uniform perturbation
    table            what is published
    generalise       public values that say the same become one
    perturbed_table  uniform perturbation of rows, or of a session
    sampled          a perturbed sample of each group
    groupwise        a retention for each size of a group
    widths           how wide a mask must be
    masked           private counts, each masked by noise that grows with it
    masked_columns   the same for several columns: masks are multiplied
    intervals        how far from the truth what is published may be
    estimates        what a table says about many people
    private_tables   the best of these
    versions         rows that came later
    local            randomised response of single people
    paid_tables      where counts come from, and who pays
"""

from tacit.publish.estimates import Reconstruction, reconstruct
from tacit.publish.generalisation import Generalisation
from tacit.publish.generalise import generalise
from tacit.publish.perturbation import retention_for
from tacit.publish.perturbed_table import perturbed
from tacit.publish.private_tables import reconstruction_private
from tacit.publish.table import PublishedTable
from tacit.publish.versions import append

__all__ = [
    "Generalisation",
    "PublishedTable",
    "Reconstruction",
    "append",
    "generalise",
    "perturbed",
    "reconstruct",
    "reconstruction_private",
    "retention_for",
]
