"""TensorFlow: one step of an optimizer, on variables that are resources or references, of all elements or of some rows.

Each function takes the op's operands by their names in its definition, variables by what they hold, and returns what those of
its variables hold afterwards that it changes, by name. The formulas are those in the documentation of the ops.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .call import Call
from .handle import Handle
from .registry import kernel
from .tf_gather import check_indices
from .tf_variables import declared, same, store, stored
from .values import widened

_Step = Callable[..., Mapping[str, Any]]


def optimizer(name: str, *, rows: bool = True, references: bool = True) -> Callable[[_Step], _Step]:
    """Register the decorated function for the forms of an optimizer's op.

    Args:
        name: What the names of the ops end with.
        rows: Whether there are forms that change some rows only.
        references: Whether there are forms that take variables by reference.
    """

    def register(step: _Step) -> _Step:
        for prefix in ("Resource", "") if references else ("Resource",):
            kernel(f"tf:{prefix}Apply{name}")(functools.partial(_apply, step))
            if rows:
                kernel(f"tf:{prefix}SparseApply{name}")(functools.partial(_apply_rows, step))
        return step

    return register


def _bound(call: Call, operands: tuple[Any, ...]) -> tuple[dict[str, Any], dict[str, Handle]]:
    """Return the operands by name, variables by what they hold, and the handles of these."""
    schema = call.node.schema
    names = [formal.name for formal in schema.inputs] if schema is not None else []
    given = dict(zip(names, operands, strict=True))
    handles = {name: value for name, value in given.items() if isinstance(value, Handle)}
    return given | {name: widened(stored(call, handle)) for name, handle in handles.items()}, handles


def _apply(step: _Step, call: Call, *operands: Any) -> Any:
    given, handles = _bound(call, operands)
    for name, value in step(call, **given).items():
        store(call, handles[name], value, declared(call.state[handles[name]]))
    return same(call, operands[0])


def _apply_rows(step: _Step, call: Call, *operands: Any) -> Any:
    """Change only the rows that ``indices`` name; those named several times several times."""
    xp = call.xp
    given, handles = _bound(call, operands)
    indices, gradient = given.pop("indices").reshape(-1), given.pop("grad")
    check_indices(call, indices, given["var"].shape[0])
    whole = {name: given[name].copy() for name in handles}
    for places in _rounds(xp, indices):
        rows = indices[places]
        parts = {name: value[rows] for name, value in whole.items()}
        for name, value in step(call, **(given | parts), grad=gradient[places]).items():
            whole[name][rows] = value
    for name, value in whole.items():
        store(call, handles[name], value, declared(call.state[handles[name]]))
    return same(call, operands[0])


def _rounds(xp: Any, indices: Any) -> Sequence[Any]:
    """Return where each index stands for the first time, for the second time, and so on."""
    if not indices.size:
        return []
    order, ruler = xp.argsort(indices, kind="stable"), xp.arange(indices.size)
    is_first = xp.concatenate([xp.ones(1, bool), indices[order[1:]] != indices[order[:-1]]])
    times = ruler - xp.maximum.accumulate(xp.where(is_first, ruler, 0))
    ends = xp.cumsum(xp.bincount(times))[:-1]
    parts: Sequence[Any] = xp.split(order[xp.argsort(times, kind="stable")], ends.tolist())
    return parts


@kernel("tf:ApplyGradientDescent", "tf:ResourceApplyGradientDescent")
def gradient_descent(call: Call, *operands: Any) -> Any:
    """Go against the gradient."""
    return _apply(lambda call, var, alpha, delta: {"var": var - alpha * delta}, call, *operands)


@optimizer("ProximalGradientDescent")
def proximal_gradient_descent(call: Call, var: Any, alpha: Any, l1: Any, l2: Any, **gradient: Any) -> Mapping[str, Any]:
    """Go against the gradient and shrink."""
    (grad,) = gradient.values()  # "delta", and "grad" where only rows change
    return {"var": _shrunk(call, var - alpha * grad, alpha, l1, l2)}


def _shrunk(call: Call, x: Any, rate: Any, l1: Any, l2: Any) -> Any:
    """Return what is nearest to ``x`` under penalties on absolute values and squares."""
    xp = call.xp
    if l1 > 0:
        x = xp.sign(x) * xp.maximum(xp.abs(x) - rate * l1, 0)
    return x / (1 + l2 * rate)


@optimizer("Momentum")
def momentum(call: Call, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any) -> Mapping[str, Any]:
    """Add up gradients that fade."""
    accum = accum * momentum + grad
    return {"accum": accum, "var": var - lr * (grad + momentum * accum if call.attr("use_nesterov") else accum)}


@optimizer("KerasMomentum", references=False)
def keras_momentum(call: Call, var: Any, accum: Any, lr: Any, grad: Any, momentum: Any) -> Mapping[str, Any]:
    """Add up steps that fade."""
    accum = accum * momentum - lr * grad
    return {"accum": accum, "var": var + (momentum * accum - lr * grad if call.attr("use_nesterov") else accum)}


@optimizer("Adagrad")
def adagrad(call: Call, var: Any, accum: Any, lr: Any, grad: Any) -> Mapping[str, Any]:
    """Divide by the root of the sum of squared gradients."""
    accum = accum + grad * grad if call.attr("update_slots", True) else accum
    return {"accum": accum, "var": var - lr * grad / call.xp.sqrt(accum)}


@optimizer("AdagradV2")
def adagrad_v2(call: Call, var: Any, accum: Any, lr: Any, epsilon: Any, grad: Any) -> Mapping[str, Any]:
    """Divide by the root of the sum of squared gradients, and a little."""
    accum = accum + grad * grad if call.attr("update_slots", True) else accum
    return {"accum": accum, "var": var - lr * grad / (call.xp.sqrt(accum) + epsilon)}


@optimizer("AdagradDA")
def adagrad_da(
    call: Call,
    var: Any,
    gradient_accumulator: Any,
    gradient_squared_accumulator: Any,
    grad: Any,
    lr: Any,
    l1: Any,
    l2: Any,
    global_step: Any,
) -> Mapping[str, Any]:
    """Start anew from the sum of all gradients, divided by the root of the sum of their squares."""
    xp, steps = call.xp, global_step.astype(lr.dtype)
    total, squares = gradient_accumulator + grad, gradient_squared_accumulator + grad * grad
    shrunk = xp.sign(total) * xp.maximum(xp.abs(total) - l1 * steps, 0) if l1 > 0 else total
    var = -lr * shrunk / (l2 * steps * lr + xp.sqrt(squares))
    return {"gradient_accumulator": total, "gradient_squared_accumulator": squares, "var": var}


@optimizer("ProximalAdagrad")
def proximal_adagrad(call: Call, var: Any, accum: Any, lr: Any, l1: Any, l2: Any, grad: Any) -> Mapping[str, Any]:
    """Divide by the root of the sum of squared gradients, and shrink."""
    accum = accum + grad * grad
    rate = lr / call.xp.sqrt(accum)
    return {"accum": accum, "var": _shrunk(call, var - rate * grad, rate, l1, l2)}


@optimizer("Adadelta")
def adadelta(
    call: Call, var: Any, accum: Any, accum_update: Any, lr: Any, rho: Any, epsilon: Any, grad: Any
) -> Mapping[str, Any]:
    """Scale by the ratio of the running means of squared steps and squared gradients."""
    xp = call.xp
    accum = rho * accum + (1 - rho) * grad * grad
    update = xp.sqrt(accum_update + epsilon) / xp.sqrt(accum + epsilon) * grad
    return {"accum": accum, "var": var - lr * update, "accum_update": rho * accum_update + (1 - rho) * update * update}


@optimizer("RMSProp")
def rms_prop(
    call: Call, var: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> Mapping[str, Any]:
    """Divide by the root of the running mean of squared gradients."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mom = momentum * mom + lr * grad / call.xp.sqrt(ms + epsilon)
    return {"ms": ms, "mom": mom, "var": var - mom}


@optimizer("CenteredRMSProp")
def centered_rms_prop(
    call: Call, var: Any, mg: Any, ms: Any, mom: Any, lr: Any, rho: Any, momentum: Any, epsilon: Any, grad: Any
) -> Mapping[str, Any]:
    """Divide by the root of the running variance of gradients."""
    ms = ms + (grad * grad - ms) * (1 - rho)
    mg = mg + (grad - mg) * (1 - rho)
    mom = momentum * mom + lr * grad / call.xp.sqrt(ms - mg * mg + epsilon)
    return {"mg": mg, "ms": ms, "mom": mom, "var": var - mom}


def _moments(xp: Any, m: Any, v: Any, beta1: Any, beta2: Any, grad: Any) -> tuple[Any, Any]:
    """Return the running means of gradients and of their squares."""
    return m + (grad - m) * (1 - beta1), v + (grad * grad - v) * (1 - beta2)


@optimizer("AdamWithAmsgrad", rows=False, references=False)
@optimizer("Adam", rows=False)
def adam(
    call: Call,
    var: Any,
    m: Any,
    v: Any,
    beta1_power: Any,
    beta2_power: Any,
    lr: Any,
    beta1: Any,
    beta2: Any,
    epsilon: Any,
    grad: Any,
    vhat: Any = None,
) -> Mapping[str, Any]:
    """Divide the running mean of gradients by the root of that of their squares; with ``vhat``, of the greatest so far."""
    xp = call.xp
    rate = lr * xp.sqrt(1 - beta2_power) / (1 - beta1_power)
    m, v = _moments(xp, m, v, beta1, beta2, grad)
    ahead = beta1 * m + (1 - beta1) * grad if call.attr("use_nesterov") else m
    greatest = {} if vhat is None else {"vhat": xp.maximum(vhat, v)}
    return {"m": m, "v": v, **greatest, "var": var - rate * ahead / (xp.sqrt(greatest.get("vhat", v)) + epsilon)}


@optimizer("AdaMax", rows=False)
def ada_max(
    call: Call, var: Any, m: Any, v: Any, beta1_power: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, grad: Any
) -> Mapping[str, Any]:
    """Divide the running mean of gradients by their greatest size, which fades."""
    m = m + (grad - m) * (1 - beta1)
    v = call.xp.maximum(beta2 * v, call.xp.abs(grad))
    return {"m": m, "v": v, "var": var - lr / (1 - beta1_power) * m / (v + epsilon)}


@optimizer("AddSign", rows=False)
def add_sign(call: Call, var: Any, m: Any, lr: Any, alpha: Any, sign_decay: Any, beta: Any, grad: Any) -> Mapping[str, Any]:
    """Go further where gradient and mean have one sign."""
    m = beta * m + (1 - beta) * grad
    return {"m": m, "var": var - lr * (alpha + sign_decay * call.xp.sign(grad) * call.xp.sign(m)) * grad}


@optimizer("PowerSign", rows=False)
def power_sign(call: Call, var: Any, m: Any, lr: Any, logbase: Any, sign_decay: Any, beta: Any, grad: Any) -> Mapping[str, Any]:
    """Go further, by a factor, where gradient and mean have one sign."""
    m = beta * m + (1 - beta) * grad
    factor = call.xp.exp(logbase * sign_decay * call.xp.sign(grad) * call.xp.sign(m))
    return {"m": m, "var": var - lr * factor * grad}


@optimizer("Ftrl")
def ftrl(
    call: Call, var: Any, accum: Any, linear: Any, grad: Any, lr: Any, l1: Any, l2: Any, lr_power: Any, l2_shrinkage: Any = 0
) -> Mapping[str, Any]:
    """Follow the leader, regularized: start anew from a sum of gradients."""
    xp = call.xp
    rate, scale = (lr, 1) if call.attr("multiply_linear_by_lr") else (1, lr)
    squares = accum + grad * grad
    power, before = squares**-lr_power, accum**-lr_power
    linear = linear + rate * (grad + 2 * l2_shrinkage * var) - (power - before) / scale * var
    bound = l1 * rate
    var = xp.where(xp.abs(linear) > bound, (bound * xp.sign(linear) - linear) / (power / scale + 2 * l2 * rate), 0)
    return {"accum": squares, "linear": linear, "var": var}


optimizer("FtrlV2")(ftrl)
