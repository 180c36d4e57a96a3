"""Convolutions against the definition, in float64."""

from itertools import product
from threading import Thread
from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from ampgraph.kernels import conv
from tests.kernels.one_node import run_op

RNG = np.random.default_rng(7)


def defined(x: Any, w: Any, strides: Any, dilations: Any, pads: Any, groups: int) -> Any:
    """The sum over channels and taps, window by window."""
    rank = x.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    counts = [(x.shape[2 + i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)]
    result = np.zeros((x.shape[0], w.shape[0], *counts))
    each, of = w.shape[1], w.shape[0] // groups
    for at in product(*map(range, counts)):
        window = x[
            (
                ...,
                *(
                    slice(p * s, p * s + (k - 1) * d + 1, d)
                    for p, s, k, d in zip(at, strides, w.shape[2:], dilations, strict=True)
                ),
            )
        ]
        for m in range(w.shape[0]):
            g = m // of
            axes = tuple(range(1, x.ndim))
            result[(slice(None), m, *at)] = (window[:, g * each : (g + 1) * each] * w[m]).sum(axes)
    return result


CASES = [
    ((2, 3, 9), (4, 3, 3), (2,), (1,), (1, 2), 1),
    ((1, 4, 7, 8), (6, 2, 3, 2), (1, 2), (2, 1), (1, 0, 2, 1), 2),
    ((2, 5, 6, 7), (5, 1, 3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 5),
    ((2, 5, 6, 7), (10, 1, 3, 3), (2, 1), (1, 1), (1, 1, 1, 1), 5),
    ((1, 4, 6, 5), (2, 2, 3, 3), (1, 1), (2, 1), (2, 0, 2, 1), 2),
    ((1, 2, 5, 4, 6), (4, 2, 2, 3, 2), (1, 1, 2), (1, 1, 1), (0, 1, 0, 1, 0, 1), 1),
    ((2, 3, 4, 5, 3), (3, 1, 2, 2, 2), (1, 1, 1), (1, 1, 1), (1, 0, 1, 0, 1, 0), 3),
    ((3, 8, 5, 5), (4, 8, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1),
    ((3, 8, 5, 5), (4, 4, 1, 1), (2, 2), (1, 1), (0, 0, 0, 0), 2),
    ((1, 3, 1, 40), (2, 3, 1, 7), (1, 3), (1, 2), (0, 6, 0, 6), 1),
]


@pytest.mark.parametrize("block", [1, 64, 1 << 19])
@pytest.mark.parametrize(("x", "w", "strides", "dilations", "pads", "groups"), CASES)
def test_convolutions_are_what_the_definition_says(
    monkeypatch: pytest.MonkeyPatch, block: int, x: Any, w: Any, strides: Any, dilations: Any, pads: Any, groups: int
) -> None:
    """However large the blocks are in which they are computed."""
    monkeypatch.setattr(conv, "BLOCK", block)
    image, weights, bias = (RNG.standard_normal(shape) for shape in (x, w, w[:1]))
    result = run_op("Conv", image, weights, bias, strides=list(strides), dilations=list(dilations), pads=list(pads), group=groups)
    wanted = defined(image, weights, strides, dilations, pads, groups) + bias.reshape(-1, *(1,) * (len(x) - 2))
    np.testing.assert_allclose(result, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("x", "w", "strides", "dilations", "pads", "groups"), CASES)
def test_transposed_convolutions_are_the_transpose(x: Any, w: Any, strides: Any, dilations: Any, pads: Any, groups: int) -> None:
    """<conv(a), b> is <a, transposed(b)>."""
    a, weights = RNG.standard_normal(x), RNG.standard_normal(w)
    there = defined(a, weights, strides, dilations, pads, groups)
    b = RNG.standard_normal(there.shape)
    rank = len(x) - 2
    extra = [
        n + pads[i] + pads[rank + i] - (k - 1) * d - 1 - (c - 1) * s
        for i, (n, k, d, c, s) in enumerate(zip(x[2:], w[2:], dilations, there.shape[2:], strides, strict=True))
    ]
    back = run_op(
        "ConvTranspose",
        b,
        weights,
        strides=list(strides),
        dilations=list(dilations),
        pads=list(pads),
        group=groups,
        output_padding=extra,
    )
    assert back.shape == x
    np.testing.assert_allclose((there * b).sum(), (a * back).sum(), rtol=1e-10)


@pytest.mark.parametrize(("auto", "first"), [(b"SAME_UPPER", 6), (b"SAME_LOWER", 3)])
def test_uneven_padding_goes_where_auto_pad_says(auto: bytes, first: int) -> None:
    x = np.array([[[1, 2, 3]]], np.float32)
    result = run_op("Conv", x, np.ones((1, 1, 4), np.float32), auto_pad=auto)
    assert result.ravel().tolist() == {6: [6, 6, 5], 3: [3, 6, 6]}[first]


@pytest.mark.parametrize("shape", [(0, 2, 4, 4), (1, 2, 4, 4)])
def test_zero_size_batches_and_results(shape: Any) -> None:
    assert run_op("Conv", np.ones(shape, np.float32), np.ones((0, 2, 3, 3), np.float32)).shape == (shape[0], 0, 2, 2)
    assert run_op("Conv", np.ones(shape, np.float32), np.ones((3, 2, 3, 3), np.float32)).shape == (shape[0], 3, 2, 2)


def test_no_channels_give_the_bias() -> None:
    x, w = np.ones((1, 0, 3, 3), np.float32), np.ones((2, 0, 2, 2), np.float32)
    assert run_op("Conv", x, w, np.array([1, 2], np.float32))[0, :, 0, 0].tolist() == [1, 2]


def test_float16_is_summed_in_float32() -> None:
    """In float16, 2048 + 1 stays 2048."""
    x = np.full((1, 4096, 1, 1), 1, np.float16)
    assert float(run_op("Conv", x, np.ones((1, 4096, 1, 1), np.float16))[0, 0, 0, 0]) == 4096


def test_float16_results_overflow() -> None:
    x = np.full((1, 1, 2, 2), 60000, np.float16)
    assert np.isinf(run_op("Conv", x, np.ones((1, 1, 2, 2), np.float16))).all()


def test_infinity_reaches_only_the_windows_that_see_it() -> None:
    x = np.zeros((1, 2, 5, 5), np.float32)
    x[0, 1, 0, 0] = np.inf
    result = run_op("Conv", x, np.ones((2, 1, 3, 3), np.float32), pads=[1] * 4, group=2)
    assert np.isfinite(result[0, 0]).all()
    assert np.argwhere(np.isinf(result[0, 1])).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_integer_convolution_is_exact() -> None:
    """Sums beyond 2**24, which float32 cannot hold."""
    x, w = np.full((1, 1021, 1, 1), 255, np.uint8), np.full((1, 1021, 1, 1), 255, np.uint8)
    assert run_op("ConvInteger", x, w).item() == 255 * 255 * 1021
    assert run_op("ConvInteger", x, w, np.array(1, np.uint8), np.array([255], np.uint8)).item() == 0


def test_integer_convolution_pads_with_the_zero_point() -> None:
    x, w = np.full((1, 1, 2), 7, np.uint8), np.ones((1, 1, 3), np.uint8)
    assert run_op("ConvInteger", x, w, np.array(7, np.uint8), pads=[1, 1]).ravel().tolist() == [0, 0]


def test_quantized_convolution_rounds_ties_to_even_and_saturates() -> None:
    one = np.array(1, np.float32)
    zero = np.array(0, np.int8)
    x, w = np.array([[[1, 3, 127]]], np.int8), np.array([[[1]]], np.int8)
    y = run_op("QLinearConv", x, np.array(0.5, np.float32), zero, w, one, zero, one, zero)
    assert y.ravel().tolist() == [0, 2, 64]
    y = run_op("QLinearConv", x, np.array(4, np.float32), zero, w, one, zero, one, zero)
    assert y.ravel().tolist() == [4, 12, 127]


def test_states_of_a_causal_convolution_continue_it() -> None:
    x, w = RNG.standard_normal((2, 3, 10)), RNG.standard_normal((3, 1, 4))
    whole, last = run_op("CausalConvWithState", x, w, version=27, results=2)
    first, state = run_op("CausalConvWithState", x[..., :2], w, version=27, results=2)
    second, end = run_op("CausalConvWithState", x[..., 2:], w, None, state, version=27, results=2)
    np.testing.assert_allclose(np.concatenate([first, second], -1), whole, rtol=1e-12)
    assert (end == last).all()
    assert (last == x[..., -3:]).all()


def test_deformable_convolution_without_deformation_is_a_convolution() -> None:
    x, w = RNG.standard_normal((2, 4, 6, 5)), RNG.standard_normal((6, 2, 3, 2))
    offset = np.zeros((2, 2 * 6 * 2, 3, 6))
    result = run_op("DeformConv", x, w, offset, strides=[2, 1], pads=[1, 1, 1, 1], group=2, offset_group=2)
    np.testing.assert_allclose(result, defined(x, w, (2, 1), (1, 1), (1, 1, 1, 1), 2), rtol=1e-12)


def test_threads_do_not_share_memory_to_work_in() -> None:
    images = [np.full((1, 8, 40, 40), value, np.float32) for value in range(4)]
    weights = np.ones((8, 1, 3, 3), np.float32)
    wrong: list[int] = []

    def work(value: int) -> None:
        for _ in range(50):
            result = run_op("Conv", images[value], weights, group=8, pads=[1, 1, 1, 1])
            if not (result[0, :, 1:-1, 1:-1] == 9 * value).all():
                wrong.append(value)

    threads = [Thread(target=work, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("x", "w", "attributes", "message"),
    [
        ((1, 3, 4), (2, 2, 3), {}, "weights for 3 channels"),
        ((1, 4, 4), (3, 2, 3), {"group": 2}, "3 results"),
        ((1, 3, 4), (2, 3, 3, 3), {}, "one rank"),
        ((1, 3, 4), (2, 3, 5), {}, "A window of 5 elements does not fit into 4"),
        ((1, 3, 4), (2, 3, 3), {"strides": [0]}, "from 1 on"),
        ((1, 3, 4), (2, 3, 3), {"pads": [-1, 0]}, "from 0 on"),
        ((1, 3, 4), (2, 3, 3), {"pads": [1]}, "needs 2 integers"),
        ((1, 3, 4), (2, 3, 3), {"kernel_shape": [2]}, "kernel_shape"),
    ],
)
def test_what_cannot_be_convolved(x: Any, w: Any, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run_op("Conv", np.ones(x, np.float32), np.ones(w, np.float32), **attributes)


@pytest.mark.parametrize("bias", [None, np.full(1003, 0.25, np.float32)])
def test_equal_filters_have_equal_results(bias: Any) -> None:
    """Also where matrix products add up the last rows in another order; a softmax over large sums would tell."""
    x = (1e6 * RNG.standard_normal((1, 512, 13, 13))).astype(np.float32)
    w = run_op("ConstantOfShape", np.array([1003, 512, 1, 1]), value=np.array([0.01], np.float32))
    y = run_op("Conv", x, w, *([] if bias is None else [bias]))
    np.testing.assert_array_equal(y, np.repeat(y[:, :1], 1003, 1))
    expected = 0.01 * x.astype(np.float64).sum(1) + (0 if bias is None else 0.25)
    np.testing.assert_allclose(y[:, 0], expected, rtol=1e-4, atol=1)
