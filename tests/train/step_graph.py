"""A graph whose one run is a training step: gradients are fed, and what the step says and all of its state come out."""

from typing import Any

import numpy as np

import ampgraph as ag
from ampgraph import DynamicLossScale, Graph, LossScaleOptimizer, Shape, Tensor
from ampgraph.graph.graph import Value
from ampgraph.kernels.apply_gradients import apply_gradients_attributes
from ampgraph.kernels.handle import Handle

STARTS = [[1.0, -2.0, 0.5], [[0.25, 3.0], [-1.0, 0.0]]]


class StepGraph:
    """The graph.

    Args:
        optimizer: What steps.
        dtype: Of the gradients ``g0`` and ``g1``.
        variables: Dtype of the variables ``v0`` and ``v1``.
        scaled: Whether gradients come multiplied by the loss scale.
        skip_nonfinite: Whether steps that are not finite are dropped.

    Attributes:
        graph: The graph. Its outputs are the four results of the step and what ``names`` hold afterwards.
        node: The node that makes the step.
        starts: What variables hold at first, by name.
        names: The names of the variables in the order of the outputs.
    """

    def __init__(
        self,
        optimizer: LossScaleOptimizer,
        dtype: str = "float32",
        variables: str = "float32",
        *,
        scaled: bool = True,
        skip_nonfinite: bool = True,
    ) -> None:
        self.graph = graph = Graph("step")
        self.starts: dict[str, Any] = {}
        update, scale = optimizer.inner.update._replace(skip_nonfinite=skip_nonfinite), optimizer.loss_scale
        arrays = [np.array(start, variables) for start in STARTS]
        handles = [self._variable(f"v{i}", array) for i, array in enumerate(arrays)]
        for i, array in enumerate(arrays):
            handles += [self._variable(f"v{i}/{k}", np.full_like(array, x)) for k, x in update.rule.slots.items()]
        turns = optimizer.accumulation_steps
        if turns > 1:
            handles += [self._variable(f"sum{i}", np.zeros_like(array)) for i, array in enumerate(arrays)]
        handles.append(self._variable("loss_scale", np.float32(scale.scale)))
        handles += [self._variable(name, np.int64(0)) for name in ("good_steps", "bad_steps", "calls", "global_step")]
        rules = scale.rules if isinstance(scale, DynamicLossScale) else None
        gradients = [graph.add_input(f"g{i}", ag.find_dtype(dtype), Shape(array.shape)) for i, array in enumerate(arrays)]
        rate = Tensor.of(np.float32(optimizer.learning_rate))
        self.node = graph.add(
            "ApplyGradients",
            [*handles, graph.add("Const", attributes={"value": rate}).outputs[0], *gradients],
            domain="ampgraph",
            name="train/step",
            attributes=apply_gradients_attributes(update, rules, len(arrays), scaled=scaled, accumulation_steps=turns),
        )
        reads = [
            graph.add("ReadVariableOp", [handle], types={"dtype": handle.producer.types["dtype"]}, controls=[self.node])
            for handle in handles
        ]
        self.names = [handle.producer.name for handle in handles]
        graph.outputs = [*self.node.outputs, *(read.outputs[0] for read in reads)]
        graph.output_names = ["applied", "next_loss_scale", "next_step", "grad_norm", *self.names]

    def _variable(self, name: str, start: Any) -> Value:
        self.starts[name] = start
        types = {"dtype": ag.find_dtype(start.dtype.name)}
        return self.graph.add("VarHandleOp", name=name, attributes={"shape": Shape(start.shape)}, types=types).outputs[0]

    def program(self, graph: Graph | None = None) -> ag.Program:
        """Return what runs the graph, or one of the same variables, from the start."""
        program = ag.compile(graph or self.graph)
        program.state.update({Handle(name): array for name, array in self.starts.items()})
        return program
