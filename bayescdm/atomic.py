"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bayescdm.errors import RequestError

__all__ = ["check_place", "replacing"]


def check_place(path: str | Path, *, overwrite: bool = False) -> None:
    """Refuse a place where no file may be written, before long work that would end there.

    Parameters
    ----------
    path : str or Path
    overwrite : bool
        Whether a file that stands there may be replaced.

    Raises
    ------
    RequestError
        When `path` exists and `overwrite` is false, or its folder does not exist.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise RequestError(f"{path}: exists already; choose another name or ask to overwrite it")
    if not path.parent.is_dir():
        raise RequestError(f"{path}: there is no folder {path.parent}; make it first")


@contextmanager
def replacing(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Write a file beside its place and move it there when it is complete.

    Parameters
    ----------
    path : str or Path
        Where the file shall stand; its folder must exist.
    overwrite : bool
        Whether a file that stands there is replaced.

    Yields
    ------
    Path
        An empty file in the same folder, with the same suffix, to be written. It is moved to `path` when the
        block ends, and removed when the block fails: the old file or the new one, never half of one.

    Raises
    ------
    RequestError
        When `path` exists and `overwrite` is false, or its folder does not exist; before anything is written.
    OSError
        When the disk is full or may not be written; it names `path`, on one line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as unfinished:
    ...         size = unfinished.write_text("whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    path = Path(path)
    check_place(path, overwrite=overwrite)
    with _named(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        unfinished = Path(name)
        try:
            yield unfinished
            _give_usual_permissions(unfinished)
            _flush_to_disk(unfinished)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let what the system refuses speak of `path`: no name, or that of a temporary file, says nothing."""
    try:
        yield
    except OSError as error:
        unnamed = error.filename is None or os.path.basename(str(error.filename)).startswith(f".{path.stem}-")
        if error.errno is None or not unnamed:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _give_usual_permissions(path: Path) -> None:
    """Let others read the file as the user's mask allows; temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _flush_to_disk(path: Path) -> None:
    """Make sure the content reaches the disk before the name does."""
    with path.open("rb") as written:
        os.fsync(written.fileno())
