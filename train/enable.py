"""``enable_mixed_precision_graph_rewrite``: an optimizer whose graphs are rewritten and whose loss is scaled."""

import warnings
from typing import Any

from ..graph.errors import TrainingError
from ..rewrite import Policy
from .loss_scale_optimizer import LossScaleOptimizer
from .optimizer import Optimizer


def enable_mixed_precision_graph_rewrite(
    opt: Optimizer, loss_scale: Any = "dynamic", *, dtype: str = "float16", target: str | None = None, **options: Any
) -> LossScaleOptimizer:
    """Wrap an optimizer, so that it trains in mixed precision.

    Functions made by :func:`ampgraph.function` in which the returned optimizer differentiates a loss, with ``minimize`` or
    ``compute_gradients``, are rewritten, forward and backward together. Nothing else is: no other function, no other optimizer, and
    no code outside of such functions.

    Args:
        opt: An optimizer of :mod:`ampgraph.train` that is not wrapped yet.
        loss_scale: ``"dynamic"``, a number of at least 1, a :class:`~.loss_scale.FixedLossScale` or a
            :class:`~.loss_scale.DynamicLossScale`.
        dtype: The low precision: ``"float16"`` or ``"bfloat16"``.
        target: What to rewrite for, as :class:`~ampgraph.rewrite.Policy` takes it; None for its default.
        **options: ``accumulation_steps``, ``max_skips`` and ``on_stall``, as :class:`~.loss_scale_optimizer.LossScaleOptimizer`
            takes them.

    Raises:
        TrainingError: If ``opt`` is no optimizer or wrapped already, or the loss scale makes no sense. (It is a ``ValueError``.)
        PolicyError: If dtype or target make no sense.

    Example:
        >>> from ampgraph.train import SGD
        >>> enable_mixed_precision_graph_rewrite(SGD(0.1)).loss_scale.scale
        32768.0
    """
    policy = Policy(dtype=dtype) if target is None else Policy(dtype=dtype, target=target)
    return LossScaleOptimizer(opt, loss_scale, policy=policy, **options)


def disable_mixed_precision_graph_rewrite(opt: LossScaleOptimizer | Optimizer) -> Optimizer:
    """Return the optimizer that was wrapped, which goes on without loss scale; one that was not comes back, with a warning.

    Functions in which ``opt`` differentiates are traced anew at their next call and no longer rewritten.

    Raises:
        TrainingError: If ``opt`` is no optimizer.
    """
    if isinstance(opt, LossScaleOptimizer):
        opt.policy = None
        return opt.inner
    if not isinstance(opt, Optimizer):
        raise TrainingError(f"An optimizer is needed. Received: {opt!r} of type {type(opt).__name__}")
    warnings.warn(f"{opt!r} is not wrapped, there is nothing to disable.", RuntimeWarning, stacklevel=2)
    return opt
