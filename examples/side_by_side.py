"""What the examples share: a model is trained in float32 and in mixed precision, from the same start and on the same data."""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import ampgraph as ag
from ampgraph.train import Optimizer

PRECISIONS = ("float32", "float16", "bfloat16")
#: Without it small gradients vanish in float16.
UNSCALED = "float16 unscaled"


class Example(NamedTuple):
    """What is trained, and on what.

    Attributes:
        name: The example's name.
        data: Makes ``(x, y), (x_test, y_test)`` of a seed.
        model: Makes the model of a seed.
        optimizer: Makes the optimizer.
        loss, metrics: As :meth:`ampgraph.Model.compile` takes them.
        epochs, batch_size: How long it takes to get somewhere.
    """

    name: str
    data: Callable[[int], tuple[tuple[Any, Any], tuple[Any, Any]]]
    model: Callable[[int], ag.Model]
    optimizer: Callable[[], Optimizer]
    loss: str | Callable[..., Any]
    metrics: tuple[str, ...] = ()
    epochs: int = 10
    batch_size: int = 32


class Outcome(NamedTuple):
    """What a training came to.

    Attributes:
        precision: One of :data:`PRECISIONS`, or :data:`UNSCALED`.
        losses, scales: The loss of every step, and the loss scale after it, 1 without one.
        skipped: Number of steps that were dropped.
        test: Loss and metrics on the test data, computed in float32.
        forward, backward: Number of nodes in low precision that compute the loss, and that compute its gradients.
        seconds: How long it took.
    """

    precision: str
    losses: list[float]
    scales: list[float]
    skipped: int
    test: dict[str, float]
    forward: int
    backward: int
    seconds: float


def train(example: Example, precision: str, seed: int, epochs: int | None = None) -> Outcome:
    """Train a model."""
    (x, y), (x_test, y_test) = example.data(seed)
    model, optimizer = example.model(seed), example.optimizer()
    if precision == "float32":
        model.compile(optimizer, example.loss, example.metrics)
    else:
        scale = ag.FixedLossScale(1.0) if precision == UNSCALED else "dynamic"
        dtype = "bfloat16" if precision == "bfloat16" else "float16"
        wrapped = ag.enable_mixed_precision_graph_rewrite(optimizer, scale, dtype=dtype, target="cpu")
        model.compile(wrapped, example.loss, example.metrics)
    start = time.perf_counter()
    history = model.fit(x, y, batch_size=example.batch_size, epochs=epochs or example.epochs, seed=seed, verbose=0)
    seconds = time.perf_counter() - start
    steps = history.steps
    forward, backward = low_nodes(model)
    return Outcome(
        precision,
        steps["loss"],
        steps["loss_scale"] or [1.0] * len(steps["loss"]),
        steps["applied"].count(False),
        model.evaluate(x_test, y_test, batch_size=256),
        forward,
        backward,
        seconds,
    )


def low_nodes(model: ag.Model) -> tuple[int, int]:
    """Return how many nodes of a training step compute in low precision: of the loss, and of its gradients."""
    low = {ag.find_dtype("float16"), ag.find_dtype("bfloat16")}
    step = next(iter(model.train_step.cache.values()))
    names = [
        node.name
        for graph in step.program.graph.all_graphs()
        for node in graph.nodes
        if node.op_type != "Cast" and low & set(node.types.values())
    ]
    backward = sum("gradients/" in name for name in names)
    return len(names) - backward, backward


def show(example: Example, outcomes: Sequence[Outcome]) -> Table:
    """Return outcomes as a table."""
    table = Table(title=example.name)
    for heading in ("", "train loss", *(f"test {name}" for name in outcomes[0].test), "low nodes", "skipped", "scale", "s"):
        table.add_column(heading, justify="right" if heading else "left")
    for o in outcomes:
        last = o.losses[-max(len(o.losses) // 20, 1) :]
        numbers = [f"{np.mean(last):.4g}", *(f"{number:.4g}" for number in o.test.values())]
        table.add_row(
            o.precision, *numbers, f"{o.forward} + {o.backward}", str(o.skipped), f"{o.scales[-1]:g}", f"{o.seconds:.1f}"
        )
    return table


def draw(example: Example, outcomes: Sequence[Outcome], path: str) -> None:
    """Draw the loss and the loss scale of every step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    losses, scales = figure.subplots(2, sharex=True, height_ratios=(2, 1))
    for o in outcomes:
        width = max(len(o.losses) // 40, 1)
        smooth = np.convolve(o.losses, np.ones(width) / width, "valid")
        losses.plot(np.arange(len(smooth)) + width // 2, smooth, label=o.precision)
        scales.step(range(len(o.scales)), o.scales)
    losses.set(title=example.name, ylabel="loss", yscale="log")
    losses.legend()
    scales.set(xlabel="step", ylabel="loss scale", yscale="log")
    scales.set_yscale("log", base=2)
    figure.savefig(path)


def count(text: str) -> int:
    """Return how often something happens."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1, not {number}")
    return number


def seed(text: str) -> int:
    """Return what random numbers follow from."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"not negative, as {number} is")
    return number


def picture(text: str) -> str:
    """Return where a picture goes, if it can go there: that is to be known before the training."""
    if not text.endswith((".png", ".svg", ".pdf")):
        raise argparse.ArgumentTypeError(f"a picture is a .png, .svg or .pdf file, not {text!r}")
    folder = Path(text).absolute().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"there is no folder for {text!r} that can be written to")
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("curves are drawn by matplotlib: pip install 'ampgraph[plot]'")
    return text


def main(example: Example, arguments: Sequence[str] | None = None) -> list[Outcome]:
    """Train in every precision, print a table, and draw if asked to."""
    parser = argparse.ArgumentParser(description=f"{example.name}: float32 and mixed precision side by side")
    parser.add_argument("--epochs", type=count, default=example.epochs, help="how often to go through the data (%(default)s)")
    parser.add_argument("--seed", type=seed, default=0, help="what is drawn at random (0)")
    parser.add_argument("--unscaled", action="store_true", help="also train in float16 without a loss scale")
    parser.add_argument("--plot", metavar="FILE", type=picture, help="draw loss and loss scale: FILE.png, .svg or .pdf")
    given = parser.parse_args(arguments)
    outcomes = []
    console = Console()
    with console.status("") as status:
        for precision in (*PRECISIONS, *([UNSCALED] if given.unscaled else [])):
            status.update(f"{example.name}, {precision}")
            outcomes.append(train(example, precision, given.seed, given.epochs))
    console.print(show(example, outcomes))
    if given.plot:
        draw(example, outcomes, given.plot)
    return outcomes
