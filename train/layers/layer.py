"""What all layers share: variables made at the first call, names, and other layers as parts."""

import contextlib
import inspect
import re
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ...graph.errors import TrainingError
from ...graph.tracing.array import SymbolicArray
from ...graph.tracing.context import active, name_scope
from ...graph.tracing.operations import static_shape, symbolic
from ...graph.tracing.structure import is_name, leaves
from ...graph.tracing.variable import Variable
from ..function import Function
from .initializers import Start, Starts, glorot_uniform

#: Whether the layers that are being called train, where they are not told.
_training: ContextVar[bool] = ContextVar("training", default=False)


class Layer:
    """A function of an array that has variables, which it makes when it is first called or built.

    To write one, override :meth:`call`, and :meth:`setup` if it has variables. Layers that are attributes, or stand in lists, tuples
    or dicts that are, belong to it with their variables.

    Args:
        name: Its name, unique among the layers of a model; otherwise it gets one: ``dense``, ``dense_1``.
        dtype: ``"float32"`` keeps what it computes in float32 when the graph is rewritten; None leaves that to the rewrite.
        seed: Makes the start values of its variables the same every time; otherwise they follow from the seed of its model.

    Attributes:
        input_shape, input_dtype, output_shape: What it was first called with, and returned; None for the number of examples.

    Raises:
        TrainingError: If an argument makes no sense.

    Example:
        >>> import numpy as np
        >>> class Scale(Layer):
        ...     def setup(self, shape):
        ...         self.factor = self.add_variable("factor", shape[-1:], np.float32([1, 2]))
        ...     def call(self, x):
        ...         return x * self.factor
        >>> Scale()(np.float32([[3, 4]])).tolist()
        [[3.0, 8.0]]
    """

    def __init__(self, *, name: str | None = None, dtype: str | None = None, seed: int | None = None) -> None:
        if name is not None and (not isinstance(name, str) or not is_name(name) or "/" in name):
            raise TrainingError(f"The name of a layer is of letters, digits and _.-. Received: {name!r}")
        if dtype not in (None, "float32"):
            raise TrainingError(
                "The dtype of a layer is 'float32', which it keeps, or None, which leaves it to the rewrite. Its variables are always "
                f"float32. Received: {dtype!r}"
            )
        if seed is not None and (type(seed) is not int or seed < 0):
            raise TrainingError(f"A seed is an integer that is not negative. Received: {seed!r}")
        self.dtype = dtype
        self.seed = seed
        self.input_shape: tuple[int | None, ...] | None = None
        self.input_dtype = "float32"
        self.output_shape: tuple[int | None, ...] | None = None
        self._given_name = name
        self._path: str | None = None
        self._starts: Starts | None = None
        self._built = False
        self._own: list[Variable] = []
        self._eager: Function | None = None

    if not TYPE_CHECKING:  # for type checkers, unknown attributes stay unknown

        def __getattr__(self, name: str) -> Any:
            if "_own" not in vars(self) and not name.startswith("__"):
                raise TrainingError(f"The __init__ of {type(self).__name__} calls super().__init__() first.")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    # ---- for those who write layers -----------------------------------------------------------------------------

    def setup(self, shape: tuple[int | None, ...]) -> None:
        """Make the variables with :meth:`add_variable`, for inputs of a shape. Nothing by default."""

    def call(self, x: Any) -> Any:
        """Return the result for symbolic arrays. It may take an argument ``training``."""
        raise NotImplementedError(f"{type(self).__name__} needs a method call(self, x).")

    def add_variable(
        self,
        name: str,
        shape: Sequence[int | None],
        start: Start = glorot_uniform,
        *,
        trainable: bool = True,
        dtype: Any = np.float32,
    ) -> Variable:
        """Return a new variable.

        Args:
            name: Its name in this layer.
            shape: Its sizes.
            start: A function of a generator and the shape, or an array.
            trainable: Whether optimizers change it.
            dtype: The dtype of its elements.

        Raises:
            TrainingError: If a size is not known, or not positive.
        """
        sizes = tuple(size for size in shape if isinstance(size, int) and size > 0)
        if len(sizes) != len(shape):
            raise TrainingError(
                f"Layer {self.name!r} makes its variables for inputs whose sizes are known and positive, all but that of the batch. "
                f"Received: a variable {name!r} of shape {list(shape)}"
            )
        path = f"{self.path}/{name}" if self.path else name
        value = self.starts.draw(path, sizes, np.dtype(dtype), start)
        variable = Variable(value, name=path, dtype=dtype, trainable=trainable)
        self._own.append(variable)
        return variable

    # ---- for those who use them ---------------------------------------------------------------------------------

    def __call__(self, x: Any, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        """Apply the layer: in a function that is traced its nodes are added, otherwise it runs on NumPy arrays at once.

        Args:
            x: The array; further arguments as :meth:`call` takes them. Floats are converted to float32.
            training: Whether dropout drops and statistics follow the batch; as for the layer around when None.
        """
        if active() is None:
            if self._eager is None:
                self._eager = Function(self.__call__, None, None)
            return self._eager(x, *args, training=training, **kwargs)
        x = self._checked(x)
        self._ready(static_shape(x) if isinstance(x, SymbolicArray) else ())
        if self.input_shape is None and isinstance(x, SymbolicArray):
            self.input_shape, self.input_dtype = (None, *static_shape(x)[1:]), x.dtype.name
        flag = _training.get() if training is None else bool(training)
        if "training" in inspect.signature(self.call).parameters:
            kwargs["training"] = flag
        token = _training.set(flag)
        try:
            with self._scope():
                y = self.call(x, *(_as_float32(arg) for arg in args), **kwargs)
        finally:
            _training.reset(token)
        if self.output_shape is None and isinstance(y, SymbolicArray):
            self.output_shape = (None, *static_shape(y)[1:])
        return y

    def _checked(self, x: Any) -> Any:
        """Return an input as a symbolic array, floats as float32; containers of arrays, which layers of your own may take, as they are.

        Raises:
            TrainingError: If it holds no array.
        """
        if isinstance(x, np.ndarray | np.generic | Variable):
            x = symbolic(x)
        if not any(isinstance(leaf, SymbolicArray | np.ndarray | np.generic | Variable) for _, leaf in leaves(x)):
            raise TrainingError(f"Layer {self.name!r} takes an array: numpy.asarray makes one. Received: {x!r:.200}")
        return _as_float32(x)

    def build(self, shape: Sequence[int | None]) -> None:
        """Make the variables for inputs of a shape, if there are none yet; None is a size that is not known."""
        self._ready(shape)

    def _ready(self, shape: Sequence[int | None]) -> None:
        if not self._built:
            self.name_parts()
            self.setup(tuple(shape))
            self._built = True

    @property
    def name(self) -> str:
        """Its name."""
        return (self._path or "").rpartition("/")[2] or self._given_name or _snake(type(self).__name__)

    @property
    def given_name(self) -> str | None:
        """The name it was given by the user, if any."""
        return self._given_name

    @property
    def path(self) -> str:
        """Its name with those of the layers around it, which stands before the names of its variables."""
        if self._path is None:
            self._path = self._free_path()
        return self._path

    @property
    def starts(self) -> Starts:
        """What gives its variables their start values."""
        if self._starts is None:
            self._starts = Starts(self.seed)
        return self._starts

    @property
    def parts(self) -> list["Layer"]:
        """The layers that belong to it directly."""
        return list(dict.fromkeys(part for part in _members(vars(self)) if isinstance(part, Layer)))

    @property
    def variables(self) -> list[Variable]:
        """All variables, those of its parts included."""
        found: dict[Variable, None] = {}
        waiting: list[Layer] = [self]
        seen = set(waiting)
        while waiting:
            layer = waiting.pop()
            found |= dict.fromkeys(member for member in _members(vars(layer)) if isinstance(member, Variable))
            parts = [part for part in layer.parts if part not in seen]  # a part may know the layer that it belongs to
            seen.update(parts)
            waiting += reversed(parts)
        return list(found)

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that optimizers change."""
        return [variable for variable in self.variables if variable.trainable and variable.dtype.kind == "f"]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies have: all but graphs, which they trace anew."""
        return {**vars(self), "_eager": None}

    # ---- names --------------------------------------------------------------------------------------------------

    def name_parts(self) -> None:
        """Name the layers that belong to it and have no name yet.

        Raises:
            TrainingError: If two would have the same.
        """
        parts = self.parts
        names = {part.name for part in parts if part._path is not None or part._given_name}
        for part in parts:
            if part._path is None:
                name = part._given_name or _fresh(part.name, names)
                names.add(name)
                part._path = f"{self.path}/{name}" if self.path else name
                part._starts = self.starts.seeded(part.seed)
        paths = [part.path for part in parts]
        for path in paths:
            if paths.count(path) > 1:
                raise TrainingError(f"Layers of one model differ in their names. Received: {path!r} twice in {self!r}")

    def _free_path(self) -> str:
        """Return a name for a layer on its own, which the variables of the function that is being traced do not have."""
        trace = active()
        while trace is not None and trace.parent is not None:
            trace = trace.parent
        taken = set() if trace is None else {variable.name.partition("/")[0] for variable in trace.variables}
        return self._given_name or _fresh(_snake(type(self).__name__), taken)

    def _scope(self) -> contextlib.AbstractContextManager[None]:
        return name_scope(self.path.rpartition("/")[2], dtype=self.dtype) if self.path else contextlib.nullcontext()


def _as_float32(x: Any) -> Any:
    """Return an array of floats as float32; others as they are."""
    return x.astype(np.float32) if isinstance(x, SymbolicArray) and x.dtype.kind == "f" and x.dtype != np.float32 else x


def _members(attributes: Any) -> Iterator[Any]:
    """Iterate over what attributes hold, in lists, tuples and dicts too."""
    for member in attributes.values() if isinstance(attributes, dict) else attributes:
        if isinstance(member, list | tuple | dict):
            yield from _members(member)
        else:
            yield member


def _fresh(name: str, taken: set[str]) -> str:
    """Return a name, with a number behind if it is taken."""
    found, i = name, 0
    while found in taken:
        i += 1
        found = f"{name}_{i}"
    return found


def _snake(name: str) -> str:
    """Return the name of a class in lower case: ``max_pool2d`` for ``MaxPool2D``."""
    return re.sub(r"(?<=.)(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])", "_", name).lower()
