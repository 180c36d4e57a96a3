"""Cross entropies of classes."""

from typing import Any

import numpy as np

from ..errors import TraceError
from ..tracing.array import SymbolicArray
from ..tracing.operations import apply, kind_of, rank, shape_of, static_shape, symbolic
from ..tracing.shapes import reshape


def softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    """Return, for each example, the cross entropy of the softmax of its logits and its probabilities of classes.

    Args:
        logits: [..., classes].
        labels: Probabilities, of the same shape.

    Returns:
        The losses, [...].

    Raises:
        TraceError: If the numbers of dimensions differ.
    """
    if rank(labels) != rank(logits) or not rank(logits):
        shapes = f"{list(static_shape(logits))} and {list(static_shape(labels))}"
        raise TraceError(f"Logits and labels of softmax_cross_entropy have the same shape. Received: {shapes}")
    return _losses("SoftmaxCrossEntropyWithLogits", logits, symbolic(labels, kind_of(logits)), (-1, static_shape(logits)[-1]))


def sparse_softmax_cross_entropy(logits: Any, labels: Any) -> Any:
    """Return, for each example, minus the logarithm of the softmax of its logits at its class.

    Args:
        logits: [..., classes].
        labels: Classes counted from 0, [...], integers.

    Returns:
        The losses, [...].

    Raises:
        TraceError: If labels have not one dimension less, or are no integers.
    """
    kind = np.dtype(kind_of(labels))
    if rank(labels) != rank(logits) - 1 or kind.kind not in "iu":
        shapes = f"{list(static_shape(logits))} and {kind}{list(static_shape(labels))}"
        raise TraceError(f"Labels of sparse_softmax_cross_entropy are integers, one for each row of logits. Received: {shapes}")
    classes = symbolic(labels, kind if kind in (np.int32, np.int64) else np.int64)
    return _losses("SparseSoftmaxCrossEntropyWithLogits", logits, classes, (-1,))


def _losses(op_type: str, logits: Any, labels: SymbolicArray, flat: Any) -> SymbolicArray:
    """Apply an op that takes matrices of logits to those of any rank."""
    if rank(logits) == 2:
        return apply(op_type, logits, labels)
    classes = shape_of(logits)[-1]
    rows = reshape(labels, flat if flat[-1] is not None else (-1, classes))
    losses: SymbolicArray = reshape(apply(op_type, reshape(logits, (-1, classes)), rows), shape_of(logits)[:-1])
    return losses
