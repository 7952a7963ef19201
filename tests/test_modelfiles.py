"""Model files are found by name or path, and a mistake is one line."""

import pytest

from bayescdm.errors import ModelError, NotFoundError
from bayescdm.modelfiles import load_model, model_names


@pytest.mark.parametrize("name", model_names())
def test_each_packaged_file_states_itself(name):
    file = load_model(name)
    assert file.name == name
    assert file.summary.endswith(".")
    assert len(file.source_hash) == 64
    assert len((file.build.__doc__ or "").splitlines()) >= 3, (
        "the docstring states law, pooling, priors, dims, source"
    )


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(NotFoundError, match="did you mean 'transfer_pooled'"):
        load_model("transfer_poled")


def test_own_file_by_path(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text('"""Mine."""\ndef build(data):\n    """Build."""\n    return data\n')
    file = load_model(path)
    assert (file.name, file.summary, file.build(3)) == ("mine", "Mine.", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_that_name", "cannot be run"),
        ("x = 1", "has no function build"),
        (None, "no model file"),
    ],
)
def test_unusable_file_is_one_line(tmp_path, text, message):
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises((ModelError, NotFoundError), match=message) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
