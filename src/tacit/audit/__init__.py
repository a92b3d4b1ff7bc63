"""WHAT STILL LEAKS: audits of any mechanism, ours or yours, along the secret edges of a policy.

exact(query, policy, epsilon)             the worst loss, added up over every edge
sampled(release, hidden, cover, epsilon)  a lower confidence bound on the loss, from outputs alone
assert_no_leak(release, hidden, cover)    the same, for a test
release(policy, query, epsilon)           the same for a whole release of a session, rows in and record out
planted                                   mistakes on purpose, which the audits must find
"""

from tacit.audit.exact import exact
from tacit.audit.loss import ExactAudit, Loss, Witness
from tacit.audit.planted import planted
from tacit.audit.planted.planted_leak import PlantedLeak
from tacit.audit.releases import release
from tacit.audit.sampled import SampledAudit, SampledWitness, Verdict, assert_no_leak, sampled

__all__ = [
    "ExactAudit",
    "Loss",
    "PlantedLeak",
    "SampledAudit",
    "SampledWitness",
    "Verdict",
    "Witness",
    "assert_no_leak",
    "exact",
    "planted",
    "release",
    "sampled",
]
