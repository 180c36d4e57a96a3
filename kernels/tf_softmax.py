"""TensorFlow's softmax, and the cross entropy of logits with its gradient."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .registry import bound, kernel
from .room import check_broadcast
from .softmax import bind_softmax, log_softmax, softmax

if TYPE_CHECKING:
    from .call import Call


@kernel("tf:Softmax")
def tf_softmax(call: "Call", x: Any) -> Any:
    """Softmax along the last axis."""
    return softmax(call.xp, x)


bound("tf:Softmax")(bind_softmax)


@kernel("tf:LogSoftmax")
def tf_log_softmax(call: "Call", x: Any) -> Any:
    """The logarithm of Softmax along the last axis."""
    return log_softmax(call.xp, x)


@kernel("tf:SoftmaxCrossEntropyWithLogits")
def cross_entropy(call: "Call", logits: Any, labels: Any) -> tuple[Any, Any]:
    """The cross entropy of each row, and its gradient by the logits; the operands are broadcast."""
    xp = call.xp
    check_broadcast(xp, logits, labels)
    logits, labels = xp.broadcast_arrays(logits, labels)
    _check_rows(logits)
    logs = log_softmax(xp, logits)
    return -(labels * logs).sum(-1), xp.exp(logs) - labels


@kernel("tf:SparseSoftmaxCrossEntropyWithLogits")
def sparse_cross_entropy(call: "Call", logits: Any, labels: Any) -> tuple[Any, Any]:
    """The cross entropy of each row with the class that its label names, and its gradient by the logits.

    Raises:
        KernelError: If a label names no class, or their number is not that of the rows.
    """
    xp = call.xp
    _check_rows(logits)
    rows, classes = logits.shape
    if labels.shape != (rows,):
        raise KernelError(f"Logits of shape {list(logits.shape)} need one label for each row. Received: {list(labels.shape)}")
    if rows and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise KernelError(
            f"A label must name one of {classes} classes. Received: labels from {int(labels.min())} to {int(labels.max())}"
        )
    logs = log_softmax(xp, logits)
    at = xp.arange(rows), labels
    gradient = xp.exp(logs)
    loss = -logs[at]
    gradient[at] -= 1
    return loss, gradient


def _check_rows(logits: Any) -> None:
    if logits.ndim != 2:
        raise KernelError(f"Logits are a matrix, a row for each example. Received: shape {list(logits.shape)}")
