"""Every kernel that is bound gives, bound, what it gives when called: bits, dtypes, shapes and errors, whatever the operands."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ampgraph as ag
from ampgraph.graph import Graph
from ampgraph.graph.dtypes import DType, cast_array, dtype_of_array, find_dtype
from ampgraph.graph.schemas import onnx, tf
from ampgraph.graph.types import Shape, Tensor
from ampgraph.kernels.registry import all_kernels
from tests.kernels.test_lines import run_both_ways

OPS = sorted(
    name for name, kernel in all_kernels().items() if kernel.bind and not kernel.is_stateful and name != "tf:VarHandleOp"
)
#: Those whose results depend on more than the elements at one place: they are tried more often.
MIXING = {
    *(
        "tf:BiasAdd",
        "tf:BiasAddGrad",
        "tf:BroadcastTo",
        "tf:MatMul",
        "tf:Mean",
        "tf:ReluGrad",
        "tf:Reshape",
        "tf:Softmax",
        "tf:Sum",
    ),
}
DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int8", "uint8", "int64", "uint64", "bool", "complex64")
NUMBERS = np.array([0, -0.0, 1, -1, 0.5, 3, -7, math.nan, math.inf, -math.inf, 1e-8, 6e4, 7e4, 3e38, 1e-40])
#: How the elements of an operand may lie in memory.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda x: x,
    "Fortran": np.asfortranarray,
    "strided": lambda x: np.stack([x, x], -1)[..., 0],
    "reversed": lambda x: x[tuple(slice(None, None, -1) for _ in x.shape)],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape) if x.ndim else x,
    "read-only": lambda x: Tensor.of(x).array(),
}


def elements(draw: Any, dtype: DType, shape: list[int]) -> Any:
    """Return an array of ordinary or of odd numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    array = np.asarray(rng.choice(NUMBERS, shape) if draw(st.booleans()) else rng.standard_normal(shape))
    if dtype.kind == "complex":
        return (array + 1j * rng.standard_normal(shape)).astype(dtype.numpy)
    if dtype.kind in ("int", "uint"):
        array = np.nan_to_num(array * 3).clip(0 if dtype.kind == "uint" else -100, 100)
    with np.errstate(over="ignore", invalid="ignore"):
        return cast_array(array > 0 if dtype.kind == "bool" else array.astype(np.float32), dtype)


def attributes(draw: Any, op: str) -> dict[str, Any]:
    """Return attributes that say what is computed."""
    if op in ("tf:Sum", "tf:Mean"):
        return {"keep_dims": draw(st.booleans())}
    if op == "tf:MatMul":
        return {"transpose_a": draw(st.booleans()), "transpose_b": draw(st.booleans())}
    return {"data_format": draw(st.sampled_from([b"NHWC", b"NCHW"]))} if op in ("tf:BiasAdd", "tf:BiasAddGrad") else {}


@st.composite
def cases(draw: Any, op: str) -> tuple[Graph, list[dict[str, Any]]]:
    """Return a graph of one op, and feeds that it is run on one after the other."""
    domain, _, name = op.rpartition(":")
    schema = tf.find(name) if domain else onnx.find("", name, 21)
    assert schema is not None
    graph = Graph("one", opsets={} if domain else {"": 21})
    base = draw(st.lists(st.integers(0, 3), max_size=3))
    if op == "tf:MatMul":
        base = draw(st.sampled_from([[2, 2], [3, 3], [2, 3], [1, 1], [0, 0], base]))
    elif op == "tf:BiasAdd":
        base = draw(st.sampled_from([[2, 3], [0, 2], [2, 1, 3], [2, 2, 1, 2], base]))
    types: dict[str, Any] = {variable.name: variable.default for variable in schema.type_vars.values() if variable.default}
    chosen: dict[str, DType] = {}
    values, feeds = [], [dict[str, Any](), dict[str, Any](), dict[str, Any]()]
    for i, formal in enumerate(schema.inputs):
        if formal.var is None:
            assert formal.dtype is not None
            dtype = formal.dtype
        else:
            allowed = schema.type_vars[formal.var].allowed
            dtype = find_dtype(draw(st.sampled_from([d for d in DTYPES if allowed is None or find_dtype(d) in allowed])))
            dtype = chosen.setdefault(formal.var, dtype)
        shapes = [base, base, [1] * len(base), base[1:], base[-1:], draw(st.lists(st.integers(0, 3), max_size=2))]
        if op == "tf:BiasAdd":
            shapes = [base] if i == 0 else [base[-1:], base[-1:], base[1:2], base, [1]]
        array = elements(draw, dtype, draw(st.sampled_from(shapes)))
        if i == 1 and op in ("tf:Reshape", "tf:BroadcastTo", "tf:Sum", "tf:Mean"):  # sizes or axes
            sizes = st.sampled_from([[-1], base, [0, -1], [2, *base], base[::-1], [*base, -1]])
            ints = draw(st.lists(st.integers(-3, 3), max_size=3) if op in ("tf:Sum", "tf:Mean") else sizes)
            array = np.array(ints, dtype.numpy)
            is_constant = draw(st.integers(0, 3)) > 0
        else:
            is_constant = bool(domain) and draw(st.integers(0, 5)) == 0
        dtype = dtype_of_array(array.dtype)
        if is_constant:
            constant = graph.add(
                "Const", [], domain="tf", name=f"c{i}", types={"dtype": dtype}, attributes={"value": Tensor.of(array)}
            )
            values.append(constant.outputs[0])
        else:
            shape = Shape(list(array.shape)) if draw(st.booleans()) else Shape(None)
            values.append(graph.add_input(f"x{i}", dtype, shape))
            feeds[0][f"x{i}"] = array
            feeds[2][f"x{i}"] = np.concatenate([array, array]) if array.ndim else array  # refused where the shape is known
            feeds[1][f"x{i}"] = LAYOUTS[draw(st.sampled_from(list(LAYOUTS)))](array)
    node = graph.add(name, values, domain=domain, attributes=attributes(draw, op), types=types | chosen, outputs=1)
    graph.outputs, graph.output_names = [node.outputs[0]], ["y"]
    return graph, feeds


@pytest.mark.parametrize("op", OPS)
def test_bound_kernels_are_the_kernels(op: str) -> None:
    ran = 0

    @settings(max_examples=40 if op in MIXING else 4, database=None)
    @given(cases(op))
    def check(case: tuple[Graph, list[dict[str, Any]]]) -> None:
        nonlocal ran
        graph, feeds = case
        try:
            program = ag.compile(graph)
        except ag.KernelError:  # constants that make no sense
            return
        for feed in feeds:
            with suppress(ag.KernelError):  # of both ways
                ran += run_both_ways(program, feed)[1]

    check()
    assert ran > 0
