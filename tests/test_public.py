"""The public surface: one import, light until something heavy is asked for."""

import importlib
import subprocess
import sys

import pytest

import bayescdm as cdm

HEAVY = ("pymc", "pytensor", "arviz", "nutpie", "matplotlib", "sklearn")


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, bayescdm; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [name for name in cdm.__all__ if name != "__version__"])
def test_every_public_name_is_a_documented_object_and_no_module(name):
    value = getattr(cdm, name)
    assert callable(value)
    assert value.__doc__


@pytest.mark.parametrize("name", ["fit", "predict", "validate", "simulate"])
def test_a_name_means_the_function_whichever_is_imported_first(name):
    module = importlib.import_module(f"bayescdm.{name}")
    assert getattr(cdm, name) is getattr(module, name)
    code = f"import bayescdm.{name}, bayescdm; print(callable(bayescdm.{name}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        cdm.fitt  # noqa: B018


def test_the_public_names_are_listed_and_no_others():
    assert set(cdm.__all__) == set(dir(cdm))
    for name in ("sys", "importlib", "Any", "ModuleType"):
        assert not hasattr(cdm, name)


def test_the_package_of_data_sets_is_not_hidden_by_a_function():
    code = "import bayescdm.datasets.published; print(len(bayescdm.datasets.published.PAPER_TABLES))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(len(cdm.paper_tables()))
    for name in cdm.paper_tables()["name"]:
        assert len(cdm.paper_table(name))
