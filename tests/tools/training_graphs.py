"""Small training steps of many kinds, made by tracing: what is compared with TensorFlow."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import ampgraph as ag
from ampgraph import DynamicLossScale, nn, train
from ampgraph.graph.tracing.structure import leaves

#: Makes a loss of variables and a batch.
Loss = Callable[..., Any]


class TrainingGraph(NamedTuple):
    """A model, an optimizer and what they are trained on.

    Attributes:
        name: What the case is called.
        variables: Shapes of the variables by name; those whose names end in ``scale`` and ``variance`` start at ones.
        loss: ``loss(variables, *batch)``.
        batch: Shapes of floats, or (shape, number of classes) of integers.
        optimizer: Makes the optimizer.
        frozen: Variables that the optimizer leaves alone; the loss may assign to them.
        large: In which step the first array of the batch is so large that gradients overflow; -1 for none.
        accumulation_steps: From how many calls gradients are averaged.
    """

    name: str
    variables: dict[str, tuple[int, ...]]
    loss: Loss
    batch: list[Any]
    optimizer: Callable[[], train.Optimizer]
    frozen: tuple[str, ...] = ()
    large: int = -1
    accumulation_steps: int = 1


class Made(NamedTuple):
    """A case that can run.

    Attributes:
        step: Takes a batch; returns what :func:`run` names.
        batches: A batch for each step.
    """

    step: ag.Function
    batches: list[tuple[Any, ...]]


def make(case: TrainingGraph, dtype: str | None, steps: int = 4) -> Made:
    """Return a case from its start, in float32 or rewritten to a dtype; the same numbers for each."""
    rng = np.random.default_rng(len(case.name))
    variables = {name: ag.Variable(_start(rng, name, shape), name=name) for name, shape in case.variables.items()}
    trained = [variable for name, variable in variables.items() if name not in case.frozen]
    policy = None if dtype is None else ag.Policy(dtype=dtype, target="cpu")
    scale = DynamicLossScale(2.0**8, growth_interval=2)
    optimizer = ag.LossScaleOptimizer(case.optimizer(), scale, accumulation_steps=case.accumulation_steps, policy=policy)

    def step(*batch: Any) -> Any:
        loss = case.loss(variables, *batch)
        pairs = optimizer.compute_gradients(loss, trained)
        result = optimizer.apply_gradients(pairs, loss=loss)
        return {
            "loss": loss,
            "applied": result.applied,
            "loss_scale": result.loss_scale,
            "global_step": result.global_step,
            "grad_norm": result.grad_norm,
            "gradients": {variable.name: gradient for gradient, variable in pairs},
            "variables": {name: variable.value for name, variable in variables.items()},
        }

    batches = []
    for k in range(steps):
        batch = [_batch(rng, spec) for spec in case.batch]
        if k == case.large:
            batch[0] = batch[0] * np.float32(1e38)
        batches.append(tuple(batch))
    return Made(ag.Function(step, None, None), batches)


def run(made: Made) -> list[dict[str, Any]]:
    """Return what each step returns, by the names of the graph's outputs."""
    names = made.step.specialize(*made.batches[0]).graph.output_names
    rows = []
    with np.errstate(all="ignore"):
        for batch in made.batches:
            arrays = [np.asarray(leaf) for _, leaf in leaves(made.step(*batch))]
            rows.append(dict(zip(names, arrays, strict=True)))
    return rows


def _start(rng: Any, name: str, shape: tuple[int, ...]) -> Any:
    if name.endswith(("scale", "variance")):
        return np.ones(shape, np.float32)
    fan = np.prod(shape[:-1]) if len(shape) > 1 else 4
    return (rng.standard_normal(shape) / np.sqrt(fan)).astype(np.float32)


def _batch(rng: Any, spec: Any) -> Any:
    if isinstance(spec[0], tuple):
        shape, classes = spec
        return rng.integers(0, classes, shape).astype(np.int32)
    return rng.standard_normal(spec).astype(np.float32)


# ---- models -------------------------------------------------------------------------------------------------------------


def _classified(logits: Any, labels: Any) -> Any:
    return np.mean(nn.sparse_softmax_cross_entropy(logits, labels))


def _mlp(v: Any, x: Any, y: Any) -> Any:
    with ag.name_scope("hidden"):
        h = nn.relu(x @ v["kernel"] + v["bias"])
    with ag.name_scope("head"):
        return _classified(h @ v["kernel_1"] + v["bias_1"], y)


def _regression(v: Any, x: Any, y: Any) -> Any:
    h = np.tanh(np.einsum("bi,ij->bj", x, v["kernel"]) + v["bias"])
    return np.mean(np.square(h @ v["kernel_1"] - y))


def _cnn(v: Any, x: Any, y: Any) -> Any:
    with ag.name_scope("conv"):
        h = nn.conv2d(x, v["filters"])
    h, mean, variance = nn.batch_norm(h, v["scale"], v["offset"], v["mean"], v["variance"], training=True, momentum=0.9)
    v["mean"].assign(mean)
    v["variance"].assign(variance)
    h = nn.max_pool(nn.relu(h))
    h = nn.relu(nn.bias_add(nn.conv2d(h, v["filters_1"], padding="VALID"), v["bias"]))
    return _classified(nn.avg_pool(h, 2, 1).reshape(x.shape[0], -1) @ v["kernel"], y)


def _depthwise(v: Any, x: Any, y: Any) -> Any:
    h = nn.relu6(nn.depthwise_conv2d(x, v["filters"]) + v["bias"])
    h = nn.elu(nn.conv2d(h, v["pointwise"], 2))
    return _classified(np.mean(h, (1, 2)) @ v["kernel"], y)


def _lstm(v: Any, x: Any, y: Any) -> Any:
    h, (last, _) = nn.lstm(x, v["kernel"], v["recurrent"], v["bias"])
    return _classified((last + np.mean(h, 1)) @ v["head"], y)


def _gru(v: Any, x: Any, y: Any) -> Any:
    _, last = nn.gru(x, v["kernel"], v["recurrent"], v["bias"])
    return _classified(last @ v["head"], y)


def _transformer(v: Any, tokens: Any, y: Any) -> Any:
    with ag.name_scope("embedding"):
        x = nn.embedding(v["table"], tokens) + v["places"]
    with ag.name_scope("attention"):
        h = nn.layer_norm(x, v["scale"], v["offset"])
        query, key, value = (h @ v[name] for name in ("query", "key", "value"))
        x = x + nn.attention(query, key, value, causal=True) @ v["out"]
    with ag.name_scope("mlp"):
        h = nn.layer_norm(x, v["scale_1_scale"], v["offset_1"])
        x = x + nn.gelu(h @ v["up"] + v["up_bias"]) @ v["down"]
    return _classified(x @ v["table"].value.T, y)


def _branch(v: Any, x: Any, y: Any) -> Any:
    h = x @ v["kernel"]
    h = ag.cond(np.mean(h) > 0, lambda h: np.tanh(h @ v["a"]), lambda h: nn.sigmoid(h @ v["b"]) * h, h)
    return np.mean(np.square(h @ v["head"] - y))


def _loop(v: Any, x: Any, y: Any) -> Any:
    _, h = ag.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, np.tanh(h @ v["kernel"]) + h), (0, x))
    return np.mean(np.square(h @ v["head"] - y))


def _losses(v: Any, x: Any, y: Any) -> Any:
    logits = nn.leaky_relu(x @ v["kernel"] + v["bias"]) @ v["head"]
    return np.mean(nn.softmax_cross_entropy(logits, nn.softmax(y))) + np.float32(0.01) * np.sum(np.abs(v["kernel"].value))


_MLP = {"kernel": (6, 8), "bias": (8,), "kernel_1": (8, 3), "bias_1": (3,)}
_XY = [(8, 6), ((8,), 3)]

CASES = [
    TrainingGraph("mlp", _MLP, _mlp, _XY, lambda: train.SGD(0.1, momentum=0.9, global_clipnorm=1.0)),
    TrainingGraph("mlp_overflow", _MLP, _mlp, _XY, lambda: train.SGD(0.1), large=1),
    TrainingGraph("mlp_accumulated", _MLP, _mlp, _XY, lambda: train.Adam(0.001), accumulation_steps=2),
    TrainingGraph(
        "regression",
        {"kernel": (6, 8), "bias": (8,), "kernel_1": (8, 2)},
        _regression,
        [(8, 6), (8, 2)],
        lambda: train.AdamW(0.01, clipnorm=0.5),
    ),
    TrainingGraph(
        "cnn",
        {
            "filters": (3, 3, 2, 4),
            "scale": (4,),
            "offset": (4,),
            "mean": (4,),
            "variance": (4,),
            "filters_1": (3, 3, 4, 4),
            "bias": (4,),
            "kernel": (36, 3),
        },
        _cnn,
        [(4, 12, 12, 2), ((4,), 3)],
        lambda: train.RMSprop(0.001),
        frozen=("mean", "variance"),
    ),
    TrainingGraph(
        "depthwise",
        {"filters": (3, 3, 4, 2), "bias": (8,), "pointwise": (1, 1, 8, 8), "kernel": (8, 3)},
        _depthwise,
        [(4, 8, 8, 4), ((4,), 3)],
        lambda: train.Adagrad(0.05, clipvalue=0.1),
    ),
    TrainingGraph(
        "lstm",
        {"kernel": (4, 24), "recurrent": (6, 24), "bias": (24,), "head": (6, 3)},
        _lstm,
        [(4, 5, 4), ((4,), 3)],
        lambda: train.Adam(0.01),
    ),
    TrainingGraph(
        "gru",
        {"kernel": (4, 18), "recurrent": (6, 18), "bias": (2, 18), "head": (6, 3)},
        _gru,
        [(4, 5, 4), ((4,), 3)],
        lambda: train.SGD(0.1, momentum=0.9, nesterov=True),
    ),
    TrainingGraph(
        "transformer",
        {
            "table": (11, 8),
            "places": (6, 8),
            "scale": (8,),
            "offset": (8,),
            "query": (8, 8),
            "key": (8, 8),
            "value": (8, 8),
            "out": (8, 8),
            "scale_1_scale": (8,),
            "offset_1": (8,),
            "up": (8, 16),
            "up_bias": (16,),
            "down": (16, 8),
        },
        _transformer,
        [((3, 6), 11), ((3, 6), 11)],
        lambda: train.LAMB(0.01),
    ),
    TrainingGraph(
        "branch",
        {"kernel": (6, 8), "a": (8, 8), "b": (8, 8), "head": (8, 2)},
        _branch,
        [(8, 6), (8, 2)],
        lambda: train.SGD(0.1),
    ),
    TrainingGraph(
        "loop",
        {"kernel": (6, 6), "head": (6, 2)},
        _loop,
        [(8, 6), (8, 2)],
        lambda: train.RMSprop(0.01, momentum=0.5),
    ),
    TrainingGraph(
        "losses",
        {"kernel": (6, 8), "bias": (8,), "head": (8, 4)},
        _losses,
        [(8, 6), (8, 4)],
        lambda: train.Adam(0.01, weight_decay=0.01),
    ),
]
