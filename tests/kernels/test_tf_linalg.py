"""TensorFlow's ops on stacks of matrices, and Fourier transforms, against their definitions and TensorFlow 2.21.0."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError

from .tf_node import run_tf

# They make arrays of lists, too.
F64: Any = np.float64
C64: Any = np.complex64
I32: Any = np.int32

RNG = np.random.default_rng(7)
SQUARES = RNG.standard_normal((2, 3, 3)) + 3 * np.eye(3)
M = RNG.uniform(-1, 1, (2, 3, 4))
ROWS = RNG.standard_normal((2, 4, 3))


def test_determinants() -> None:
    a, b, c = np.moveaxis(SQUARES, 1, 0)
    wanted = (np.cross(a, b) * c).sum(-1)
    np.testing.assert_allclose(run_tf("MatrixDeterminant", SQUARES), wanted)
    sign, log = run_tf("LogMatrixDeterminant", -SQUARES, results=2)
    np.testing.assert_allclose(sign * np.exp(log), -wanted)
    with pytest.raises(KernelError, match=r"MatrixDeterminant takes square matrices\. Received: shape"):
        run_tf("MatrixDeterminant", ROWS)


@pytest.mark.parametrize("adjoint", [False, True])
def test_solutions_solve(adjoint: bool) -> None:
    right = RNG.standard_normal((2, 3, 2))
    for op, matrix in (("MatrixSolve", SQUARES), ("MatrixTriangularSolve", np.tril(SQUARES))):
        found = run_tf(op, SQUARES, right, adjoint=adjoint)
        np.testing.assert_allclose((matrix.swapaxes(1, 2) if adjoint else matrix) @ found, right, atol=1e-12)
    with pytest.raises(KernelError, match="MatrixSolve has no result: Singular matrix"):
        run_tf("MatrixSolve", np.zeros((2, 2)), np.ones((2, 1)))


@pytest.mark.parametrize("whole", [False, True])
def test_factors_make_the_matrices(whole: bool) -> None:
    q, r = run_tf("Qr", ROWS, results=2, full_matrices=whole)
    assert q.shape == (2, 4, 4 if whole else 3)
    np.testing.assert_allclose(q @ r, ROWS, atol=1e-12)
    np.testing.assert_allclose(q.swapaxes(1, 2) @ q, np.broadcast_to(np.eye(q.shape[2]), (2, q.shape[2], q.shape[2])), atol=1e-12)
    s, u, v = run_tf("Svd", ROWS, results=3, full_matrices=whole)
    assert u.shape == q.shape
    np.testing.assert_allclose(u[:, :, :3] * s[:, None] @ v.swapaxes(1, 2), ROWS, atol=1e-12)
    alone, *none = run_tf("Svd", ROWS, results=3, compute_uv=False)
    np.testing.assert_allclose(alone, s)
    assert [part.size for part in none] == [0, 0]


def test_eigenvalues() -> None:
    x = SQUARES + SQUARES.swapaxes(1, 2)
    values, vectors = run_tf("SelfAdjointEigV2", x, results=2)
    np.testing.assert_allclose(x @ vectors, vectors * values[:, None], atol=1e-12)
    alone, none = run_tf("SelfAdjointEigV2", x, results=2, compute_v=False)
    np.testing.assert_allclose(alone, values)
    assert not none.size


def test_diagonals_of_tensors() -> None:
    x = F64([[1, 2, 3], [4, 5, 6]])
    diagonal = run_tf("Diag", x)
    assert diagonal.shape == (2, 3, 2, 3)
    assert diagonal.sum() == x.sum()
    np.testing.assert_array_equal(run_tf("DiagPart", diagonal), x)
    assert run_tf("DiagPart", np.zeros((0, 0))).shape == (0,)
    with pytest.raises(KernelError, match=r"both halves of the shape are the same\. Received: \[2, 3\]"):
        run_tf("DiagPart", x)


def test_diagonals_on_both_sides() -> None:
    x, k = np.arange(9.0).reshape(3, 3), I32([-1, 1])
    found = run_tf("MatrixDiagPartV3", x, k, F64(9), align="RIGHT_LEFT")
    assert found.tolist() == [[9, 1, 5], [0, 4, 8], [3, 7, 9]]
    assert (run_tf("MatrixSetDiagV3", np.zeros((3, 3)), found, k, align="RIGHT_LEFT") == np.triu(np.tril(x, 1), -1)).all()
    with pytest.raises(KernelError, match=r"a matrix of 3 by 3 has no such diagonals\. Received: 3 to 3"):
        run_tf("MatrixDiagPartV3", x, I32(3), F64(9))


@pytest.mark.parametrize(("op", "rank"), [("FFT", 1), ("FFT2D", 2), ("FFT3D", 3)])
def test_transforms_by_their_definition(op: str, rank: int) -> None:
    x = (RNG.standard_normal((2, 3, 4, 5)) + 1j * RNG.standard_normal((2, 3, 4, 5))).astype(np.complex64)
    wanted = x.astype(np.complex128)
    for axis in range(4 - rank, 4):
        size = x.shape[axis]
        turns = np.exp(-2j * np.pi * np.outer(np.arange(size), np.arange(size)) / size)
        wanted = np.moveaxis(np.tensordot(turns, wanted, (1, axis)), 0, axis)
    np.testing.assert_allclose(run_tf(op, x), wanted, atol=1e-4)
    np.testing.assert_allclose(run_tf(f"I{op}", run_tf(op, x)), x, atol=1e-5)


def test_transforms_of_real_numbers() -> None:
    real: Any = np.float32
    assert run_tf("RFFT", real([1, 2, 3, 4, 5]), I32([4])).tolist() == [10, -2 + 2j, -2]
    found = run_tf("IRFFT", C64([1 + 1j, 2, 3]), I32([5]))
    np.testing.assert_allclose(found, [2.2, -0.5236068, -0.0763932, -0.0763932, -0.5236068], atol=1e-6)
    with pytest.raises(
        KernelError, match=r"RFFT: an operand of shape \[3\] has too few axes or elements\. Received: fft_length=\[4\]"
    ):
        run_tf("RFFT", real([1, 2, 3]), I32([4]))
    with pytest.raises(
        KernelError, match=r"IRFFT: an operand of shape \[2\] has too few axes or elements\. Received: fft_length=\[4\]"
    ):
        run_tf("IRFFT", C64([1, 2]), I32([4]))
    with pytest.raises(KernelError, match=r"FFT2D: an operand of shape \[2\] has too few axes or elements"):
        run_tf("FFT2D", C64([1, 2]))


def test_diagonals() -> None:
    x = np.arange(12.0).reshape(3, 4)
    k, fill = I32([-1, 1]), np.array(9.0)
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
    a, dy, step = M[0] @ M[0].T + np.eye(3), np.tril(RNG.uniform(-1, 1, (3, 3))), 1e-6
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
