"""A bar stands on standard error, and changes nothing of the steps."""

import pytest

from bayescdm.tracking import tracked


@pytest.mark.parametrize("steps", [[1, 2, 3], iter([1, 2, 3]), []], ids=["list", "iterator", "none"])
def test_steps_pass_as_they_are_under_a_bar_on_standard_error(steps, capsys):
    expected = [] if steps == [] else [1, 2, 3]
    assert list(tracked(steps, "refits", progress=True, total=len(expected))) == expected
    out, err = capsys.readouterr()
    assert out == ""
    assert "refits" in err


def test_nothing_is_drawn_unless_asked(capsys):
    assert list(tracked([1], "refits", progress=False)) == [1]
    assert capsys.readouterr() == ("", "")
