"""What breaks between processes: databases that crash or turn read-only, poolers, workers that are killed.

Every test has workers in Python, TypeScript and Go on one queue, and the same verdict: each job ends once, as a
success, and nothing is left running.
"""
