"""Notebooks stand in the repository as they ran: in order, without errors, without traces of a machine."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

#: A path from the root of a file system; not the end of an address, of a tag or of a picture's letters.
ABSOLUTE_PATH = re.compile(r"(?<![\w.:/<)+=-])/[A-Za-z][\w.+-]*/[^\s\"']*|file://")
NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_was_executed_in_order_and_without_errors(path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [
        output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert "not-converged" not in str(outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_names_no_place_on_a_machine(path):
    text = path.read_text(encoding="utf-8")
    assert not [place for place in ("/tmp/", "/home/", "/root/", "/Users/") if place in text]
    assert not ABSOLUTE_PATH.findall(text.replace("\\n", "\n"))


def test_a_path_is_told_from_addresses_tags_and_pictures():
    for place in ("File /srv/me/run.py", '"/data/runs.csv"', "\n/opt/venv/lib/x.py", "file:///a"):
        assert ABSOLUTE_PATH.search(place), place
    for other in ("https://a.org/b/c", "<b>x</b>", "image/png", "docs/inputs.md", "iVBOR/ab/c+/de/="):
        assert not ABSOLUTE_PATH.search(other), other


def kinds(notebook):
    """Sorts of output of each code cell: text, tables, pictures."""
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return [{*map(_kind, cell)} for cell in outputs]


def _kind(output):
    return ", ".join(sorted(output["data"])) if "data" in output else output.get("name", output.output_type)


@pytest.fixture
def beside(request, tmp_path):
    """Folder in which a notebook runs; those that take a saved fit find the session's one there."""
    if "open-vlm.nc" in request.node.callspec.params["path"].read_text(encoding="utf-8"):
        request.getfixturevalue("open_vlm_fit").save(tmp_path / "open-vlm.nc")
    return tmp_path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_again_and_shows_the_same_kinds_of_output(path, beside, monkeypatch):
    root = path.parent.parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]))
    # Pictures stand in the notebook; a backend of the tests would keep them out of it.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(path, as_version=4)
    stored = kinds(notebook)
    resources = {"metadata": {"path": str(beside)}}
    NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources).execute()
    assert kinds(notebook) == stored
