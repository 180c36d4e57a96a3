"""The table of a model's layers."""

from typing import Any

from .layers.dense import shown
from .layers.layer import Layer


def print_summary(model: Layer) -> None:
    """Print the layers of a model, what shapes they return, and how many numbers their variables hold."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{type(model).__name__} {model.name!r}", title_justify="left")
    for heading in ("layer", "kind", "output", "dtype"):
        table.add_column(heading, overflow="fold")
    table.add_column("parameters", justify="right")
    for layer in model.parts:
        shape = "not built" if layer.output_shape is None else shown(layer.output_shape)
        row: list[Any] = [layer.name, type(layer).__name__, shape, layer.dtype or "", f"{_size(layer.variables):,}"]
        table.add_row(*row)
    console = Console()
    console.print(table, markup=False)
    total, trainable = _size(model.variables), _size(model.trainable_variables)
    console.print(f"{total:,} parameters, {trainable:,} of them trainable", highlight=False)


def _size(variables: Any) -> int:
    return sum(variable.size for variable in variables)
