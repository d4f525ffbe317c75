"""The code that the documentation shows compiles, with the types a reader would have."""
