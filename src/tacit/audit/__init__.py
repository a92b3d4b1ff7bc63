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
planted                                   mistakes on purpose, which the audits must find; loaded when first asked for

In reading order:

    worlds                records, edges and neighbouring data sets, from the definitions
    loss                  what an exact audit finds
    exact_audit           the worst loss, computed
    possible_worlds       what somebody learns who knows what the policy declares, or more
    sampled_audits        what outputs alone show
    exclusion_results     what leaving records out gives away where attributes depend on each other
    posterior_bounds      the same, to somebody who knows the dependence only roughly
    exclusion_audit       the audit of it
    case_audit            the same for a case: every application and coalition, against epsilon and limit
    disclosure_audits     what noisy answers and tables tell of groups of people
    reconstruction_audit  how well a few people's values can be estimated from a table
    selfcheck             our own mechanisms and planted mistakes
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from tacit.audit.disclosure_audits.disclosures import Disclosure, disclosure
from tacit.audit.disclosure_audits.ratios import closeness, ratio_cdf
from tacit.audit.disclosure_audits.yardsticks import SeveralYardsticks, Yardsticks, syntactic
from tacit.audit.exact_audit import exact
from tacit.audit.exclusion_audit import Exclusion, exclusion
from tacit.audit.exclusion_results import Freedom, LeakReport, WorstOutcome
from tacit.audit.loss import ExactAudit, Loss, Witness
from tacit.audit.possible_worlds import PosteriorOdds, posterior_odds, steps_among
from tacit.audit.reconstruction_audit import ReconstructionAudit, reconstruction
from tacit.audit.sampled_audits.releases import release
from tacit.audit.sampled_audits.sampled_audit import SampledAudit, SampledWitness, Verdict, assert_no_leak, sampled

if TYPE_CHECKING:
    from tacit.audit.selfcheck.planted import PlantedLeak, planted

_PLANTED: Final = "tacit.audit.selfcheck.planted"  # broken mechanisms: nobody loads them who does not ask for them


def __getattr__(name: str) -> Any:
    if name not in ("PlantedLeak", "planted"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLANTED), name)
    return found


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
