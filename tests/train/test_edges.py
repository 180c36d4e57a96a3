"""Training at its edges: arrays without sizes, threads, shared optimizers, and arguments that make no sense."""

import threading
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import LossScaleOptimizer, train

X = np.random.default_rng(3).standard_normal((16, 8)).astype(np.float32)


@pytest.mark.parametrize("accumulation_steps", [1, 2])
@pytest.mark.parametrize("make", [train.SGD, train.Adam, train.LAMB])
def test_variables_without_sizes_on_the_host_and_in_graphs(make: Any, accumulation_steps: int) -> None:
    host, graph = (LossScaleOptimizer(make(0.1), 8.0, accumulation_steps=accumulation_steps) for _ in range(2))
    v, w = ag.Variable(2.0, "w"), ag.Variable(2.0, "w")
    step = ag.function(lambda x: graph.minimize(w * np.sum(x)))
    for _ in range(4):
        result = step(np.float32([1, 2]))
        expected = host.apply_gradients([(np.float32(3), v)])
        assert (bool(result.applied), int(result.global_step)) == (expected.applied, expected.global_step)
    assert v.value < 2.0
    assert isinstance(w.value, np.ndarray)
    assert v.value.tobytes() == w.value.tobytes()
    one, two = host.state_dict(), graph.state_dict()
    assert {name: np.asarray(array).tobytes() for name, array in one.items()} == {
        name: np.asarray(array).tobytes() for name, array in two.items()
    }


def test_threads_do_not_lose_each_others_steps() -> None:
    optimizer = LossScaleOptimizer(train.Adam(0.01))
    w, calls = ag.Variable(X[:8, :4], "w"), ag.Variable(0, "calls")

    @ag.function
    def step(x: Any) -> Any:
        calls.assign_add(1)
        return optimizer.minimize(np.mean(np.square(x @ w)))

    def run(count: int) -> None:
        for _ in range(25):
            step(X[:count])

    threads = [threading.Thread(target=run, args=(count,)) for count in (16, 16, 8, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (optimizer.global_step, int(calls.value)) == (100, 100)
    assert len(step.cache) == 3
