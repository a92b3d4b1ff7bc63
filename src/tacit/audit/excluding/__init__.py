"""What leaving records out gives away where attributes depend on each other.

In reading order:

    exclusion_results  what the next one finds
    exclusion_audit    what suppressed attributes tell about each other
    case_audit         the same for a case: every application and coalition, against epsilon and limit
"""
