"""TensorFlow's images and paddings: what comes out is known by hand, what goes back is known by differences."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.tf_node import run_tf, slope

# They make arrays of lists, too.
F32: Any = np.float32
I32: Any = np.int32
I64: Any = np.int64

RNG = np.random.default_rng(14)
LAYOUTS = [{}, {"align_corners": True}, {"half_pixel_centers": True}]


def line(*numbers: float) -> Any:
    """Return an image of one row and one channel."""
    return F32(numbers).reshape(1, 1, -1, 1)


@pytest.mark.parametrize(
    ("op", "layout", "wanted"),
    [
        ("Bilinear", {}, [0, 2, 4, 6, 8, 8]),
        ("Bilinear", {"align_corners": True}, [0, 1.6, 3.2, 4.8, 6.4, 8]),
        ("Bilinear", {"half_pixel_centers": True}, [0, 1, 3, 5, 7, 8]),
        ("NearestNeighbor", {}, [0, 0, 4, 4, 8, 8]),
        ("NearestNeighbor", {"align_corners": True}, [0, 0, 4, 4, 8, 8]),
        ("Area", {}, [0, 0, 4, 4, 8, 8]),
    ],
)
def test_enlarged_lines(op: str, layout: dict[str, Any], wanted: list[float]) -> None:
    y = run_tf(f"Resize{op}", line(0, 4, 8), I32([1, 6]), **layout)
    np.testing.assert_allclose(y.ravel(), wanted, atol=1e-6)


def test_areas_are_means() -> None:
    x = RNG.integers(0, 255, (2, 6, 8, 3)).astype(np.uint8)
    y = run_tf("ResizeArea", x, I32([2, 4]))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, x.reshape(2, 2, 3, 4, 2, 3).mean((2, 4)), rtol=1e-6)
    one = run_tf("ResizeArea", x[:, :1, :1], I32([3, 2]), align_corners=True)
    np.testing.assert_array_equal(one, np.broadcast_to(x[:, :1, :1], (2, 3, 2, 3)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cubics_keep_what_stays_in_place_and_straight_lines(layout: dict[str, Any]) -> None:
    x = RNG.standard_normal((1, 4, 5, 2)).astype(np.float32)
    np.testing.assert_allclose(run_tf("ResizeBicubic", x, I32([4, 5]), **layout), x, atol=1e-6)
    y = run_tf("ResizeBicubic", line(*range(12)), I32([1, 24]), **layout).ravel()
    steps = np.diff(y[8:16], 2)
    np.testing.assert_allclose(steps, 0, atol=1e-5 if layout.get("half_pixel_centers") else 0.2)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [(7, 3), (2, 5), (1, 1)])
@pytest.mark.parametrize("op", ["Bilinear", "Bicubic", "NearestNeighbor"])
def test_gradients_of_resizing_are_slopes(op: str, size: tuple[int, int], layout: dict[str, Any]) -> None:
    x = RNG.standard_normal((1, 4, 3, 2)).astype(np.float32)
    dy = RNG.standard_normal((1, *size, 2)).astype(np.float32)
    other = I32([4, 3]) if op == "NearestNeighbor" else x
    # resizing is linear, so that long steps are exact and hide float32's rounding
    exact = slope(lambda v: run_tf(f"Resize{op}", v.astype(np.float32), I32(size), **layout), x, dy, 1.0)
    np.testing.assert_allclose(run_tf(f"Resize{op}Grad", dy, other, **layout), exact, atol=2e-5)


def test_boxes_are_cut_out() -> None:
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4, 1)
    boxes = F32([[0, 0, 1, 1], [0.5, 0, 1, 1 / 3], [0, 0, 2, 1]])
    y = run_tf("CropAndResize", x, boxes, I32([0, 1, 0]), I32([2, 2]), extrapolation_value=-1.0)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.reshape(3, 4), [[0, 3, 8, 11], [16, 17, 20, 21], [0, 3, -1, -1]], atol=1e-5)
    with pytest.raises(KernelError, match="none of 2 images"):
        run_tf("CropAndResize", x, boxes, I32([0, 1, 2]), I32([2, 2]))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_blocks_become_channels_and_back(layout: str) -> None:
    x = np.arange(2 * 4 * 6 * 3, dtype=np.int16).reshape(2, 4, 6, 3)
    turned = np.moveaxis(x, -1, 1) if layout == "NCHW" else x
    y = run_tf("SpaceToDepth", turned, block_size=2, data_format=layout)
    found = np.moveaxis(y, 1, -1) if layout == "NCHW" else y
    np.testing.assert_array_equal(found[1, 1, 2], x[1, 2:4, 4:6].ravel())
    np.testing.assert_array_equal(run_tf("DepthToSpace", y, block_size=2, data_format=layout), turned)


def test_blocks_become_images_and_back() -> None:
    x = np.arange(2 * 5 * 4 * 3).reshape(2, 5, 4, 3)
    y = run_tf("SpaceToBatchND", x, I32([3, 2]), I32([[0, 1], [1, 1]]))
    assert y.shape == (12, 2, 3, 3)
    np.testing.assert_array_equal(y[2 * (1 * 2 + 1) + 1, 1, 1], x[1, 4, 2])  # row 1 * 3 + 1, column 1 * 2 + 1 less 1
    back = run_tf("BatchToSpaceND", y, I32([3, 2]), I32([[0, 1], [1, 1]]))
    np.testing.assert_array_equal(back, x)
    z = run_tf("SpaceToBatch", x[:, :4], I32([[0, 0], [0, 0]]), block_size=2)
    np.testing.assert_array_equal(run_tf("BatchToSpace", z, I32([[1, 0], [0, 2]]), block_size=2), x[:, 1:4, :2])


def test_patches() -> None:
    x = np.arange(2 * 5 * 4 * 3).reshape(2, 5, 4, 3)
    y = run_tf("ExtractImagePatches", x, ksizes=[1, 2, 2, 1], strides=[1, 2, 1, 1], rates=[1, 2, 1, 1], padding="VALID")
    assert y.shape == (2, 2, 3, 12)
    np.testing.assert_array_equal(y[1, 1, 2], x[1, 2:5:2, 2:4].ravel())


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirrors(mode: str) -> None:
    x, amounts = RNG.standard_normal((3, 4)), I32([[2, 1], [0, 3]])
    y = run_tf("MirrorPad", x, amounts, mode=mode)
    fill: Any = mode.lower()
    np.testing.assert_array_equal(y, np.pad(x, amounts.tolist(), fill))
    dy = RNG.standard_normal(y.shape)
    dx = run_tf("MirrorPadGrad", dy, amounts, mode=mode)
    np.testing.assert_allclose(dx, slope(lambda v: np.pad(v, amounts.tolist(), fill), x, dy), atol=1e-7)
    with pytest.raises(KernelError, match="cannot be mirrored"):
        run_tf("MirrorPad", x, I32([[4, 0], [0, 0]]), mode=mode)


def test_constants_around() -> None:
    x = np.array([True, False])
    assert run_tf("Pad", x, I64([[1, 2]])).tolist() == [False, True, False, False, False]
    assert run_tf("PadV2", x, I64([[0, 1]]), np.array(True)).tolist() == [True, False, True]
    with pytest.raises(KernelError, match="a pair of numbers"):
        run_tf("Pad", x, I32([[-1, 2]]))
