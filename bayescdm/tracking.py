"""A bar on standard error while steps that take minutes are taken."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["tracked"]


def tracked[T](
    steps: Iterable[T], what: str, *, progress: bool, total: int | None = None, transient: bool = False
) -> Iterable[T]:
    """Show steps as they are taken.

    Parameters
    ----------
    steps : iterable
    what : str
        Stands before the bar.
    progress : bool
        Without it the steps are returned as they are.
    total : int, optional
        Number of steps, where they do not know it.
    transient : bool
        Whether the bar goes when it is full.

    Returns
    -------
    iterable
        The same steps.

    Examples
    --------
    >>> list(tracked([1, 2], "refits", progress=False))
    [1, 2]
    """
    if not progress:
        return steps
    from rich.console import Console
    from rich.progress import track

    return track(steps, description=what, total=total, console=Console(stderr=True), transient=transient)
