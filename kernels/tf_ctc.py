"""TensorFlow's connectionist temporal classification: the cross entropy of all the ways in which a sequence can be spelled.

After "Connectionist Temporal Classification", Graves et al., 2006: sums over paths forwards and backwards, as logarithms.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .registry import kernel
from .softmax import log_softmax

if TYPE_CHECKING:
    from .call import Call


class _Paths(NamedTuple):
    """How a path through the labels of a sequence, blanks between and around them, can go on.

    Attributes:
        labels: Labels with blanks, ``[2 * length + 1]``.
        stays: Whether a path can stay at each.
        skips: Whether it can come from two before.
    """

    labels: Any
    stays: Any
    skips: Any


def _paths(xp: Any, labels: Any, blank: int, merges: bool) -> _Paths:
    spelled = xp.full(2 * len(labels) + 1, blank, xp.int64)
    spelled[1::2] = labels
    stays = (spelled == blank) | merges
    skips = spelled != blank
    skips[:2] = False
    if merges:
        skips[2:] &= spelled[2:] != spelled[:-2]
    return _Paths(spelled, stays, skips)


def _forwards(xp: Any, logs: Any, paths: _Paths) -> Any:
    """Return the logarithm of the sum over the beginnings of paths, ``[time, places]``; ``logs [time, places]``."""
    result = xp.full(logs.shape, -xp.inf, logs.dtype)
    result[0, :2] = logs[0, :2]
    for t in range(1, len(logs)):
        old = result[t - 1]
        total = xp.where(paths.stays, old, -xp.inf)
        total[1:] = xp.logaddexp(total[1:], old[:-1])
        total[2:] = xp.where(paths.skips[2:], xp.logaddexp(total[2:], old[:-2]), total[2:])
        result[t] = total + logs[t]
    return result


def _one(call: "Call", logs: Any, labels: Any) -> tuple[Any, Any]:
    """Return the loss of one sequence and its gradient by the logits, whose ``log_softmax [time, classes]`` is given."""
    xp = call.xp
    blank = logs.shape[1] - 1
    merges = bool(call.attr("ctc_merge_repeated", True))
    paths = _paths(xp, labels, blank, merges)
    seen = logs[:, paths.labels]
    before = _forwards(xp, seen, paths)
    behind = _forwards(xp, seen[::-1, ::-1], _paths(xp, labels[::-1], blank, merges))[::-1, ::-1]
    through = before + behind - seen  # seen counts twice
    total = xp.logaddexp.reduce(through[0])
    if not xp.isfinite(total):
        return -total, xp.exp(logs)
    shares = xp.exp(through - total)
    gradient = xp.exp(logs)
    for place in range(shares.shape[1]):
        gradient[:, paths.labels[place]] -= shares[:, place]
    return -total, gradient


@kernel("tf:CTCLoss")
def ctc_loss(call: "Call", logits: Any, places: Any, values: Any, lengths: Any) -> tuple[Any, Any]:
    """The loss of each sequence ``[batch]`` and its gradient by the logits ``[time, batch, classes]``; the last class is blank.

    Raises:
        KernelError: If operands do not fit together, or a sequence has fewer steps than labels.
    """
    xp = call.xp
    if logits.ndim != 3 or logits.shape[2] < 1 or lengths.shape != logits.shape[1:2] or places.shape != (len(values), 2):
        raise KernelError(
            f"CTCLoss takes logits [time, batch, classes], labels, and a length for each sequence. "
            f"Received: {list(logits.shape)}, {list(places.shape)} and {list(lengths.shape)}"
        )
    if lengths.size and not 0 <= int(lengths.min()) <= int(lengths.max()) <= logits.shape[0]:
        raise KernelError(f"Lengths are at most {logits.shape[0]}. Received: from {int(lengths.min())} to {int(lengths.max())}")
    losses, gradient = xp.zeros(logits.shape[1], logits.dtype), xp.zeros_like(logits)
    order = xp.argsort(places[:, 0], kind="stable")
    ends = xp.searchsorted(places[order, 0], xp.arange(len(lengths) + 1)).tolist()
    for b, length in enumerate(lengths.tolist()):
        labels = values[order[ends[b] : ends[b + 1]]].astype(xp.int64)
        if len(labels) > length:
            if call.attr("ignore_longer_outputs_than_inputs", False):
                continue
            raise KernelError(f"Sequence {b} has {len(labels)} labels. Received: only {length} steps for them")
        if not length:
            continue
        others = xp.flatnonzero((labels < 0) | (labels >= logits.shape[2] - 1))  # these end the labels
        labels = labels[: others[0]] if others.size else labels
        if call.attr("preprocess_collapse_repeated", False) and labels.size:
            labels = labels[xp.concatenate([[True], labels[1:] != labels[:-1]])]
        losses[b], gradient[:length, b] = _one(call, log_softmax(xp, logits[:length, b]), labels)
    return losses, gradient
