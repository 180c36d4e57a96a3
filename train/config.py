"""Layers, optimizers and losses as plain data, which JSON holds, and back; classes are found by name in tables, never imported."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from ..graph.errors import TrainingError
from ..rewrite import Policy
from . import layers, schedules
from .layers.layer import Layer
from .loss_scale import DynamicLossScale, FixedLossScale
from .loss_scale_optimizer import LossScaleOptimizer
from .losses import LOSSES, find_loss
from .optimizer import Optimizer
from .optimizers import OPTIMIZERS, SGD, Adagrad

_LAYERS: dict[str, Any] = {name: getattr(layers, name) for name in layers.__all__ if name != "Layer"}
_SCHEDULES: dict[str, Any] = {
    name: value for name, value in vars(schedules).items() if isinstance(value, type) and dataclasses.is_dataclass(value)
}
_SCALES: dict[str, Any] = {kind.__name__: kind for kind in (FixedLossScale, DynamicLossScale)}
_CLIPS = {"value": "clipvalue", "norm": "clipnorm", "global_norm": "global_clipnorm"}


def describe_layer(layer: Layer) -> dict[str, Any]:
    """Return a layer as data.

    Raises:
        TrainingError: If it is of no class here, or an activation is a function of the user's.
    """
    if _LAYERS.get(type(layer).__name__) is not type(layer):
        raise TrainingError(f"{layer!r} is of a class of your own, which a file cannot hold: see Model.load.")
    options = {name: getattr(layer, name) for name in inspect.signature(type(layer)).parameters if name != "options"}
    if not isinstance(options.get("activation"), str | None):
        raise TrainingError(f"The activation of {layer!r} is a function of your own, which a file cannot hold: see Model.load.")
    return {"class": type(layer).__name__, **options, "name": layer.name, "dtype": layer.dtype, "seed": layer.seed}


def make_layer(found: Any) -> Layer:
    """Return the layer that data describe.

    Raises:
        TrainingError: If they make no sense.
    """
    return _make("layer", _LAYERS, found)  # type: ignore[no-any-return]


def describe_optimizer(optimizer: Optimizer | LossScaleOptimizer) -> dict[str, Any]:
    """Return an optimizer as data, without its state.

    Raises:
        TrainingError: If it, its learning-rate schedule or its loss scale is of no class here.
    """
    if isinstance(optimizer, LossScaleOptimizer):
        return {
            "class": "LossScaleOptimizer",
            "inner": describe_optimizer(optimizer.inner),
            "loss_scale": _describe(_SCALES, optimizer.loss_scale),
            "accumulation_steps": optimizer.accumulation_steps,
            "max_skips": optimizer.max_skips,
            "on_stall": optimizer.on_stall,
            "policy": None if optimizer.policy is None else optimizer.policy.to_toml(),
        }
    update, rate, kind = optimizer.update, optimizer._rate, type(optimizer).__name__
    if OPTIMIZERS.get(kind) is not type(optimizer):
        raise TrainingError(f"{optimizer!r} is of a class of your own, which a file cannot hold.")
    options: dict[str, Any] = {**update.numbers, "weight_decay": update.weight_decay}
    options["learning_rate"] = _describe(_SCHEDULES, rate) if callable(rate) else rate
    if isinstance(optimizer, SGD):
        options["nesterov"] = update.rule.name == "nesterov"
    if isinstance(optimizer, Adagrad):
        options["initial_accumulator_value"] = update.rule.slots["accumulator"]
    if update.clip:
        options[_CLIPS[update.clip]] = update.bound
    return {"class": kind, **options}


def make_optimizer(found: Any) -> Optimizer | LossScaleOptimizer:
    """Return the optimizer that data describe.

    Raises:
        TrainingError: If they make no sense.
    """
    if isinstance(found, dict) and found.get("class") == "LossScaleOptimizer":
        options = {key: value for key, value in found.items() if key != "class"}
        options["inner"] = make_optimizer(options.get("inner"))
        options["loss_scale"] = _make("loss scale", _SCALES, options.get("loss_scale"))
        if isinstance(policy := options.get("policy"), str):
            options["policy"] = Policy.from_toml(policy)
        return _make("optimizer", {"LossScaleOptimizer": LossScaleOptimizer}, {"class": "LossScaleOptimizer", **options})  # type: ignore[no-any-return]
    if isinstance(found, dict) and isinstance(found.get("learning_rate"), dict):
        found = {**found, "learning_rate": _make_schedule(found["learning_rate"])}
    return _make("optimizer", OPTIMIZERS, found)  # type: ignore[no-any-return]


def describe_loss(loss: Any) -> dict[str, Any]:
    """Return a loss as data.

    Raises:
        TrainingError: If it is a function of the user's.
    """
    for name, known in LOSSES.items():
        if type(known) is type(loss) and dataclasses.is_dataclass(loss):
            return {"name": name, **dataclasses.asdict(loss)}  # type: ignore[arg-type]
        if known is loss:
            return {"name": name}
    raise TrainingError(f"The loss is a function of your own, which a file cannot hold. Received: {loss!r}")


def make_loss(found: Any) -> Any:
    """Return the loss that data describe.

    Raises:
        TrainingError: If they make no sense.
    """
    options = dict(found) if isinstance(found, dict) else {}
    loss = find_loss(options.pop("name", None))
    if options and not (
        options.keys() == {"from_logits"} and isinstance(options["from_logits"], bool) and hasattr(loss, "from_logits")
    ):
        raise TrainingError(f"This loss has no such options. Received: {found!r}")
    return dataclasses.replace(loss, **options) if options else loss  # type: ignore[type-var]


def _describe(table: Mapping[str, Any], thing: Any) -> dict[str, Any]:
    if table.get(type(thing).__name__) is not type(thing):
        raise TrainingError(f"{thing!r} is of a class of your own, which a file cannot hold.")
    fields = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    return {
        "class": type(thing).__name__,
        **{key: _describe(table, value) if callable(value) else value for key, value in fields.items()},
    }


def _make_schedule(found: dict[str, Any]) -> Any:
    if isinstance(found.get("after"), dict):
        found = {**found, "after": _make_schedule(found["after"])}
    return _make("schedule", _SCHEDULES, found)


def _make(what: str, table: Mapping[str, Any], found: Any) -> Any:
    """Return an object of a class of a table, made with the options that stand beside the name of the class."""
    options = dict(found) if isinstance(found, dict) else {}
    kind = options.pop("class", None)
    if not isinstance(kind, str) or kind not in table:
        raise TrainingError(f"A saved {what} is one of {', '.join(table)}. Received: {found!r:.200}")
    try:
        return table[kind](**options)
    except (TypeError, AttributeError) as error:
        raise TrainingError(f"A saved {what} {kind} has options that it does not take: {error}") from None
