"""Model files: one PyMC model a file, each with one function ``build(data) -> pymc.Model``."""
