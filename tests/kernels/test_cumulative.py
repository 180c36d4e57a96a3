"""Running sums and products."""

from typing import Any

import numpy as np
import pytest

from tests.kernels.one_node import run_op


@pytest.mark.parametrize(
    ("flags", "sums", "products"),
    [
        ({}, [2, 5, 9], [2, 6, 24]),
        ({"exclusive": 1}, [0, 2, 5], [1, 2, 6]),
        ({"reverse": 1}, [9, 7, 4], [24, 12, 4]),
        ({"exclusive": 1, "reverse": 1}, [7, 4, 0], [12, 4, 1]),
    ],
)
def test_directions_and_exclusion(flags: dict[str, Any], sums: list[int], products: list[int]) -> None:
    x = np.array([[2, 3, 4]], np.int32)
    assert run_op("CumSum", x, np.array(-1), **flags).tolist() == [sums]
    assert run_op("CumProd", x, np.array(1), version=26, **flags).tolist() == [products]


def test_half_sums_accumulate_in_float32() -> None:
    """In float16 itself the sum of ones would stay at 2048."""
    y = run_op("CumSum", np.ones(4096, np.float16), np.array(0))
    assert y.dtype == np.float16
    assert float(y[-1]) == 4096


def test_an_exclusive_sum_is_no_difference() -> None:
    """Taking the last element off again would give NaN, and lose the small one."""
    x = np.array([1, 1e30, np.inf], np.float32)
    assert run_op("CumSum", x, np.array(0), exclusive=1).tolist() == [0, 1, float(np.float32(1e30))]


def test_integers_wrap_and_nothing_gives_nothing() -> None:
    assert run_op("CumSum", np.array([2**31 - 1, 1], np.int32), np.array(0)).tolist() == [2**31 - 1, -(2**31)]
    assert run_op("CumSum", np.zeros((2, 0), np.float32), np.array(1), exclusive=1).shape == (2, 0)
