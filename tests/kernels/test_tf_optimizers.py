"""Optimizers of TensorFlow: steps from the same start as TensorFlow 2.21.0 took them."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.graph import Graph, Shape, Tensor, Value
from ampgraph.graph.schemas.tf import find

#: Operands that are numbers. Variables hold [0.5, 0.75], but for two; the gradient is [0.5, -3].
_NUMBERS = {
    "lr": 0.1,
    "alpha": 0.2,
    "l1": 0.05,
    "l2": 0.02,
    "momentum": 0.9,
    "epsilon": 1e-3,
    "rho": 0.9,
    "beta1": 0.9,
    "beta2": 0.99,
    "beta1_power": 0.9,
    "beta2_power": 0.99,
    "sign_decay": 0.5,
    "beta": 0.9,
    "logbase": 1,
    "lr_power": -0.5,
    "l2_shrinkage": 0.01,
}
_SLOTS = (
    "accum",
    "accum_update",
    "gradient_accumulator",
    "gradient_squared_accumulator",
    "ms",
    "mom",
    "m",
    "v",
    "vhat",
    "linear",
)
_VECTORS = {"var": [1.0, -2.0], "mg": [0.125, 0.25], **{name: [0.5, 0.75] for name in _SLOTS}}

#: What TensorFlow's variables held after one step, in the order of the op's operands.
STEPS: list[tuple[str, dict[str, bool], list[list[float]]]] = [
    ("GradientDescent", {}, [[0.9, -1.4]]),
    ("ProximalGradientDescent", {}, [[0.8864542, -1.3844622]]),
    ("Momentum", {}, [[0.905, -1.7675], [0.95, -2.325]]),
    ("KerasMomentum", {}, [[1.4, -1.0250001], [0.39999998, 0.97499996]]),
    ("Adagrad", {}, [[0.942265, -1.9039232], [0.75, 9.75]]),
    ("AdagradV2", {}, [[0.94233155, -1.9039539], [0.75, 9.75]]),
    ("AdagradDA", {}, [[-0.09747423, 0.067124836], [1.0, -2.25], [0.75, 9.75]]),
    ("ProximalAdagrad", {}, [[0.9343337, -1.9011041], [0.75, 9.75]]),
    ("Adadelta", {}, [[0.94870377, -1.7929081], [0.475, 1.5750002], [0.47631302, 1.1038706]]),
    ("RMSProp", {}, [[0.47752863, -2.4360301], [0.475, 1.5750002], [0.52247137, 0.4360301]]),
    ("CenteredRMSProp", {}, [[0.47543073, -2.4356024], [0.16250001, -0.07500008], [0.475, 1.5750002], [0.5245693, 0.4356025]]),
    ("Adam", {}, [[0.9292123, -2.0410547], [0.5, 0.3749999], [0.4975, 0.8324999]]),
    ("AdamWithAmsgrad", {}, [[0.92938924, -2.0410547], [0.5, 0.3749999], [0.4975, 0.8324999], [0.5, 0.8324999]]),
    ("AdaMax", {}, [[0.0019962192, -2.1249583], [0.5, 0.3749999], [0.5, 3.0]]),
    ("AddSign", {}, [[0.965, -2.09], [0.5, 0.37499988]]),
    ("PowerSign", {}, [[0.9175639, -1.8180408], [0.5, 0.37499988]]),
    ("Ftrl", {}, [[0.061973616, -1.369886], [0.75, 9.75], [-0.5891862, 42.87947]]),
    ("FtrlV2", {}, [[0.059674837, -1.3686066], [0.75, 9.75], [-0.5691862, 42.83947]]),
    ("Momentum", {"use_nesterov": True}, [[0.8645, -1.49075], [0.95, -2.325]]),
    ("KerasMomentum", {"use_nesterov": True}, [[1.31, -0.8225], [0.39999998, 0.97499996]]),
    ("Adam", {"use_nesterov": True}, [[0.9292123, -2.0041056], [0.5, 0.3749999], [0.4975, 0.8324999]]),
    ("Adagrad", {"update_slots": False}, [[0.92928934, -1.6535898], [0.5, 0.75]]),
    ("AdagradV2", {"update_slots": False}, [[0.9293892, -1.6539893], [0.5, 0.75]]),
    ("Ftrl", {"multiply_linear_by_lr": True}, [[-0.44375876, -1.5857823], [0.75, 9.75], [0.3910814, 4.962947]]),
    ("FtrlV2", {"multiply_linear_by_lr": True}, [[-0.44605753, -1.584503], [0.75, 9.75], [0.39308137, 4.958947]]),
]


def after(op: str, attributes: dict[str, bool], gradient: Any, rows: Any = None) -> list[Any]:
    """Return what the variables hold after one step: those of an op by reference, unless its name says that they are resources."""
    schema = find(op)
    assert schema is not None
    float32, graph = ag.find_dtype("float32"), Graph("one")

    def const(array: Any) -> Value:
        tensor = Tensor.of(np.asarray(array))
        return graph.add("Const", attributes={"value": tensor}, types={"dtype": tensor.dtype}).outputs[0]

    is_resource = op.startswith("Resource")
    operands, variables, starts = [], [], []
    for formal in schema.inputs:
        if formal.name in _VECTORS:
            kind = "VarHandleOp" if is_resource else "VariableV2"
            shape = Shape((2,))
            made = graph.add(kind, name=formal.name, attributes={"shape": shape}, types={"dtype": float32}).outputs[0]
            start = const(np.array(_VECTORS[formal.name], np.float32))
            types = {"dtype" if is_resource else "T": float32}
            starts.append(graph.add("AssignVariableOp" if is_resource else "Assign", [made, start], types=types))
            variables.append(made)
            operands.append(made)
        elif formal.name == "indices":
            operands.append(const(np.array(rows, np.int32)))
        elif formal.name == "global_step":
            operands.append(const(np.int64(3)))
        else:
            is_gradient = formal.name in ("grad", "delta")
            operands.append(const(np.array(gradient if is_gradient else _NUMBERS[formal.name], np.float32)))
    types = {"T": float32, "Tindices": ag.find_dtype("int32")}
    types = {name: types[name] for name in schema.type_vars}
    step = graph.add(op, operands, attributes=attributes, types=types, controls=starts)
    name, variable = ("ReadVariableOp", "dtype") if is_resource else ("Identity", "T")
    graph.outputs = [graph.add(name, [v], types={variable: float32}, controls=[step]).outputs[0] for v in variables]
    return [result.tolist() for result in ag.compile(graph)({}).values()]


def steps(prefix: str) -> list[Any]:
    return [(prefix + name, attributes, wanted) for name, attributes, wanted in STEPS if find(prefix + name)]


@pytest.mark.parametrize(("op", "attributes", "wanted"), steps("ResourceApply") + steps("Apply"))
def test_steps_as_tensorflow_does(op: str, attributes: dict[str, bool], wanted: list[list[float]]) -> None:
    found = after(op, attributes, [0.5, -3])
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("op", "attributes", "wanted"), steps("ResourceSparseApply") + steps("SparseApply"))
def test_only_rows_that_are_named_change(op: str, attributes: dict[str, bool], wanted: list[list[float]]) -> None:
    for row, gradient in enumerate([0.5, -3]):
        start = after(op, attributes, [], [])
        found = np.array(after(op, attributes, [gradient], [row]))
        np.testing.assert_allclose(found[:, row], np.array(wanted)[:, row], rtol=1e-6, atol=1e-7)
        assert found[:, 1 - row].tolist() == [values[1 - row] for values in start]


def test_a_row_named_twice_changes_twice() -> None:
    # 1 - 0.1 * 0.5 / sqrt(0.5 + 0.25), then - 0.1 * 2 / sqrt(0.75 + 4)
    (var, accum) = after("ResourceSparseApplyAdagrad", {}, [0.5, 2], [0, 0])
    assert accum == [4.75, 0.75]
    assert var == pytest.approx([1 - 0.05 / 0.75**0.5 - 0.2 / 4.75**0.5, -2])


def test_rows_change_as_often_as_they_are_named_in_order() -> None:
    rows, gradients = [1, 0, 1, 1], [0.5, 2.0, -1.0, 3.0]
    wanted_var, wanted_accum = [1.0, -2.0], [0.5, 0.75]
    for row, gradient in zip(rows, gradients, strict=True):
        wanted_accum[row] += gradient * gradient
        wanted_var[row] -= 0.1 * gradient / wanted_accum[row] ** 0.5
    var, accum = after("ResourceSparseApplyAdagrad", {}, gradients, rows)
    assert accum == wanted_accum
    assert var == pytest.approx(wanted_var)
    assert after("ResourceSparseApplyAdagrad", {}, [], []) == [[1, -2], [0.5, 0.75]]


def test_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(ag.KernelError, match="an index lies outside the data, whose size there is 2"):
        after("ResourceSparseApplyAdagrad", {}, [0.5], [2])
