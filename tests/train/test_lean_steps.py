"""Training steps run as Python functions once they ran some times: no bit differs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import train
from ampgraph.kernels import run

DATA = np.random.default_rng(0)
X = DATA.standard_normal((4, 6)).astype(np.float32)
Y = DATA.standard_normal((4, 2)).astype(np.float32)
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: train.SGD(0.1),
    "momentum": lambda: train.SGD(0.1, momentum=0.9, weight_decay=0.01),
    "by value": lambda: train.SGD(0.1, clipvalue=0.01),
    "by norm": lambda: train.Adam(0.1, clipnorm=0.01),
    "by global norm": lambda: train.SGD(train.ExponentialDecay(0.1, 2, 0.5), global_clipnorm=0.01),
    "scaled": lambda: ag.enable_mixed_precision_graph_rewrite(train.Adam(0.1)),
    "fixed scale": lambda: ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1), 128.0),
    "accumulated": lambda: train.LossScaleOptimizer(train.SGD(0.1), "dynamic", accumulation_steps=3),
}


def trained(make: Callable[[], Any]) -> list[bytes]:
    """Return what seven steps return and leave, the fourth of them on numbers that overflow."""
    rng = np.random.default_rng(1)
    first = ag.Variable(rng.standard_normal((6, 3)).astype(np.float32), name="first")
    second = ag.Variable(rng.standard_normal((3, 2)).astype(np.float32), name="second")
    opt = make()

    @ag.function
    def step(x: Any, y: Any) -> Any:
        return opt.minimize(np.mean(np.square(np.maximum(x @ first, 0) @ second - y)))

    found = []
    for i in range(7):
        found += [np.asarray(part).tobytes() for part in step(X * np.float32(1e30 if i == 3 else 1), Y)]
        found += [first.value.tobytes(), second.value.tobytes()]
    (graph,) = step.cache.values()
    assert (graph.program._plan.lines is None) == (run.HOT > 7)
    return found


@pytest.mark.filterwarnings("ignore:The loss itself:RuntimeWarning")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_lean_steps_have_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HOT", 100)
    expected = trained(OPTIMIZERS[name])
    monkeypatch.setattr(run, "HOT", 0)
    assert trained(OPTIMIZERS[name]) == expected
