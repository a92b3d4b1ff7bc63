"""Whether places are below a threshold, step after step, with one guarantee for the life of a monitor.

In reading order:

    monitor      monitors of single places and of maps
    checks       what is refused before a monitor begins
    events       from a batch of events to the numbers that a monitor needs
    event_cells  times, and which persons and ids are equal
    clock        which step a time belongs to
    counting     which visits of a batch count, and when
    journal      what a monitor remembers, changed in whole steps
    history      what it has published
    promises     what it promises, in words
    alarm        is a count below a threshold
"""
