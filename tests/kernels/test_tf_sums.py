"""TensorFlow's reductions, segments, products of matrices, linear algebra and random numbers."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError

from .tf_node import run_tf, tf_program

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


def test_fused_product() -> None:
    a, b, bias = M[0].astype(F32), M[1].T.astype(F32), np.array([1, -1, 0], F32)
    result = run_tf("_FusedMatMul", a, b, bias, fused_ops=[b"BiasAdd", b"Relu"], num_args=1)
    np.testing.assert_allclose(result, np.maximum(M[0] @ M[1].T + bias, 0), rtol=1e-5, atol=1e-7)


def test_diagonals() -> None:
    x = np.arange(12.0).reshape(3, 4)
    k, fill = np.array([-1, 1], I32), np.array(9.0)
    assert run_tf("MatrixDiagPartV3", x, k, fill).tolist() == [[1, 6, 11], [0, 5, 10], [4, 9, 9]]
    assert run_tf("MatrixDiagPartV3", x[:2], k, fill, align=b"RIGHT_LEFT").tolist() == [[1, 6], [0, 5], [4, 9]]
    band = np.triu(np.tril(x, 1), -1)
    diagonals = run_tf("MatrixDiagPartV3", x, k, fill)
    size = (np.array(3, I32), np.array(4, I32), np.array(0.0))
    np.testing.assert_array_equal(run_tf("MatrixDiagV3", diagonals, k, *size), band)
    np.testing.assert_array_equal(run_tf("MatrixSetDiagV3", 0 * x, diagonals, k), band)
    np.testing.assert_array_equal(run_tf("MatrixBandPart", x, np.array(1), np.array(1)), band)
    np.testing.assert_array_equal(run_tf("MatrixDiagPart", x), [0, 5, 10])


def test_gradient_of_the_cholesky_factor() -> None:
    a, dy, step = M[0] @ M[0].T + np.eye(3), np.tril(GEN.uniform(-1, 1, (3, 3))), 1e-6
    grad = run_tf("CholeskyGrad", run_tf("Cholesky", a), dy)
    for i, j in [(0, 0), (1, 0), (2, 1)]:
        change = np.zeros((3, 3))
        change[i, j] = change[j, i] = step
        slope = (np.linalg.cholesky(a + change) - np.linalg.cholesky(a - change)) / (2 * step)
        assert (dy * slope).sum() == pytest.approx((grad * change).sum() / step, rel=1e-6)
    with pytest.raises(KernelError, match="Cholesky has no result"):
        run_tf("Cholesky", -a)


@pytest.mark.parametrize("lower", [True, False])
def test_solutions(lower: bool) -> None:
    a, y = M[0] @ M[0].T + np.eye(3), M[1][:, :2]
    triangle = np.tril(a) if lower else np.triu(a)
    np.testing.assert_allclose(triangle.T @ run_tf("MatrixTriangularSolve", a, y, lower=lower, adjoint=True), y)
    np.testing.assert_allclose(a @ run_tf("MatrixInverse", a), np.eye(3), atol=1e-12)


# What TensorFlow 2.21 drew for the seed [1, 2].
DRAWN = {
    ("StatelessRandomUniform", "float32"): [0.8440604209899902, 0.19204533100128174, 0.9962232112884521, 0.16038739681243896],
    ("StatelessRandomUniform", "bfloat16"): [0.34375, 0.8828125, 0.484375, 0.1484375, 0.1484375, 0.5390625, 0.7109375],
    ("StatelessRandomUniform", "float64"): [0.7524837538451801, 0.9697857725627486, 0.17592233912897481],
    ("StatelessRandomNormal", "float32"): [
        0.544110119342804,
        0.20738030970096588,
        0.0735643208026886,
        0.04643455147743225,
        -1.301589846611023,
    ],
    ("StatelessTruncatedNormal", "float32"): [
        0.544110119342804,
        0.20738030970096588,
        0.0735643208026886,
        0.04643455147743225,
        0.16820591688156128,
    ],
    ("StatelessTruncatedNormal", "float64"): [-0.1423118100189212, 0.7406072461585091, -0.552387756244845, -0.734450092480207],
    ("StatelessRandomUniformFullInt", "int32"): [1105988140, 1738052849, -335576002, 370444179, 10670227],
    ("StatelessRandomUniformFullInt", "uint64"): [7464880146280614444, 1591045637757961278, 17389275318164050067],
}


@pytest.mark.parametrize(("op", "dtype"), DRAWN)
def test_draws_what_tensorflow_draws(op: str, dtype: str) -> None:
    wanted = np.array(DRAWN[op, dtype])
    found = run_tf(op, np.array(wanted.shape, I32), np.array([1, 2]), types={"dtype": dtype})
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=2e-6 if dtype == "float32" else 1e-12)
    else:
        np.testing.assert_array_equal(found, wanted)


def test_a_seeded_op_goes_on_and_an_unseeded_one_starts_anywhere() -> None:
    shape = np.array([9], I32)
    program = tf_program("RandomUniform", shape, types={"dtype": "float32"}, seed=3, seed2=5)
    first, second = (program({"x0": shape})["y0"] for _ in range(2))
    np.testing.assert_allclose(first[:3], [0.3976691961288452, 0.8425681591033936, 0.004518985748291016], rtol=1e-6)
    assert (first != second).all()
    assert (
        run_tf("RandomUniform", shape, types={"dtype": "float32"}) != run_tf("RandomUniform", shape, types={"dtype": "float32"})
    ).any()


def test_truncated_numbers_have_the_right_spread() -> None:
    x = run_tf("StatelessTruncatedNormal", np.array([40000], I32), np.array([7, 7]), types={"dtype": "float32"})
    assert np.abs(x).max() < 2
    assert x.std() == pytest.approx(0.8796, abs=0.01)  # of a normal distribution cut off at 2
    assert x.mean() == pytest.approx(0, abs=0.015)


def test_shuffles_and_classes() -> None:
    rows = np.arange(50)
    shuffled = run_tf("RandomShuffle", rows, seed=1)
    assert sorted(shuffled) == rows.tolist() != shuffled.tolist()
    logits = np.log(np.array([[0.25, 0.75, 1e-30]]))
    found = run_tf("StatelessMultinomial", logits, np.array(8000, I32), np.array([3, 4]))
    assert np.bincount(found[0], minlength=3) / 8000 == pytest.approx([0.25, 0.75, 0], abs=0.02)
