"""Training steps as nodes: gradients of a loss, scaled, and the node that applies them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.dtypes import dtype_of_array
from ..graph.errors import TrainingError
from ..graph.tracing.array import SymbolicArray
from ..graph.tracing.context import Trace, Watched, current, name_scope
from ..graph.tracing.gradient import gradients
from ..graph.tracing.operations import static_shape, symbolic, value_of
from ..graph.tracing.structure import leaves
from ..graph.tracing.variable import Variable
from ..kernels.apply_gradients import apply_gradients_attributes
from ..kernels.apply_step import Update
from ..kernels.loss_scaling import ScaleRules
from .optimizers import StepResult, pairs_of

if TYPE_CHECKING:
    from .state import ScaleVariables, StepVariables


def compute_gradients(
    owner: Any, loss: Any, variables: Any, scale: Variable | None
) -> list[tuple[SymbolicArray | None, Variable]]:
    """Differentiate a loss in the function that is being traced.

    Args:
        owner: The optimizer that asks.
        loss: A symbolic array of one number.
        variables: With respect to what: variables, in whatever containers; all trainable ones of floats that the function has used
            so far when None.
        scale: What the loss is multiplied by first, if anything.

    Raises:
        TrainingError: If the loss is something else, or there are no variables.
    """
    trace = joined(owner)
    _check_loss(loss)
    if variables is None:
        variables = [variable for variable in trace.variables if variable.trainable and variable.dtype.kind == "f"]
    elif isinstance(variables, Iterable) and not isinstance(variables, Mapping | Variable):
        variables = list(variables)
    found = [leaf for _, leaf in leaves(variables)]
    for variable in found:
        if not isinstance(variable, Variable):
            raise TrainingError(f"In a graph, variables are ampgraph.Variable objects. Received: {variable!r}")
    if not found:
        raise TrainingError("The function has used no variable of floats yet that the loss could depend on.")
    seed = None if scale is None else [symbolic(scale.value, loss.dtype).reshape(static_shape(loss))]
    return list(zip(gradients([loss], found, seed), found, strict=True))


def _check_loss(loss: Any) -> None:
    if not isinstance(loss, SymbolicArray) or loss.dtype.kind != "f" or any(size != 1 for size in static_shape(loss)):
        raise TrainingError(f"A loss is one symbolic number of floats; see numpy.mean and numpy.sum. Received: {loss!r}")


def scale_loss(owner: Any, loss: Any, scale: Variable) -> Any:
    """Return a loss times the loss scale, computed in float32 or wider."""
    joined(owner)
    loss = symbolic(loss)
    with name_scope("loss_scale", dtype="float32"):
        return symbolic(loss, np.result_type(loss.dtype, np.float32)) * symbolic(scale.value)


def unscale(gradient: SymbolicArray, scale: Variable) -> Any:
    """Return a gradient divided by the loss scale, computed in float32 or wider."""
    with name_scope("loss_scale", dtype="float32"):
        wide = symbolic(gradient, np.result_type(gradient.dtype, np.float32))
        return wide / symbolic(scale.value, wide.dtype)


def add_step(
    owner: Any,
    watcher: Any,
    update: Update,
    rules: ScaleRules | None,
    state: "StepVariables",
    scaling: "ScaleVariables",
    pairs: Sequence[tuple[Any, Any]],
    loss: Any,
    *,
    scaled: bool,
    accumulation_steps: int = 1,
) -> StepResult:
    """Add the node that applies gradients to the function that is being traced.

    Args:
        owner: The optimizer.
        watcher: What looks at every run of the graph.
        update: How gradients change variables.
        rules: How the loss scale moves; None if it stays.
        state, scaling: What the step changes besides variables.
        pairs: Gradients and variables; there is at least one, and no gradient is None.
        loss: For the result; None if not known.
        scaled: Whether the gradients are those of the scaled loss.
        accumulation_steps: From how many runs gradients are averaged to make one step.
    """
    trace = joined(owner)
    if loss is not None:
        loss = symbolic(loss)
        _check_loss(loss)
    variables = [variable for _, variable in pairs]
    slots = [slot for variable in variables for slot in state.slots_of(variable.name, variable.shape, variable.dtype)]
    sums = [scaling.sum_of(v.name, v.shape, v.dtype) for v in variables] if accumulation_steps > 1 else []
    counters = [scaling.scale, scaling.good_steps, scaling.bad_steps, scaling.calls, state.global_step]
    values = [value_of(gradient) for gradient, _ in pairs]
    node = trace.effect(
        "ApplyGradients",
        [
            *(trace.handle(variable) for variable in (*variables, *slots, *sums, *counters)),
            value_of(state.learning_rate),
            *values,
        ],
        apply_gradients_attributes(update, rules, len(pairs), scaled=scaled, accumulation_steps=accumulation_steps),
        {f"T[{i}]": value.dtype for i, value in enumerate(values) if value.dtype is not None},
        domain="ampgraph",
    )
    trace.watched.append(Watched(watcher, node, None if loss is None else value_of(loss)))
    return StepResult(loss, *(SymbolicArray(value, trace) for value in node.outputs))


def check_pairs(grads_and_vars: Iterable[tuple[Any, Any]]) -> dict[str, tuple[Any, Variable]]:
    """Return pairs by the names of their variables, gradients as symbolic arrays or None.

    Raises:
        TrainingError: If something is no such pair, two variables have one name, or a gradient does not have its variable's shape.
    """
    found: dict[str, tuple[Any, Variable]] = {}
    for gradient, variable in pairs_of(grads_and_vars):
        if not isinstance(variable, Variable) or variable.dtype not in (np.float32, np.float64):
            raise TrainingError(
                f"In a graph, optimizers change ampgraph.Variable objects of float32 or float64. Received: {variable!r}"
            )
        if variable.name in found:
            raise TrainingError(
                f"Variables are told apart by their names: name= of ampgraph.Variable. Received: {variable.name!r} twice"
            )
        if gradient is not None:
            gradient = symbolic(gradient)
            dims = static_shape(gradient)
            if len(dims) != variable.ndim or any(dim not in (None, size) for dim, size in zip(dims, variable.shape, strict=True)):
                raise TrainingError(
                    f"The gradient of {variable.name!r} must have its shape, {list(variable.shape)}. Received: a gradient of shape "
                    f"{list(dims)}"
                )
            if dtype_of_array(gradient.dtype).kind != "float":
                raise TrainingError(f"A gradient is of floats. Received: {gradient!r} for {variable.name!r}")
        found[variable.name] = (gradient, variable)
    return found


def joined(optimizer: Any) -> Trace:
    """Let an optimizer take part in the function that is being traced; return the trace.

    Raises:
        TrainingError: If a body of a branch or loop is being traced.
    """
    trace = current()
    if trace.parent is not None:
        raise TrainingError(
            "An optimizer's step is made by the function itself, not inside of ampgraph.cond or ampgraph.while_loop."
        )
    trace.optimizers[optimizer] = None
    return trace
