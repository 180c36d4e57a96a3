"""Rows of tables, and their opposite."""

from typing import Any

import numpy as np

from ..tracing.operations import apply, ints, kind_of, symbolic


def embedding(table: Any, indices: Any) -> Any:
    """Return the rows of a table that indices name.

    Args:
        table: [rows, ...].
        indices: Integers from 0 on, of any shape; a graph refuses others when it runs.

    Returns:
        [*indices' shape, ...].
    """
    kind = np.dtype(kind_of(indices))
    return apply("GatherV2", table, symbolic(indices, kind if kind in (np.int32, np.int64) else np.int64), ints(0))


def one_hot(indices: Any, depth: int, *, dtype: Any = np.float32) -> Any:
    """Return, for each index, ``depth`` numbers of which the one at the index is 1, the others 0."""
    one, zero = np.ones((), dtype), np.zeros((), dtype)
    kind = np.dtype(kind_of(indices))
    return apply("OneHot", symbolic(indices, kind if kind in (np.int32, np.int64) else np.int64), ints(depth), one, zero)
