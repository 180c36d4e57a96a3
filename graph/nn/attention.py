"""Attention."""

from typing import Any

import numpy as np

from ..errors import TraceError
from ..tracing.operations import apply, kind_of, rank, static_shape, symbolic
from .activation import softmax


def attention(query: Any, key: Any, value: Any, mask: Any = None, *, causal: bool = False, scale: float | None = None) -> Any:
    """Return, for each query, the mean of the values, weighted by the softmax of its products with the keys.

    Args:
        query: [..., queries, depth].
        key: [..., keys, depth].
        value: [..., keys, width].
        mask: Truth values that broadcast to [..., queries, keys]: whether a query may look at a key.
        causal: Whether query ``i`` may only look at keys up to the ``i``-th, of as many as there are queries.
        scale: What the products are multiplied by; one over the root of the depth when None.

    Returns:
        [..., queries, width].

    Raises:
        TraceError: If an operand has too few dimensions, or sizes that are needed are not known.
    """
    if min(rank(query), rank(key), rank(value)) < 2:
        shapes = ", ".join(str(list(static_shape(x))) for x in (query, key, value))
        raise TraceError(f"Queries, keys and values of attention have 2 dimensions at least. Received: {shapes}")
    depth, queries, keys = static_shape(query)[-1], static_shape(query)[-2], static_shape(key)[-2]
    if scale is None:
        if depth is None:
            raise TraceError(f"attention needs a known depth, or scale=. Received: {query!r}")
        scale = depth**-0.5
    if causal:
        if queries is None or keys is None or queries != keys:
            raise TraceError(f"Causal attention needs as many keys as queries, a known number. Received: {queries} and {keys}")
        earlier = np.tril(np.ones((queries, keys), bool))
        mask = earlier if mask is None else symbolic(mask, bool) & earlier
    dtype = np.result_type(kind_of(query), kind_of(key))
    products = _product(symbolic(query * scale, dtype), symbolic(key, dtype))
    if mask is not None:
        products = apply("SelectV2", symbolic(mask, bool), products, np.asarray(-np.inf, dtype))
    return np.matmul(softmax(products), value)


def _product(query: Any, key: Any) -> Any:
    if rank(query) == rank(key) == 2:
        return apply("MatMul", query, key, transpose_b=True)
    return apply("BatchMatMulV2", query, key, adj_y=True)
