"""Made-up feeds for graphs."""

from collections.abc import Collection, Mapping
from typing import Any

from ..graph.dtypes import cast_array
from ..graph.errors import KernelError
from ..graph.graph import Graph, Value


def random_feeds(
    graph: Graph, seed: int = 0, sizes: Mapping[str, int] | None = None, skip: Collection[str] = ()
) -> dict[str, Any]:
    """Return a random array for every input that has no default.

    Floats are drawn from the normal distribution, integers are 0 or 1, and all text is empty.

    Args:
        graph: The graph.
        seed: Of the random numbers.
        sizes: Sizes of the dimensions that have a name; unknown ones are 1.
        skip: Inputs that are not made up.

    Raises:
        KernelError: If the dtype or rank of an input is unknown, or it is no plain array.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    wanted = [value for value in graph.inputs if value.name not in skip and "default" not in value.producer.attributes]
    return {value.name: _random(value, rng, sizes or {}) for value in wanted}


def _random(value: Value, rng: Any, sizes: Mapping[str, int]) -> Any:
    import numpy as np

    dtype, dims = value.dtype, value.shape.dims
    if dtype is None or dims is None or value.container:
        raise KernelError(f"Input {value.name!r} ({dtype}{value.shape} {value.container}) cannot be made up; give a feed for it.")
    shape = [dim if isinstance(dim, int) else sizes.get(dim or "", 1) for dim in dims]
    if dtype.kind == "string":
        return np.full(shape, "", object)
    if dtype.kind in ("float", "complex"):
        numbers = rng.standard_normal(shape)
        return cast_array(numbers if dtype.kind == "float" else numbers + 0j, dtype)
    return cast_array(rng.integers(0, 2, shape, np.int8), dtype)
