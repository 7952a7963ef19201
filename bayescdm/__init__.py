"""bayescdm: posteriors of the transfer–absorption law of vision-language models."""

__version__ = "0.1.0"
