"""How answers are blurred: `noise` is the only source of randomness; one module for each mechanism.

`keystream` makes random words, `tables` and `cube_radius` turn them into exact draws, `noise` is what others call,
`additive` adds the noise of a plan to true answers.
"""
