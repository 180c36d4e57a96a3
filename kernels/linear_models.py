"""Linear models and support vector machines of ``ai.onnx.ml``, and what comes after the scores of any classifier."""

from typing import TYPE_CHECKING, Any

from ..graph.errors import KernelError
from .elementwise import sigmoid
from .registry import kernel

if TYPE_CHECKING:
    from .call import Call


def transform(xp: Any, scores: Any, name: str) -> Any:
    """Apply a ``post_transform`` to ``scores[N, classes]``.

    Raises:
        KernelError: If it has no such name.
    """
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        return sigmoid(xp, scores)
    if name in ("SOFTMAX", "SOFTMAX_ZERO"):
        e = xp.exp(scores - scores.max(axis=-1, keepdims=True))
        if name == "SOFTMAX_ZERO":
            e = xp.where(xp.abs(scores) > 1e-7, e, 0)
        return e / e.sum(axis=-1, keepdims=True)
    if name == "PROBIT":  # inverse of the normal distribution, by a closed form of the inverse error function
        x = 2 * scores - 1
        log = xp.log((1 - x) * (1 + x))
        part = 2 / (3.14159 * 0.147) + 0.5 * log
        return xp.sqrt(scores.dtype.type(2)) * xp.sign(x) * xp.sqrt(-part + xp.sqrt(part * part - log / 0.147))
    raise KernelError(f"Unknown post_transform. Received: {name!r}")


def two_scores(xp: Any, score: Any, name: str, *, signed: bool) -> Any:
    """Return ``[N, 2]``: what a single ``score[N]`` of the second class says of both, as ONNX Runtime has it.

    Args:
        name: The ``post_transform``.
        signed: Whether the first class has the score's negative; otherwise what is missing from 1.
    """
    if name == "PROBIT":
        return transform(xp, score[:, None], name)
    if name == "LOGISTIC":
        score, signed = sigmoid(xp, score), False
    return xp.stack([-score if signed else 1 - score, score], axis=1)


def labels_of(call: "Call", integers: str = "classlabels_ints") -> Any:
    """Return the class labels as an array, or None."""
    xp, names = call.xp, call.attr("classlabels_strings")
    if names:
        labels = xp.empty(len(names), object)
        labels[:] = names
        return labels
    numbers = call.attr(integers)
    return None if not numbers else xp.asarray(numbers, xp.int64)


def _linear(call: "Call", x: Any, count: int | None) -> Any:
    """Return ``x @ coefficients^T + intercepts``, ``[N, count]``."""
    xp = call.xp
    x = (x.reshape(1, -1) if x.ndim == 1 else x).astype(xp.float32)
    intercepts = call.attr("intercepts") or []
    weights = xp.asarray(call.attr("coefficients"), xp.float32).reshape(count or len(intercepts) or -1, x.shape[1])
    scores = x @ weights.T
    return scores + xp.asarray(intercepts, xp.float32) if intercepts else scores


@kernel("ai.onnx.ml:LinearRegressor")
def linear_regressor(call: "Call", x: Any) -> Any:
    """Linear scores."""
    return transform(call.xp, _linear(call, x, call.attr("targets", 1)), call.attr("post_transform", "NONE"))


@kernel("ai.onnx.ml:LinearClassifier")
def linear_classifier(call: "Call", x: Any) -> tuple[Any, Any]:
    """The class of the highest score, and the scores."""
    xp, name, labels = call.xp, call.attr("post_transform", "NONE"), labels_of(call)
    scores = _linear(call, x, None)
    if scores.shape[1] == 1:
        second = scores[:, 0] > 0
        if labels is None or labels.size < 2:
            return xp.where(second, 1, 0), transform(xp, scores, name)
        return labels[second.astype(xp.int64)], two_scores(xp, scores[:, 0], name, signed=False)
    best = scores.argmax(axis=1)
    return best if labels is None else labels[best], transform(xp, scores, name)


def _kernel_of(call: "Call", x: Any, vectors: Any) -> Any:
    """Return the kernel function of each row of ``x`` with each vector."""
    xp, kind = call.xp, call.attr("kernel_type", "LINEAR")
    gamma, offset, degree = (call.attr("kernel_params") or [0.0, 0.0, 0.0])[:3]
    if kind == "RBF":
        squares = (x * x).sum(axis=1)[:, None] + (vectors * vectors).sum(axis=1) - 2 * (x @ vectors.T)
        return xp.exp(-gamma * xp.maximum(squares, 0))
    dots = x @ vectors.T
    if kind == "LINEAR":
        return dots
    if kind == "POLY":
        return (gamma * dots + offset) ** degree
    if kind == "SIGMOID":
        return xp.tanh(gamma * dots + offset)
    raise KernelError(f"Op {call.node.op_type} has the kernels LINEAR, POLY, RBF and SIGMOID. Received: {kind!r}")


@kernel("ai.onnx.ml:SVMRegressor")
def svm_regressor(call: "Call", x: Any) -> Any:
    """A sum of kernel functions with support vectors; for ``one_class`` its sign."""
    xp, x = call.xp, x.reshape(-1, x.shape[-1]).astype(call.xp.float32)
    weights = xp.asarray(call.attr("coefficients"), xp.float32)
    if call.attr("n_supports", 0):
        vectors = xp.asarray(call.attr("support_vectors"), xp.float32).reshape(call.attr("n_supports"), -1)
        scores = _kernel_of(call, x, vectors) @ weights
    else:
        scores = _kernel_of(call, x, weights.reshape(1, -1))[:, 0]
    scores = (scores + xp.float32(call.attr("rho")[0]))[:, None]
    if call.attr("one_class", 0):
        return xp.where(scores > 0, 1, -1).astype(xp.float32)
    return transform(xp, scores, call.attr("post_transform", "NONE"))


@kernel("ai.onnx.ml:SVMClassifier")
def svm_classifier(call: "Call", x: Any) -> tuple[Any, Any]:
    """Votes of pairs of classes, or linear scores if there are no support vectors."""
    xp, name, labels = call.xp, call.attr("post_transform", "NONE"), labels_of(call)
    x = x.reshape(-1, x.shape[-1]).astype(xp.float32)
    counts, rho = call.attr("vectors_per_class") or [], call.attr("rho")
    weights = xp.asarray(call.attr("coefficients"), xp.float32)
    if counts:
        vectors = xp.asarray(call.attr("support_vectors"), xp.float32).reshape(sum(counts), -1)
        scores, best = _pairs(xp, _kernel_of(call, x, vectors), weights.reshape(-1, sum(counts)), counts, rho)
    else:
        scores = _kernel_of(call, x, weights.reshape(-1, x.shape[1])) + xp.float32(rho[0])
        best = scores.argmax(axis=1)
    if call.attr("prob_a"):
        scores = _shares(xp, scores, len(counts), call.attr("prob_a"), call.attr("prob_b"))
    chosen = best if labels is None else labels[best]
    if scores.shape[1] == 1 and len(counts) == 2:
        return chosen, two_scores(xp, scores[:, 0], name, signed=name == "NONE")
    return chosen, transform(xp, scores, name)


def _pairs(xp: Any, kernels: Any, weights: Any, counts: list[int], rho: list[float]) -> tuple[Any, Any]:
    """Return the score of each pair of classes, and the class that most pairs vote for."""
    ends = [sum(counts[: i + 1]) for i in range(len(counts))]
    spans = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    scores: list[Any] = []
    votes = xp.zeros((kernels.shape[0], len(counts)), xp.int64)
    for i in range(len(counts)):
        for j in range(i + 1, len(counts)):
            score = kernels[:, spans[i]] @ weights[j - 1, spans[i]] + kernels[:, spans[j]] @ weights[i, spans[j]]
            score = score + xp.float32(rho[len(scores)])
            votes[:, i] += score > 0
            votes[:, j] += score <= 0
            scores.append(score)
    return xp.stack(scores, axis=1), votes.argmax(axis=1)


def _shares(xp: Any, scores: Any, classes: int, slopes: list[float], offsets: list[float]) -> Any:
    """Return the probability ``[N, classes]`` that fits those of the pairs best.

    Source of the method: Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling",
    JMLR 5 (2004), algorithm 2.
    """
    pair = 1 / (1 + xp.exp(scores * xp.asarray(slopes, xp.float32) + xp.asarray(offsets, xp.float32)))
    pair = xp.clip(pair.astype(xp.float64), 1e-7, 1 - 1e-7)
    r = xp.zeros((scores.shape[0], classes, classes))
    upper = xp.triu_indices(classes, 1)
    r[:, upper[0], upper[1]], r[:, upper[1], upper[0]] = pair, 1 - pair
    diagonal = xp.arange(classes)
    q = -r * r.swapaxes(1, 2)
    q[:, diagonal, diagonal] = (r * r).sum(axis=1)
    p = xp.full((scores.shape[0], classes), 1 / classes)
    for _ in range(max(100, classes)):
        product = (q @ p[:, :, None])[:, :, 0]
        total = (p * product).sum(axis=1)
        moving = xp.abs(product - total[:, None]).max(axis=1) >= 0.005 / classes
        if not bool(moving.any()):
            break
        for t in range(classes):
            step = xp.where(moving, (total - product[:, t]) / q[:, t, t], 0)
            total = (total + step * (step * q[:, t, t] + 2 * product[:, t])) / (1 + step) ** 2
            product = (product + step[:, None] * q[:, t]) / (1 + step)[:, None]
            p[:, t] += step
            p /= (1 + step)[:, None]
    return p.astype(xp.float32)
