"""Programs: graphs made ready to run."""

from collections.abc import Callable, Mapping
from typing import Any

from ..graph.dtypes import DType
from ..graph.errors import KernelError, did_you_mean
from ..graph.graph import Graph, Node, Value
from .backend import get_backend
from .call import text_array
from .plan import Planner, missing_kernels
from .run import Run


def compile(graph: Graph, device: str = "cpu", *, fuse: bool = True) -> "Program":
    """Make a graph ready to run.

    Args:
        graph: The graph; later changes to it have no effect on the program.
        device: ``"cpu"``, ``"gpu"``, ``"gpu:N"``, or ``"auto"`` for a GPU where there is one.
        fuse: Whether nodes may be computed ahead of time from constants, and float16 values, rounded, kept as float32 from one
            node to the next. The results are the same; hooks do not see such nodes and dtypes as they are in the graph.

    Raises:
        KernelError: If an op has no kernel, or the device cannot be used.
        GraphError: If the graph has a cycle or a constant that cannot be read.
    """
    return Program(graph, device, fuse=fuse)


class Program:
    """A graph that can be run, from several threads at once; see :func:`compile`.

    Attributes:
        graph: The graph it was made of.
        device: Where it runs: ``"cpu"`` or ``"gpu:N"``.
    """

    def __init__(self, graph: Graph, device: str = "cpu", *, fuse: bool = True) -> None:
        self.graph = graph
        self._backend = get_backend(device)
        self.device = self._backend.name
        planner = Planner(self._backend.xp, fuse)
        try:
            self._plan = planner.plan(graph)
        except RecursionError:
            raise _too_deep(graph) from None
        if planner.missing:
            raise missing_kernels(planner.missing)
        self._inputs = {value.name: value for value in graph.inputs}
        defaults = {name: value.producer.attributes.get("default") for name, value in self._inputs.items()}
        self._defaults = {name: planner.array(default) for name, default in defaults.items() if default is not None}
        # Inputs with a default are mostly weights: constants, until somebody feeds one.
        planner.frozen = False
        self._open_plan = planner.plan(graph) if self._defaults else self._plan
        self.output_names = tuple(graph.output_names or [value.name for value in graph.outputs])

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return tuple(self._inputs)

    def __call__(
        self,
        feeds: Mapping[str, Any],
        *,
        on_value: Callable[[Value, Any], None] | None = None,
        on_node: Callable[[Node, float], None] | None = None,
    ) -> dict[str, Any]:
        """Run the graph.

        Args:
            feeds: An array for each input by name; those with a default may be left out. A list for a sequence, None for an
                optional that holds nothing.
            on_value: Called with every value that a node computes, and its array, those of bodies too.
            on_node: Called with every node after it ran, and the seconds it took.

        Returns:
            The outputs by name.

        Raises:
            KernelError: If a feed is missing, unknown, or of another dtype or shape, or a node cannot compute its results.
        """
        import numpy as np

        inputs = self._check(feeds)
        if self.device != "cpu":
            inputs = [self._backend.xp.asarray(x) if isinstance(x, np.ndarray) and x.dtype.kind in "biufc" else x for x in inputs]
        plan = self._plan if self._defaults.keys().isdisjoint(feeds) else self._open_plan
        try:
            with np.errstate(all="ignore"):
                results = Run(self._backend.xp, on_value, on_node).graph(plan, inputs)
        except RecursionError:
            raise _too_deep(self.graph) from None
        return dict(zip(self.output_names, results, strict=True))

    def _check(self, feeds: Mapping[str, Any]) -> list[Any]:
        for name in feeds:
            if name not in self._inputs:
                raise KernelError(
                    f"Feed {name!r} is no input of graph {self.graph.name!r}: {', '.join(self._inputs) or 'it has none'}."
                    f"{did_you_mean(name, self._inputs)}"
                )
        found = []
        for name, value in self._inputs.items():
            if name in feeds:
                found.append(_checked(feeds[name], value, name))
            elif name in self._defaults:
                found.append(self._defaults[name])
            else:
                raise KernelError(f"Input {name!r} ({value.dtype}{value.shape}) of graph {self.graph.name!r} has no feed.")
        return found


def _too_deep(graph: Graph) -> KernelError:
    return KernelError(f"Functions and bodies of graph {graph.name!r} are nested deeper than Python's stack; inline some of them.")


def _checked(feed: Any, value: Value, name: str) -> Any:
    """Return a feed as the array (or list) that the input takes."""
    import numpy as np

    container = value.container
    if container.startswith("optional"):
        if feed is None:
            return None
        container = container[9:-1]
    if container == "seq" and isinstance(feed, list | tuple):
        return [_checked_array(item, value, f"{name}[{i}]") for i, item in enumerate(feed)]
    if container or (feed is None):
        if container and container != "seq" and feed is not None:
            return feed
        raise KernelError(
            f"Input {name!r} takes {f'a {container}' if container else 'an array'}. Received: {type(feed).__name__}"
        )
    if not isinstance(feed, np.ndarray | np.generic) and not hasattr(feed, "__cuda_array_interface__"):
        try:
            feed = np.asarray(feed, None if value.dtype is None or value.dtype.kind == "string" else value.dtype.numpy)
        except (TypeError, ValueError, OverflowError) as error:
            raise KernelError(f"Input {name!r} takes an array of {value.dtype}{value.shape}: {error}") from error
    return _checked_array(feed, value, name)


def _checked_array(feed: Any, value: Value, name: str) -> Any:
    dtype: DType | None = value.dtype
    array = feed if hasattr(feed, "astype") and hasattr(feed, "ndim") else None
    if array is None:
        raise KernelError(f"Input {name!r} takes an array. Received: {type(feed).__name__}")
    if array.dtype.kind in "OSU" and (dtype is None or dtype.kind == "string"):
        array = text_array(array)
    elif dtype is not None and array.dtype != dtype.numpy and array.dtype.newbyteorder("=") == dtype.numpy:
        array = array.astype(dtype.numpy)  # of a machine that stores bytes the other way round
    elif dtype is not None and array.dtype != dtype.numpy:
        raise KernelError(f"Input {name!r} takes {dtype}. Received: {array.dtype}, of shape {list(array.shape)}")
    dims = value.shape.dims
    if dims is not None and (
        len(dims) != array.ndim or any(isinstance(dim, int) and dim != size for dim, size in zip(dims, array.shape, strict=True))
    ):
        raise KernelError(f"Input {name!r} takes shape {value.shape}. Received: {list(array.shape)}")
    return array if array.__class__.__name__ == "ndarray" else array[...]
