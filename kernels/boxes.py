"""NonMaxSuppression: the best boxes that do not overlap better ones."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .registry import kernel


def corners(xp: Any, boxes: Any, center: bool) -> tuple[Any, Any]:
    """Return the least and the greatest corner of each box ``[..., 4]``, whichever diagonal it is given by."""
    if center:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return middle - half, middle + half
    return xp.minimum(boxes[..., :2], boxes[..., 2:]), xp.maximum(boxes[..., :2], boxes[..., 2:])


def suppress(xp: Any, low: Any, high: Any, limit: int, threshold: float) -> list[int]:
    """Return which boxes stay, given best first: each that overlaps none that stays by more than ``threshold``."""
    area = (high - low).prod(axis=-1)
    left = xp.arange(len(area))
    kept: list[int] = []
    while left.size and len(kept) < limit:
        best, left = int(left[0]), left[1:]
        kept.append(best)
        sides = xp.minimum(high[left], high[best]) - xp.maximum(low[left], low[best])
        both = xp.maximum(sides, 0).prod(axis=-1)
        overlaps = (both > 0) & (both / (area[left] + area[best] - both) > threshold)
        left = left[~overlaps]
    return kept


@kernel("NonMaxSuppression")
def non_max_suppression(call: Call, boxes: Any, scores: Any, limit: Any = None, overlap: Any = None, least: Any = None) -> Any:
    """Return ``[batch, class, box]`` of the selected boxes, by batch and class, best first.

    Overlap is intersection over union. Of equal scores the first box is the better one.
    """
    xp = call.xp
    if boxes.ndim != 3 or boxes.shape[-1] != 4 or scores.ndim != 3 or scores.shape[::2] != boxes.shape[:2]:
        raise KernelError(
            "NonMaxSuppression takes boxes [batch, n, 4] and scores [batch, classes, n]. "
            f"Received: {list(boxes.shape)} and {list(scores.shape)}"
        )
    most = 0 if limit is None else int(limit.reshape(-1)[0])
    threshold = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    low, high = corners(xp, boxes, bool(call.attr("center_point_box", 0)))
    found = [xp.zeros((0, 3), dtype=xp.int64)]
    for batch in range(scores.shape[0]):
        for label in range(scores.shape[1]):
            score = scores[batch, label]
            order = xp.argsort(-score, kind="stable")
            if least is not None:
                order = order[score[order] > least.reshape(-1)[0]]
            kept = order[xp.asarray(suppress(xp, low[batch][order], high[batch][order], most, threshold), dtype=int)]
            rows = xp.empty((kept.size, 3), dtype=xp.int64)
            rows[:, 0], rows[:, 1], rows[:, 2] = batch, label, kept
            found.append(rows)
    return xp.concatenate(found)
