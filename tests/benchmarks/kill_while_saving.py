"""Kill a process while it saves a fit, again and again, and count what stands in the file afterwards.

Run: ``python tests/benchmarks/kill_while_saving.py FIT.nc [kills] [seed]`` (100 kills by default). The fit
itself is not touched: it is saved over a copy.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from bayescdm.fit import Fit, load_fit


def save_for_ever(fit: Fit, path: Path, started: int) -> None:
    """Save a fit over a file without end; the number of each save is in it, and announced before."""
    number = 0
    while True:
        number += 1
        os.write(started, f"{number}\n".encode())
        replace(fit, settings={"save": number}).save(path, overwrite=True)


def kill_once(fit: Fit, path: Path, wait: float) -> str:
    """Kill a saving process after `wait` seconds; say which save the file holds."""
    replace(fit, settings={"save": 0}).save(path, overwrite=True)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of threads; those that are there do linear algebra, of which saving does none.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        save_for_ever(fit, path, writing)
    os.close(writing)
    time.sleep(wait)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    with open(reading, encoding="ascii") as announced:
        last = int([0, *announced.read().split()][-1])
    loaded = load_fit(path)
    if not all(loaded.group(name).identical(fit.group(name)) for name in fit.draws.children):
        return "neither"
    return {last - 1: "the old one", last: "the new one"}.get(loaded.settings["save"], "neither")


def main(fit: str, kills: int = 100, seed: int = 0) -> None:
    """Kill and print the counts."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(dir=Path(fit).parent) as folder:
        path = Path(folder) / "fit.nc"
        shutil.copy(fit, path)
        loaded = load_fit(path)
        begin = time.monotonic()
        loaded.save(path, overwrite=True)
        duration = time.monotonic() - begin
        held = Counter(kill_once(loaded, path, 0.1 + rng.uniform(0, 3) * duration) for _ in range(kills))
        unfinished = len(list(Path(folder).iterdir())) - 1
        size = path.stat().st_size / 1e6
    print(f"{kills} kills while saving {size:.1f} MB (one save takes {duration:.2f} s); the file held")
    for what in ("the old one", "the new one", "neither"):
        print(f"  {held[what]:5d} × {what}")
    print(f"and {unfinished} unfinished temporary files were left beside it")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
