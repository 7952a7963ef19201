"""Command line: each command is a thin layer over one public function.

Exit status: 0, 1 (the user's input), 2 (usage), 3 (did not converge), 130 (stopped by
Ctrl-C). Heavy imports stand inside commands.
"""

from bayescdm.cli import batch, choices, fits, loss, paper, reports, studies, validation
from bayescdm.cli.frame import app

__all__ = ["app", "batch", "choices", "fits", "loss", "paper", "reports", "studies", "validation"]
