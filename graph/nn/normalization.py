"""Batch and layer normalization."""

from typing import Any

import numpy as np

from ..errors import TraceError
from ..tracing.context import active
from ..tracing.operations import alike, apply, apply_all, axes_of, rank, static_shape, symbolic


def batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    *,
    training: bool = False,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    data_format: str = "NHWC",
) -> tuple[Any, Any, Any]:
    """Normalize each channel: with the statistics of the batch in training, else with the running ones.

    Args:
        x: Images in the layout ``data_format``, or [batch, channels]; float32.
        scale, offset: [channels]: what the normalized channels are multiplied by, and what is added.
        mean, variance: [channels]: the running statistics.
        training: Whether the batch's own statistics are used, and the running ones follow them.
        momentum: How much of the old running statistics stays.
        epsilon: Added to variances.
        data_format: ``"NHWC"`` or ``"NCHW"``.

    Returns:
        The normalized array and the new running statistics, which are the old ones unless in training: assign them to the variables
        that keep them. The batch's variance counts for them as an estimate for more than the batch, as in TensorFlow.

    Raises:
        TraceError: If ``x`` has another number of dimensions.
    """
    if rank(x) not in (2, 4):
        raise TraceError(f"batch_norm takes images, or [batch, channels]. Received: shape {list(static_shape(x))}")
    flat = rank(x) == 2
    images = np.expand_dims(symbolic(x), (1, 2)) if flat else x
    factor = float(np.float32(1 - momentum)) if training else 1.0
    results = apply_all(
        "FusedBatchNormV3",
        *(images, *alike(scale, offset, mean, variance)),
        is_training=bool(training),
        epsilon=float(np.float32(epsilon)),
        exponential_avg_factor=factor,
        data_format="NHWC" if flat else data_format,
    )
    y: Any = np.squeeze(results[0], (1, 2)) if flat else results[0]
    return (y, results[1], results[2]) if training else (y, symbolic(mean), symbolic(variance))


def layer_norm(x: Any, scale: Any = None, offset: Any = None, axis: Any = -1, *, epsilon: float = 1e-5) -> Any:
    """Normalize the elements along axes to mean 0 and variance 1, then scale them and add an offset.

    Args:
        x: The array.
        scale, offset: Arrays that broadcast against it, or None.
        axis: One axis or several.
        epsilon: Added to the variance.
    """
    axes = axes_of(axis, rank(x))
    centered = x - np.mean(x, axes, keepdims=True)
    variance = np.mean(np.square(centered), axes, keepdims=True)
    y = centered * rsqrt(variance + epsilon)
    y = y if scale is None else y * scale
    return y if offset is None else y + offset


def rsqrt(x: Any) -> Any:
    """Return ``1 / sqrt(x)``."""
    return 1 / np.sqrt(x) if active() is None else apply("Rsqrt", x)
