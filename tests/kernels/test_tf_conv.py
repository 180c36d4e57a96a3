"""TensorFlow's convolutions against the definition, and their gradients against differences."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from ampgraph.kernels import conv, tf_conv_grad
from tests.kernels.tf_node import run_tf, slope

# They make arrays of lists, too.
I32: Any = np.int32

RNG = np.random.default_rng(11)


def defined(x: Any, w: Any, strides: Any, dilations: Any, pads: Any) -> Any:
    """Return a convolution of ``x [N, spatial ..., C]``, a window at a time."""
    rank = len(pads)
    groups = x.shape[-1] // w.shape[-2]
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    counts = [(x.shape[1 + i] - (w.shape[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)]
    y = np.zeros((x.shape[0], *counts, w.shape[-1]))
    depth, many = w.shape[-2], w.shape[-1] // groups
    for at, g in product(product(*map(range, counts)), range(groups)):
        part = tuple(
            slice(p * s, p * s + (k - 1) * d + 1, d) for p, s, k, d in zip(at, strides, w.shape[:rank], dilations, strict=True)
        )
        window = x[(slice(None), *part, slice(g * depth, (g + 1) * depth))].reshape(x.shape[0], -1)
        y[(slice(None), *at, slice(g * many, (g + 1) * many))] = window @ w[..., g * many : (g + 1) * many].reshape(-1, many)
    return y


CASES = [
    # images, filter, strides, dilations, padding, what it comes to
    ((2, 5, 4, 3), (3, 2, 3, 2), (1, 1), (1, 1), "SAME", ((1, 1), (0, 1))),
    ((2, 5, 4, 4), (2, 2, 2, 6), (2, 1), (1, 1), "VALID", ((0, 0), (0, 0))),
    ((1, 6, 5, 2), (3, 2, 2, 3), (1, 1), (2, 2), "SAME", ((2, 2), (1, 1))),
    ((1, 4, 5, 2), (1, 1, 2, 3), (1, 1), (1, 1), "SAME", ((0, 0), (0, 0))),
    ((2, 4, 5, 1), (3, 2, 1, 3), (1, 1), (1, 1), "SAME", ((1, 1), (0, 1))),
    ((2, 4, 5, 2), (2, 2, 2, 2), (1, 1), (1, 1), "EXPLICIT", ((2, 0), (0, 3))),
    ((1, 5, 5, 2), (3, 2, 2, 2), (2, 2), (1, 1), "EXPLICIT", ((1, 0), (2, 1))),
    ((2, 4, 3, 5, 2), (2, 3, 2, 2, 2), (2, 1, 1), (1, 1, 1), "SAME", ((0, 0), (1, 1), (0, 1))),
]


def attributes(strides: Any, dilations: Any, padding: str, pads: Any, first: bool) -> dict[str, Any]:
    """Return the attributes of a node, with the channels second or last."""

    def along(inner: Any) -> list[int]:
        return [1, 1, *inner] if first else [1, *inner, 1]

    found: dict[str, Any] = {"strides": along(strides), "dilations": along(dilations), "padding": padding}
    if padding == "EXPLICIT":
        flat = [n for pair in pads for n in pair]
        found["explicit_paddings"] = [0, 0, 0, 0, *flat] if first else [0, 0, *flat, 0, 0]
    found["data_format"] = ("NCHW" if first else "NHWC") if len(pads) == 2 else ("NCDHW" if first else "NDHWC")
    return found


@pytest.fixture(params=[conv.BLOCK, 32, 1])
def blocks(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work on blocks of so many elements."""
    if request.param == conv.BLOCK:
        return
    for module in (conv, tf_conv_grad):
        monkeypatch.setattr(module, "BLOCK", request.param)
    monkeypatch.setattr(tf_conv_grad, "_LEAST_WINDOWS", 1)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("shape", "taps", "strides", "dilations", "padding", "pads"), CASES)
def test_convolutions_and_their_gradients(
    shape: Any, taps: Any, strides: Any, dilations: Any, padding: str, pads: Any, first: bool
) -> None:
    given = attributes(strides, dilations, padding, pads, first)
    rank = len(pads)
    x, w = RNG.standard_normal(shape), RNG.standard_normal(taps)
    wanted = defined(x, w, strides, dilations, pads)
    turned = np.moveaxis(x, -1, 1) if first else x
    y = run_tf(f"Conv{rank}D", turned, w, **given)
    np.testing.assert_allclose(np.moveaxis(y, 1, -1) if first else y, wanted, atol=1e-12)
    dy = RNG.standard_normal(wanted.shape)
    dy_turned = np.moveaxis(dy, -1, 1) if first else dy
    version = "V2" if rank == 3 else ""
    dx = run_tf(f"Conv{rank}DBackpropInput{version}", I32(turned.shape), w, dy_turned, **given)
    # a convolution is linear: <dy, conv(v, w)> = <dx, v> for every v
    for _ in range(3):
        v = RNG.standard_normal(shape)
        by_definition = (dy * defined(v, w, strides, dilations, pads)).sum()
        np.testing.assert_allclose((dx * (np.moveaxis(v, -1, 1) if first else v)).sum(), by_definition, rtol=1e-10)
    dw = run_tf(f"Conv{rank}DBackpropFilter{version}", turned, I32(taps), dy_turned, **given)
    for _ in range(3):
        v = RNG.standard_normal(taps)
        np.testing.assert_allclose((dw * v).sum(), (dy * defined(x, v, strides, dilations, pads)).sum(), rtol=1e-10)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("many", [1, 2])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_depthwise_convolutions_and_their_gradients(padding: str, step: int, many: int) -> None:
    x, w = RNG.standard_normal((2, 5, 4, 3)), RNG.standard_normal((2, 3, 3, many))
    given = {"strides": [1, step, step, 1], "padding": padding}
    y = run_tf("DepthwiseConv2dNative", x, w, **given)
    pads = ((0, 0), (0, 0)) if padding == "VALID" else ((0, 1), (1, 1) if step == 1 else (0, 1))
    for c in range(3):
        np.testing.assert_allclose(
            y[..., many * c : many * c + many],
            defined(x[..., c : c + 1], w[:, :, c : c + 1], (step, step), (1, 1), pads),
            atol=1e-12,
        )
    dy = RNG.standard_normal(y.shape)
    dx = run_tf("DepthwiseConv2dNativeBackpropInput", I32(x.shape), w, dy, **given)
    np.testing.assert_allclose(dx, slope(lambda v: run_tf("DepthwiseConv2dNative", v, w, **given), x, dy), atol=1e-7)
    dw = run_tf("DepthwiseConv2dNativeBackpropFilter", x, I32(w.shape), dy, **given)
    np.testing.assert_allclose(dw, slope(lambda v: run_tf("DepthwiseConv2dNative", x, v, **given), w, dy), atol=1e-7)


def test_a_convolution_may_have_more_than_one_axis_of_batches() -> None:
    x, w = RNG.standard_normal((2, 3, 4, 4, 2)), RNG.standard_normal((2, 2, 2, 3))
    y = run_tf("Conv", x, w, strides=[1, 1, 1, 1], padding="VALID", batch_dims=2)
    flat = defined(x.reshape(6, 4, 4, 2), w, (1, 1), (1, 1), ((0, 0), (0, 0)))
    np.testing.assert_allclose(y, flat.reshape(2, 3, 3, 3, 3), atol=1e-12)


def test_other_spellings_of_convolutions() -> None:
    x, w = RNG.standard_normal((1, 4, 5, 2)), RNG.standard_normal((3, 2, 2, 3))
    windows: dict[str, Any] = {"strides": [1, 1, 1, 1]}
    paddings = I32([[0, 0], [2, 1], [1, 0], [0, 0]])
    for mode in ("REFLECT", "SYMMETRIC"):
        mirrored = np.pad(x, paddings, "reflect" if mode == "REFLECT" else "symmetric")
        y = run_tf("Conv2D", mirrored, w, padding="VALID", **windows)
        found = run_tf("FusedPadConv2D", x, paddings, w, mode=mode, padding="VALID", **windows)
        np.testing.assert_allclose(found, y, atol=1e-12)
    y = run_tf("Conv2D", x, w, padding="SAME", **windows)
    dy = RNG.standard_normal(y.shape)
    by_x = run_tf("Conv2DBackpropInput", I32(x.shape), w, dy, padding="SAME", **windows)
    np.testing.assert_array_equal(run_tf("Conv2DBackpropInputV2", x, w, dy, padding="SAME", **windows), by_x)
    by_w = run_tf("Conv2DBackpropFilter", x, I32(w.shape), dy, padding="SAME", **windows)
    np.testing.assert_array_equal(run_tf("Conv2DBackpropFilterV2", x, w, dy, padding="SAME", **windows), by_w)


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(KernelError, match="do not fall into groups"):
        run_tf("Conv2D", np.zeros((1, 4, 4, 3)), np.zeros((2, 2, 2, 2)), strides=[1, 1, 1, 1], padding="SAME")
    with pytest.raises(KernelError, match="does not fit into 1 elements"):
        run_tf("Conv2D", np.zeros((1, 1, 4, 2)), np.zeros((3, 1, 2, 2)), strides=[1, 1, 1, 1], padding="VALID")
    with pytest.raises(KernelError, match="1 for batch and channels"):
        run_tf("Conv2D", np.zeros((1, 4, 4, 2)), np.zeros((2, 2, 2, 2)), strides=[2, 1, 1, 1], padding="SAME")
    with pytest.raises(KernelError, match="should have 2 channels"):
        run_tf("Conv2DBackpropInput", I32([1, 4, 4, 2]), np.zeros((2, 2, 2, 2)), np.zeros((1, 3, 4, 2)),
               strides=[1, 1, 1, 1], padding="SAME")  # fmt: skip
