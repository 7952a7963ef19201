"""Run the command line as ``python -m bayescdm``."""

from bayescdm.cli import app

app(prog_name="bayescdm")
