"""Arrays that memory has no room for are refused before they are made, whatever says how large they are."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.kernels import room
from ampgraph.kernels.feeds import random_feeds

from .one_node import run_op

ONE = np.ones(1, np.float32)
WIDE = np.ones((1, 6000), np.float32)
IMAGE = np.ones((1, 1, 4, 4), np.float32)


def whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


#: Ops that would make arrays of more than 64 MB: each with its operands and attributes.
CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "Add": ([WIDE, WIDE.T], {}),
    "Mul": ([WIDE.T, WIDE], {}),
    "Less": ([np.ones((1, 20000), np.float32), np.ones((20000, 1), np.float32)], {}),
    "Max": ([WIDE, WIDE.T, ONE], {}),
    "Mean": ([WIDE, WIDE.T], {}),
    "Where": ([np.ones((6000, 1), bool), WIDE, WIDE], {}),
    "MatMul": ([WIDE.T, WIDE], {}),
    "Gemm": ([WIDE.T, WIDE], {}),
    "Expand": ([ONE, whole(6000, 6000)], {}),
    "Tile": ([WIDE, whole(6000, 1)], {}),
    "Pad": ([ONE, whole(0, 1 << 26)], {}),
    "Gather": ([WIDE, np.zeros(6000, np.int64)], {}),
    "GatherND": ([WIDE, np.zeros((6000, 1), np.int64)], {}),
    "ConstantOfShape": ([whole(1 << 13, 1 << 13)], {}),
    "Range": ([np.array(0.0, np.float32), np.array(1e9, np.float32), np.array(1.0, np.float32)], {}),
    "com.microsoft:Range": ([np.array(0), np.array(1 << 30)], {"version": 1}),
    "OneHot": ([np.zeros(6000, np.int64), whole(6000), np.array([0, 1], np.float32)], {}),
    "RandomNormal": ([], {"shape": [6000, 6000]}),
    "RandomUniform": ([], {"shape": [6000, 6000]}),
    "Multinomial": ([np.zeros((1, 3), np.float32)], {"sample_size": 1 << 28}),
    "HannWindow": ([np.array(1 << 28)], {}),
    "MelWeightMatrix": ([*map(np.array, (6000, 1 << 16, 8000)), *np.array([[0.0], [4000.0]], np.float32).reshape(2)], {}),
    "DFT": ([np.ones((1, 4, 1), np.float32), np.array(1 << 28), np.array(1)], {}),
    "Resize": ([IMAGE, None, np.array([1, 1, 2000, 2000], np.float32)], {}),
    "Conv": ([IMAGE, np.ones((1, 1, 1, 1), np.float32)], {"pads": [3000, 3000, 3000, 3000]}),
    "ConvTranspose": ([IMAGE, np.ones((1, 1, 1, 1), np.float32)], {"strides": [2000, 2000]}),
    "MaxPool": ([IMAGE], {"kernel_shape": [2, 2], "pads": [1 << 13] * 4, "dilations": [1 << 13] * 2}),
    "MaxUnpool": ([IMAGE, np.zeros((1, 1, 4, 4), np.int64), whole(1, 1, 6000, 6000)], {"kernel_shape": [1, 1]}),
    "CenterCropPad": ([ONE, whole(1 << 25)], {}),
    "AffineGrid": ([np.ones((1, 2, 3), np.float32), whole(1, 1, 6000, 6000)], {}),
    "RoiAlign": ([IMAGE, np.ones((1, 4), np.float32), whole(0)], {"output_height": 6000, "output_width": 6000}),
    "MaxRoiPool": ([IMAGE, np.ones((1, 5), np.float32)], {"pooled_shape": [6000, 6000]}),
    "TfIdfVectorizer": (
        [whole(1, 2)],
        {
            "mode": b"TF",
            "min_gram_length": 1,
            "max_gram_length": 1,
            "max_skip_count": 0,
            "ngram_counts": [0],
            "ngram_indexes": [1 << 40],
            "pool_int64s": [1],
        },
    ),
}


@pytest.mark.parametrize("op", CASES)
def test_what_does_not_fit_is_refused(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    operands, attributes = CASES[op]
    monkeypatch.setattr(room, "free_memory", lambda: 60_000_000)
    with pytest.raises(ag.KernelError, match=r"Node .* failed: An array of shape \[.*\] takes .* GB, more than the 0.06 GB"):
        run_op(op, *[operand if operand is None else np.asarray(operand) for operand in operands], **attributes)


def test_what_fits_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "free_memory", lambda: 100_000_000)
    assert run_op("Expand", ONE, whole(24_000_000)).shape == (24_000_000,)
    monkeypatch.setattr(room, "free_memory", lambda: None)
    assert run_op("Expand", ONE, whole(24_000_000)).shape == (24_000_000,)


def test_free_memory_is_less_than_this_machine_has() -> None:
    free = room.free_memory()
    assert free is None or 1 << 20 < free < 1 << 50


def test_made_up_feeds_name_the_input_that_does_not_fit() -> None:
    graph = ag.parse_graph("graph g(%x: f32[n,8]) {\n  %y: f32[n,8] = Neg<T=f32>(%x)\n  return %y\n}")
    with pytest.raises(ag.KernelError, match=r"Input 'x' cannot be made up: An array of shape \[1000000000000, 8\] takes"):
        random_feeds(graph, 0, {"n": 10**12})


def test_numbers_that_are_large_for_nothing_cost_nothing() -> None:
    """Attributes that say how often something may be done at most."""
    huge = 1 << 40
    assert run_op("Split", ONE, num_outputs=huge).tolist() == [1]
    image = np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1, 1)
    result = run_op("LRN", image, size=huge, alpha=float(huge), beta=1.0, bias=0.0)
    np.testing.assert_allclose(result, image / 14, rtol=1e-6)
    grams: dict[str, Any] = {"ngram_counts": [0, 1], "ngram_indexes": [0, 1], "pool_int64s": [1, 1, 2], "mode": b"TF"}
    grams |= {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": huge}
    assert run_op("TfIdfVectorizer", whole(1, 0, 2), **grams).tolist() == [1, 1]


def test_windows_mostly_in_padding_cost_nothing() -> None:
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    huge: dict[str, Any] = {"kernel_shape": [1 << 30, 1], "pads": [1 << 30, 0, 0, 0], "dilations": [1, 1]}
    best, index = run_op("MaxPool", image, results=2, **huge)  # the first window ends just before row 0
    assert best[0, 0, :, 1].tolist() == [-np.inf, 1, 5, 9, 13]
    assert index[0, 0, 1:, 1].tolist() == [1, 5, 9, 13]
    assert run_op("MaxPool", image, **huge)[0, 0, 1:, 1].tolist() == [1, 5, 9, 13]
    assert run_op("AveragePool", image, **huge)[0, 0, 1:, 1].tolist() == [1, 3, 5, 7]
    padded = run_op("AveragePool", image, count_include_pad=1, **huge)
    np.testing.assert_allclose(padded[0, 0, 1:, 1], np.array([1, 6, 15, 28]) / 2**30, rtol=1e-6)
    assert run_op("LpPool", image, p=1, **{**huge, "dilations": [1, 1]})[0, 0, 1:, 1].tolist() == [1, 6, 15, 28]
