"""Models: layers that are trained, evaluated and saved together."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.errors import TrainingError, did_you_mean
from ..graph.trace import TensorSpec, trace
from ..graph.tracing.array import SymbolicArray
from ..graph.tracing.context import name_scope
from ..graph.tracing.structure import leaves, rebuild
from ..graph.tracing.variable import Variable
from ..rewrite import Policy
from .callbacks import Callback, check_callbacks
from .data import as_data, as_pair, batches, check_count
from .fitting import Plan, run_epochs, split_validation
from .function import Function
from .history import History, Means
from .layers.layer import Layer
from .loss_scale_optimizer import LossScaleOptimizer
from .losses import Loss, SparseCategoricalCrossentropy, find_loss
from .metrics import find_metrics
from .optimizers import LAMB, SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop

if TYPE_CHECKING:
    from .optimizers import StepResult

OPTIMIZERS: dict[str, Callable[[], Optimizer]] = {
    "adagrad": Adagrad,
    "adam": Adam,
    "adamw": AdamW,
    "lamb": LAMB,
    "rmsprop": RMSprop,
    "sgd": SGD,
}


class Model(Layer):
    """A layer that can be trained: derive from it, with layers as attributes, and override :meth:`call`.

    Args:
        name: Stands before the names of its variables, where it is given.
        seed: Makes start values and the order of examples the same every time.

    Attributes:
        optimizer, loss, metrics, policy: What :meth:`compile` was given.
        history: What happened in the last training.
        stop_training: Callbacks end the training by setting it.

    Example:
        >>> from ampgraph.train import layers
        >>> class Residual(Model):
        ...     def __init__(self):
        ...         super().__init__(seed=0)
        ...         self.hidden = layers.Dense(3, activation="relu")
        ...     def call(self, x):
        ...         return x + self.hidden(x)
        >>> model = Residual()
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit(np.ones((8, 3)), np.zeros((8, 3)), verbose=0)
        >>> [variable.name for variable in model.variables]
        ['dense/kernel', 'dense/bias']
    """

    def __init__(self, *, name: str | None = None, seed: int | None = None) -> None:
        super().__init__(name=name, seed=seed)
        self.optimizer: Optimizer | LossScaleOptimizer | None = None
        self.loss: Loss | None = None
        self.metrics: dict[str, Loss] = {}
        self.history: History | None = None
        self.stop_training = False
        self.policy: Policy | None = None
        self._step: Function | None = None
        self._functions: dict[Any, Function] = {}
        self._state: dict[str, Any] = {}

    @property
    def train_step(self) -> Function:
        """The training step: what was decided about its graph, for each kind of batch.

        Raises:
            TrainingError: If nobody said yet how it is trained.
        """
        self._check_compiled("train_step")
        assert self._step is not None
        return self._step

    @property
    def layers(self) -> list[Layer]:
        """Its layers."""
        return self.parts

    def build(self, shape: Sequence[int | None], dtype: Any = np.float32) -> None:
        """Make the variables for inputs of a shape, the batch included: ``(None, 64)``, and of a dtype.

        Raises:
            TrainingError: If no layer takes them.
        """
        try:
            kind = np.dtype(dtype).kind
        except TypeError:
            kind = ""
        if kind not in ("f", "i", "u", "b"):
            raise TrainingError(f"The inputs of models are numbers. Received: {dtype!r}")
        sizes = tuple(shape) if isinstance(shape, Sequence | np.ndarray) else ()
        if not sizes or any(size is not None and (not isinstance(size, int | np.integer) or size < 0) for size in sizes):
            raise TrainingError(f"A model is built for a shape, such as (None, 64). Received: {shape!r}")
        if self.output_shape is None:
            trace(lambda x: self(x), TensorSpec([None, *shape[1:]], dtype, name="x"))

    def compile(
        self,
        optimizer: str | Optimizer | LossScaleOptimizer,
        loss: str | Loss,
        metrics: Iterable[Any] = (),
        policy: Policy | None = None,
    ) -> None:
        """Say how it is trained.

        Args:
            optimizer: An optimizer of :mod:`ampgraph.train`, or its name. One that ``enable_mixed_precision_graph_rewrite`` returned
                trains in mixed precision.
            loss: A name, such as ``"mse"`` or ``"sparse_categorical_crossentropy"``, or a function of targets and predictions.
            metrics: Names, such as ``"accuracy"``, and functions.
            policy: What graphs of :meth:`evaluate` and :meth:`predict` are rewritten for, such as ``optimizer.policy``; None keeps
                them float32. (In TensorFlow the optimizer's rewrite is turned on for all graphs of the process, these too.)

        Raises:
            TrainingError: If a name is unknown, or the optimizer or the policy is none.
        """
        if policy is not None and not isinstance(policy, Policy):
            raise TrainingError(f"A policy is an ampgraph.Policy, or None. Received: {policy!r}")
        found, wanted = find_optimizer(optimizer), find_loss(loss)
        self.metrics = find_metrics(metrics, wanted)
        self.optimizer, self.loss, self.policy = found, wanted, policy
        self._step = Function(self._traced_step, None, None)
        self._functions = {}
        if self._state:
            self.take_state(self._state)

    def fit(
        self,
        x: Any,
        y: Any,
        batch_size: int = 32,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Iterable[Callback] = (),
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
        seed: int | None = None,
    ) -> History:
        """Train it.

        Ctrl-C ends the training after the step that runs, with KeyboardInterrupt; a second one at once.

        Args:
            x: Inputs, whose first axis is that of the examples; floats are converted to float32.
            y: Targets, as many.
            batch_size: Number of examples of a step; the last one of an epoch takes what is left.
            epochs: How often all examples are gone through, from the start on: number of the last epoch.
            verbose: 0 shows nothing; 1 a bar on a terminal, one line after each epoch elsewhere; 2 the lines in any case.
            callbacks: See :mod:`ampgraph.train.callbacks`.
            validation_split: The part of the examples, at the end, that is not trained on but evaluated after each epoch.
            validation_data: Inputs and targets that are.
            shuffle: Whether the examples come in another order in each epoch.
            initial_epoch: Number of epochs that were done already, to go on with a model that was loaded.
            seed: Makes these orders the same every time; that of the model when None.

        Returns:
            What happened, also as ``self.history``.

        Raises:
            TrainingError: If it was not compiled, or the data do not fit: shapes, lengths, numbers that are not finite, labels.
        """
        self._check_compiled("fit")
        for name, number, least in (("batch_size", batch_size, 1), ("epochs", epochs, 1), ("initial_epoch", initial_epoch, 0)):
            check_count(name, number, least)
        if verbose not in (0, 1, 2):
            raise TrainingError(f"verbose is 0, 1 or 2. Received: {verbose!r}")
        if seed is not None:
            check_count("seed", seed, 0)
        watching = check_callbacks(callbacks)
        x, y, validation = split_validation(*as_pair(x, y), validation_data, validation_split)
        for pair in [(x, y), *([] if validation is None else [validation])]:
            self._check_data(*pair)
        self._check_optimizer()
        seed = seed if seed is not None else self.seed if self.seed is not None else int(np.random.default_rng().integers(2**32))
        plan = Plan(x, y, validation, batch_size, range(initial_epoch, epochs), seed if shuffle else None)
        return run_epochs(self, plan, watching, verbose)

    def evaluate(self, x: Any, y: Any, batch_size: int = 32, verbose: int = 0) -> dict[str, float]:
        """Return the loss and the metrics, means over examples, by name; print them unless ``verbose`` is 0.

        Raises:
            TrainingError: As for :meth:`fit`.
        """
        from .progress import shown

        self._check_compiled("evaluate")
        check_count("batch_size", batch_size)
        x, y = as_pair(x, y)
        self._check_data(x, y)
        found = self.run_evaluation(x, y, batch_size)
        if verbose:
            print(shown(found, 0))
        return found

    def predict(self, x: Any, batch_size: int = 32) -> Any:
        """Return the results for all inputs, as one array, or in the containers in which the model returns several.

        Raises:
            TrainingError: If ``x`` is no data, or of a shape that the model does not take, or the results have no axis of examples.
        """
        check_count("batch_size", batch_size)
        x = as_data("x", x)
        found = self._function("predict", self._traced_prediction, x=x)
        return _joined([found(x[chosen]) for chosen in batches(len(x), batch_size)])

    def summary(self) -> None:
        """Print a table of its layers; shapes and parameters are known when it is built."""
        from .summary import print_summary

        print_summary(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file: variables, the state of the optimizer, its loss scale included, and how all of that was made.

        :func:`load_model` makes a :class:`Sequential` of the file. Classes and functions of your own are not in the file: for them
        make the model again and :meth:`load`; or compile what was loaded.

        Args:
            path: Where to, ``model.npz`` say; the file takes its name when it is complete, until then an older one stays.

        Raises:
            TrainingError: If it has no variables yet, or two of one name.
            OSError: If the file cannot be written.
        """
        from .model_file import save_model

        save_model(self, path)

    def load(self, path: str | PathLike[str]) -> None:
        """Go on from a file that :meth:`save` wrote; the model is built, and compiled as it was before it goes on training.

        Raises:
            TrainingError: If the file is none of such a model; nothing has changed then.
            OSError: If it cannot be read.
        """
        from .model_file import fill_model

        fill_model(self, path)

    def take_state(self, state: dict[str, Any]) -> None:
        """Let the optimizer go on from a state: at once, or when the model is compiled.

        Raises:
            TrainingError: If it is the state of another optimizer.
        """
        if self.optimizer is None:
            self._state = state
            return
        self._state = {}
        if state:
            self.optimizer.load_state_dict(state)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_step": None, "_functions": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.loss is not None:
            self._step = Function(self._traced_step, None, None)

    # ---- one batch ----------------------------------------------------------------------------------------------

    def run_step(self, x: Any, y: Any) -> "tuple[StepResult, dict[str, Any]]":
        """Make one training step with a batch; return how it went, and the metrics before it."""
        self._check_compiled("run_step")
        assert self._step is not None
        return self._step(x, y)  # type: ignore[no-any-return]

    def run_evaluation(self, x: Any, y: Any, batch_size: int, after_batch: Callable[[], None] = lambda: None) -> dict[str, float]:
        """Return loss and metrics for arrays that were checked: see :meth:`evaluate`."""
        found, means = self._function("evaluate", self._traced_evaluation, x=x, y=y), Means()
        for chosen in batches(len(x), batch_size):
            batch = x[chosen]
            means.add(len(batch), found(batch, y[chosen]))
            after_batch()
        return means.result()

    def _traced_step(self, x: Any, y: Any) -> Any:
        predictions = self(x, training=True)
        numbers = self._numbers(y, predictions)
        assert self.optimizer is not None
        variables = self.trainable_variables
        if not variables:
            raise TrainingError(
                f"{self!r} has no variables to train. Layers whose variables count are attributes, made in __init__. "
                f"Received: {self.parts or 'no layers'}"
            )
        return self.optimizer.minimize(numbers.pop("loss"), variables), numbers

    def _traced_evaluation(self, x: Any, y: Any) -> Any:
        return self._numbers(y, self(x))

    def _traced_prediction(self, x: Any) -> Any:
        return self(x)

    def _numbers(self, y: Any, predictions: Any) -> dict[str, Any]:
        """Return loss and metrics of a batch, computed in float32: targets may be numbers that float16 does not have."""
        assert self.loss is not None
        with name_scope("loss", dtype="float32"):
            return {name: _mean(name, function(y, predictions)) for name, function in {"loss": self.loss, **self.metrics}.items()}

    def _function(self, name: str, traced: Callable[..., Any], **arrays: Any) -> Function:
        """Return a function for arrays of these kinds and any number of examples."""
        specs = {key: TensorSpec([None, *array.shape[1:]], array.dtype) for key, array in arrays.items()}
        return self._functions.setdefault((name, str(specs)), Function(traced, self.policy, specs))

    def _check_compiled(self, what: str) -> None:
        if self._step is None:
            raise TrainingError(f"compile(optimizer=…, loss=…) says how {self!r} is trained. Received: {what} before it")

    def _check_optimizer(self) -> None:
        """Refuse an optimizer whose slots are for other variables of the same names."""
        optimizer = self.optimizer.inner if isinstance(self.optimizer, LossScaleOptimizer) else self.optimizer
        assert optimizer is not None
        for variable in self.trainable_variables:
            known = optimizer.owners.setdefault(variable.name, variable)
            if known is not variable and variable.name in optimizer.slots:
                raise TrainingError(
                    f"{optimizer!r} has trained variables of another model that are called {variable.name!r} and so on, whose slots it "
                    "has: compile this model with a new optimizer, or give the models names. "
                    f"Received: {self!r}"
                )
            optimizer.owners[variable.name] = variable

    def _check_data(self, x: Any, y: Any) -> None:
        """Make the variables if there are none, and refuse labels that are no classes."""
        self.build(x.shape, x.dtype)
        if isinstance(self.loss, SparseCategoricalCrossentropy):
            self.loss.check_labels(y, self.output_shape)

    def _free_path(self) -> str:
        return self._given_name or ""


class Sequential(Model):
    """A model of layers, one after the other.

    Args:
        layers: The layers.
        name: Stands before the names of its variables, where it is given.
        seed: Makes start values and the order of examples the same every time.

    Raises:
        TrainingError: If something is no layer.

    Example:
        >>> from ampgraph.train import layers
        >>> model = Sequential([layers.Dense(4, activation="relu"), layers.Dense(2)], seed=0)
        >>> model.predict(np.ones((3, 5))).shape
        (3, 2)
    """

    def __init__(self, layers: Iterable[Layer] = (), *, name: str | None = None, seed: int | None = None) -> None:
        super().__init__(name=name, seed=seed)
        self._layers: list[Layer] = []
        if isinstance(layers, Layer) or not isinstance(layers, Iterable):
            raise TrainingError(f"A Sequential is made of a list of layers. Received: {layers!r}")
        for layer in layers:
            self.add(layer)

    def add(self, layer: Layer) -> None:
        """Add a layer behind the others.

        Raises:
            TrainingError: If it is none, or the model has been used already.
        """
        if not isinstance(layer, Layer):
            raise TrainingError(
                f"A Sequential is made of layers, such as ampgraph.layers.Dense(64); Activation makes one of a function. Received: {layer!r}"
            )
        if layer is self:
            raise TrainingError(f"A Sequential is no layer of its own. Received: {layer!r}")
        if self._built:
            raise TrainingError(f"{self!r} was built already: make a new one with this layer. Received: {layer!r}")
        self._layers.append(layer)

    @property
    def layers(self) -> list[Layer]:
        """Its layers; one that stands twice is there twice."""
        return list(self._layers)

    def call(self, x: Any) -> Any:
        """Return what the last layer returns."""
        for layer in self._layers:
            x = layer(x)
        return x


def _mean(name: str, numbers: Any) -> Any:
    """Return the mean of what a loss or a metric returned.

    Raises:
        TrainingError: If that is no array.
    """
    if not isinstance(numbers, SymbolicArray | Variable | np.ndarray | np.generic | int | float):
        raise TrainingError(
            f"Losses and metrics return an array, a number for each example. Received: {numbers!r:.200} from {name!r}"
        )
    return np.mean(numbers)  # type: ignore[arg-type]


def _joined(parts: list[Any]) -> Any:
    """Return the results for several batches as those for all of them.

    Raises:
        TrainingError: If they are no arrays of examples.
    """
    columns = zip(*([leaf for _, leaf in leaves(part)] for part in parts), strict=True)

    def join(path: str, leaf: Any) -> Any:
        if not np.ndim(leaf):
            raise TrainingError(
                f"predict joins arrays whose first axis is that of the examples. Received: {leaf!r:.200} for each batch"
                + (f", as {path}" if path else "")
            )
        return np.concatenate(next(columns))

    return rebuild(parts[0], join)


def find_optimizer(given: Any) -> Optimizer | LossScaleOptimizer:
    """Return the optimizer that a user means by a name or an optimizer.

    Raises:
        TrainingError: If it is none.
    """
    if isinstance(given, Optimizer | LossScaleOptimizer):
        return given
    if isinstance(given, str) and given.lower() in OPTIMIZERS:
        return OPTIMIZERS[given.lower()]()
    hint = did_you_mean(given.lower(), OPTIMIZERS) if isinstance(given, str) else ""
    raise TrainingError(f"An optimizer is one of ampgraph.train, or one of {', '.join(OPTIMIZERS)}.{hint} Received: {given!r}")
