"""Events of a monitor: from a batch, which is private, to the few numbers that it counts.

In reading order:

    reader    one batch in its engine: checked, grouped there and decoded here
    batches   files, frames and records, as an engine can read them
    columns   where a row's place, person, time and id are, and what was read
    times     whole numbers or dates
    identity  when two persons or events are the same
"""
