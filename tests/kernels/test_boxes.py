"""NonMaxSuppression."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op

# The second overlaps the first by 8 of 12, the third touches it.
BOXES = np.array([[[0, 0, 1, 10], [0, 2, 1, 12], [0, 10, 1, 20]]], np.float32)
SCORES = np.array([[[0.5, 0.5, 0.9]]], np.float32)


def select(*rest: object, boxes: np.ndarray = BOXES, **attributes: Any) -> list[list[int]]:
    limits = [None if x is None else np.asarray(x, np.int64 if i == 0 else np.float32) for i, x in enumerate(rest)]
    found: list[list[int]] = run_op("NonMaxSuppression", boxes, SCORES, *limits, **attributes).tolist()
    return found


def test_a_box_stays_unless_it_overlaps_a_better_one_by_more_than_the_threshold() -> None:
    assert select([9], [0.6]) == [[0, 0, 2], [0, 0, 0]]
    assert select([9], [0.7]) == [[0, 0, 2], [0, 0, 0], [0, 0, 1]]


def test_limits() -> None:
    assert select([1], [0.7]) == [[0, 0, 2]]
    assert select([9], [0.7], [0.5]) == [[0, 0, 2]]
    assert select() == []


def test_corners_may_be_flipped_and_boxes_given_by_their_center() -> None:
    flipped = BOXES[..., [2, 3, 0, 1]]
    assert select([9], [0.6], boxes=flipped) == [[0, 0, 2], [0, 0, 0]]
    center = np.stack([np.full((1, 3), 0.5), [[5, 7, 15]], np.ones((1, 3)), np.full((1, 3), 10)], -1).astype(np.float32)
    assert select([9], [0.6], boxes=center, center_point_box=1) == [[0, 0, 2], [0, 0, 0]]


def test_boxes_without_area_never_overlap() -> None:
    assert len(select([9], [0.0], boxes=np.zeros((1, 3, 4), np.float32))) == 3


def test_many_random_boxes_keep_the_promise() -> None:
    """Every box that stays overlaps no better one too much; every other overlaps one that stays."""
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 50, (200, 2))
    boxes = np.concatenate([low, low + rng.uniform(5, 30, (200, 2))], 1).astype(np.float32)
    scores = rng.permutation(200).astype(np.float32)
    kept = run_op("NonMaxSuppression", boxes[None], scores[None, None], np.array([200]), np.array([0.3], np.float32))[:, 2]

    def overlap(i: int, j: int) -> float:
        a, b = boxes[i].astype(float), boxes[j].astype(float)
        sides = [max(0.0, min(a[k + 2], b[k + 2]) - max(a[k], b[k])) for k in (0, 1)]
        both = sides[0] * sides[1]
        return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)

    assert sorted(kept, key=lambda i: -scores[i]) == list(kept)
    for i in range(200):
        better = [overlap(i, j) for j in kept if scores[j] > scores[i]]
        assert (max(better, default=0.0) <= 0.3) == (i in kept)


def test_shapes_that_do_not_belong_together() -> None:
    with pytest.raises(KernelError, match=r"Received: \[1, 3, 4\] and \[1, 1, 2\]"):
        run_op("NonMaxSuppression", BOXES, SCORES[..., :2])
