"""Random numbers: normal, uniform, Bernoulli and multinomial, and Dropout.

With the attribute ``seed`` a node draws the same numbers each time, the same on every machine; without it, others each time.
"""

from typing import Any

from ..graph.dtypes import cast_array
from ..graph.errors import KernelError
from .call import Call
from .choose import row_places
from .registry import kernel
from .room import check_room


def _draw(call: Call, name: str, shape: tuple[int, ...], *parameters: float) -> Any:
    """Return numbers of a distribution, drawn in float64 by NumPy; the caller rounds them to the declared dtype."""
    check_room(call.xp, shape, 8)
    return call.xp.asarray(getattr(call.rng(call.attr("seed", None)), name)(*parameters, shape))


@kernel("RandomNormal", "RandomNormalLike")
def random_normal(call: Call, like: Any = None) -> Any:
    """Draw from a normal distribution, in the shape of the operand or the attribute."""
    return _draw(call, "normal", _shape(call, like), call.attr("mean", 0.0), call.attr("scale", 1.0))


@kernel("RandomUniform", "RandomUniformLike")
def random_uniform(call: Call, like: Any = None) -> Any:
    """Draw from a uniform distribution, in the shape of the operand or the attribute."""
    return _draw(call, "uniform", _shape(call, like), call.attr("low", 0.0), call.attr("high", 1.0))


def _shape(call: Call, like: Any) -> tuple[int, ...]:
    shape = call.attr("shape") if like is None else like.shape
    if shape is None:
        raise KernelError(f"{call.node.op_type} has an attribute shape. Received: none")
    return tuple(shape)


@kernel("Bernoulli")
def bernoulli(call: Call, p: Any) -> Any:
    """Draw ones with the given probabilities, else zeros."""
    return _draw(call, "uniform", p.shape, 0.0, 1.0) < p


@kernel("Multinomial")
def multinomial(call: Call, logits: Any) -> Any:
    """Draw ``sample_size`` classes for each row of unnormalized log-probabilities."""
    draws = _draw(call, "uniform", (len(logits), call.attr("sample_size", 1)), 0.0, 1.0)
    return chosen_classes(call, logits, draws)


def chosen_classes(call: Call, logits: Any, draws: Any) -> Any:
    """Return which class each uniform number draws: ``[batch, samples]``, in int64.

    Args:
        call: The call.
        logits: Unnormalized log-probabilities ``[batch, classes]``; a class of one that is not finite is never drawn.
        draws: Numbers in [0, 1): ``[batch, samples]``.

    Raises:
        KernelError: If there are no classes.
    """
    xp = call.xp
    if logits.ndim != 2 or not logits.shape[1]:
        raise KernelError(f"{call.node.op_type} takes [batch, classes], at least one class. Received: {list(logits.shape)}")
    wide = xp.where(xp.isfinite(logits), logits, -xp.inf).astype(xp.float64)
    steps = xp.cumsum(xp.exp(wide - wide.max(axis=1, keepdims=True)), axis=1)
    return xp.minimum(row_places(xp, steps, draws * steps[:, -1:], "right"), logits.shape[1] - 1)


@kernel("Dropout", moves=True)
def dropout(call: Call, x: Any, ratio: Any = None, training: Any = None) -> tuple[Any, Any]:
    """Return the operand as it is; in training, with a share of its elements zero and the others scaled up to make up for it.

    Before version 12 of the vocabulary ``ratio`` is an attribute, and before version 7 the attribute ``is_test`` says whether
    this is no training.
    """
    xp, dtype = call.xp, call.dtypes[0]
    if call.opset < 12:
        is_training = call.opset < 7 and not call.attr("is_test", 0)
        share = float(call.attr("ratio", 0.5))
    else:
        is_training = training is not None and bool(training.reshape(-1)[0])
        share = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
    mask_dtype = x.dtype if call.opset < 10 else bool
    if not is_training or not share:
        return x, xp.ones(x.shape, dtype=mask_dtype) if call.results > 1 else None
    if not 0 < share < 1:
        raise KernelError(f"Dropout: the ratio is at least 0 and less than 1. Received: {share}")
    kept = _draw(call, "uniform", x.shape, 0.0, 1.0) >= share
    wide = x.astype(xp.float64 if x.dtype == xp.float64 else xp.float32)
    dropped = wide * kept * xp.asarray(1 / (1 - share), dtype=wide.dtype)
    return dropped if dtype is None else cast_array(dropped, dtype), kept.astype(mask_dtype)
