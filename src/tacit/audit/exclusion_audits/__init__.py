"""What leaving records out gives away where attributes depend on each other.

In reading order:

    exclusion_results  what the next one finds
    cancellation       where two suppressions cancel or reinforce each other
    partial_knowledge  an adversary who knows the dependence roughly
    posterior_bounds   bounds on posteriors over all such dependences
    exclusion_audit    what suppressed attributes tell about each other
    case_audit         the same for a case: every application and coalition, against epsilon and limit
"""
