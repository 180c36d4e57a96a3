"""NumPy's functions on symbolic arrays give NumPy's results."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ampgraph as ag
from ampgraph.graph.tracing.functions import names

from .running import check

RNG = np.random.default_rng(7)
X = RNG.standard_normal((2, 3, 4)).astype(np.float32)
M = RNG.standard_normal((3, 4)).astype(np.float32)
V = RNG.standard_normal(4).astype(np.float32)
S = RNG.standard_normal((4, 4)).astype(np.float32)
I = RNG.integers(-5, 6, (2, 3, 4))
B = I > 0

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sum": (lambda x, i, b: (np.sum(x), x.sum(1), np.sum(i, (0, -1), keepdims=True), b.sum(), np.sum(i, dtype="f4")), (X, I, B)),
    "prod": (lambda x, b: (np.prod(x, 1), b.prod(0)), (X, B)),
    "mean": (lambda x, i, b: (np.mean(x), x.mean((0, 2), keepdims=True), i.mean(), b.mean(1)), (X, I, B)),
    "var": (lambda x, i: (np.var(x), x.var(1, ddof=1), i.var((0, 1), keepdims=True)), (X, I)),
    "std": (lambda x: (np.std(x, axis=-1), x.std(ddof=2)), (X,)),
    "max": (lambda x, i, b: (np.max(x), np.amax(i, 1), b.max(2), x.max(0, keepdims=True)), (X, I, B)),
    "min": (lambda x, i, b: (np.min(x), np.amin(i, 1), b.min(2)), (X, I, B)),
    "ptp": (lambda x: np.ptp(x, 1), (X,)),
    "any": (lambda b, i: (np.any(b, 1), i.any()), (B, I)),
    "all": (lambda b, i: (np.all(b, (0, 1)), i.all(-1)), (B, I)),
    "count_nonzero": (lambda i: (np.count_nonzero(i), np.count_nonzero(i, axis=1)), (I,)),
    "argmax": (lambda x: (np.argmax(x), x.argmax(1), np.argmax(x, axis=2, keepdims=True)), (X,)),
    "argmin": (lambda x: (np.argmin(x, keepdims=True), x.argmin(-1)), (X,)),
    "cumsum": (lambda x, i: (np.cumsum(x, 1), i.cumsum(), np.cumsum(i.astype("i4"), 0)), (X, I)),
    "cumprod": (lambda x: np.cumprod(x, axis=2), (X,)),
    "average": (lambda x, i: (np.average(x), np.average(x, 1, weights=np.abs(x)), np.average(i)), (X, I)),
    "norm": (
        lambda x, v: (np.linalg.norm(x), np.linalg.norm(x, axis=1), np.linalg.norm(v, 1), np.linalg.norm(x, np.inf, 2)),
        (X, V),
    ),
    "reshape": (
        lambda x: (np.reshape(x, (-1, 4)), x.reshape(-1), x.reshape(x.shape[0], 2, 6), x.reshape((x.shape[0], -1))),
        (X,),
    ),
    "ravel": (lambda x: (np.ravel(x), x.flatten()), (X,)),
    "transpose": (
        lambda x: (np.transpose(x), x.T, x.transpose(1, 0, 2), x.transpose((2, 0, 1)), np.transpose(x, (0, 1, 2))),
        (X,),
    ),
    "permute_dims": (lambda x: np.transpose(x, (-1, 0, 1)), (X,)),
    "matrix_transpose": (lambda x: x.mT if hasattr(x, "value") else np.swapaxes(x, -1, -2), (X,)),
    "swapaxes": (lambda x: (np.swapaxes(x, 0, -1), x.swapaxes(1, 2)), (X,)),
    "moveaxis": (lambda x: (np.moveaxis(x, 0, -1), np.moveaxis(x, (0, 1), (2, 0))), (X,)),
    "expand_dims": (lambda x: (np.expand_dims(x, 1), np.expand_dims(x, (0, -1))), (X,)),
    "squeeze": (lambda x: (np.squeeze(x[:, :1], 1), np.squeeze(x[:, None, :1], (1, 2))), (X,)),
    "broadcast_to": (lambda v, x: (np.broadcast_to(v, (2, 3, 4)), np.broadcast_to(x[:, :1], x.shape)), (V, X)),
    "atleast_1d": (lambda x: (np.atleast_1d(x[0, 0, 0]), np.atleast_1d(x)), (X,)),
    "atleast_2d": (lambda v: np.atleast_2d(v), (V,)),
    "flip": (lambda x: (np.flip(x), np.flip(x, 1)), (X,)),
    "fliplr": (lambda x: np.fliplr(x), (X,)),
    "flipud": (lambda x: np.flipud(x), (X,)),
    "roll": (lambda x: (np.roll(x, 5), np.roll(x, -1, 1), np.roll(x, (1, 2), (0, 2)), np.roll(x, 1, (0, 1))), (X,)),
    "tile": (lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 1, 3))), (X,)),
    "repeat": (lambda x: (np.repeat(x, 2, 1), x.repeat(3)), (X,)),
    "zeros_like": (lambda x: (np.zeros_like(x), np.zeros_like(x, dtype="i4")), (X,)),
    "ones_like": (lambda x: (np.ones_like(x), np.ones_like(x, shape=(2, 2))), (X,)),
    "empty_like": (lambda x: np.empty_like(x) * 0, (X,)),
    "full_like": (lambda x: np.full_like(x, 2.5), (X,)),
    "shape": (lambda x: (x.sum() * np.shape(x)[0], x.sum() * np.shape(x)[1]), (X,)),
    "ndim": (lambda x: x * np.ndim(x), (X,)),
    "size": (lambda x: (x / np.size(x), x * np.size(x, 1)), (X,)),
    "copy": (lambda x: (np.copy(x), x.copy()), (X,)),
    "astype": (lambda x, i: (x.astype(np.int32), i.astype("f4"), x.astype(bool), i.astype(np.float16)), (X * 5, I)),
    "real": (lambda x: np.real(x), (X,)),
    "tril": (lambda x: (np.tril(x), np.tril(x, 1)), (X,)),
    "triu": (lambda x: (np.triu(x, -1), np.triu(x)), (X,)),
    "concatenate": (lambda x, i: (np.concatenate([x, x]), np.concatenate([x, i], 1), np.concatenate((x, i), axis=None)), (X, I)),
    "stack": (lambda x, i: (np.stack([x, x]), np.stack((x, i), axis=-1), np.stack([x[0], np.ones((3, 4), "f4")])), (X, I)),
    "vstack": (lambda v, m: (np.vstack([v, v]), np.vstack([v, m])), (V, M)),
    "hstack": (lambda v, x: (np.hstack([v, v]), np.hstack([x, x])), (V, X)),
    "column_stack": (lambda v, m: (np.column_stack([v, v]), np.column_stack([v, m])), (V, S)),
    "split": (lambda x: (np.split(x, 2, -1), np.split(x, [1, 3], 2)), (X,)),
    "array_split": (lambda x: np.array_split(x, 3, 2), (X,)),
    "unstack": (lambda x: list(x.swapaxes(0, 1)), (X,)),
    "pad": (
        lambda x: (
            np.pad(x, 1),
            np.pad(x, ((0, 0), (1, 2), (0, 1)), constant_values=3),
            np.pad(x[:, :, :3], ((0, 0), (1, 1), (2, 1)), "reflect"),
        ),
        (X,),
    ),
    "dot": (
        lambda m, v, x, s: (np.dot(m, v), np.dot(x, v), v.dot(v), np.dot(x, s), np.dot(m, x.swapaxes(1, 2)), np.dot(2, v)),
        (M, V, X, S),
    ),
    "vdot": (lambda m: np.vdot(m, m), (M,)),
    "inner": (lambda m, x, v: (np.inner(m, x), np.inner(v, v)), (M, X, V)),
    "outer": (lambda v, m: np.outer(v, m), (V, M)),
    "tensordot": (
        lambda x, m, s: (
            np.tensordot(x, m),
            np.tensordot(x, m, ([1, 2], [0, 1])),
            np.tensordot(m, s, 1),
            np.tensordot(x, m, (1, 0)),
        ),
        (X, M, S),
    ),
    "einsum": (
        lambda x, m, s, i: (
            *(np.einsum("bij,ij->b", x, m), np.einsum("bij,jk", x, s), np.einsum("...ij->...ji", x), np.einsum("ii", s)),
            *(
                np.einsum("bij,jk,kl->bil", x, s, s, optimize=True),
                np.einsum("...j,j", x, s[0]),
                np.einsum("bij->j", i.astype("i4")),
            ),
        ),
        (X, M, S, I),
    ),
    "trace": (lambda s: np.trace(s), (S,)),
    "diagonal": (lambda s: np.diagonal(s), (S,)),
    "where": (lambda x, b, i: (np.where(b, x, 0), np.where(x > 0, x, i), np.where(i, 1.5, x)), (X, B, I)),
    "clip": (lambda x, i: (np.clip(x, -1, 1), x.clip(0.5), np.clip(i, None, 2), np.clip(x, np.float32(0), x + 1)), (X, I)),
    "round": (lambda x, i: (np.round(x), x.round(2), np.around(x * 100, -1), np.round(i)), (X, I)),
    "nan_to_num": (lambda x: (np.nan_to_num(x / (x > 0)), np.nan_to_num(x / 0, nan=1, posinf=2, neginf=3)), (X,)),
    "isclose": (
        lambda x: (np.isclose(x, x + 1e-7), np.isclose(x / 0, x / 0), np.isclose(x * np.nan, x * np.nan, equal_nan=True)),
        (X,),
    ),
    "diff": (lambda x, b: (np.diff(x), np.diff(x, 2, 1), np.diff(b, axis=1)), (X, B)),
    "take": (lambda x, i: (np.take(x, [0, -1], 1), x.take(i[0, 0] % 4, axis=2), np.take(x, -1, 0), np.take(x, i % 5)), (X, I)),
    "take_along_axis": (
        lambda x: (np.take_along_axis(x, np.argmax(x, 2)[..., None], 2), np.take_along_axis(x, np.argmax(x, 1)[:, None] - 1, 1)),
        (X,),
    ),
    "broadcast_arrays": (lambda x: np.broadcast_arrays(x[0], x[0, 0]), (X,)),
}
#: Whose sizes must be known.
CLOSED = ("trace", "diagonal", "broadcast_to", "tile", "roll", "vdot")


@pytest.mark.parametrize("name", CASES)
def test_gives_what_numpy_gives(name: str) -> None:
    function, arrays = CASES[name]
    open_sizes = all(np.ndim(x) == 3 for x in arrays) and name not in CLOSED
    check(function, *arrays, rtol=1e-4, atol=1e-4, open_sizes=open_sizes)


def test_every_function_of_the_table_has_a_case() -> None:
    aliases = {"amax": "max", "amin": "min", "around": "round", "concat": "concatenate"}
    assert {aliases.get(name, name) for name in names()} - {"astype"} == set(CASES) - {"astype", "permute_dims", "unstack"} | (
        {"unstack", "permute_dims"} & set(names())
    )


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_reductions_of_any_axes(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    axes = data.draw(st.one_of(st.none(), st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True).map(tuple)))
    name = data.draw(st.sampled_from(["sum", "mean", "max", "min", "prod", "var", "std", "any", "all"]))
    dtype = data.draw(st.sampled_from(["float32", "float64", "int32", "bool", "float16"]))
    keepdims = data.draw(st.booleans())
    x = RNG.integers(-2, 3, shape).astype(dtype)
    function = getattr(np, name)
    check(lambda x: function(x, axis=axes, keepdims=keepdims), x, rtol=2e-3, atol=2e-3)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_basic_indices(data: st.DataObject) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    bounds = st.one_of(st.none(), st.integers(-4, 4))
    steps = st.sampled_from([None, 1, 2, -1, -2])
    sizes = x.shape[: data.draw(st.integers(0, 3))]
    items: list[Any] = [
        data.draw(st.one_of(st.builds(slice, bounds, bounds, steps), st.integers(-size, size - 1))) for size in sizes
    ]
    for _ in range(data.draw(st.integers(0, 2))):
        items.insert(data.draw(st.integers(0, len(items))), None)
    if data.draw(st.booleans()):
        items.insert(data.draw(st.integers(0, len(items))), Ellipsis)
        start = items.index(Ellipsis) + 1
        items[start:] = [item if isinstance(item, slice | None) else -1 for item in items[start:]]  # of another axis now
    check(lambda x: x[tuple(items)], x)


INDICES = {
    "array": lambda x, i: x[i],
    "negative-array": lambda x, i: x[i - 2],
    "list": lambda x, i: x[[0, -1, 1]],
    "later-axis": lambda x, i: x[:, i],
    "last-axis": lambda x, i: x[..., i],
    "matrix-of-indices": lambda x, i: x[:, np.array([[0, 2], [1, -1]])],
    "two-arrays": lambda x, i: x[i, i],
    "adjacent": lambda x, i: x[:, i, i],
    "separated": lambda x, i: x[i, :, i],
    "with-an-integer": lambda x, i: x[0, :, i],
    "broadcasting": lambda x, i: x[:, i[:, None], np.array([0, 3])],
    "with-a-slice": lambda x, i: x[:, 1:, i],
    "with-a-new-axis": lambda x, i: x[:, None, i],
    "scalar": lambda x, i: x[i[0]],
    "negative-scalar": lambda x, i: x[i[1] - 2, 0],
    "bounds": lambda x, i: x[:, i[0] : i[1] + 1],
    "constant-mask": lambda x, i: x[:, np.array([True, False, True])],
    "mask-of-two-axes": lambda x, i: x[np.eye(2, 3, dtype=bool)],
    "rows": lambda x, i: [row * 2 for row in x[0]],
    "one-for-each": lambda x, i: x[np.arange(2), i[:2]],
    "strings-of-ellipsis": lambda x, i: x[..., 0, :][..., ::2],
}


@pytest.mark.parametrize("name", INDICES)
def test_indices(name: str) -> None:
    x, i = np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.array([0, 1, 1])
    check(INDICES[name], x, i, open_sizes=False)


def test_indices_count_from_the_end_of_an_axis_of_unknown_size() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check(lambda x: (x[[0, -1]], x[-1], x[-2:], x[np.array([-2, 1]), :, np.array([0, -1])]), x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        pytest.param(lambda x: x[x > 0], r"The shape of x\[mask\] depends on the elements", id="mask"),
        pytest.param(
            lambda x: x[0.5], "An index is a slice, an integer, None, ... or an array of integers. Received: 0.5", id="float"
        ),
        pytest.param(lambda x: x[x], "Indices are integers. Received: float32", id="float-array"),
        pytest.param(
            lambda x: np.sum(x, where=x > 0), "numpy.sum on symbolic arrays takes .a, axis, dtype, keepdims.", id="argument"
        ),
        pytest.param(lambda x: np.add(x, 1, out=np.ones(3)), "numpy.add takes no out on symbolic arrays", id="out"),
        pytest.param(lambda x: np.exp(x, where=x > 0), "Use numpy.where on the result", id="where"),
        pytest.param(np.linalg.svd, r"numpy.linalg.svd is not supported on symbolic arrays", id="module"),
        pytest.param(np.sort, r"numpy.sort is not supported on symbolic arrays. Use numpy.max or numpy.min instead", id="sort"),
        pytest.param(np.nonzero, r"Use numpy.where\(condition, x, y\) instead", id="nonzero"),
        pytest.param(np.where, r"numpy.where\(condition\) has a shape that depends on elements", id="where-alone"),
        pytest.param(
            lambda x: np.nanmean(x), "numpy.nanmean is not supported on symbolic arrays. Did you mean 'mean'", id="nearest"
        ),
        pytest.param(lambda x: np.multiply.outer(x, x), "numpy.multiply.outer is not supported", id="ufunc-method"),
        pytest.param(lambda x: np.reshape(x, (3, 2), order="F"), "keeps the order of C", id="order"),
        pytest.param(lambda x: x.reshape(2.5, 2), "A size is an integer. Received: 2.5", id="size"),
        pytest.param(lambda x: np.repeat(x, [1, 2, 3]), "takes one number of times", id="repeats"),
        pytest.param(lambda x: np.pad(x, 1, "edge"), "takes mode constant", id="pad-mode"),
        pytest.param(lambda x: np.linalg.norm(x, 3), "takes ord None, 1, 2 or infinity", id="norm"),
        pytest.param(lambda x: np.einsum("ij,jk", x), "is for 2 arrays. Received: 1", id="einsum"),
        pytest.param(lambda x: x + "a", "add", id="text"),
        pytest.param(
            lambda x: np.power(x.astype("u1"), x.astype("u1")), "Pow exists for bfloat16, .* Received: uint8", id="no-op"
        ),
    ],
)
def test_refuses_what_graphs_do_not_do(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(ag.TraceError, match=message):
        ag.trace(function, ag.TensorSpec([3]))


def test_errors_of_numpy_stay_errors_of_numpy() -> None:
    spec = ag.TensorSpec([2, 3])
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        ag.trace(lambda x: x[2], spec)
    with pytest.raises(IndexError, match="index -4 is out of bounds for axis 1 with size 3"):
        ag.trace(lambda x: x[:, [0, -4]], spec)
    with pytest.raises(IndexError, match="too many indices for array"):
        ag.trace(lambda x: x[0, 0, 0], spec)
    with pytest.raises(np.exceptions.AxisError, match="axis 2 is out of bounds"):
        ag.trace(lambda x: x.sum(2), spec)
    with pytest.raises(ValueError, match="the inner dimensions of the product are 3 and 2"):
        ag.trace(lambda x: x @ x, spec)
    with pytest.raises(ValueError, match="does not result in an equal division"):
        ag.trace(lambda x: np.split(x, 2, 1), spec)


def test_arguments_are_named_as_in_numpy() -> None:
    from ampgraph.graph.tracing.functions import table

    for function, ours in table().items():
        theirs = inspect.signature(function).parameters
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in theirs.values()):
            continue
        for name, parameter in inspect.signature(ours).parameters.items():
            if parameter.kind is not parameter.POSITIONAL_ONLY and name not in ("operands", "args", "arys"):
                assert name in theirs, (function.__name__, name)


def test_containers_and_numbers_are_told_apart() -> None:
    x = np.ones((2, 3), np.float32)
    same = ag.function(lambda given: given)
    for tree in ([x], (x,), {"a/b": x}, {"a": {"b": x}}, [(x,)], ([x],)):
        result = same(tree)
        assert repr(result) == repr(tree)
    divide = ag.function(lambda x, by: x / by)
    assert divide(x, 0.0)[0, 0] == np.inf
    assert divide(x, -0.0)[0, 0] == -np.inf
    assert np.isnan(divide(x, float("nan"))).all()
    divide(x, float("nan"))
    assert len(divide.cache) == 3


def test_functions_of_numpy_are_traced_as_they_are() -> None:
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(ag.function(np.tanh)(x), np.tanh(x), rtol=1e-6)
    np.testing.assert_array_equal(ag.function(np.add)(x, x), x + x)


def test_an_input_signature_is_a_mapping() -> None:
    with pytest.raises(ag.TraceError, match="by the name of an argument"):
        ag.function(lambda x: x, input_signature=[ag.TensorSpec([None, 3])])  # type: ignore[arg-type]


def test_results_share_no_memory_with_arguments() -> None:
    parts = ag.function(lambda x: (x, x.T, x[0], np.reshape(x, (3, 2)), np.broadcast_to(x, (2, 2, 3))))
    for _ in range(4):
        x = np.ones((2, 3), np.float32)
        for result in parts(x):
            assert not np.shares_memory(result, x)
            result[...] = 2
        assert (x == 1).all()


def test_missing_arguments_are_those_of_the_function() -> None:
    @ag.function
    def add(x: Any, y: Any) -> Any:
        return x + y

    with pytest.raises(TypeError, match=r"^add\(\): missing a required argument: 'y'"):
        add(X)
