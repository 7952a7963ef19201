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


@pytest.mark.parametrize("name", ["fit", "predict", "datasets", "simulate"])
def test_a_name_means_the_function_whichever_is_imported_first(name):
    module = importlib.import_module(f"bayescdm.{name}")
    assert getattr(cdm, name) is getattr(module, name)
    code = f"import bayescdm.{name}, bayescdm; print(callable(bayescdm.{name}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        cdm.fitt  # noqa: B018


def test_all_public_names_are_listed():
    assert set(cdm.__all__) <= set(dir(cdm))
