"""TensorFlow's reductions, segments and products of matrices."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError

from .tf_node import run_tf

I32, F32 = np.int32, np.float32
GEN = np.random.RandomState(0)
M = GEN.uniform(-1, 1, (2, 3, 4))


@pytest.mark.parametrize(
    ("op", "exact"),
    [
        ("Sum", np.sum),
        ("Mean", np.mean),
        ("Max", np.max),
        ("Prod", np.prod),
        ("EuclideanNorm", lambda x, a, **k: np.sqrt((x * x).sum(a, **k))),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_reduction(op: str, exact: Any, keep: bool) -> None:
    result = run_tf(op, M.astype(F32), np.array([0, -1], I32), keep_dims=keep)
    np.testing.assert_allclose(result, exact(M, (0, 2), keepdims=keep), rtol=1e-6)


def test_reduction_of_nothing_and_of_integers() -> None:
    none, axis = np.zeros((1, 0), F32), np.array([1], I32)
    found = [run_tf(op, none, axis).item() for op in ("Sum", "Prod", "Max", "Min")]
    assert found == [0, 1, -np.inf, np.inf]
    assert np.isnan(run_tf("Mean", none, axis)).all()
    assert run_tf("Mean", np.array([[100, 120, -1], [-3, -4, 0]], np.int8), axis).tolist() == [73, -2]
    with pytest.raises(KernelError, match="no such axis"):
        run_tf("Sum", none, np.array([2], I32))


def test_extremes_skip_nan() -> None:
    x = np.array([[np.nan, 5, np.nan], [1, np.nan, 3], [2, 2, 1], [np.nan] * 3], F32)
    assert run_tf("ArgMax", x, np.array(1, I32)).tolist() == [1, 2, 0, 0]
    assert run_tf("ArgMin", x, np.array(-1, I32), types={"output_type": "int32"}).tolist() == [1, 0, 2, 0]


def test_running_logsumexp_of_nothing() -> None:
    x = np.array([1.0, 2.0, 3.0], F32)
    result = run_tf("CumulativeLogsumexp", x, np.array(0, I32), exclusive=True)
    np.testing.assert_allclose(result, [-np.inf, 1, np.logaddexp(1, 2)], rtol=1e-6)


def test_segments() -> None:
    data, ids = np.array([[1, 2], [3, 4], [5, 6.0]]), np.array([0, 0, 2], I32)
    assert run_tf("SegmentSum", data, ids).tolist() == [[4, 6], [0, 0], [5, 6]]
    assert run_tf("SegmentProd", data, ids).tolist() == [[3, 8], [1, 1], [5, 6]]
    assert run_tf("SegmentMean", data, ids).tolist() == [[2, 3], [0, 0], [5, 6]]
    lost = run_tf("UnsortedSegmentMax", data, np.array([1, -1, 1], I32), np.array(2, I32))
    assert lost.tolist() == [[np.finfo(np.float64).min] * 2, [5, 6]]
    with pytest.raises(KernelError, match="go up"):
        run_tf("SegmentSum", data, ids[::-1].copy())
    with pytest.raises(KernelError, match="less than 2"):
        run_tf("UnsortedSegmentSum", data, ids, np.array(2, I32))


@pytest.mark.parametrize(("kind", "scale"), [("Sum", 1), ("Mean", 1 / 2), ("SqrtN", 2**-0.5)])
def test_sparse_segments_and_their_gradient(kind: str, scale: float) -> None:
    data, rows, ids = M[0], np.array([2, 0, 1], I32), np.array([0, 0, 2], I32)
    picked = np.array([data[2] + data[0], 0 * data[0], data[1]])
    picked[0] *= scale
    np.testing.assert_allclose(run_tf(f"SparseSegment{kind}", data, rows, ids), picked)
    grad = run_tf(f"SparseSegment{kind}Grad", picked, rows, ids, np.array(3, I32))
    np.testing.assert_allclose(grad, [picked[0] * scale, picked[2], picked[0] * scale])


@pytest.mark.parametrize(("flag_a", "flag_b"), [(False, False), (False, True), (True, False), (True, True)])
def test_products_of_matrices(flag_a: bool, flag_b: bool) -> None:
    a, b = M[0] + 1j * M[1], M[1].T - 2j * M[0].T
    plain = run_tf("MatMul", a.T if flag_a else a, b.T if flag_b else b, transpose_a=flag_a, transpose_b=flag_b)
    np.testing.assert_allclose(plain, a @ b)
    stacked = run_tf(
        "BatchMatMulV2", (a.T.conj() if flag_a else a)[None], b.T.conj() if flag_b else b, adj_x=flag_a, adj_y=flag_b
    )
    np.testing.assert_allclose(stacked, [a @ b])


@pytest.mark.parametrize(
    "equation",
    [
        "abc,acd->abd",
        "abc,cd->abd",
        "abc,bc->ab",
        "...ab,...bc->...ca",
        "a,b->ba",
        "aab,bc->ac",
        "abc,abc->",
        "abc->cab",
        "abc,dc->dab",
        "aa->a",
    ],
)
def test_einsum(equation: str) -> None:
    sizes = dict(zip("abcd", (2, 3, 4, 5), strict=True))
    terms = equation.partition("->")[0].split(",")
    operands = [GEN.uniform(-1, 1, [sizes[c] for c in term.replace("...", "d")]) for term in terms]
    result = run_tf("Einsum", *operands, equation=equation.encode(), N=len(operands))
    np.testing.assert_allclose(result, np.einsum(equation, *operands), rtol=1e-12)


def test_einsum_fills_diagonals_and_stretches_ellipses() -> None:
    assert run_tf("Einsum", np.array([1.0, 2.0]), equation=b"i->ii", N=1).tolist() == [[1, 0], [0, 2]]
    result = run_tf("Einsum", M[:1], np.ones((5, 1, 4, 2)), equation=b"...ab,...bc->...ac", N=2)
    np.testing.assert_allclose(result, np.repeat(M[:1].sum(-1)[None, :, :, None], 5, 0).repeat(2, -1))
    with pytest.raises(KernelError, match="size of an axis"):
        run_tf("Einsum", np.ones((2, 3)), np.ones((4, 2)), equation=b"ab,bc->ac", N=2)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [  # as TensorFlow 2.21.0 has it
        ("Relu", [3.5, 0, 2, 3]),
        ("Relu6", [3.5, 0, 2, 3]),
        ("Elu", [3.5, -0.98168439, 2, 3]),
        ("LeakyRelu", [3.5, -0.8, 2, 3]),
        ("Tanh", [0.99817795, -0.99932927, 0.96402758, 0.99505472]),
        ("Sigmoid", [0.97068775, 0.01798621, 0.8807971, 0.95257413]),
        # by hand: x * Phi(x) and its approximation, x / (1 + exp(-x)), x * min(max(x + 3, 0), 6) / 6
        ("GeluExact", [3.49918577, -0.00012669, 1.95449974, 2.99595031]),
        ("GeluApproximate", [3.49938373, -0.00007023, 1.95459769, 2.99636261]),
        ("_FusedSwish", [3.39740712, -0.07194484, 1.7615942, 2.8577224]),
        ("_FusedHardSwish", [3.5, 0, 5 / 3, 3]),
    ],
)
def test_fused_product(name: str, wanted: list[float]) -> None:
    a, b, bias = np.array([[1, -2], [3, 0.5]], F32), np.array([[0.5, 1], [-1, 2]], F32), np.array([1, -1], F32)
    found = run_tf("_FusedMatMul", a, b, bias, fused_ops=[b"BiasAdd", name.encode()], num_args=1)
    np.testing.assert_allclose(found.ravel(), wanted, rtol=1e-6, atol=4e-7)


def test_sums_are_fused_in_their_order() -> None:
    a, b, bias = np.array([[1, -2]], F32), np.eye(2, dtype=F32), np.array([1, -1], F32)
    found = run_tf("_FusedMatMul", a, b, bias, a, fused_ops=[b"BiasAdd", b"Add", b"Relu", b"LeakyRelu"], num_args=2)
    assert found.tolist() == [[3, 0]]
    with pytest.raises(KernelError, match=r"_FusedMatMul does not know one of its fused_ops\. Received: 'Sine'"):
        run_tf("_FusedMatMul", a, b, fused_ops=[b"Sine"], num_args=0)
