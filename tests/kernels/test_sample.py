"""Reading between elements."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


def row(places: Any, **attributes: Any) -> Any:
    """Sample the row 1, 2, 4, 8 (one column high) at element coordinates."""
    x = np.array([[[[1, 2, 4, 8]]]], np.float64)
    grid = np.zeros((1, 1, len(places), 2))
    grid[..., 0] = (2 * np.array(places) + 1) / 4 - 1
    given: dict[str, Any] = {name: value.encode() if isinstance(value, str) else value for name, value in attributes.items()}
    return run_op("GridSample", x, grid, version=22, **given).ravel()


def test_points_between_elements() -> None:
    np.testing.assert_allclose(row([0, 0.5, 2.25]), [1, 1.5, 5])
    np.testing.assert_allclose(row([0.4, 0.5, 1.5, 2.6], mode="nearest"), [1, 1, 4, 8])
    np.testing.assert_allclose(row([1, 2], mode="cubic"), [2, 4])


@pytest.mark.parametrize(
    ("padding", "wanted"),
    [("zeros", [0.5, 0, 0, 0]), ("border", [1, 1, 8, 8]), ("reflection", [1, 4, 8, 2])],
)
def test_points_outside(padding: str, wanted: list[float]) -> None:
    """Reflected at -0.5 and 3.5: -3 becomes 2, 4 becomes 3, 14 becomes 1."""
    np.testing.assert_allclose(row([-0.5, -3, 4, 14], padding_mode=padding), wanted)


def test_points_far_outside_and_nowhere() -> None:
    assert row([1e30, -1e30]).tolist() == [0, 0]
    assert row([1e30, -1e30], padding_mode="border").tolist() == [8, 1]
    assert np.isnan(row([np.nan])).all()


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("mode", [b"linear", b"nearest", b"cubic"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 2, 3, 4, 2)])
def test_the_grid_of_the_identity_gives_the_operand(shape: Any, mode: bytes, aligned: int) -> None:
    x = np.random.default_rng(0).standard_normal(shape)
    rank = len(shape) - 2
    theta = np.broadcast_to(np.eye(rank, rank + 1), (shape[0], rank, rank + 1)).copy()
    grid = run_op("AffineGrid", theta, np.array(shape), version=20, align_corners=aligned)
    assert grid.shape == (shape[0], *shape[2:], rank)
    y = run_op("GridSample", x, grid, version=20, mode=mode, align_corners=aligned, padding_mode=b"border")
    np.testing.assert_allclose(y, x, atol=1e-9)


def test_affine_maps_take_x_first() -> None:
    theta = np.array([[[2, 0, 0.5], [0, 3, -0.25]]])
    grid = run_op("AffineGrid", theta, np.array([1, 1, 2, 3]), version=20, align_corners=1)
    assert grid[0, 0, 0].tolist() == [-1.5, -3.25]
    assert grid[0, 1, 2].tolist() == [2.5, 2.75]


def test_grids_that_do_not_fit() -> None:
    with pytest.raises(KernelError, match=r"needs a grid \[N, ..., 2\]"):
        run_op("GridSample", np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 1, 3)), version=20)


def test_deformed_windows_read_elsewhere() -> None:
    """One tap, moved half an element down and one to the right."""
    x = np.arange(16, dtype=np.float64).reshape(1, 1, 4, 4)
    offset = np.empty((1, 2, 4, 4))
    offset[:, 0], offset[:, 1] = 0.5, 1.0
    y = run_op("DeformConv", x, np.ones((1, 1, 1, 1)), offset, version=19)
    np.testing.assert_allclose(y[0, 0, :3, :3], x[0, 0, :3, :3] + 2 + 1)
    np.testing.assert_allclose(y[0, 0, 3, :3], x[0, 0, 3, 1:] / 2)  # half of it outside
    assert not y[0, 0, :, 3].any()
    half = run_op("DeformConv", x, np.ones((1, 1, 1, 1)), offset, None, np.full((1, 1, 4, 4), 0.5), version=19)
    np.testing.assert_allclose(half, y / 2)
