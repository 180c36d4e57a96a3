"""What graphs are fed: checked, or made up."""

from collections.abc import Collection, Mapping
from typing import Any

from ..graph.dtypes import DType, cast_array
from ..graph.errors import KernelError, did_you_mean
from ..graph.graph import Graph, Value
from ..graph.types import Shape
from .call import text_array
from .pruning import has_default, inputs_of
from .room import check_room


def check_feed(feed: Any, value: Value) -> Any:
    """Return a feed as the array (or list, for a sequence) that an input takes.

    Arrays have the dtype of the input; lists of Python numbers are converted where no number changes its kind: integers become
    floats, floats never integers.

    Args:
        feed: As given.
        value: The input.

    Raises:
        KernelError: If the feed does not fit.
    """
    name, container = value.name, value.container
    if value.dtype is not None and value.dtype.kind == "handle":
        raise KernelError(f"Input {name!r} is a {value.dtype}, which lives in a run and cannot be fed.")
    if container.startswith("optional"):
        if feed is None:
            return None
        container = container[9:-1]
    if container == "seq" and isinstance(feed, list | tuple):
        return [_array(item, value, f"{name}[{i}]") for i, item in enumerate(feed)]
    if container and container != "seq" and feed is not None:
        return feed
    if container or feed is None:
        wanted = f"a {container}" if container else "an array"
        raise KernelError(f"Input {name!r} takes {wanted}. Received: {type(feed).__name__}")
    return _array(feed, value, name)


def plain_feed(value: Value) -> tuple[Any, tuple[int, ...] | None]:
    """Return the NumPy dtype and the shape of the arrays that an input takes; None for both unless it takes just those."""
    dtype, dims = value.dtype, value.shape.dims
    if value.container or dtype is None or dtype.kind in ("handle", "string") or dims is None:
        return None, None
    if not all(isinstance(dim, int) for dim in dims):
        return None, None
    return dtype.numpy, tuple(int(dim) for dim in dims if isinstance(dim, int))


def _array(feed: Any, value: Value, name: str) -> Any:
    import numpy as np

    dtype, dims = value.dtype, value.shape.dims
    if isinstance(feed, np.ma.MaskedArray):
        raise KernelError(f"Input {name!r} takes an array without a mask; fill it first. Received: {type(feed).__name__}")
    if hasattr(feed, "__cuda_array_interface__"):
        array = feed
    else:
        try:
            array = np.asarray(feed)  # of a subclass such as np.matrix, the plain array
            if not hasattr(feed, "__array__"):
                array = _of_numbers(array, dtype)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            text = f"Input {name!r} takes an array of {dtype}{value.shape}: {error}"
            raise KernelError(f"{text}. Received: {type(feed).__name__}") from error
    if array.dtype.kind in "OSU" and (dtype is None or dtype.kind == "string"):
        if array.dtype.kind == "O" and not all(isinstance(item, str | bytes) for item in array.ravel().tolist()):
            raise KernelError(f"Input {name!r} takes text. Received: an array of other objects, of shape {list(array.shape)}")
        array = text_array(array)
    elif dtype is not None and array.dtype != dtype.numpy and array.dtype.newbyteorder("=") == dtype.numpy:
        array = array.astype(dtype.numpy)  # of a machine that stores bytes the other way round
    elif dtype is not None and array.dtype != dtype.numpy:
        raise KernelError(f"Input {name!r} takes {dtype}. Received: {array.dtype}, of shape {list(array.shape)}")
    if dims is not None and (
        len(dims) != array.ndim or any(isinstance(dim, int) and dim != size for dim, size in zip(dims, array.shape, strict=True))
    ):
        raise KernelError(f"Input {name!r} takes shape {value.shape}. Received: {list(array.shape)}")
    return array


def _of_numbers(array: Any, dtype: DType | None) -> Any:
    """Return an array that NumPy made of Python numbers in the dtype that is wanted.

    Raises:
        ValueError: If a number is of another kind or does not fit.
    """
    if dtype is None or dtype.kind == "string" or not array.size:
        return array if dtype is None or dtype.kind == "string" else array.astype(dtype.numpy)
    allowed = {"bool": "b", "int": "biu", "uint": "biu", "float": "biuf"}.get(dtype.kind, "biufc")
    if array.dtype.kind not in allowed:
        raise ValueError(f"what is given makes one of {array.dtype.name}")
    result = cast_array(array, dtype)
    if dtype.kind in ("int", "uint") and result.astype(dtype.kind + "64").tolist() != array.tolist():
        raise ValueError("a number does not fit")
    return result


def random_feeds(
    graph: Graph, seed: int = 0, sizes: Mapping[str, int] | None = None, skip: Collection[str] = ()
) -> dict[str, Any]:
    """Return a random array for every input that has no default.

    Floats are drawn from the normal distribution, integers are 0 or 1, and all text is empty.

    Args:
        graph: The graph.
        seed: Of the random numbers, from 0 on.
        sizes: Sizes of the dimensions that have a name; unknown ones are 1.
        skip: Inputs that are not made up.

    Raises:
        KernelError: If the dtype or rank of an input is unknown, it is no plain array or too large, or no dimension has a name
            that a size is given for.
    """
    import numpy as np

    if not isinstance(seed, int) or seed < 0:
        raise KernelError(f"A seed is a whole number from 0 on. Received: {seed!r}")
    rng = np.random.default_rng(seed)
    known = {dim for value in inputs_of(graph) for dim in value.shape.dims or () if isinstance(dim, str)}
    for name in sizes or {}:
        if name not in known:
            names = ", ".join(sorted(known)) or "none has a name"
            raise KernelError(
                f"No dimension of the inputs of graph {graph.name!r} is called {name!r}: {names}.{did_you_mean(name, known)}"
            )
    wanted = [value for value in inputs_of(graph) if value.name not in skip and not has_default(value)]
    return {value.name: _random(value, rng, sizes or {}) for value in wanted}


def _random(value: Value, rng: Any, sizes: Mapping[str, int]) -> Any:
    import numpy as np

    dtype, dims, declared = value.dtype, value.shape.dims, value.producer.attributes.get("shape")
    if dims is None and isinstance(declared, Shape):  # of a Placeholder
        dims = declared.dims
    if dtype is None or dims is None or value.container:
        raise KernelError(f"Input {value.name!r} ({dtype}{value.shape} {value.container}) cannot be made up; give a feed for it.")
    shape = [dim if isinstance(dim, int) else sizes.get(dim or "", 1) for dim in dims]
    try:
        check_room(np, shape, 8)  # drawn in float64
    except KernelError as error:
        raise KernelError(f"Input {value.name!r} cannot be made up: {error}") from None
    if dtype.kind == "string":
        return np.full(shape, "", object)
    if dtype.kind in ("float", "complex"):
        numbers = rng.standard_normal(shape)
        return cast_array(numbers if dtype.kind == "float" else numbers + 0j, dtype)
    return cast_array(rng.integers(0, 2, shape, np.int8), dtype)
