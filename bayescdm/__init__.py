"""bayescdm: posteriors of the transfer–absorption law of vision-language models."""
