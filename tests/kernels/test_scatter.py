"""Writing by index."""

import ml_dtypes
import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


def test_the_operand_itself_is_not_written() -> None:
    data = np.zeros(3, np.float32)
    assert run_op("ScatterElements", data, np.array([-1]), np.ones(1, np.float32)).tolist() == [0, 0, 1]
    assert not data.any()


@pytest.mark.parametrize(("dtype", "one", "wanted"), [(np.float16, 2048, 4096), (ml_dtypes.bfloat16, 256, 512)])
def test_many_updates_of_a_low_precision_element_cost_one_rounding(dtype: type, one: int, wanted: int) -> None:
    """In the low dtype itself, adding 1 would leave ``one`` as it is each time."""
    data = np.array([[one]]).astype(dtype)
    result = run_op("ScatterND", data, np.zeros((one, 2), np.int64), np.ones(one).astype(dtype), reduction=b"add")
    assert result.dtype == data.dtype
    assert float(result[0, 0]) == wanted


@pytest.mark.parametrize(("name", "wanted"), [("add", [6, 7]), ("mul", [6, 7]), ("max", [3, 7]), ("min", [1, 7])])
def test_reductions_see_every_update_of_an_element(name: str, wanted: list[int]) -> None:
    data, updates = np.array([1, 7], np.int32), np.array([2, 3], np.int32)
    result = run_op("ScatterElements", data, np.array([0, 0]), updates, reduction=name.encode())
    assert result.tolist() == wanted


def test_integers_wrap() -> None:
    data = np.array([127], np.int8)
    assert run_op("ScatterElements", data, np.array([0]), np.array([1], np.int8), reduction=b"add").tolist() == [-128]


def test_elements_go_where_their_own_position_says_on_other_axes() -> None:
    data, updates = np.zeros((3, 3), np.float32), np.array([[1, 2]], np.float32)
    assert run_op("ScatterElements", data, np.array([[2, 0]]), updates, axis=0).tolist() == [[0, 2, 0], [0, 0, 0], [1, 0, 0]]
    assert run_op("Scatter", data, np.array([[2, 0]]), updates, axis=1, version=9).tolist()[0] == [2, 0, 1]


def test_no_coordinate_means_the_whole() -> None:
    data = np.array([1.0, 2.0], np.float32)
    updates = np.array([[3, 4], [5, 6]], np.float32)
    assert run_op("ScatterND", data, np.zeros((2, 0), np.int64), updates, reduction=b"add").tolist() == [9, 12]


def test_shapes_and_indices_that_do_not_fit() -> None:
    data = np.zeros((2, 3), np.float32)
    with pytest.raises(KernelError, match=r"take updates of shape \[1, 3\]\. Received: \[3\]"):
        run_op("ScatterND", data, np.array([[0]]), np.zeros(3, np.float32))
    with pytest.raises(KernelError, match="an index lies outside the data"):
        run_op("ScatterND", data, np.array([[2]]), np.zeros((1, 3), np.float32))
    with pytest.raises(KernelError, match="one shape"):
        run_op("ScatterElements", data, np.array([[0]]), np.zeros((1, 2), np.float32))
    with pytest.raises(KernelError, match="is one of none, add, mul, max, min"):
        run_op("ScatterND", data, np.array([[0]]), np.zeros((1, 3), np.float32), reduction=b"mean")


def test_a_cache_is_written_from_each_entry_s_own_start() -> None:
    cache = np.zeros((2, 3, 1), np.float16)
    update = np.array([[[1], [2]], [[3], [4]]], np.float16)
    assert run_op("TensorScatter", cache, update, version=24)[:, :, 0].tolist() == [[1, 2, 0], [3, 4, 0]]
    written = run_op("TensorScatter", cache, update, np.array([1, 2]), version=24, mode=b"circular")
    assert written[:, :, 0].tolist() == [[0, 1, 2], [4, 0, 3]]
    with pytest.raises(KernelError, match="must end inside the cache of 3 steps"):
        run_op("TensorScatter", cache, update, np.array([1, 2]), version=24)
