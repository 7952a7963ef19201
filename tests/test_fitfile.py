"""A saved fit comes back to the bit or is refused in one line; a stranger's file is never trusted."""

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayescdm as cdm
from bayescdm.errors import FitError
from bayescdm.fitfile import write_fit_file
from bayescdm.loss.fit import load_loss_fit
from bayescdm.predict import predict_draws
from bayescdm.study import Study, decode_table, encode_table

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def saved(known_fit, tmp_path_factory):
    return known_fit(draws=100).save(tmp_path_factory.mktemp("saved") / "fit.nc")


@pytest.fixture
def copy(saved, tmp_path):
    path = tmp_path / "fit.nc"
    path.write_bytes(saved.read_bytes())
    return path


def refusal(path, load=cdm.load_fit):
    """The one line by which a file is refused, without its name."""
    with pytest.raises(FitError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message and len(message) < 600
    return message.removeprefix(f"{path}: ")


def rewrite_record(path, change):
    """Write the file anew with another record, whole in every other respect."""
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        tree = tree.load()
    record = json.loads(tree.attrs["record"])
    groups = {name: tree[name].to_dataset() for name in tree.children}
    change(record, groups)
    write_fit_file(path, groups, record, program=tree.attrs["program"], overwrite=True)


# --- there and back ---------------------------------------------------------------------------------


def test_a_new_process_predicts_to_the_bit(known_fit, saved):
    code = (
        "import sys, hashlib, bayescdm as cdm\n"
        "draws = cdm.predict_draws(cdm.load_fit(sys.argv[1]), volumes=[1e6, 3e6], recipe='new', kind='run')\n"
        "print(hashlib.sha256(draws.to_numpy().tobytes()).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", code, saved], capture_output=True, text=True, check=True)
    here = predict_draws(known_fit(draws=100), volumes=[1e6, 3e6], recipe="new", kind="run")
    assert there.stdout.strip() == hashlib.sha256(here.to_numpy().tobytes()).hexdigest()


def test_saved_over_the_file_just_loaded_and_used_after_it_is_gone(copy):
    fit = cdm.load_fit(copy)
    fit.save(copy, overwrite=True)
    again = cdm.load_fit(copy)
    copy.unlink()
    for name in again.draws.children:
        assert again.group(name).identical(fit.group(name)), name
    xr.testing.assert_identical(
        predict_draws(again, volumes=1e6, kind="run"), predict_draws(fit, volumes=1e6, kind="run")
    )
    again.save(copy)


def test_attributes_of_every_json_type_come_back(known_fit, tmp_path):
    attributes = {
        "none": None,
        "flag": True,
        "map": {"a": [1]},
        "one": ["x"],
        "empty": [],
        "text": "é",
        "n": 2,
    }
    fit = known_fit(draws=10)
    fit.draws["posterior"] = xr.DataTree(fit.posterior.assign_attrs(attributes))
    fit.draws["posterior"]["A"].attrs |= {"units": "days since 2000-01-01", "scale_factor": 2.0}
    loaded = cdm.load_fit(fit.save(tmp_path / "fit.nc"))
    assert loaded.posterior.attrs == attributes
    # Read as NetCDF conventions would have it, these two would change the numbers.
    assert loaded.posterior.identical(fit.posterior)


def test_settings_and_tables_of_other_types_come_back_as_plain_ones(known_fit, tmp_path):
    fit = known_fit(draws=10)
    fit.settings.update(path=Path("a/b"), seed=np.int64(3), figures=np.array([0.1, 0.2]), nothing=None)
    fit.study.backbones["params"] = fit.study.backbones["params"].astype("Int64")
    fit.study.backbones.loc["unscored", "params"] = pd.NA
    fit.study.runs["recipe"] = fit.study.runs["recipe"].astype("category")
    loaded = cdm.load_fit(fit.save(tmp_path / "fit.nc"))
    assert loaded.settings == {"path": "a/b", "seed": 3, "figures": [0.1, 0.2], "nothing": None}
    assert loaded.study.backbones["params"].isna().sum() == 1
    assert loaded.study.backbones.loc["f-base", "params"] == 1e9
    assert list(loaded.study.runs["recipe"]) == list(fit.study.runs["recipe"])


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        (pd.array([1, None], dtype="Int64"), [1.0, None]),
        (pd.array([2, 3], dtype="UInt8"), [2, 3]),
        (pd.array([True, False], dtype="boolean"), [True, False]),
        (pd.Categorical(["x", None]), ["x", None]),
        (pd.to_datetime(["2026-01-02", "2026-01-03"]), ["2026-01-02 00:00:00", "2026-01-03 00:00:00"]),
        (np.array([0.1, np.nan]), [0.1, None]),
        (np.array([0.1, 0.2], "f4"), [float(np.float32(0.1)), float(np.float32(0.2))]),
    ],
)
def test_columns_of_any_type_survive_json(values, kept):
    table = pd.DataFrame({"column": values}, index=["p", "q"])
    back = decode_table(json.loads(json.dumps(encode_table(table), allow_nan=False)))["column"]
    assert [None if pd.isna(value) else value for value in back] == kept


@pytest.mark.parametrize(
    "values",
    [
        pd.array([1, None], dtype="Int64"),
        pd.Categorical(["a", "b"]),
        pd.to_datetime(["2026-01-02", "2026-01-03"]),
        np.array(["a", 1], object),
        np.array([None, 1.0], object),
        np.array([1j, 2j]),
    ],
)
def test_types_that_would_not_come_back_are_refused_before_anything_is_written(known_fit, tmp_path, values):
    fit = known_fit(draws=10)
    fit.draws["extra"] = xr.DataTree(xr.Dataset({"odd one": ("row", values)}))
    path = tmp_path / "fit.nc"
    path.write_text("old")
    with pytest.raises(FitError, match=r"cannot be saved: extra: 'odd one' is of type .*; make it plain"):
        fit.save(path, overwrite=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_settings_that_are_no_json_are_refused(known_fit, tmp_path, value):
    fit = known_fit(draws=10)
    fit.settings["odd"] = value
    with pytest.raises(FitError, match="cannot be saved: its record is no JSON"):
        fit.save(tmp_path / "fit.nc")
    assert not list(tmp_path.iterdir())


def test_killed_while_saving_leaves_the_old_file_or_the_new_one(saved):
    """A few kills here; the script does a hundred."""
    script = ROOT / "tests" / "benchmarks" / "kill_while_saving.py"
    run = [sys.executable, script, saved, "4"]
    here = os.environ | {"PYTHONPATH": str(ROOT)}
    printed = subprocess.run(run, capture_output=True, text=True, check=True, env=here).stdout
    counts = {what: int(n) for n, what in re.findall(r"(\d+) × (.+)", printed)}
    assert counts["neither"] == 0
    assert counts["the old one"] + counts["the new one"] == 4


def test_a_full_disk_is_one_line_and_the_old_file_stays(copy):
    """A limit on the size of files stands for the disk: the same error where the file is written."""
    code = (
        "import resource, sys, bayescdm as cdm\n"
        "fit = cdm.load_fit(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try: fit.save(sys.argv[1], overwrite=True)\n"
        "except OSError as error: print(error)"
    )
    before = copy.read_bytes()
    assert len(before) > 50_000 and resource.RLIMIT_FSIZE
    seen = subprocess.run([sys.executable, "-c", code, copy], capture_output=True, text=True, check=True)
    (line,) = seen.stdout.splitlines()
    assert re.fullmatch(rf"\[Errno \d+\] File too large: '{copy}'", line)
    assert seen.stderr == ""
    assert copy.read_bytes() == before
    assert list(copy.parent.iterdir()) == [copy]


# --- files of others --------------------------------------------------------------------------------


def test_another_program_another_kind_another_version(copy, tmp_path):
    foreign = tmp_path / "foreign.nc"
    xr.DataTree.from_dict({"posterior": xr.Dataset({"x": ("a", [1.0])})}).to_netcdf(foreign)
    text = tmp_path / "text.nc"
    text.write_text("not a fit")
    assert "cannot be read as a fit" in refusal(text)
    assert refusal(tmp_path / "absent.nc") == "no such file"
    assert refusal(foreign) == "was not written by bayescdm; a fit of 'bayescdm' is needed"
    assert refusal(copy, load_loss_fit) == "is a fit of 'bayescdm'; a fit of 'bayescdm loss' is needed"
    rewrite_record(copy, lambda record, _: record.update(format=99))
    assert refusal(copy) == "format 99, this version reads format 2; fit again"


def test_truncated_anywhere(saved, copy):
    whole = saved.read_bytes()
    for share in np.linspace(0, 0.999, 15):
        copy.write_bytes(whole[: int(share * len(whole))])
        assert refusal(copy) == "cannot be read as a fit; is it whole? Fit again, or take a copy"


def test_any_damaged_byte_is_noticed_or_harmless(known_fit, saved, copy):
    """In a process of its own, which the library that reads damaged files could take down."""
    code = (
        "import sys, numpy as np, bayescdm as cdm\n"
        "from bayescdm.errors import FitError\n"
        "whole, path = open(sys.argv[1], 'rb').read(), sys.argv[2]\n"
        "fit, rng = cdm.load_fit(sys.argv[1]), np.random.default_rng(0)\n"
        "for _ in range(24):\n"
        "    damaged = bytearray(whole)\n"
        "    damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)\n"
        "    open(path, 'wb').write(damaged)\n"
        "    try: loaded = cdm.load_fit(path)\n"
        "    except FitError as error: print('refused', str(error).count(chr(10)))\n"
        "    else: print('same', all(loaded.group(g).identical(fit.group(g)) for g in fit.draws.children))\n"
    )
    run = [sys.executable, "-c", code, saved, copy]
    lines = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 24
    assert set(lines) <= {"refused 0", "same True"}
    assert lines.count("refused 0") > 12


def huge(file):
    file["posterior"].create_dataset("big", shape=(2, 10**13), chunks=(1, 1000), dtype="f8")


def compressed(file):
    file["posterior"].create_dataset("big", data=np.zeros((2, 10**6)), compression="gzip")


def external_link(file):
    file["posterior/elsewhere"] = h5py.ExternalLink("/etc/hostname", "/")


def soft_link(file):
    file["posterior/again"] = h5py.SoftLink("/posterior")


def circle(file):
    file["posterior/again"] = file["posterior"]


def kept_outside(file):
    file["posterior"].create_dataset("raw", (2, 8), "f8", external=[("/etc/hostname", 0, 128)])


def virtual(file):
    layout = h5py.VirtualLayout((2, 8), "f8")
    layout[:] = h5py.VirtualSource("/etc/hostname", "x", (2, 8))
    file["posterior"].create_virtual_dataset("raw", layout)


def references(file):
    data = np.array([file["posterior"].ref], dtype=h5py.ref_dtype)
    file["posterior"].create_dataset("objects", data=data)


def compound(file):
    file["posterior"].create_dataset("objects", data=np.zeros(2, dtype=[("a", "f8"), ("b", "i4")]))


def outside_groups(file):
    file.create_dataset("loose", data=np.zeros(3))


def attribute(where, name, value):
    def change(file):
        file[where].attrs[name] = value

    return change


def dimension_named_otherwise(file):
    del file["posterior/A"].attrs["DIMENSION_LIST"]


def name_of_several_lines(file):
    file["posterior"].create_dataset("one\ntwo\x1b[2J", data=np.zeros(1))


def name_of_a_group_of_several_lines(file):
    file["posterior"].create_group("one\ntwo\x1b[2J")


def other_values(file):
    file["posterior/P0"][0, 0] = 0.9


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (huge, "'posterior/big' declares 160000000000000 bytes and holds 0"),
        (compressed, "'posterior/big' declares 16000000 bytes and holds"),
        (external_link, "'elsewhere' is a link"),
        (soft_link, "'again' is a link"),
        (circle, "'posterior/again' is a group inside a group"),
        (kept_outside, "'posterior/raw' is kept outside the file"),
        (virtual, "'posterior/raw' is kept outside the file"),
        (references, "'posterior/objects' is of type object"),
        (compound, "'posterior/objects' is of type"),
        (outside_groups, "'loose' stands outside the groups"),
        (dimension_named_otherwise, "'posterior/A' does not say what its dimensions are"),
        (name_of_several_lines, r"'posterior/one\ntwo\x1b[2J' does not say what its dimensions are"),
        (name_of_a_group_of_several_lines, r"'posterior/one\ntwo\x1b[2J' is a group inside a group"),
        (
            attribute("posterior/A", "__reduce__", "os.system('x')"),
            "'posterior/A' has an attribute '__reduce__'",
        ),
        (attribute("posterior/A", "scale_factor", 10.0), "'posterior/A' has an attribute 'scale_factor'"),
        (attribute("posterior/A", "two\nlines", 1), r"'posterior/A' has an attribute 'two\nlines'"),
        (attribute("posterior", "scale_factor", 10.0), "'posterior' has an attribute 'scale_factor'"),
        (attribute("/", "coordinates", "A"), "the file has an attribute 'coordinates'"),
        (attribute("posterior/A", "_FillValue", [1.0, 2.0]), "an attribute '_FillValue' other than NaN"),
        (attribute("posterior/A", "_FillValue", "x"), "an attribute '_FillValue' other than NaN"),
        (attribute("posterior/family", "_FillValue", "F"), "an attribute '_FillValue' other than NaN"),
        (attribute("posterior/A", "dtype", "bool"), "'posterior/A' has an attribute 'dtype' that makes"),
        (attribute("sample_stats/diverging", "dtype", "object"), "has an attribute 'dtype' that makes"),
        (
            attribute("posterior/A", "coordinates", "nowhere"),
            "'coordinates' that names no arrays of its group",
        ),
        (attribute("posterior/A", "coordinates", 3), "'coordinates' that names no arrays of its group"),
        (attribute("posterior", "coordinates", "nowhere"), "'coordinates' that names no arrays of its group"),
        (
            attribute("posterior/A", "NAME", 3),
            "'posterior/A' has an attribute 'NAME' that is not what NetCDF",
        ),
        (other_values, "does not hold what was written"),
    ],
)
def test_hostile_layouts_are_refused(copy, change, reason):
    with h5py.File(copy, "a") as file:
        change(file)
    with warnings.catch_warnings(action="error"):
        assert reason in refusal(copy)


def test_what_decoding_would_warn_of_is_left_to_the_checksum(copy, monkeypatch):
    """As when another version of xarray looks at what the check of the layout lets pass."""
    opened = xr.open_datatree

    def warned(*arguments, **options):
        warnings.warn("variable 'A' is odd", xr.SerializationWarning, stacklevel=2)
        return opened(*arguments, **options)

    monkeypatch.setattr(xr, "open_datatree", warned)
    with warnings.catch_warnings(action="error"):
        cdm.load_fit(copy)


def test_coordinates_without_a_dimension_come_back(known_fit, tmp_path):
    fit = known_fit(draws=10)
    sizes = ("family", [1.0, 2.0])
    fit.draws["posterior"] = xr.DataTree(fit.posterior.assign_coords(size=sizes, moment=3.0))
    assert cdm.load_fit(fit.save(tmp_path / "fit.nc")).posterior.identical(fit.posterior)


def other_version(file):
    file.attrs["record"] = file.attrs["record"].replace('"format": 2', '"format": 99')


def other_program(file):
    file.attrs["program"] = "bayescdm loss"


def wrong_dimensions(file):
    del file["posterior/A"].attrs["DIMENSION_LIST"]
    file["posterior/A"].dims[0].attach_scale(file["posterior/draw"])


def test_commands_refuse_each_kind_of_file_in_one_line(saved, tmp_path):
    """One process for all: what each writes to stderr, warnings and libraries in C included, is counted."""
    changes = {
        "huge shapes": huge,
        "wrong dimensions": wrong_dimensions,
        "code-like attributes": attribute("posterior/A", "__reduce__", "os.system('x')"),
        "several fill values": attribute("posterior/A", "_FillValue", [1.0, 2.0]),
        "another type": attribute("posterior/A", "dtype", "bool"),
        "coordinates": attribute("posterior/A", "coordinates", "nowhere"),
        "unlabelled": name_of_several_lines,
        "version": other_version,
        "program": other_program,
    }
    whole = saved.read_bytes()
    paths = {name: tmp_path / f"{name}.nc" for name in [*changes, "no NetCDF", "truncated", "empty"]}
    for name, change in changes.items():
        paths[name].write_bytes(whole)
        with h5py.File(paths[name], "a") as file:
            change(file)
    paths["no NetCDF"].write_text("not a fit\n" * 1000)
    paths["truncated"].write_bytes(whole[: len(whole) // 2])
    paths["empty"].touch()
    code = (
        "import sys\n"
        "from bayescdm.cli import app\n"
        "for path in sys.argv[1:]:\n"
        "    try: app(['predict', path, '--volume', '1M', '--recipe', 'wide'])\n"
        "    except SystemExit as end: print(end.code)\n"
        "    print('--', file=sys.stderr, flush=True)\n"
    )
    seen = subprocess.run(
        [sys.executable, "-c", code, *paths.values()], capture_output=True, text=True, check=True
    )
    assert seen.stdout.splitlines() == ["1"] * len(paths)
    told = seen.stderr.split("--\n")[:-1]
    for path, lines in zip(paths.values(), told, strict=True):
        (line,) = lines.splitlines()
        assert line.startswith(f"{path}: "), line
    # And as users run it, in a process of its own.
    run = [sys.executable, "-m", "bayescdm", "predict", paths["several fill values"], "--volume", "1M"]
    alone = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stdout) == (1, "")
    assert alone.stderr == told[list(paths).index("several fill values")]


def moved(group, name, dims):
    def change(record, groups):
        groups[group][name] = (dims, np.zeros([groups[group].sizes.get(dim, 3) for dim in dims]))

    return change


def labelled(group, dim, labels):
    def change(record, groups):
        groups[group] = groups[group].assign_coords({dim: labels})

    return change


def recorded(*path, value):
    def change(record, groups):
        for key in path[:-1]:
            record = record[key]
        record[path[-1]] = value

    return change


def without(group):
    return lambda record, groups: groups.pop(group)


def positions(record, groups):
    groups["constant_data"]["backbone_of_run"][0] = -1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without("sample_stats"), "there is no group 'sample_stats'"),
        (moved("posterior", "P0", ["draw", "chain"]), "'P0' is not a number for each chain and draw"),
        (moved("posterior", "P0", ["draw"]), "'P0' is not a number for each chain and draw"),
        (moved("sample_stats", "diverging", ["chain"]), "'diverging' is not there for each chain and draw"),
        (labelled("posterior", "backbone", ["f-base", "f-instruct", "other"]), "'other' is not in the study"),
        (labelled("posterior", "family", ["F", "F"]), "posterior: family 'F' stands there twice"),
        (labelled("constant_data", "recipe", ["narrow", "<b>"]), "recipe '<b>' is not in the study"),
        (positions, "'backbone_of_run' points outside the labels of backbone"),
        (recorded("model", value="/tmp/model.py"), "is no name of a model"),
        (recorded("model", value="../model"), "is no name of a model"),
        (recorded("study", value=[]), "its record is damaged"),
        (recorded("study", "name", value=None), None),
        (recorded("study", "surprise", value=1), "its record is damaged"),
        (recorded("study", "runs", "columns", "accuracy", "values", value=[2.0] * 12), "is not a fraction"),
        (recorded("capability", "loadings", value=[[1.0]]), "its record is damaged"),
        (recorded("notes", value=[{"code": "x", "do": "y"}]), "its record is damaged"),
        (recorded("format", value="1"), "format 1"),
    ],
)
def test_records_and_labels_that_do_not_fit_are_refused(copy, change, reason):
    rewrite_record(copy, change)
    if reason is None:
        assert cdm.load_fit(copy).study.name is None
    else:
        assert reason in refusal(copy)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": NaN}', "{}", "null", "", "\x80"])
def test_a_record_that_is_no_record_is_refused(copy, text):
    with h5py.File(copy, "a") as file:
        file.attrs["record"] = text
    refusal(copy)


# --- no pickle --------------------------------------------------------------------------------------


def test_nothing_is_pickled_or_evaluated():
    forbidden = re.compile(
        r"\b(c?[Pp]ickle|joblib\.(dump|load)|marshal|shelve|dill)\b|(?<![.\w])(eval|exec)\("
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in ("bayescdm", "models")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if forbidden.search(line) and "No pickle" not in line
    ]
    assert found == []


def test_studies_survive_json(known_fit):
    study = known_fit(draws=10).study
    back = Study.from_dict(json.loads(json.dumps(study.to_dict(), allow_nan=False)))
    for name in ("text_scores", "backbones", "runs"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(study, name), check_exact=True)
