"""Ctrl-C before a command runs: while the program imports what it needs and reads its arguments.

Nothing heavy is imported here, since this is what the program imports first.
"""

import os
import signal
from types import FrameType
from typing import Never

__all__ = ["STOPPED", "command_begins", "program_begins"]

#: Exit status when Ctrl-C ended the program, as shells count it.
STOPPED = 130


def program_begins() -> None:
    """Let Ctrl-C end the program at once: an exception could be caught by whatever is imported."""
    # Ignored where a shell started a job in the background, and then it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def command_begins() -> None:
    """Let Ctrl-C be an exception again: from here on something may have to be kept or cleared away."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(signum: int, frame: FrameType | None) -> Never:
    os.write(2, b"stopped: nothing was written\n")
    os._exit(STOPPED)
