"""Reading by index."""

import ml_dtypes
import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8, bool, ml_dtypes.int4])
def test_gather_keeps_the_bits_of_every_dtype(dtype: type) -> None:
    """Also NaNs with their payload pass, as nothing is converted."""
    data = np.arange(6).astype(dtype)
    if dtype is np.float16:
        data.view(np.uint16)[1] = 0x7D01
    result = run_op("Gather", data, np.array([[1, -1], [0, 1]]))
    assert result.dtype == data.dtype
    assert result.tobytes() == data[np.array([[1, 5], [0, 1]])].tobytes()


def test_gather_of_one_element_is_an_array_of_rank_zero() -> None:
    """Also of strings, which NumPy would hand out bare."""
    for data in (np.array([1.5, 2.5], np.float32), np.array(["a", "b"], object)):
        result = run_op("Gather", data, np.array(1))
        assert isinstance(result, np.ndarray)
        assert result.shape == ()
        assert result.item() == data[1]


def test_gather_along_the_last_axis_and_of_nothing() -> None:
    assert run_op("Gather", TABLE, np.array([[3], [0]]), axis=-1).tolist() == [[[3], [0]], [[7], [4]], [[11], [8]]]
    assert run_op("Gather", TABLE, np.zeros((0, 2), np.int64)).shape == (0, 2, 4)


@pytest.mark.parametrize(
    ("op", "indices"), [("Gather", [3]), ("Gather", [-4]), ("GatherElements", [[0, 3, 0, 0]]), ("GatherND", [[0, 4]])]
)
def test_an_index_outside_is_an_error(op: str, indices: list[object]) -> None:
    with pytest.raises(KernelError, match="an index lies outside the data"):
        run_op(op, TABLE, np.array(indices))


def test_an_axis_outside_is_an_error() -> None:
    with pytest.raises(KernelError, match=r"rank 2 has no such axis\. Received: axis=2"):
        run_op("Gather", TABLE, np.array([0]), axis=2)


def test_gather_elements_may_read_fewer_rows_than_there_are() -> None:
    assert run_op("GatherElements", TABLE, np.array([[2, -1]]), axis=0).tolist() == [[8, 9]]


def test_gather_nd_with_batches_takes_a_row_of_each() -> None:
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    assert run_op("GatherND", data, np.array([[2], [-3]]), batch_dims=1).tolist() == [[8, 9, 10, 11], [12, 13, 14, 15]]
    assert run_op("GatherND", data, np.zeros((2, 5, 0), np.int64), batch_dims=1).shape == (2, 5, 3, 4)


def test_compress_takes_a_condition_that_is_too_short_but_none_too_long() -> None:
    assert run_op("Compress", TABLE, np.array([False, True]), axis=1).tolist() == [[1], [5], [9]]
    assert run_op("Compress", TABLE, np.array([False, False, True])).tolist() == [2]
    with pytest.raises(KernelError, match=r"at most 3 entries\. Received: 4"):
        run_op("Compress", TABLE, np.ones(4, bool), axis=0)


@pytest.mark.parametrize("axis", [0, 1])
def test_reverse_sequence_leaves_the_rest_in_place(axis: int) -> None:
    steps = np.array([[1, 2, 3], [4, 5, 6]])  # [batch, time]
    wanted = np.array([[2, 1, 3], [4, 5, 6]])
    x, y = (steps, wanted) if axis else (steps.T, wanted.T)
    assert run_op("ReverseSequence", x, np.array([2, 1]), time_axis=axis, batch_axis=1 - axis).tolist() == y.tolist()
