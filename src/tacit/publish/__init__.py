"""Tables for everybody: rows whose sensitive values are perturbed, so that much is learnt about many, little about few.

perturbed(rows, public=.., sensitive=..)  each record keeps its sensitive value, or gets a random one
reconstruction_private(rows, ..)          tables that satisfy the criterion of reconstruction privacy
append(table, rows or session)            a new version of such a table
reconstruct(table, where, value)          what a table says about many people (also `tc.reconstruct`)
retention_for(values, epsilon=..)         how often a value may be kept
generalise(source, ..)                    public values that say the same become one

In reading order:

    groups           people who agree in every public column
    generalisation   which public values become one, and who may know that
    methods          what is drawn for the counts of groups, and what it promises
    table            what is published
    generalise       public values that say the same become one
    perturbed_table  uniform perturbation of rows, or of a session
    estimates        what a table says about many people
    private_tables   the best of the methods that promise a criterion
    versions         rows that came later
    local            randomised response of single people
    paid_tables      where counts come from, and who pays
"""

from tacit.publish.estimates import Reconstruction, reconstruct
from tacit.publish.generalisation import Generalisation
from tacit.publish.generalise import generalise
from tacit.publish.methods.perturbation import retention_for
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
