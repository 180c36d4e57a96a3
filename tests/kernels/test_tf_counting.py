"""TensorFlow's counts and layouts, by hand."""

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError

from .tf_node import run_tf

I32 = np.int32


def test_counts_and_weights() -> None:
    x, size, none = np.array([1, 1, 0, 5, 9], I32), np.array(6, I32), np.zeros(0, I32)
    assert run_tf("Bincount", x, size, none).tolist() == [1, 2, 0, 0, 0, 1]
    assert run_tf("Bincount", x, size, np.array([1, 2.5, 3, 4, 5])).tolist() == [3, 3.5, 0, 0, 0, 4]
    rows = np.array([[0, 2, 2], [1, 1, 1]], I32)
    assert run_tf("DenseBincount", rows, np.array(3, I32), none).tolist() == [[1, 0, 2], [0, 3, 0]]
    assert run_tf("DenseBincount", rows, np.array(3, I32), none, binary_output=True).tolist() == [[1, 0, 1], [0, 1, 0]]
    with pytest.raises(KernelError, match="from 0 on"):
        run_tf("Bincount", -x, size, none)


def test_intervals() -> None:
    x = np.array([-5, 0, 10, 11.5], np.float32)
    assert run_tf("Bucketize", x, boundaries=[0.0, 10.0]).tolist() == [0, 1, 2, 2]
    assert run_tf("HistogramFixedWidth", x, np.array([0, 10], np.float32), np.array(4, I32)).tolist() == [2, 0, 0, 2]
    with pytest.raises(KernelError, match="NaN falls into no interval"):
        run_tf("HistogramFixedWidth", np.array([1, np.nan], np.float32), np.array([0, 10], np.float32), np.array(4, I32))
    row, values = np.array([[1, 2, 2, 5]], I32), np.array([[2, 6]], I32)
    assert run_tf("LowerBound", row, values).tolist() == [[1, 4]]
    assert run_tf("UpperBound", row, values).tolist() == [[3, 4]]


def test_places() -> None:
    assert run_tf("UnravelIndex", np.array([5, 11], I32), np.array([3, 4], I32)).tolist() == [[1, 2], [1, 3]]
    assert run_tf("DataFormatDimMap", np.array([1, -1], I32)).tolist() == [2, 1]
    assert run_tf("DataFormatVecPermute", np.array([7, 4, 9, 3], I32)).tolist() == [7, 3, 4, 9]
    assert run_tf("DataFormatVecPermute", np.array([4, 9], I32), src_format=b"NCHW", dst_format=b"NHWC").tolist() == [4, 9]
