"""One step of an optimizer, for any number of tensors: Adagrad, Adam, Momentum."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


def _each(tensors: Sequence[Any], groups: int, update: Callable[..., tuple[Any, ...]]) -> tuple[Any, ...]:
    """Call ``update(x, gradient, states…)`` for each tensor; operands and results come group by group.

    Raises:
        KernelError: If the operands cannot be so divided.
    """
    count, rest = divmod(len(tensors), groups)
    if rest:
        raise KernelError(f"An optimizer needs {groups} operands per tensor. Received: {len(tensors)}")
    updated = [update(*(tensors[i + group * count] for group in range(groups))) for i in range(count)]
    return tuple(row[group] for group in range(groups - 1) for row in updated)


@kernel("ai.onnx.preview.training:Adagrad")
def adagrad(call: "Call", rate: Any, step: Any, *tensors: Any) -> tuple[Any, ...]:
    """Divide by the root of the sum of squared gradients."""
    norm, epsilon = call.attr("norm_coefficient", 0.0), call.attr("epsilon", 1e-6)
    rate = rate / (1 + step * call.attr("decay_factor", 0.0))

    def update(x: Any, gradient: Any, squares: Any) -> tuple[Any, ...]:
        gradient = norm * x + gradient
        squares = squares + gradient * gradient
        return _like(x, x - rate * gradient / (call.xp.sqrt(squares) + epsilon), squares)

    return _each(tensors, 3, update)


@kernel("ai.onnx.preview.training:Adam")
def adam(call: "Call", rate: Any, step: Any, *tensors: Any) -> tuple[Any, ...]:
    """Divide the running mean of gradients by the root of the running mean of their squares."""
    alpha, beta, epsilon = call.attr("alpha", 0.9), call.attr("beta", 0.999), call.attr("epsilon", 1e-6)
    norm, after = call.attr("norm_coefficient", 0.0), call.attr("norm_coefficient_post", 0.0)
    count = int(step)
    if count > 0:
        rate = rate * (1 - beta**count) ** 0.5 / (1 - alpha**count)

    def update(x: Any, gradient: Any, mean: Any, squares: Any) -> tuple[Any, ...]:
        gradient = norm * x + gradient
        mean = alpha * mean + (1 - alpha) * gradient
        squares = beta * squares + (1 - beta) * gradient * gradient
        return _like(x, (1 - after) * (x - rate * mean / (call.xp.sqrt(squares) + epsilon)), mean, squares)

    return _each(tensors, 4, update)


@kernel("ai.onnx.preview.training:Momentum")
def momentum(call: "Call", rate: Any, step: Any, *tensors: Any) -> tuple[Any, ...]:
    """Add up gradients that fade."""
    alpha, norm, mode = call.attr("alpha"), call.attr("norm_coefficient"), call.attr("mode")
    beta = call.attr("beta") if int(step) > 0 else 1.0
    if mode not in ("standard", "nesterov"):
        raise KernelError(f"Op Momentum has the modes standard and nesterov. Received: {mode!r}")

    def update(x: Any, gradient: Any, speed: Any) -> tuple[Any, ...]:
        gradient = norm * x + gradient
        speed = alpha * speed + beta * gradient
        return _like(x, x - rate * (speed if mode == "standard" else gradient + alpha * speed), speed)

    return _each(tensors, 3, update)


def _like(x: Any, *results: Any) -> tuple[Any, ...]:
    return tuple(result.astype(x.dtype) for result in results)
