"""A file appears whole or not at all."""

import pytest

from bayescdm.atomic import replacing
from bayescdm.errors import RequestError


def test_file_appears_only_when_complete(tmp_path):
    path = tmp_path / "table.csv"
    with replacing(path) as unfinished:
        unfinished.write_text("a,b\n")
        assert not path.exists()
    assert path.read_text() == "a,b\n"
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_failure_leaves_the_old_file_and_no_rest(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(OSError, match="full"), replacing(path, overwrite=True) as unfinished:
        unfinished.write_text("half")
        raise OSError("disk full")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def test_nothing_is_overwritten_unless_asked(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(RequestError, match="exists already"), replacing(path):
        pytest.fail("the block must not run")
    with replacing(path, overwrite=True) as unfinished:
        unfinished.write_text("new")
    assert path.read_text() == "new"


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(RequestError, match="no folder"), replacing(tmp_path / "no" / "table.csv"):
        pytest.fail("the block must not run")


def test_file_has_the_permissions_of_any_new_file(tmp_path):
    plain, written = tmp_path / "plain", tmp_path / "written"
    plain.touch()
    with replacing(written) as unfinished:
        unfinished.touch()
    assert written.stat().st_mode == plain.stat().st_mode
