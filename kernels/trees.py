"""Ensembles of decision trees: all rows walk down all trees at once, one level per step."""

from typing import TYPE_CHECKING, Any, NamedTuple

from ..graph.errors import KernelError
from .linear_models import labels_of, transform, two_scores
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call

_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF")
_LEAF, _MEMBER = 7, 6
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_SUMS = ("AVERAGE", "SUM", "MIN", "MAX")


class Trees(NamedTuple):
    """Nodes of all trees as arrays, leaves among them.

    Attributes:
        roots: Index of the root of each tree.
        mode: Which comparison a node makes, an index into the modes; the last is that of leaves.
        feature, split: Column that it compares, and with what.
        missing: Whether NaN goes the true way.
        true, false: Index of the next node.
        member, members: For set membership, the row of the node's set in ``members[sets, longest]``, filled up with NaN.
    """

    roots: Any
    mode: Any
    feature: Any
    split: Any
    missing: Any
    true: Any
    false: Any
    member: Any = None
    members: Any = None


def leaves(xp: Any, trees: Trees, x: Any) -> Any:
    """Return, ``[N, trees]``, the leaf that each row of ``x[N, features]`` reaches.

    Raises:
        KernelError: If the nodes run in a circle, or a feature does not exist.
    """
    if trees.feature.size and int(trees.feature[trees.mode != _LEAF].max(initial=0)) >= x.shape[1]:
        raise KernelError(f"The trees use feature {int(trees.feature.max())}, but the rows have {x.shape[1]}.")
    at = xp.broadcast_to(trees.roots, (x.shape[0], trees.roots.size)).copy()
    rows = xp.arange(x.shape[0])[:, None]
    for _ in range(trees.mode.size + 1):
        mode = trees.mode[at]
        if bool((mode == _LEAF).all()):
            return at
        value, split = x[rows, trees.feature[at]], trees.split[at]
        choices = [value <= split, value < split, value >= split, value > split, value == split, value != split]
        taken = xp.select([mode == i for i in range(len(choices))], choices, False)
        if trees.members is not None:
            taken = taken | ((mode == _MEMBER) & (value[..., None] == trees.members[trees.member[at]]).any(axis=-1))
        taken = xp.where(xp.isnan(value), taken & (mode == 5) | trees.missing[at], taken)
        at = xp.where(mode == _LEAF, at, xp.where(taken, trees.true[at], trees.false[at]))
    raise KernelError("The nodes of a tree run in a circle.")


def gathered(xp: Any, reached: Any, size: int, entry: Any, target: Any, weight: Any, targets: int, how: str) -> Any:
    """Aggregate what the reached leaves give to the targets.

    Args:
        reached: Leaves ``[N, trees]``.
        size: Number of nodes.
        entry, target, weight: For each contribution: its leaf, the target and how much.
        targets: Number of targets.
        how: AVERAGE, SUM, MIN or MAX over the trees.
    """
    order = xp.argsort(entry, kind="stable")
    target, weight = target[order], weight[order]
    count = xp.bincount(entry, minlength=size)
    start = xp.cumsum(count) - count
    rows = xp.broadcast_to(xp.arange(reached.shape[0])[:, None], reached.shape)
    combine, first = {"MIN": (xp.minimum, xp.inf), "MAX": (xp.maximum, -xp.inf)}.get(how, (xp.add, 0.0))
    result = xp.full((reached.shape[0], targets), first, xp.float64)
    for k in range(int(count.max(initial=0))):
        has = count[reached] > k
        place = (start[reached] + k)[has]
        combine.at(result, (rows[has], target[place]), weight[place])
    if how == "AVERAGE":
        result /= reached.shape[1]
    return xp.where(xp.isfinite(result), result, 0.0) if how in ("MIN", "MAX") else result


@kernel("ai.onnx.ml:TreeEnsemble")
def tree_ensemble(call: "Call", x: Any) -> Any:
    """Interior nodes and leaves apart; here leaves come behind the interior nodes."""
    xp = call.xp
    mode, split, weight = (xp.asarray(call.attr(name)) for name in ("nodes_modes", "nodes_splits", "leaf_weights"))
    count, ends = mode.size, weight.size
    tails = {name: xp.asarray(call.attr(name), xp.int64) for name in ("nodes_trueleafs", "nodes_falseleafs")}
    true = xp.asarray(call.attr("nodes_truenodeids"), xp.int64) + count * tails["nodes_trueleafs"]
    false = xp.asarray(call.attr("nodes_falsenodeids"), xp.int64) + count * tails["nodes_falseleafs"]
    missing = xp.asarray(call.attr("nodes_missing_value_tracks_true") or [0] * count, bool)
    filler = xp.zeros(ends, xp.int64)
    member, members = _members(call, mode, ends)
    trees = Trees(
        xp.asarray(call.attr("tree_roots"), xp.int64),
        xp.concatenate([mode.astype(xp.int64), filler + _LEAF]),
        xp.concatenate([xp.asarray(call.attr("nodes_featureids"), xp.int64), filler]),
        xp.concatenate([split.astype(xp.float64), filler]),
        xp.concatenate([missing, filler.astype(bool)]),
        xp.concatenate([true, filler]),
        xp.concatenate([false, filler]),
        member,
        members,
    )
    reached = leaves(xp, trees, x)
    how, target = _SUMS[call.attr("aggregate_function", 1)], xp.asarray(call.attr("leaf_targetids"), xp.int64)
    entry = count + xp.arange(ends)
    scores = gathered(xp, reached, count + ends, entry, target, weight.astype(xp.float64), call.attr("n_targets", 1), how)
    return transform(xp, scores.astype(x.dtype), _TRANSFORMS[call.attr("post_transform", 0)])


def _members(call: "Call", mode: Any, ends: int) -> tuple[Any, Any]:
    """Return the set of each node, and the sets."""
    xp, values = call.xp, call.attr("membership_values")
    if values is None or not bool((mode == _MEMBER).any()):
        return None, None
    values = xp.asarray(values).reshape(-1).astype(xp.float64)
    breaks = xp.isnan(values)
    which = xp.cumsum(breaks) - breaks
    start = xp.concatenate([xp.zeros(1, xp.int64), xp.nonzero(breaks)[0] + 1])
    place = xp.arange(values.size) - start[which]
    members = xp.full((int((mode == _MEMBER).sum()), int(place.max(initial=0)) + 1), xp.nan)
    real = ~breaks & (which < members.shape[0])
    members[which[real], place[real]] = values[real]
    number = xp.cumsum(mode == _MEMBER) - 1
    return xp.concatenate([xp.maximum(number, 0), xp.zeros(ends, xp.int64)]), members


def _listed(call: "Call") -> tuple[Trees, Any]:
    """Return the trees of the older ops, and what contributions find their nodes by: a key for each node, and tree * width + node.

    Raises:
        KernelError: If a tree has no root, or several.
    """
    xp = call.xp
    tree, node = (xp.asarray(call.attr(name), xp.int64) for name in ("nodes_treeids", "nodes_nodeids"))
    mode = xp.asarray([_MODES.index(name) for name in call.attr("nodes_modes")], xp.int64)
    width = int(max(node.max(initial=0), 0)) + 1
    key = tree * width + node
    true, false = (
        _index(xp, key, xp.where(mode == _LEAF, key, tree * width + xp.asarray(call.attr(name), xp.int64)))
        for name in ("nodes_truenodeids", "nodes_falsenodeids")
    )
    child = xp.zeros(key.size, bool)
    inner = mode != _LEAF
    child[true[inner]] = True
    child[false[inner]] = True
    roots = xp.nonzero(~child)[0]
    if roots.size != (count := xp.unique(tree).size):
        raise KernelError(f"Every tree needs one root. Received: {roots.size} roots in {count} trees")
    values = _floats(call, "nodes_values")
    missing = xp.asarray(call.attr("nodes_missing_value_tracks_true") or [0] * key.size, bool)
    trees = Trees(roots, mode, xp.asarray(call.attr("nodes_featureids"), xp.int64), values, missing, true, false)
    return trees, (key, width)


def _index(xp: Any, keys: Any, wanted: Any) -> Any:
    """Return where each wanted key stands.

    Raises:
        KernelError: If one does not exist.
    """
    order = xp.argsort(keys, kind="stable")
    place = xp.minimum(xp.searchsorted(keys[order], wanted), keys.size - 1)
    found = order[place]
    if not bool((keys[found] == wanted).all()):
        raise KernelError("A tree refers to a node that does not exist.")
    return found


def _floats(call: "Call", name: str) -> Any:
    xp, tensor = call.xp, call.attr(f"{name}_as_tensor")
    return xp.asarray(call.attr(name) or [], xp.float64) if tensor is None else xp.asarray(tensor).reshape(-1).astype(xp.float64)


def _walked(call: "Call", x: Any, stem: str, targets: int, how: str) -> Any:
    xp = call.xp
    trees, (key, width) = _listed(call)
    reached = leaves(xp, trees, (x.reshape(1, -1) if x.ndim == 1 else x).astype(xp.float64))
    tree, node, target = (xp.asarray(call.attr(f"{stem}_{part}"), xp.int64) for part in ("treeids", "nodeids", "ids"))
    entry = _index(xp, key, tree * width + node)
    return gathered(xp, reached, key.size, entry, target, _floats(call, f"{stem}_weights"), targets, how)


@kernel("ai.onnx.ml:TreeEnsembleRegressor")
def tree_ensemble_regressor(call: "Call", x: Any) -> Any:
    """Sums, means or extremes of leaf values."""
    xp, base = call.xp, _floats(call, "base_values")
    scores = _walked(call, x, "target", call.attr("n_targets", 1), call.attr("aggregate_function", "SUM"))
    scores = scores + base if base.size else scores
    return transform(xp, scores.astype(xp.float32), call.attr("post_transform", "NONE"))


@kernel("ai.onnx.ml:TreeEnsembleClassifier")
def tree_ensemble_classifier(call: "Call", x: Any) -> tuple[Any, Any]:
    """The class of the highest sum, and the sums; of two classes one sum may say both."""
    xp, name, base = call.xp, call.attr("post_transform", "NONE"), _floats(call, "base_values")
    labels = labels_of(call, "classlabels_int64s")
    if labels is None:
        raise KernelError("Op TreeEnsembleClassifier needs class labels.")
    scores = _walked(call, x, "class", labels.size, "SUM")
    used = set(call.attr("class_ids"))
    single = labels.size == 2 and len(used) == 1
    signed = bool((_floats(call, "class_weights") < 0).any())
    if single and 0 in used:
        score = (scores[:, 0] + (base[0] if base.size else 0.0)).astype(xp.float32)
        return labels[(score > (0 if signed else 0.5)).astype(xp.int64)], two_scores(xp, score, name, signed=signed)
    scores = (scores + base if base.size else scores).astype(xp.float32)
    best = (scores[:, 1] > (0 if signed else 0.5)).astype(xp.int64) if single else scores.argmax(axis=1)
    return labels[best], transform(xp, scores, name)
