"""Blocks of pixels, crops, columns and regions of interest."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_pixels_hold_the_channels(mode: str) -> None:
    x = np.arange(12 * 6, dtype=np.int8).reshape(1, 12, 2, 3)
    y = run_op("DepthToSpace", x, version=13, blocksize=2, mode=mode.encode())
    assert y.shape == (1, 3, 4, 6)
    for c, i, j in [(0, 0, 1), (2, 1, 0), (1, 1, 1)]:
        channel = (i * 2 + j) * 3 + c if mode == "DCR" else c * 4 + i * 2 + j
        assert (y[0, c, i::2, j::2] == x[0, channel]).all()


def test_depth_and_space_are_inverse() -> None:
    x = RNG.standard_normal((2, 3, 4, 6)).astype(np.float16)
    deep = run_op("SpaceToDepth", x, version=13, blocksize=2)
    assert deep.shape == (2, 12, 2, 3)
    np.testing.assert_array_equal(run_op("DepthToSpace", deep, version=13, blocksize=2), x)
    with pytest.raises(KernelError, match="does not fall into blocks"):
        run_op("SpaceToDepth", x, version=13, blocksize=4)


def test_crops_and_pads_around_the_center() -> None:
    x = np.arange(1, 6, dtype=np.int32)
    assert run_op("CenterCropPad", x, np.array([2]), version=18).tolist() == [2, 3]
    assert run_op("CenterCropPad", x, np.array([8]), version=18).tolist() == [0, 1, 2, 3, 4, 5, 0, 0]
    both = run_op("CenterCropPad", x.reshape(1, 5), np.array([1, 3]), version=18, axes=[-1, 0])
    assert both.tolist() == [[0], [3], [0]]


def test_columns_add_up_where_windows_overlap() -> None:
    ones = np.ones((1, 2 * 4, 4), np.float32)
    y = run_op("Col2Im", ones, np.array([3, 3]), np.array([2, 2]), version=18)
    assert y.shape == (1, 2, 3, 3)
    assert y[0, 1].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    with pytest.raises(KernelError, match="needs 4 columns"):
        run_op("Col2Im", ones[..., :3], np.array([3, 3]), np.array([2, 2]), version=18)


def plane(h: int, w: int) -> Any:
    """An image whose pixels are a linear function of their position, which bilinear samples reproduce."""
    return (10 * np.arange(h)[:, None] + np.arange(w)).astype(np.float32)[None, None]


@pytest.mark.parametrize("ratio", [0, 1, 3])
def test_means_over_regions_of_a_plane_are_its_values_at_the_centers(ratio: int) -> None:
    rois = np.array([[1, 2, 5, 6], [2, 2, 3, 4]], np.float32)
    y = run_op(
        "RoiAlign", plane(9, 9), rois, np.zeros(2, np.int64), version=16, output_height=2, output_width=2, sampling_ratio=ratio
    )
    for roi, result in zip(rois, y[:, 0], strict=True):
        rows = roi[1] + (np.arange(2) + 0.5) / 2 * (roi[3] - roi[1]) - 0.5
        columns = roi[0] + (np.arange(2) + 0.5) / 2 * (roi[2] - roi[0]) - 0.5
        np.testing.assert_allclose(result, 10 * rows[:, None] + columns, rtol=1e-6)


def test_before_version_16_regions_are_not_shifted_and_at_least_a_pixel() -> None:
    y = run_op("RoiAlign", plane(9, 9), np.array([[2, 3, 2, 3]], np.float32), np.zeros(1, np.int64), version=10)
    np.testing.assert_allclose(y.ravel(), [10 * 3.5 + 2.5], rtol=1e-6)


def test_samples_outside_count_as_zero() -> None:
    x = np.ones((1, 1, 4, 4), np.float32)
    rois = np.array([[100, 100, 104, 104]], np.float32)
    assert run_op("RoiAlign", x, rois, np.zeros(1, np.int64), version=16).ravel().tolist() == [0]


def test_maxima_over_regions() -> None:
    x = plane(6, 6)
    rois = np.array([[0, 1.4, 0.6, 4.2, 3.1], [0, 5, 5, 9, 9], [0, 20, 20, 30, 30]], np.float32)
    y = run_op("MaxRoiPool", x, rois, version=22, pooled_shape=[1, 2])
    # Columns 1 to 4 and rows 1 to 3; then what there is of 5 to 9; then nothing.
    assert y[:, 0, 0].tolist() == [[32, 34], [55, 0], [0, 0]]
