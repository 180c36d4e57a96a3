"""NumPy's ufuncs on symbolic arrays give NumPy's dtypes and numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ampgraph as ag
from ampgraph.graph.tracing.ufuncs import supported

from .running import check, run_graph

DTYPES = ["float32", "float64", "float16", "int32", "int64", "int8", "uint8", "bool"]
#: Whole numbers that every dtype holds, and that no function overflows on.
FLOATS = [-2.5, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.0]
#: Ufuncs that are only defined inside these bounds.
BOUNDS = {"arccos": (-1, 1), "arcsin": (-1, 1), "arctanh": (-0.9, 0.9), "arccosh": (1, 9), "log1p": (-0.9, 9)}
#: Integers: TensorFlow and NumPy differ on what has no result.
NONZERO = ("floor_divide", "remainder", "fmod", "divmod", "power", "reciprocal", "float_power")


@st.composite
def calls(draw: st.DrawFn) -> tuple[np.ufunc, list[np.ndarray]]:
    ufunc = getattr(np, draw(st.sampled_from([name for name in supported() if name != "matmul"])))
    arrays = []
    for _ in range(ufunc.nin):
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        shape = draw(st.sampled_from([(3,), (2, 3), (2, 1), ()]))
        numbers = np.array(draw(st.lists(st.sampled_from(FLOATS), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
        if ufunc.__name__ in NONZERO:
            numbers = np.abs(numbers) + 1
        if ufunc.__name__.endswith("shift"):
            numbers = np.abs(numbers)
        if dtype.kind == "u":
            numbers = np.abs(numbers)
        numbers = np.clip(numbers, *BOUNDS.get(ufunc.__name__, (-9, 9)))
        arrays.append(numbers.reshape(shape).astype(dtype))
    return ufunc, arrays


@given(calls())
@settings(max_examples=300, deadline=None)
def test_gives_what_numpy_gives(call: tuple[np.ufunc, list[np.ndarray]]) -> None:
    ufunc, arrays = call
    try:
        with np.errstate(all="ignore"):
            ufunc(*arrays)
    except TypeError:
        with pytest.raises(ag.TraceError):
            ag.trace(lambda *xs: ufunc(*xs), *arrays)
        return
    tolerance = 2e-3 if any(x.dtype in (np.float16, np.int8, np.uint8, np.bool_) for x in arrays) else 1e-5
    try:
        check(lambda *xs: ufunc(*xs), *arrays, rtol=tolerance, atol=tolerance)
    except ag.TraceError as error:  # TensorFlow has no such op for all dtypes
        assert "exists for" in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", supported())
def test_every_ufunc_takes_float32_or_integers(name: str) -> None:
    ufunc = getattr(np, name)
    dtype = np.float32 if any("f" in kind.partition("->")[0] for kind in ufunc.types) else np.int32
    low, high = BOUNDS.get(name, (0.5, 2)) if dtype is np.float32 else (1, 4)
    arrays = [np.linspace(low, high, 4, dtype=dtype).reshape(2, 2) for _ in range(ufunc.nin)]
    check(lambda *xs: ufunc(*xs), *arrays)


def test_matmul_and_its_operator() -> None:
    rng = np.random.default_rng(0)
    for one, two in [
        ((2, 3), (3, 4)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (4, 3, 2)),
    ]:
        a, b = rng.standard_normal(one).astype(np.float32), rng.standard_normal(two).astype(np.float32)
        check(lambda x, y: x @ y, a, b, open_sizes=False)
        check(lambda x, y=b: np.matmul(x, y), a, open_sizes=len(one) > 1)
    check(lambda x, y: x @ y, np.arange(6, dtype=np.int8).reshape(2, 3), np.arange(3, dtype=np.int8), open_sizes=False)


@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        pytest.param(lambda x: x * 2.0 + 1, "float32", id="python-floats-are-weak"),
        pytest.param(lambda x: 1 / x, "float32", id="reflected"),
        pytest.param(lambda x: x + np.float64(1), "float32", id="numpy-scalars-are-not"),
        pytest.param(lambda x: x / 2, "int32", id="true-division"),
        pytest.param(lambda x: x // 2 - x % 2, "int8", id="integers-stay"),
        pytest.param(lambda x: x**2, "float32", id="square"),
        pytest.param(lambda x: np.abs(x) ** 0.5, "float32", id="root"),
        pytest.param(lambda x: x**2, "int32", id="integer-power"),
        pytest.param(lambda x: 2**x, "float32", id="base"),
        pytest.param(lambda x: (x > 1) & ~(x > 2) | (x == 0), "float32", id="logic"),
        pytest.param(lambda x: -x + abs(x), "float16", id="unary"),
        pytest.param(lambda x: divmod(x, 2), "int32", id="divmod"),
        pytest.param(lambda x: np.add(x, 1, dtype=np.float64), "float32", id="dtype"),
        pytest.param(lambda x: np.add.reduce(x) + np.maximum.reduce(x, axis=1).sum(), "float32", id="reduce"),
    ],
)
def test_promotes_as_numpy(function: object, dtype: str) -> None:
    check(function, np.arange(6).reshape(2, 3).astype(dtype), open_sizes=True)  # type: ignore[arg-type]


def test_sizes_are_as_weak_as_python_numbers() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    check(lambda x: x.sum() / x.shape[0], x)
    check(lambda x: x * (x.shape[0] * x.shape[1] / 4 - 1) + x.size, x)
    check(lambda x: x.reshape(x.shape[0] * 3), x)


def test_in_place_operators_keep_the_dtype() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        y = x * 1
        y += np.float64(2)
        y *= y
        return y

    check(function, np.ones((2, 2), np.float32))

    def integers(x: np.ndarray) -> np.ndarray:
        x += 0.5
        return x

    with pytest.raises(ag.TraceError, match="The result of an in-place add is float64, which int32 does not take"):
        ag.trace(integers, np.ones(2, np.int32))


def test_a_base_of_two_is_squared_by_its_own_op() -> None:
    assert ag.trace(lambda x: x**2, ag.TensorSpec([2])).has_node("Square")
    assert run_graph(lambda x: x ** np.float32(3), (np.array([2], np.float32),))[0] == 8
