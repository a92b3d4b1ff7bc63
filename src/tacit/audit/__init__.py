"""WHAT STILL LEAKS: audits of any mechanism, ours or yours, along the secret edges of a policy.

exact(query, policy, epsilon)             the worst loss, added up over every edge
sampled(release, hidden, cover, epsilon)  a lower confidence bound on the loss, from outputs alone
assert_no_leak(release, hidden, cover)    the same, for a test
release(policy, query, epsilon)           the same for a whole release of a session, rows in and record out
reconstruction(rows, public=.., ..)       which groups a perturbed table would tell too much about
posterior_odds(query, policy, epsilon)    how far a release moves the odds of somebody who knows something
exclusion(dependence, sensitive, epsilon) what leaving records out gives away where attributes depend on each other
disclosure(rows, public, sensitive)       what noisy answers tell of groups; reads private data, for the curator
syntactic(frame, public, sensitive)       k-anonymity and its kin, for the curator as well
closeness(theta, phi, scale, tau)         how likely a noisy confidence is close to the true one
ratio_cdf(z, theta, phi, scale)           the law of the ratio of two noisy counts
planted                                   mistakes on purpose, which the audits must find

In reading order:

    worlds           records, edges and neighbouring data sets, from the definitions
    exact_audit      the exact audit
    loss             what it finds
    selections       the loss of selections among a few counts
    shown_records    what is shown of true records
    sampled_audit    the sampled audit
    draws            outputs, drawn many at a time
    canonical        what a reader sees of an output
    packages         what belongs to a call, and what to each of its outputs
    views            where in an output a leak may show
    events           events that tell two samples apart
    trees            a small classifier for outputs with structure
    neighbour_check  data sets that are given for an audit
    made_up          made-up data sets, as rows that a session can open
    releases         the audit of a whole release
    ask              questions that are written on a command line
    subjects         mechanisms of this package, ready to be audited
    table_subjects   ways to publish a table, ready to be audited
    registry         one case for each way in which answers are blurred
    planted          what the audits must find
    possible_worlds  what somebody learns who knows what the policy declares, or more
    excluding        what leaving records out gives away where attributes depend on each other
    reconstructing   how well a few people's values can be estimated from a table
    disclosing       what noisy answers and tables tell of groups of people
    table            the table of all audits
"""

from tacit.audit.disclosing.disclosures import Disclosure, disclosure
from tacit.audit.disclosing.ratios import closeness, ratio_cdf
from tacit.audit.disclosing.yardsticks import SeveralYardsticks, Yardsticks, syntactic
from tacit.audit.exact_audit import exact
from tacit.audit.excluding.exclusion_audit import Exclusion, exclusion
from tacit.audit.excluding.exclusion_results import Freedom, LeakReport, WorstOutcome
from tacit.audit.loss import ExactAudit, Loss, Witness
from tacit.audit.planted import planted
from tacit.audit.planted.planted_leak import PlantedLeak
from tacit.audit.possible_worlds import PosteriorOdds, posterior_odds, steps_among
from tacit.audit.reconstructing.reconstruction_audit import ReconstructionAudit, reconstruction
from tacit.audit.releases import release
from tacit.audit.sampled_audit import SampledAudit, SampledWitness, Verdict, assert_no_leak, sampled

__all__ = [
    "Disclosure",
    "ExactAudit",
    "Exclusion",
    "Freedom",
    "LeakReport",
    "Loss",
    "PlantedLeak",
    "PosteriorOdds",
    "ReconstructionAudit",
    "SampledAudit",
    "SampledWitness",
    "SeveralYardsticks",
    "Verdict",
    "Witness",
    "WorstOutcome",
    "Yardsticks",
    "assert_no_leak",
    "closeness",
    "disclosure",
    "exact",
    "exclusion",
    "planted",
    "posterior_odds",
    "ratio_cdf",
    "reconstruction",
    "release",
    "sampled",
    "steps_among",
    "syntactic",
]
