"""One step of an optimizer on all of its variables: unscale, look for what is not finite, clip, update.

It is a function from arrays to arrays; :mod:`~ampgraph.kernels.apply_gradients` is the node that calls it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .update_rules import UpdateRule
from .values import number

#: How gradients can be clipped: each element, each gradient by its norm, all of them by their common norm, or not at all.
CLIPS = ("", "value", "norm", "global_norm")


class Update(NamedTuple):
    """How gradients change variables.

    Attributes:
        rule: The formula.
        numbers: Its numbers by name.
        weight_decay: What part of a variable, times the learning rate, is taken from it before the update.
        clip: One of :data:`CLIPS`.
        bound: What it clips to.
        skip_nonfinite: Whether a step with a gradient that is not finite changes nothing.
    """

    rule: UpdateRule
    numbers: Mapping[str, float]
    weight_decay: float = 0.0
    clip: str = ""
    bound: float = 0.0
    skip_nonfinite: bool = True


class Applied(NamedTuple):
    """What a step made.

    Attributes:
        finite: Whether all gradients were.
        applied: Whether the variables changed; where not, these and the slots are the arrays that came in.
        variables: The variables.
        slots: The slots of each variable.
        grad_norm: Norm of all gradients together, unscaled, before they were clipped.
    """

    finite: bool
    applied: bool
    variables: Sequence[Any]
    slots: Sequence[Sequence[Any]]
    grad_norm: float


def apply_step(
    xp: Any,
    update: Update,
    variables: Sequence[Any],
    slots: Sequence[Sequence[Any]],
    gradients: Sequence[Any],
    *,
    step: int,
    rate: float,
    scale: float = 1.0,
    looks: bool = True,
) -> Applied:
    """Apply gradients to variables. What overflows is found: NumPy's warnings of it are best turned off.

    Args:
        xp: The array module.
        update: How.
        variables: Arrays, float32 or float64.
        slots: For each variable, its arrays in the order of the rule's slots.
        gradients: For each variable, an array of its shape and any floating dtype.
        step: Which step it is, counting from 1.
        rate: Learning rate.
        scale: What the gradients were multiplied by.
        looks: Whether it matters that gradients are finite, or what their norm is; where not, they count as finite.
    """
    if scale != 1 or len({x.dtype for x in (*variables, *gradients)}) > 1:
        gradients = [unscaled(gradient, scale, variable.dtype) for gradient, variable in zip(gradients, variables, strict=True)]
    norms: list[Any] = []
    norm, finite = math.nan, True
    if looks:
        norms, norm, finite = _norms(xp, gradients, update.clip == "norm")
        if not finite and update.skip_nonfinite:
            return Applied(False, False, variables, slots, norm)
    if update.clip:
        norms = norms or [norm] * len(gradients)
        gradients = [clipped(xp, update, gradient, own, norm) for gradient, own in zip(gradients, norms, strict=True)]
    after, slots_after, dtype, step_number, rate_number = [], [], None, None, None
    for variable, slot, gradient in zip(variables, slots, gradients):  # noqa: B905 - as many
        if variable.dtype is not dtype:
            dtype = variable.dtype
            step_number, rate_number = number(xp, step, dtype), number(xp, rate, dtype)
        first, *rest = updated(xp, update, variable, slot, gradient, step_number, rate_number)
        if not variable.ndim:  # operators make scalars of arrays without sizes
            first, rest = xp.asarray(first), [xp.asarray(slot) for slot in rest]
        after.append(first)
        slots_after.append(rest)
    return Applied(finite, True, after, slots_after, norm)


def unscaled(gradient: Any, scale: float, dtype: Any) -> Any:
    """Return a gradient of any floating dtype divided by a scale, in ``dtype``."""
    wide = gradient if gradient.dtype is dtype else gradient.astype(dtype, copy=False)
    return wide if scale == 1 else wide / dtype.type(scale)


def _norms(xp: Any, gradients: Sequence[Any], each: bool) -> tuple[list[Any], float, bool]:
    """Return the norm of each gradient, if wanted, and that of all of them, and whether all elements are finite."""
    squares = [xp.vdot(gradient, gradient) for gradient in gradients]
    total = float(sum(squares))
    if math.isfinite(total):
        return [xp.sqrt(square) for square in squares] if each else [], math.sqrt(total), True
    if not all(bool(xp.isfinite(gradient).all()) for gradient in gradients):
        return [], math.nan if math.isnan(total) else math.inf, False
    norms = [_large_norm(xp, gradient) for gradient in gradients]  # only the squares overflow
    return norms, math.hypot(*map(float, norms)), True


def _large_norm(xp: Any, gradient: Any) -> Any:
    """Return the norm of a gradient whose squares may overflow."""
    peak = xp.maximum(xp.abs(gradient).max(initial=0), 1).astype(xp.float64)
    part = gradient / peak
    return peak * xp.sqrt(xp.vdot(part, part))


def clipped(xp: Any, update: Update, gradient: Any, own: Any, norm: float) -> Any:
    """Return a gradient clipped, given its own norm and that of all gradients."""
    if not update.clip:
        return gradient
    if update.clip == "value":
        return xp.clip(gradient, -update.bound, update.bound)
    longest = own if update.clip == "norm" else norm
    return gradient * (update.bound / xp.maximum(longest, update.bound)).astype(gradient.dtype)


def updated(xp: Any, update: Update, variable: Any, slots: Sequence[Any], gradient: Any, step: Any, rate: Any) -> Any:
    """Return a variable and its slots after a step; ``step`` counts from 1. It and ``rate`` are of the variable's dtype."""
    if update.weight_decay:
        variable = variable - variable * update.weight_decay * rate
    return update.rule.update(xp, step, rate, variable, gradient, *slots, **update.numbers)
