"""Losses of classification."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


@kernel("NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(call: "Call", log_probabilities: Any, labels: Any, weights: Any = None) -> Any:
    """Minus the log probability of each label, weighted and reduced."""
    return _loss(call, log_probabilities, labels, weights)


@kernel("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(call: "Call", scores: Any, labels: Any, weights: Any = None) -> tuple[Any, Any]:
    """The same of the log-softmax of scores, which is the second result."""
    xp = call.xp
    shifted = scores - scores.max(axis=1, keepdims=True, initial=-xp.inf)
    log_probabilities = shifted - xp.log(xp.exp(shifted).sum(axis=1, keepdims=True))
    return _loss(call, log_probabilities, labels, weights), log_probabilities


def _loss(call: "Call", log_probabilities: Any, labels: Any, weights: Any) -> Any:
    """Reduce the losses of ``log_probabilities[N, C, …]`` at ``labels[N, …]``; a mean divides by the sum of the weights used.

    Raises:
        KernelError: If a label is no class (and not the one to ignore), or the reduction is unknown.
    """
    xp, ignored, reduction = call.xp, call.attr("ignore_index"), call.attr("reduction", "mean")
    classes = log_probabilities.shape[1]
    counted = xp.ones(labels.shape, bool) if ignored is None else labels != ignored
    used = xp.where(counted, labels, 0)
    if labels.size and not bool(((used >= 0) & (used < classes)).all()):
        raise KernelError(f"Op {call.node.op_type} has {classes} classes. Received: labels {int(used.min())} … {int(used.max())}")
    picked = xp.take_along_axis(log_probabilities, xp.expand_dims(used, 1).astype(xp.int64), axis=1)[:, 0]
    one = log_probabilities.dtype.type(1)
    weight = xp.where(counted, one if weights is None else weights[used], 0 * one)
    losses = xp.where(counted, -picked * weight, 0 * one)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return losses.sum() / weight.sum()
    raise KernelError(f"Op {call.node.op_type} reduces by none, sum or mean. Received: {reduction!r}")
