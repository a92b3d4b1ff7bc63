"""Tables for everybody: rows whose sensitive values are perturbed, so that much is learnt about many, little about few.

perturbed(rows, public=.., sensitive=..)  each record keeps its sensitive value, or gets a random one
reconstruction_private(rows, ..)          tables that satisfy the criterion of reconstruction privacy
append(table, rows or session)            a new version of such a table
reconstruct(table, where, value)          what a table says about many people (also `tc.reconstruct`)
retention_for(values, epsilon=..)         how often a value may be kept
generalise(source, ..)                    public values that say the same become one

In reading order:

    groups       people who agree in every public column; public values that become one
    generalise   which public values say the same
    methods      what is drawn for the counts of groups, and what it promises
    table        what is published
    paid_tables  where counts come from, and who pays
    make_tables  perturbed tables, tables that keep a criterion, and rows that came later
    estimates    what a table says about many people
    local        randomised response of single people
"""

from tacit.publish.estimates import Reconstruction, reconstruct
from tacit.publish.generalise import generalise
from tacit.publish.groups import Generalisation
from tacit.publish.make_tables import append, perturbed, reconstruction_private
from tacit.publish.methods.perturbation import retention_for
from tacit.publish.table import PublishedTable

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
