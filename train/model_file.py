"""Models in files: variables, the optimizer's state and how all of it was made, in one ``.npz`` file without code."""

import contextlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..graph.errors import AmpgraphError, FormatError, TrainingError
from ..graph.formats.arrays import load_arrays, packed_arrays
from ..graph.formats.files import write_bytes
from ..rewrite import Policy
from .checkpoint import check_arrays, saved_arrays
from .config import describe_layer, describe_loss, describe_optimizer, make_layer, make_loss, make_optimizer
from .layers.initializers import Starts
from .layers.layer import Layer
from .metrics import find_metrics
from .model import Model
from .sequential import Sequential

_FORMAT = "ampgraph model 1"


def save_model(model: Model, path: str | PathLike[str]) -> None:
    """Write a model to a file, which takes its name when it is complete: see :meth:`Model.save`."""
    if not model.variables:
        raise TrainingError(f"{model!r} has no variables yet: build it, or train it first.")
    arrays = {"model": np.array(json.dumps(_describe(model))), **saved_arrays(model.variables, model.optimizer)}
    write_bytes(Path(path), packed_arrays(arrays))


def load_model(path: str | PathLike[str]) -> Sequential:
    """Return a :class:`Sequential` from a file that :meth:`Model.save` wrote; it goes on bit by bit as the one that was saved.

    Files may come from anywhere: they hold numbers and names, no code.

    Args:
        path: The file.

    Raises:
        TrainingError: If the file holds no model, or one of a class or with functions of the user's: see :meth:`Model.load`.
        OSError: If it cannot be read.
    """
    config, variables, state = _read(path)
    if not isinstance(config.get("layers"), dict):
        raise TrainingError(
            f"{str(path)!r} holds a model that only your code can make: make and build one as it was, and let it load() the file. "
            f"Its reason: {config.get('own')}"
        )
    try:
        model = _make_sequential(config["layers"])
        model._starts = Starts(None, variables)
        spec = config["input"]
        model.build(tuple(spec["shape"]), spec["dtype"])
        _check_names(path, model, variables)
        frozen = config.get("frozen", [])
        for variable in model.variables:
            variable.trainable = variable.trainable and variable.name not in frozen
        compiled = config.get("compile")
        if isinstance(compiled, dict):
            policy = compiled["policy"]
            model.compile(
                make_optimizer(compiled["optimizer"]),
                make_loss(compiled["loss"]),
                compiled["metrics"],
                None if policy is None else Policy.from_toml(policy),
            )
        model.take_state(state)
    except (AmpgraphError, AttributeError, KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise TrainingError(f"{str(path)!r} holds no model that can be made: {error}") from error
    return model


def fill_model(model: Model, path: str | PathLike[str]) -> None:
    """Let a model go on from a file: see :meth:`Model.load`."""
    _, variables, state = _read(path)
    _check_names(path, model, variables)
    check_arrays(path, model.variables, variables)
    model.take_state(state)
    for variable in model.variables:
        variable.assign(variables[variable.name])


def _check_names(path: str | PathLike[str], model: Model, variables: dict[str, Any]) -> None:
    names = {variable.name for variable in model.variables}
    if names != variables.keys():
        raise TrainingError(
            f"{str(path)!r} holds the variables {sorted(variables)}. Received: a model with {sorted(names) or 'none: build it first'}"
        )


def _describe(model: Model) -> dict[str, Any]:
    """Return how a model was made, as far as it is not code."""
    shape = None if model.input_shape is None else list(model.input_shape)
    found: dict[str, Any] = {"format": _FORMAT, "input": {"shape": shape, "dtype": model.input_dtype}}
    found["frozen"] = [variable.name for variable in model.variables if not variable.trainable]
    try:
        found["layers"] = _describe_sequential(model)
    except TrainingError as error:
        found["own"] = str(error)
    if model.optimizer is None or model.loss is None:
        return found
    metrics = list(model.metrics)
    with contextlib.suppress(TrainingError):  # where something is of the user's own, the model that is loaded is compiled again
        if find_metrics(metrics, model.loss) == model.metrics:
            found["compile"] = {
                "optimizer": describe_optimizer(model.optimizer),
                "loss": describe_loss(model.loss),
                "metrics": metrics,
                "policy": None if model.policy is None else model.policy.to_toml(),
            }
    return found


def _describe_sequential(model: Layer) -> dict[str, Any]:
    if type(model) is not Sequential:
        return describe_layer(model)
    if len(set(model.layers)) != len(model.layers):
        raise TrainingError(f"A layer stands twice in {model!r}, which a file cannot hold: see Model.load.")
    layers = [_describe_sequential(layer) for layer in model.layers]
    return {"class": "Sequential", "layers": layers, "name": model.given_name, "seed": model.seed}


def _make_sequential(found: Any) -> Sequential:
    if not isinstance(found, dict) or found.get("class") != "Sequential" or not isinstance(found.get("layers"), list):
        raise TrainingError(f"A saved model is a Sequential with its layers. Received: {found!r:.200}")
    layers = [
        _make_sequential(layer) if isinstance(layer, dict) and layer.get("class") == "Sequential" else make_layer(layer)
        for layer in found["layers"]
    ]
    return Sequential(layers, name=found.get("name"), seed=found.get("seed"))


def _read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return what a file says of a model, its variables, and the state of its optimizer."""
    try:
        arrays = load_arrays(path)
        text = arrays.pop("model", None) if isinstance(arrays, dict) else None
        config = json.loads(str(text)) if isinstance(text, np.ndarray) and text.shape == () and text.dtype.kind == "U" else None
    except (FormatError, ValueError, RecursionError, MemoryError) as error:
        raise TrainingError(f"{str(path)!r} holds no model: {error}") from None
    if not isinstance(config, dict) or config.get("format") != _FORMAT:
        raise TrainingError(f"{str(path)!r} holds no model: it does not say {_FORMAT!r}.")
    groups: dict[str, dict[str, Any]] = {"variables": {}, "optimizer": {}}
    for key, array in arrays.items():
        group, _, name = key.partition("/")
        if group not in groups:
            raise TrainingError(f"{str(path)!r} holds something else than a model. Received: {key!r}")
        groups[group][name] = array
    return config, groups["variables"], groups["optimizer"]
