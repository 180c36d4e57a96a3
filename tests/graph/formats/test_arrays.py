"""Files of arrays hold what they are given, whatever it is called."""

from pathlib import Path

import numpy as np
import pytest

from ampgraph.graph.formats.arrays import load_arrays, packed_arrays
from ampgraph.graph.formats.files import write_bytes


def test_names_that_are_arguments_elsewhere(tmp_path: Path) -> None:
    arrays = {
        "file": np.array([1, 2], np.float32),
        "allow_pickle": np.array(True),
        "a/b": np.zeros((0, 3)),
        "arr_0": np.array("text"),
    }
    (tmp_path / "a.npz").write_bytes(packed_arrays(arrays))
    found = load_arrays(tmp_path / "a.npz")
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].tolist()) == (array.dtype, array.tolist())
    assert packed_arrays(arrays) == packed_arrays(arrays)


def test_objects_are_no_numbers() -> None:
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        packed_arrays({"a": np.array([None])})


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "a.npz"
    with pytest.raises(FileNotFoundError, match="'" + str(path).replace("\\", "\\\\") + "'$"):
        write_bytes(path, b"")
