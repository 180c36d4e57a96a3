"""The options that say what a graph is run on, shared by ``run`` and ``compare``."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ampgraph.cli.program import ArgumentError, Failure

if TYPE_CHECKING:
    from ampgraph.graph import Graph


class Feeds:
    """The options as given.

    Args:
        inputs: ``FILE`` or ``NAME=FILE``.
        random: Whether the other inputs are made up.
        seed: Of the random numbers.
        sizes: ``NAME=N``, sizes of named dimensions.
        device: Where to run.
    """

    def __init__(self, inputs: tuple[str, ...], random: bool, seed: int, sizes: tuple[str, ...], device: str) -> None:
        self.inputs = inputs
        self.random = random
        self.seed = seed
        self.sizes = dict(map(_size, sizes))
        self.device = device

    def load(self, graph: "Graph") -> dict[str, Any]:
        """Return the feeds of a graph.

        Raises:
            ArgumentError: If a file fits no input, or an input has no file and nothing is made up.
            Failure: If a file cannot be read.
        """
        from ampgraph.graph.errors import did_you_mean
        from ampgraph.kernels.feeds import random_feeds
        from ampgraph.kernels.pruning import has_default, inputs_of

        names = [value.name for value in inputs_of(graph)]
        found: dict[str, Any] = {}
        for text in self.inputs:
            name, equals, path = text.partition("=")
            if not equals or os.path.exists(text):
                name, path = "", text
            for key, array in read_arrays(path, name, names).items():
                if key not in names:
                    known = f"{', '.join(names) or 'there are none'}.{did_you_mean(key, names)}"
                    raise ArgumentError(f"{path} is given for {key!r}, which is no input: {known}")
                if key in found:
                    raise ArgumentError(f"Input {key!r} is given twice. Received: --input {text}")
                found[key] = array
        open_names = [v.name for v in inputs_of(graph) if v.name not in found and not has_default(v)]
        if open_names and not self.random:
            text = ", ".join(open_names)
            raise ArgumentError(f"No file is given for input {text}: --input NAME=FILE.npy, or --random to make them up.")
        return {**random_feeds(graph, self.seed, self.sizes, skip=found), **found}


@contextlib.contextmanager
def explained(feeds: Feeds, graph: "Graph") -> Iterator[None]:
    """Add to an error of a run that dimensions without a size were taken as 1."""
    from ampgraph.graph.errors import KernelError
    from ampgraph.kernels.pruning import inputs_of

    try:
        yield
    except KernelError as error:
        dims = [dim for value in inputs_of(graph) for dim in value.shape.dims or () if not isinstance(dim, int)]
        names = ", ".join(dict.fromkeys(str(dim) for dim in dims if str(dim) not in ("None", "?", *feeds.sizes)))
        if not feeds.random or len(feeds.inputs) >= len(inputs_of(graph)) or not dims:
            raise
        which = f"Dimensions {names}" if names else "Dimensions without size and name"
        raise KernelError(
            f"{str(error).rstrip('.')}. {which} of made-up inputs were taken as 1; --size NAME=N or --input say more."
        ) from error


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isdecimal():
        raise click.UsageError(f"--size is NAME=N, such as --size batch=2. Received: {text!r}")
    return name, int(number)


def read_arrays(path: str, name: str, names: list[str]) -> dict[str, Any]:
    """Return what a .npy or .npz file holds by the names of inputs.

    Args:
        path: The file.
        name: The input that a .npy file is for; where empty, that of the file's name, or the only one.
        names: The inputs.

    Raises:
        ArgumentError: If it is not clear for which input it is.
        Failure: If it cannot be read.
    """
    from ampgraph.graph.errors import FormatError
    from ampgraph.graph.formats.arrays import load_arrays

    try:
        data = load_arrays(path)
    except OSError as error:
        raise Failure(f"{path} cannot be read: {error.strerror or error}.") from error
    except FormatError as error:
        raise Failure(str(error)) from error
    except MemoryError as error:
        raise Failure(f"{path} does not fit into memory: {error}.") from error
    if isinstance(data, dict):
        if name:
            raise ArgumentError(f"{path} holds arrays by name, so it is given without one. Received: {name}={path}")
        return data
    stem = os.path.basename(path).removesuffix(".npy")
    name = name or (stem if stem in names else names[0] if len(names) == 1 else "")
    if not name:
        raise ArgumentError(f"{path} could be any of the inputs {', '.join(names) or '(there are none)'}: --input NAME={path}")
    return {name: data}


def feed_options(*, random: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a command these options; it receives them as ``feeds``, a :class:`Feeds`.

    Args:
        random: Whether inputs without a file are made up unless the command line says something else.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "--input", "inputs", multiple=True, metavar="[NAME=]FILE", help="A .npy file, or .npz by names; repeatable."
        )
        @click.option("--random/--no-random", default=random, show_default=True, help="Make up the inputs without a file.")
        @click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of what is made up.")
        @click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="Size of a named dimension, else 1; repeatable.")
        @click.option("--device", default="cpu", show_default=True, help="cpu, gpu, gpu:N, or auto.")
        @functools.wraps(command)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            given = [kwargs.pop(name) for name in ("inputs", "random", "seed", "sizes", "device")]
            return command(*args, feeds=Feeds(*given), **kwargs)

        return wrapper

    return decorate
