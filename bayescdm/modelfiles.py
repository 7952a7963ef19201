"""Find and load model files: packaged ones by name, a user's own by path."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayescdm.errors import ModelError, NotFoundError

__all__ = ["ModelFile", "load_model", "model_names"]


@dataclass(frozen=True)
class ModelFile:
    """A loaded model file.

    Parameters
    ----------
    name : str
        File name without ending.
    path : Path
    source_hash : str
        SHA-256 of the file, kept with every fit.
    summary : str
        First line of the file's docstring.
    build : callable
        ``build(data) -> pymc.Model``.
    """

    name: str
    path: Path
    source_hash: str
    summary: str
    build: Callable[[Any], Any]


def models_folder() -> Path:
    """Return the packaged model files' folder: beside the package in a checkout, inside it in a wheel."""
    inside = Path(__file__).parent / "models"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "models"


def model_names() -> list[str]:
    """Return the names of the packaged model files.

    Examples
    --------
    >>> "transfer_hierarchical" in model_names()
    True
    """
    return sorted(path.stem for path in models_folder().glob("[!_]*.py"))


def load_model(name: str | Path) -> ModelFile:
    """Load a packaged model file by name, or a user's own by path.

    Parameters
    ----------
    name : str or Path
        A name from :func:`model_names`, or a path that ends in ``.py``. The file is run as Python.

    Returns
    -------
    ModelFile

    Raises
    ------
    NotFoundError
        If there is no such file; names the nearest packaged one.
    ModelError
        If the file cannot be run or has no ``build``.
    """
    own = str(name).endswith(".py")
    path = Path(name) if own else models_folder() / f"{name}.py"
    if not own and name not in model_names():
        near = difflib.get_close_matches(str(name), model_names(), 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise NotFoundError(
            f"no model '{name}'{hint} Packaged models: {', '.join(model_names())}; "
            "a file of your own is given by a path that ends in .py"
        )
    if not path.is_file():
        raise NotFoundError(f"no model file at {path}")
    spec = importlib.util.spec_from_file_location(f"bayescdm_model_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ModelError(f"{path}: cannot be run ({type(error).__name__}: {error})") from error
    if not callable(getattr(module, "build", None)):
        raise ModelError(f"{path}: has no function build(data) that returns a pymc.Model")
    summary = (module.__doc__ or "").strip().split("\n")[0]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return ModelFile(path.stem, path, digest, summary, module.build)
