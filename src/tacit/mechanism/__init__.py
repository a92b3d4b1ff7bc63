"""How answers are blurred: `noise` is the only source of randomness; one module for each mechanism.

`keystream` makes random words, `tables` and `cube_radius` turn them into exact draws, `noise` is what others call,
`additive` adds the noise of a plan to true answers. `thresholds` and `top_k` compare and choose, `tilted_cube` draws
the noise that chosen counts are measured with, `selection` finds the right one for a plan.
"""
