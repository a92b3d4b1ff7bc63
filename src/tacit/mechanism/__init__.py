"""How answers are blurred: one module for each mechanism, and one source of randomness for all.

In reading order:

    noise        exact whole-number draws: what the mechanisms call
    keystream    the stream of random bits behind all draws
    tables       exact draws by inversion
    cube_radius  exact draws of the radius of a cube
    additive     add the noise of a plan to true answers
    thresholds   compare counts with a threshold
    top_k        choose the largest counts, then measure them
    tilted_cube  the noise that chosen counts are measured with
    selection    the right one of these for a plan
    alarm        is a count below a threshold, for monitors
"""
