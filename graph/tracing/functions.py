"""The table of NumPy's functions on symbolic arrays."""

import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from ..errors import TraceError

#: Modules that put functions into the table.
_MODULES = ("choosing", "joining", "products", "reductions", "shapes")
_TABLE: dict[Any, Callable[..., Any]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def implements(*names: str) -> Callable[[F], F]:
    """Register what functions of NumPy, such as ``"sum"`` or ``"linalg.norm"``, do on symbolic arrays.

    Their arguments are those of NumPy; what is left out is refused.
    """

    def register(function: F) -> F:
        for name in names:
            target: Any = np
            for part in name.split("."):
                target = getattr(target, part, None)
            if target is not None:  # newer NumPy has more
                _TABLE[target] = function
        return function

    return register


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """Return, for every function of NumPy that symbolic arrays take, what it does on them."""
    for module in _MODULES:
        import_module(f".{module}", __package__)
    return _TABLE


def names() -> list[str]:
    """Return the names of all functions in the table."""
    return sorted({function.__name__ for function in table()})


def call_function(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do what a function of NumPy does, on symbolic arrays.

    Raises:
        TraceError: If it, or one of its arguments, is not supported.
    """
    function = table().get(func)
    name = getattr(func, "__name__", str(func))
    if function is None:
        from .ufuncs import unsupported

        raise unsupported(name, func.__module__ or "numpy")
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(inspect.signature(function).parameters)
        raise TraceError(f"numpy.{name} on symbolic arrays takes ({takes}): {error}.") from None
    return function(*args, **kwargs)
