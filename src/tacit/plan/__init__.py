"""What is asked, and at what cost: everything here is computed from the policy and public parameters.

Read in this order: `queries` (what can be asked), `responses` (how answers move with one record), `steps` (how far,
along secret edges), `coupling` (the same under public knowledge), `directions` (which answers can rise, which can
fall), `distributions` and `radius` (the laws of the noise), `noise_for` (the least noise that hides a step), `totals`
and `sums` (what may be used exactly), `predict` (the expected error), `choose` (a whole plan), `coverage` (intervals),
`explain` (a plan in words).
"""
