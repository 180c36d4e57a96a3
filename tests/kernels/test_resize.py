"""Resizing against closed forms and the definition of each coordinate mode."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

RAMP = np.arange(8, dtype=np.float32).reshape(1, 1, 8)


def resize(x: Any, **attributes: Any) -> Any:
    """Resize the last axis with Resize 19 by a scale, to a size, or in a region."""
    scale, size, roi = (attributes.pop(name, None) for name in ("scale", "size", "roi"))
    version = attributes.pop("version", 19)
    given: dict[str, Any] = {name: value.encode() if isinstance(value, str) else value for name, value in attributes.items()}
    return run_op(
        "Resize",
        x,
        None if roi is None else np.array(roi, np.float32),
        None if scale is None else np.array([scale], np.float32),
        None if size is None else np.array([size]),
        version=version,
        axes=[2],
        **given,
    )


@pytest.mark.parametrize(
    ("mode", "places"),
    [
        ("half_pixel", [0.5, 2.5, 4.5, 6.5]),
        ("asymmetric", [0, 2, 4, 6]),
        ("align_corners", [0, 7 / 3, 14 / 3, 7]),
        ("pytorch_half_pixel", [0.5, 2.5, 4.5, 6.5]),
        ("half_pixel_symmetric", [0.5, 2.5, 4.5, 6.5]),
    ],
)
def test_linear_interpolation_of_a_ramp_shows_the_coordinates(mode: str, places: list[float]) -> None:
    y = resize(RAMP, scale=0.5, mode="linear", coordinate_transformation_mode=mode)
    np.testing.assert_allclose(y.ravel(), places, rtol=1e-6)
    y = resize(RAMP, size=4, mode="linear", coordinate_transformation_mode=mode)
    np.testing.assert_allclose(y.ravel(), places, rtol=1e-6)


@pytest.mark.parametrize(
    ("mode", "place"),
    [("half_pixel", 3.5), ("pytorch_half_pixel", 0), ("align_corners", 0), ("asymmetric", 0)],
)
def test_a_result_of_one_element(mode: str, place: float) -> None:
    assert resize(RAMP, size=1, mode="linear", coordinate_transformation_mode=mode).ravel().tolist() == [place]


def test_a_cropped_region_and_what_lies_outside() -> None:
    given: dict[str, Any] = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    y = resize(RAMP, size=3, roi=[0.0, 2.0], extrapolation_value=-1.0, **given)
    assert y.ravel().tolist() == [0, 7, -1]
    y = resize(RAMP, size=1, roi=[0.0, 1.0], **given)
    assert y.ravel().tolist() == [3.5]
    with pytest.raises(KernelError, match="roi"):
        resize(RAMP, size=1, **given)


@pytest.mark.parametrize(
    ("rounding", "wanted"),
    [
        ("round_prefer_floor", [0, 0, 1, 1]),
        ("round_prefer_ceil", [0, 1, 1, 1]),
        ("floor", [0, 0, 1, 1]),
        ("ceil", [0, 1, 1, 1]),
    ],
)
def test_nearest_elements_of_ties(rounding: str, wanted: list[int]) -> None:
    """Results stand at 0, 0.5, 1 and 1.5 (beyond the last element)."""
    x = np.array([[[0, 1]]], np.int64)
    y = resize(x, scale=2.0, coordinate_transformation_mode="asymmetric", nearest_mode=rounding)
    assert y.dtype == np.int64
    assert y.ravel().tolist() == wanted


def test_cubic_interpolation_reproduces_lines_and_keeps_the_sum_of_weights() -> None:
    """With coefficient -0.5, away from the edges."""
    y = resize(RAMP, scale=2.0, mode="cubic", cubic_coeff_a=-0.5)
    at = (np.arange(16) + 0.5) / 2 - 0.5
    np.testing.assert_allclose(y.ravel()[4:-4], at[4:-4], rtol=1e-5)
    ones = resize(np.ones((1, 1, 5), np.float32), scale=1.7, mode="cubic", exclude_outside=1)
    np.testing.assert_allclose(ones, 1, rtol=1e-6)


def test_antialiasing_means_over_what_shrinks() -> None:
    """Halving with a triangle 4 wide: weights 1, 3, 3, 1 of 8."""
    x = np.random.default_rng(0).standard_normal((1, 1, 12)).astype(np.float32)
    y = resize(x, scale=0.5, mode="linear", antialias=1)
    inner = [x[0, 0, 2 * i - 1 : 2 * i + 3] @ [1 / 8, 3 / 8, 3 / 8, 1 / 8] for i in range(1, 5)]
    np.testing.assert_allclose(y.ravel()[1:5], inner, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("policy", "shape"), [("not_larger", [4, 2]), ("not_smaller", [6, 3]), ("stretch", [4, 3])])
def test_keeping_the_aspect_ratio(policy: str, shape: list[int]) -> None:
    x = np.zeros((8, 4), np.float32)
    y = run_op("Resize", x, None, None, np.array([4, 3]), version=19, keep_aspect_ratio_policy=policy.encode())
    assert list(y.shape) == shape


@pytest.mark.parametrize(
    ("size", "scale", "wanted"),
    [(10, 0.7, 7), (49, 1 / 49, 1), (41, 1 / 41, 0), (100, 0.07, 7), (30, 1.1, 33), (16777217, 0.5, 8388608)],
)
def test_sizes_follow_from_scales_in_float32(size: int, scale: float, wanted: int) -> None:
    """As onnxruntime and the standard's shape inference have them; in float64, 10 * 0.7 is less than 7."""
    x = np.zeros((size,), np.int8)
    for mode, roi in (("asymmetric", None), ("tf_crop_and_resize", np.array([0.25, 0.5], np.float32))):
        given: dict[str, Any] = {"mode": b"nearest", "coordinate_transformation_mode": mode.encode()}
        y = run_op("Resize", x, roi, np.array([scale], np.float32), version=19, **given)
        assert y.shape == (wanted,)
    assert run_op("Upsample", x, np.array([scale], np.float32), version=9).shape == (wanted,)


def test_only_the_result_is_rounded_to_float16() -> None:
    """Corners weighted in float16, axis by axis, would be rounded in between."""
    x = np.array([[2049, 2051], [2053, 2059]], np.float32).astype(np.float16)
    y = run_op("Resize", x, None, np.array([2, 2], np.float32), version=19, mode=b"linear")
    wide = x.astype(np.float64)
    t = np.clip((np.arange(4) + 0.5) / 2 - 0.5, 0, 1)
    weights = np.stack([1 - t, t], 1)
    np.testing.assert_array_equal(y, (weights @ wide @ weights.T).astype(np.float16))


def test_infinity_reaches_only_its_neighbours() -> None:
    x = np.array([[[0, 0, np.inf, 0, 0, 0]]], np.float32)
    y = resize(x, scale=2.0, mode="linear").ravel()
    assert np.flatnonzero(np.isinf(y)).tolist() == [3, 4, 5, 6]
    assert not np.isnan(y).any()


@pytest.mark.parametrize(
    ("version", "attributes"), [(1, {"height_scale": 1.0, "width_scale": 2.0}), (7, {"scales": [1.0, 1.0, 1.0, 2.0]})]
)
def test_old_upsampling_takes_attributes(version: int, attributes: dict[str, Any]) -> None:
    x = np.array([[[[1, 2]]]], np.float32)
    assert run_op("Upsample", x, version=version, mode=b"nearest", **attributes).ravel().tolist() == [1, 1, 2, 2]


def test_old_resizing_takes_scales_second() -> None:
    y = run_op("Resize", RAMP, np.array([1, 1, 2], np.float32), version=10, mode=b"linear")
    np.testing.assert_allclose(y.ravel(), np.minimum(np.arange(16) / 2, 7))
    y = run_op("Resize", RAMP, np.array([1, 1, 0.5], np.float32), version=10)
    assert y.ravel().tolist() == [0, 2, 4, 6]


def test_nothing() -> None:
    assert resize(np.zeros((0, 2, 8), np.float32), scale=2.0, mode="linear").shape == (0, 2, 16)
    assert resize(RAMP, size=0, mode="cubic").shape == (1, 1, 0)
    with pytest.raises(KernelError, match="Nothing can be enlarged"):
        resize(np.zeros((1, 1, 0), np.float32), size=3)


@pytest.mark.parametrize(
    ("scales", "message"), [([1, 1, 0], "positive scales"), ([1, 2], "for 3 axes"), ([1, -1, 1], "positive")]
)
def test_scales_that_make_no_sense(scales: list[float], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run_op("Resize", RAMP, None, np.array(scales, np.float32), version=19)
