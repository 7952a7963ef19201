"""One file a fit: labelled draws and a JSON record, written whole, and checked before it is read.

No pickle: arrays are plain numbers and labels, all else is JSON. A file may come from a stranger, so its
layout is compared with what is written here before memory is given to it, and its labels with its own study
before anything is read off them.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.atomic import replacing
from bayescdm.errors import BayesCDMError, FitError

if TYPE_CHECKING:
    import h5py

    from bayescdm.capability import Capability
    from bayescdm.study import Study

__all__ = [
    "LOSS_PROGRAM",
    "MIXED_MODAL_PROGRAM",
    "PROGRAM",
    "check_agreement",
    "checked_name",
    "parsing",
    "program_of",
    "read_fit_file",
    "write_fit_file",
]

#: What a file says that it is: a fit of a transfer law, of a loss law, or of the laws of several modalities.
PROGRAM, LOSS_PROGRAM, MIXED_MODAL_PROGRAM = PROGRAMS = (
    "bayescdm",
    "bayescdm loss",
    "bayescdm loss mixed-modal",
)

#: Kinds of numpy types that NetCDF holds to the bit: floats, integers, booleans; text is looked at by itself.
NUMBERS = "fiub"
#: What NetCDF itself writes beside an array; every attribute of ours is in the record.
NETCDF_ATTRIBUTES = {
    *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_FillValue", "dtype"),
    *("_Netcdf4Coordinates", "_Netcdf4Dimid", "coordinates"),
}
#: What a file says of itself as a whole, and what may stand beside a group: coordinates without a dimension.
FILE_ATTRIBUTES = {"program", "record", "sha256", "_NCProperties"}
GROUP_ATTRIBUTES = {"coordinates"}
#: How NetCDF names an array that stands for a dimension and holds nothing.
BARE_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
#: Positions into labels, which a wrong file could point anywhere: name, dimension of the labels.
POSITIONS = {
    "family_of_backbone": "family",
    "variant_of_backbone": "variant",
    "backbone_of_run": "backbone",
    "recipe_of_run": "recipe",
}


# --- writing ----------------------------------------------------------------------------------------


def write_fit_file(
    path: str | Path,
    groups: Mapping[str, xr.Dataset],
    record: Mapping[str, Any],
    *,
    program: str,
    overwrite: bool,
) -> Path:
    """Write groups of draws and a record to one NetCDF file: a reader sees the old file or the new one.

    Parameters
    ----------
    path : str or Path
    groups : mapping of str to Dataset
        Attributes may be anything that JSON can say, or plain arrays.
    record : mapping
        JSON-able; numpy scalars, arrays and paths are made so.
    program : str
        What wrote the file; asked for when it is read.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    Path

    Raises
    ------
    RequestError
        If the file exists and `overwrite` is false, or its folder does not.
    FitError
        If a variable or an attribute is of a type that the file cannot hold; names each.
    OSError
        If the disk is full or does not let itself be written; the file that stood there is untouched.
    """
    path = Path(path)
    problems = [problem for name, group in groups.items() for problem in _unwritable(name, group)]
    if problems:
        raise FitError("\n".join(f"{path}: cannot be saved: {problem}" for problem in problems))
    attributes = {name: _attributes(group) for name, group in groups.items()}
    try:
        text = json.dumps({**record, "attributes": attributes}, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise FitError(f"{path}: cannot be saved: its record is no JSON ({error})") from error
    tree = xr.DataTree.from_dict({name: group.drop_attrs() for name, group in groups.items()})
    tree.attrs = {"program": program, "record": text, "sha256": _digest(tree, text)}
    with replacing(path, overwrite=overwrite) as unfinished:
        # Made in memory first: HDF5 that meets a full disk cannot even be closed. And copied: a view of that
        # memory, kept by the traceback of an error in writing, outlives its owner and crashes Python.
        unfinished.write_bytes(bytes(tree.to_netcdf(engine="h5netcdf")))
    return path


def _unwritable(group: str, data: xr.Dataset) -> Iterator[str]:
    """Say which variables of a group cannot come back from NetCDF as they are."""
    for name, values in data.variables.items():
        kind = values.dtype.kind if isinstance(values.dtype, np.dtype) else ""
        text = kind in "UO" and kind and all(isinstance(value, str) for value in values.to_numpy().flat)
        if not (kind and kind in NUMBERS) and not text:
            yield f"{group}: '{name}' is of type {values.dtype}; make it plain numbers or text first"


def _attributes(data: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Attributes of a group (under an empty name) and of its variables."""
    found = {"": data.attrs} | {str(name): values.attrs for name, values in data.variables.items()}
    return {name: dict(attrs) for name, attrs in found.items() if attrs}


def _plain(value: Any) -> Any:
    """Numpy scalars, arrays and paths as JSON knows them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} {value!r}")


def _digest(tree: xr.DataTree, record: str) -> str:
    """SHA-256 of every number and label and of the record: a disk that errs would change answers unseen."""
    digest = hashlib.sha256(record.encode())
    for name, group in sorted(tree.children.items()):
        for variable, values in sorted(group.variables.items(), key=str):
            array = values.to_numpy()
            digest.update(repr((name, variable, values.dims, values.shape)).encode())
            text = array.dtype.kind in "UO"
            digest.update(json.dumps(array.tolist()).encode() if text else array.tobytes())
    return digest.hexdigest()


# --- reading ----------------------------------------------------------------------------------------


def read_fit_file(path: str | Path, *, program: str, version: int) -> tuple[xr.DataTree, dict[str, Any]]:
    """Read what :func:`write_fit_file` wrote, and close the file.

    Parameters
    ----------
    path : str or Path
    program : str
        What must have written it.
    version : int
        The ``format`` that its record must have.

    Returns
    -------
    DataTree, dict
        Groups of draws with their attributes, and the record.

    Raises
    ------
    FitError
        If the file is missing, damaged, from another program or version, or laid out in another way.
    """
    path = Path(path)
    if path.is_dir():
        raise FitError(f"{path}: is a folder; give the file that `bayescdm fit {path} --out fit.nc` writes")
    if not path.is_file():
        raise FitError(f"{path}: no such file")
    try:
        path.open("rb").close()
    except OSError as error:
        raise FitError(f"{path}: cannot be opened: {error.strerror or error}") from error
    with parsing(path, "cannot be read as a fit; is it whole? Fit again, or take a copy"):
        _check_file(path, program)
        # Loaded and closed: an open file could be neither deleted nor saved over. And what decoding would
        # warn of is decided here: the layout above, every number and label by the checksum.
        with warnings.catch_warnings(action="ignore"), xr.open_datatree(path, engine="h5netcdf") as tree:
            tree = tree.load()
    with parsing(path, "its record is damaged"):
        record = json.loads(tree.attrs["record"], parse_constant=_refuse_constant)
        if record["format"] != version:
            raise FitError(f"format {record['format']}, this version reads format {version}; fit again")
        if tree.attrs["sha256"] != _digest(tree, tree.attrs["record"]):
            raise FitError("is damaged: it does not hold what was written; fit again, or take a copy")
        groups = {name: tree[name].to_dataset() for name in tree.children}
        for name, attributes in record.pop("attributes", {}).items():
            for variable, attrs in attributes.items():
                (groups[name][variable] if variable else groups[name]).attrs = attrs
        return xr.DataTree.from_dict(groups), record


def program_of(path: str | Path) -> str | None:
    """Tell which program wrote a file; None for one that is missing or no file of fits.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    str or None
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            written_by = file.attrs.get("program")
            return written_by if written_by in PROGRAMS else None
    except OSError:
        return None


@contextmanager
def parsing(path: Path, trouble: str) -> Iterator[None]:
    """Turn whatever a file that is not what it should be makes go wrong into one line that names it."""
    try:
        yield
    except FitError as error:
        raise FitError(f"{path}: {error}") from error
    except BayesCDMError as error:
        raise FitError(f"{path}: {trouble} ({str(error).splitlines()[0]})") from error
    except Exception as error:
        # A file from elsewhere can be wrong in any way: no list of exceptions would be complete, and what a
        # library says of it helps nobody who reads one line.
        raise FitError(f"{path}: {trouble}") from error


def checked_name(name: Any) -> str:
    """Return the name of a model as a record gives it; never the path of a file that could be run."""
    if not isinstance(name, str) or not name or set(name) & set("/\\\n") or name.endswith(".py"):
        raise FitError(f"its record is damaged: {name!r:.80} is no name of a model")
    return name


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _check_file(path: Path, program: str) -> None:
    """Compare the layout with what is written here; nothing that the file declares is allocated."""
    import h5py

    with h5py.File(path, "r") as file:
        written_by = file.attrs.get("program")
        if written_by != program:
            kind = f"is a fit of '{written_by}'" if written_by in PROGRAMS else "was not written by bayescdm"
            raise FitError(f"{kind}; a fit of '{program}' is needed")
        _check_attributes(file, FILE_ATTRIBUTES, "the file")
        for name in file:
            group = _own(file, name)
            if not isinstance(group, h5py.Group):
                raise FitError(f"{_quoted(name)} stands outside the groups of draws, which a fit has not")
            _check_attributes(group, GROUP_ATTRIBUTES, _quoted(name))
            _check_coordinates(group, group, _quoted(name))
            for variable in group:
                array, where = _own(group, variable), _quoted(f"{name}/{variable}")
                _check_array(array, where)
                _check_decoding(array, where)
                _check_coordinates(array, group, where)


def _quoted(name: str) -> str:
    """Return a name that a stranger chose as it may be printed: short, and without what moves the cursor."""
    return repr(name[:160])


def _own(group: h5py.Group, name: str) -> h5py.Group | h5py.Dataset:
    """Return what a group itself holds; a link could lead into another file, or round in circles."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise FitError(f"{_quoted(name)} is a link, which a fit has not")
    return group[name]


def _check_attributes(thing: h5py.Group | h5py.Dataset, known: set[str], where: str) -> None:
    others = sorted(set(thing.attrs) - known)
    if others:
        raise FitError(f"{where} has an attribute {_quoted(others[0])}, which a fit has not")


def _check_array(array: h5py.Group | h5py.Dataset, where: str) -> None:
    """Refuse an array that is not plain numbers or text, or that declares more than the file holds."""
    import h5py

    if not isinstance(array, h5py.Dataset):
        raise FitError(f"{where} is a group inside a group, which a fit has not")
    if array.dtype.kind not in NUMBERS and h5py.check_string_dtype(array.dtype) is None:
        raise FitError(f"{where} is of type {array.dtype}, neither numbers nor text")
    if array.is_virtual or array.external:
        raise FitError(f"{where} is kept outside the file")
    _check_attributes(array, NETCDF_ATTRIBUTES, where)
    name = array.attrs.get("NAME", b"")
    if not isinstance(name, bytes):
        raise FitError(f"{where} has an attribute 'NAME' that is not what NetCDF writes there")
    if name.startswith(BARE_DIMENSION):
        return
    declared = array.size * array.id.get_type().get_size()
    if declared > array.id.get_storage_size():
        raise FitError(f"{where} declares {declared} bytes and holds {array.id.get_storage_size()}")
    if array.ndim and not {"CLASS", "DIMENSION_LIST"} & set(array.attrs):
        raise FitError(f"{where} does not say what its dimensions are")


def _check_decoding(array: h5py.Dataset, where: str) -> None:
    """Refuse what would have the numbers read as others: of these, a fit marks NaN and booleans alone."""
    fill = np.asarray(array.attrs.get("_FillValue", np.nan))
    if fill.dtype.kind != "f" or fill.size != 1 or not np.isnan(fill).all():
        raise FitError(f"{where} has an attribute '_FillValue' other than NaN, which a fit has not")
    if "dtype" in array.attrs and (str(array.attrs["dtype"]) != "bool" or array.dtype != np.int8):
        raise FitError(f"{where} has an attribute 'dtype' that makes something else of its numbers")


def _check_coordinates(thing: h5py.Group | h5py.Dataset, group: h5py.Group, where: str) -> None:
    """Refuse coordinates that are not there."""
    names = thing.attrs.get("coordinates", "")
    if not isinstance(names, str) or not set(names.split()) <= set(group):
        raise FitError(f"{where} has an attribute 'coordinates' that names no arrays of its group")


# --- labels -----------------------------------------------------------------------------------------


def check_agreement(draws: xr.DataTree, study: Study, capability: Capability) -> None:
    """Refuse draws whose dimensions or labels are not those of their study.

    Parameters
    ----------
    draws : DataTree
    study : Study
    capability : Capability

    Raises
    ------
    FitError
        Names the group and what is wrong with it.
    """
    for name in ("posterior", "sample_stats", "constant_data"):
        if name not in draws.children:
            raise FitError(f"there is no group '{name}'")
    posterior, stats, constant = (
        draws[name].to_dataset() for name in ("posterior", "sample_stats", "constant_data")
    )
    for variable, values in posterior.items():
        if values.dims[:2] != ("chain", "draw") or values.dtype.kind not in NUMBERS:
            raise FitError(f"posterior: '{variable}' is not a number for each chain and draw")
    diverging = stats["diverging"] if "diverging" in stats else xr.DataArray(0)
    if diverging.sizes != {dim: posterior.sizes.get(dim, 0) for dim in ("chain", "draw")}:
        raise FitError("sample_stats: 'diverging' is not there for each chain and draw of the posterior")
    known = {
        "family": study.families,
        "backbone": study.backbones.index,
        "recipe": study.recipes,
        "run": study.runs.index.astype(str),
        "component": capability.scores.columns,
    }
    for group in draws.children:
        for dim, labels in known.items():
            if dim in draws[group].coords:
                _check_labels(pd.Index(draws[group].coords[dim].to_numpy()), labels, f"{group}: {dim}")
    for name, dim in POSITIONS.items():
        if name in constant and not constant[name].isin(np.arange(constant.sizes.get(dim, 0))).all():
            raise FitError(f"constant_data: '{name}' points outside the labels of {dim}")


def _check_labels(labels: pd.Index, known: pd.Index | list[str], where: str) -> None:
    if labels.has_duplicates:
        raise FitError(f"{where} '{labels[labels.duplicated()][0]!s:.80}' stands there twice")
    strange = labels.difference(pd.Index(known), sort=False)
    if len(strange):
        raise FitError(f"{where} '{strange[0]!s:.80}' is not in the study")
