"""What is asked, and at what cost: everything here is computed from the policy and public parameters.

Read in this order: `queries` (what can be asked), `responses` (how answers move with one record), `steps` (how far,
along secret edges), `coupling` (the same under public knowledge), `directions` (which answers can rise, which can
fall), `distributions` and `radius` (the laws of the noise), `noise_for` (the least noise that hides a step), `totals`
and `sums` (what may be used exactly), `predict` (the expected error), `choose` (a whole plan), `coverage` (intervals),
`explain` (a plan in words).

Questions whose answer is a choice have plans of their own kind: `selections` (what can be asked), `selection_noise`
(the least noise that hides a choice), `tilted` (noise that pays a choice back), `selection_plan` (what such plans
share), `verdicts` (`below`, `above`), `ranking` (`top_k`). `asked` reads and checks questions of both kinds.
"""
