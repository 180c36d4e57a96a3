"""The node that ends a training step: ``ampgraph.ApplyGradients``.

It divides gradients by the loss scale, adds them up over several calls if it is to, looks for what is not finite, clips, updates
variables and slots, counts the step and moves the loss scale. All of its state is in variables, so that it lasts from run to run.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from ..graph.types import Tensor
from .apply_step import CLIPS, Update, apply_step, unscaled
from .handle import Handle, held
from .loss_scaling import ScaleRules, ScaleState, next_scale
from .registry import bound, kernel
from .update_rules import UPDATE_RULES
from .values import number

if TYPE_CHECKING:
    from .call import Call

#: Codes of the dtypes that variables may have.
_FLOATS = {"f", "d"}


def apply_gradients_attributes(
    update: Update, rules: ScaleRules | None, count: int, *, scaled: bool = True, accumulation_steps: int = 1
) -> dict[str, Any]:
    """Return the attributes of an ``ApplyGradients`` node.

    Args:
        update: How gradients change variables; its rule is one of :data:`~ampgraph.kernels.update_rules.UPDATE_RULES`.
        rules: How the loss scale moves; None if it stays.
        count: Number of variables.
        scaled: Whether the gradients come multiplied by the loss scale.
        accumulation_steps: From how many calls gradients are averaged to make one step.
    """
    numbers = [update.numbers[name] for name in update.rule.numbers]
    return {
        "N": count,
        "M": count * len(update.rule.slots),
        "A": count if accumulation_steps > 1 else 0,
        "rule": update.rule.name.encode(),
        "numbers": Tensor.of(numbers, "float64"),
        "weight_decay": Tensor.of(update.weight_decay, "float64"),
        "clip": update.clip.encode(),
        "bound": Tensor.of(update.bound, "float64"),
        "skip_nonfinite": update.skip_nonfinite,
        "scale_rules": Tensor.of([] if rules is None else list(rules), "float64"),
        "scaled": scaled,
        "accumulation_steps": accumulation_steps,
    }


def read_attributes(attr: Callable[[str], Any]) -> tuple[Update, ScaleRules | None]:
    """Return what :func:`apply_gradients_attributes` wrote.

    Args:
        attr: Returns an attribute by its name: text as ``str``, tensors as arrays.

    Raises:
        KernelError: If the attributes make no sense.
    """
    name, clip = attr("rule"), attr("clip")
    rule = UPDATE_RULES.get(name)
    if rule is None:
        raise KernelError(f"ApplyGradients knows the rules {', '.join(UPDATE_RULES)}. Received: {name!r}")
    if clip not in CLIPS:
        raise KernelError(f"ApplyGradients clips by {', '.join(CLIPS[1:])}, or not at all. Received: {clip!r}")
    numbers, scale_rules = attr("numbers").tolist(), attr("scale_rules").tolist()
    if len(numbers) != len(rule.numbers) or len(scale_rules) not in (0, len(ScaleRules._fields)):
        raise KernelError(
            f"ApplyGradients needs the {len(rule.numbers)} numbers of rule {name}, and {len(ScaleRules._fields)} or no numbers that "
            f"say how the loss scale moves. Received: {numbers} and {scale_rules}"
        )
    update = Update(
        rule,
        dict(zip(rule.numbers, numbers, strict=True)),
        float(attr("weight_decay")),
        clip,
        float(attr("bound")),
        attr("skip_nonfinite"),
    )
    if not scale_rules:
        return update, None
    interval, growth, backoff, floor, ceiling, hysteresis = scale_rules
    return update, ScaleRules(int(interval), growth, backoff, floor, ceiling, int(hysteresis))


@kernel("ampgraph:ApplyGradients", moves=True)
def apply_gradients(call: "Call", *operands: Any) -> tuple[Any, ...]:
    """Apply gradients to variables, or drop them where one is not finite; return how that went."""
    return bind_apply_gradients(call)(call.state, *operands)


@bound("ampgraph:ApplyGradients", is_stateful=True)
def bind_apply_gradients(call: "Call") -> Callable[..., tuple[Any, ...]]:
    """Return what applies gradients, given what variables hold and the operands. All variables change together, or none."""
    xp = call.xp
    dtypes = [None if dtype is None or not call.is_used(i) else dtype.numpy for i, dtype in enumerate(call.dtypes)]
    update, rules = read_attributes(call.attr)
    count, width, turns = call.attr("N"), len(update.rule.slots), call.attr("accumulation_steps")
    scaled = call.attr("scaled")
    sums_at = count + count * width
    counters_at = sums_at + (count if turns > 1 else 0)
    if (sums_at - count, counters_at - sums_at) != (call.attr("M"), call.attr("A")):
        raise KernelError(
            f"Rule {update.rule.name} has {width} slots for each of {count} variables, and each has an accumulator if there are "
            f"several calls to a step. Received: M={call.attr('M')}, A={call.attr('A')}, accumulation_steps={turns}"
        )
    slots_at = [slice(count + i * width, count + (i + 1) * width) for i in range(count)]
    rate_at = counters_at + 5
    looks = bool(rules is not None or update.skip_nonfinite or update.clip or call.is_used(3))
    is_plain = not (looks or scaled or width or update.weight_decay or turns > 1)
    rule, rule_numbers = update.rule.update, update.numbers

    def compute(state: dict[Handle, Any], *operands: Any) -> tuple[Any, ...]:
        handles, rate = operands[:rate_at], float(operands[rate_at])
        gradients: Sequence[Any] = operands[rate_at + 1 :]
        try:
            values = [state[handle] for handle in handles]
        except KeyError:
            values = [held(state, handle) for handle in handles]
        before = values[:count]
        if [x.shape for x in before] != [x.shape for x in gradients] or not {x.dtype.char for x in before} <= _FLOATS:
            raise _mismatch(handles, before, gradients)
        scale, good_steps, bad_steps, calls, global_step = values[counters_at:]
        now, step = float(scale), int(global_step)
        if is_plain and len({x.dtype for x in (*before, *gradients)}) == 1:  # of small steps asking would be the most
            dtype = before[0].dtype
            step += 1
            at, speed = number(xp, step, dtype), number(xp, rate, dtype)
            after = [xp.asarray(*rule(xp, at, speed, x, dx, **rule_numbers)) for x, dx in zip(before, gradients, strict=True)]
            _store(xp, state, {**dict(zip(handles, after, strict=False)), handles[-1]: xp.array(step, global_step.dtype)})
            return results(True, now, step, math.nan)
        factor = now if scaled else 1.0
        changes: dict[Handle, Any] = {}
        if turns > 1:
            gradients = _accumulated(xp, values[sums_at:counters_at], gradients, factor)
            done_calls = (int(calls) + 1) % turns
            factor = float(turns)
            changes[handles[counters_at + 3]] = xp.array(done_calls, calls.dtype)
            changes.update(zip(handles[sums_at:], gradients if done_calls else map(xp.zeros_like, gradients), strict=False))
            if done_calls:
                _store(xp, state, changes)
                return results(False, now, step, math.nan)
        slots = [values[place] for place in slots_at]
        done = apply_step(xp, update, before, slots, gradients, step=step + 1, rate=rate, scale=factor, looks=looks)
        if done.applied:
            step += 1
            changes[handles[-1]] = xp.array(step, global_step.dtype)
            changes.update(zip(handles, done.variables, strict=False))
            if width:
                changes.update(zip(handles[count:], [value for row in done.slots for value in row], strict=False))
        if rules is not None:
            scaling = next_scale(rules, ScaleState(now, int(good_steps), int(bad_steps)), done.finite)
            now = scaling.scale
            numbers = [xp.array(number, old.dtype) for number, old in zip(scaling, values[counters_at:], strict=False)]
            changes.update(zip(handles[counters_at:], numbers, strict=False))
        _store(xp, state, changes)
        return results(done.applied, now, step, done.grad_norm)

    def results(*numbers: float) -> tuple[Any, ...]:
        return tuple([None if dtype is None else xp.array(number, dtype) for number, dtype in zip(numbers, dtypes, strict=True)])

    return compute


def _store(xp: Any, state: dict[Handle, Any], changes: dict[Handle, Any]) -> None:
    """Let variables hold arrays that nothing else holds; nobody can write to them any more."""
    if xp.__name__ == "numpy":  # CuPy's arrays have no such flag
        for value in changes.values():
            value.setflags(False)
    state.update(changes)


def _accumulated(xp: Any, sums: Sequence[Any], gradients: Sequence[Any], scale: float) -> list[Any]:
    """Return sums, and gradients divided by the scale, added up."""
    return [xp.asarray(total + unscaled(gradient, scale, total.dtype)) for total, gradient in zip(sums, gradients, strict=True)]


def _mismatch(handles: Sequence[Handle], variables: Sequence[Any], gradients: Sequence[Any]) -> KernelError:
    """Return what is wrong with the first pair that does not go together."""
    pairs = zip(handles, variables, gradients, strict=False)
    handle, variable, gradient = next(
        found for found in pairs if found[1].shape != found[2].shape or found[1].dtype.char not in _FLOATS
    )
    return KernelError(
        f"Variable {handle.name!r} must be float32 or float64, and its gradient of its shape. Received: "
        f"{variable.dtype}{list(variable.shape)}, and a gradient of {gradient.dtype}{list(gradient.shape)}"
    )
