"""What breaks between processes: databases that crash or turn read-only, poolers, lost replies, wrong clocks, workers
that are killed, frozen or told to stop.

`lab` is a queue of a test's own with programs in Python, TypeScript and Go (`programs`) working on it; `evidence` is
the verdict on what they left in the database; `proxy` and `skew` are the faults that no signal can make. Tests wait for
conditions and compare times of the database; no wall-clock figure is asserted that a busy machine could break.
"""
