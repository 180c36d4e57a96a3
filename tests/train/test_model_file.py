"""Models in files: trainings go on bit by bit, and whatever is in a file, it is refused or right."""

import contextlib
import json
import os
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import layers, train

from .small_models import weights

X = np.random.default_rng(0).random((30, 6, 6, 1))
Y = np.random.default_rng(1).integers(4, size=30)


def make(opt: Any = None) -> ag.Sequential:
    """Return a model of all that changes in training."""
    model = ag.Sequential(
        [
            layers.Conv2D(3, (3, 2), padding="same", activation="relu"),
            layers.BatchNormalization(momentum=0.9),
            layers.MaxPool2D(),
            ag.Sequential([layers.Flatten(), layers.Dropout(0.3)], name="middle"),
            layers.Dense(8, use_bias=False),
            layers.LayerNormalization(),
            layers.Activation("gelu"),
            layers.Dense(4, activation="softmax", dtype="float32", seed=5),
        ],
        seed=3,
    )
    model.compile(opt or wrapped(train.Adam(0.01)), "sparse_categorical_crossentropy", ["accuracy"])
    return model


def wrapped(inner: Any, **options: Any) -> Any:
    """Return an optimizer that scales its loss, of a scale that moves within a few steps."""
    scale = ag.DynamicLossScale(2.0**22, growth_interval=3)
    return ag.LossScaleOptimizer(inner, scale, policy=ag.Policy(target="cpu"), **options)


OPTIMIZERS = {
    "sgd": lambda: train.SGD(0.1),
    "nesterov": lambda: train.SGD(0.1, momentum=0.9, nesterov=True, clipvalue=0.5),
    "adam": lambda: wrapped(train.Adam(train.Warmup(train.CosineDecay(0.05, 20), 3), clipnorm=1.0)),
    "adamw": lambda: wrapped(train.AdamW(0.01, weight_decay=0.1), accumulation_steps=2),
    "rmsprop": lambda: train.RMSprop(0.01, momentum=0.5, global_clipnorm=1.0),
    "adagrad": lambda: ag.LossScaleOptimizer(train.Adagrad(0.1, initial_accumulator_value=0.5), 128.0),
    "lamb": lambda: train.LAMB(train.PiecewiseConstantDecay([2, 4], [0.1, 0.01, 0.001])),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_goes_on_bit_by_bit(name: str, tmp_path: Path) -> None:
    whole, part = make(OPTIMIZERS[name]()), make(OPTIMIZERS[name]())
    whole.fit(X, Y, epochs=4, batch_size=8, verbose=0)
    part.fit(X, Y, epochs=2, batch_size=8, verbose=0)
    part.save(tmp_path / "model")
    loaded = ag.load_model(tmp_path / "model")
    assert weights(loaded) == weights(part)
    assert loaded.predict(X).tobytes() == part.predict(X).tobytes()
    assert loaded.evaluate(X, Y) == part.evaluate(X, Y)
    history = loaded.fit(X, Y, epochs=4, initial_epoch=2, batch_size=8, verbose=0)
    assert weights(loaded) == weights(whole)
    assert loaded.optimizer is not None
    assert whole.optimizer is not None
    assert whole.history is not None
    assert repr(loaded.optimizer) == repr(whole.optimizer)
    state, wanted = loaded.optimizer.state_dict(), whole.optimizer.state_dict()
    assert {key: value.tobytes() for key, value in state.items()} == {key: value.tobytes() for key, value in wanted.items()}
    assert history.steps["loss"] == whole.history.steps["loss"][8:]
    assert getattr(loaded.optimizer, "policy", None) == getattr(whole.optimizer, "policy", None)


def test_every_layer_can_be_saved(tmp_path: Path) -> None:
    sequences = ag.Sequential(
        [layers.Embedding(9, 4), layers.LSTM(3, return_sequences=True), layers.LSTM(2), layers.Dense(2)], name="s"
    )
    images = ag.Sequential(
        [layers.AveragePool2D(2, 1), layers.Conv2D(2, 3), layers.GlobalAveragePool2D(), layers.Activation("tanh")]
    )
    for model, x in ((sequences, np.random.default_rng(0).integers(9, size=(5, 7))), (images, X)):
        y = model.predict(x)
        model.save(tmp_path / "model")
        loaded = ag.load_model(tmp_path / "model")
        assert loaded.predict(x).tobytes() == y.tobytes()
        assert [layer.name for layer in loaded.layers] == [layer.name for layer in model.layers]
        with pytest.raises(ag.TrainingError, match=r"compile\(optimizer"):
            loaded.fit(x, y)
    kinds = {
        type(layer).__name__
        for model in (sequences, images, make())
        for layer in [*model.layers, layers.Flatten(), layers.Dropout(0)]
    }
    assert kinds - {"Sequential"} == set(layers.__all__) - {"Layer"}


def test_options_are_kept(tmp_path: Path) -> None:
    model = make()
    loss = train.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        wrapped(train.SGD(), max_skips=7, on_stall="raise"),
        loss,
        ["accuracy", "mae"],
        policy=ag.Policy(target="cpu", dtype="bfloat16"),
    )
    model.build((None, 6, 6, 1))
    model.save(tmp_path / "model")
    loaded = ag.load_model(tmp_path / "model")
    assert loaded.loss == loss
    assert list(loaded.metrics) == ["accuracy", "mae"]
    assert loaded.policy == model.policy
    assert loaded.seed == 3
    assert isinstance(loaded.optimizer, ag.LossScaleOptimizer)
    assert (loaded.optimizer.max_skips, loaded.optimizer.on_stall) == (7, "raise")
    assert loaded.layers[-1].dtype == "float32"


def test_models_of_their_own_load_into_what_code_made(tmp_path: Path) -> None:
    class Net(ag.Model):
        def __init__(self) -> None:
            super().__init__(seed=0)
            self.out = layers.Dense(4, activation=lambda x: x * 2)

        def call(self, x: Any) -> Any:
            return self.out(x.reshape(-1, 36))

    def loss(y_true: Any, y_pred: Any) -> Any:
        return np.square(y_pred - np.expand_dims(y_true, -1))

    whole, part, other = Net(), Net(), Net()
    for model in (whole, part):
        model.compile(train.Adam(0.01), loss)
    whole.fit(X, Y, epochs=3, verbose=0)
    part.fit(X, Y, epochs=1, verbose=0)
    part.save(tmp_path / "model")
    with pytest.raises(
        ag.TrainingError, match=r"a model that only your code can make: .*Its reason: <Net 'net'> is of a class of your own"
    ):
        ag.load_model(tmp_path / "model")
    with pytest.raises(
        ag.TrainingError, match=r"holds the variables \['dense/bias', 'dense/kernel'\]. Received: .*build it first"
    ):
        other.load(tmp_path / "model")
    other.build(X.shape)
    other.load(tmp_path / "model")  # before it is compiled, its optimizer's state waits
    other.compile(train.Adam(0.01), loss)
    other.fit(X, Y, epochs=3, initial_epoch=1, verbose=0)
    assert weights(other) == weights(whole)
    before = weights(other)
    other.compile(train.SGD(), loss)
    with pytest.raises(ag.TrainingError, match="goes on from a state of rule 'sgd'"):
        other.load(tmp_path / "model")
    assert weights(other) == before


class Slow(train.SGD):
    """An optimizer that files do not know."""


@pytest.mark.parametrize(
    ("optimizer", "metrics"),
    [(train.SGD(lambda step: 0.1), []), (Slow(), []), (wrapped(Slow()), []), (train.SGD(), [lambda y, p: np.mean(p)])],
)
def test_what_is_compiled_with_something_of_their_own_is_compiled_again(optimizer: Any, metrics: Any, tmp_path: Path) -> None:
    model = ag.Sequential([layers.Dense(1)], seed=1)
    model.compile(optimizer, "mse", metrics)
    model.fit(X[:, 0, :, 0], Y.reshape(-1, 1), verbose=0)
    model.save(tmp_path / "model")
    loaded = ag.load_model(tmp_path / "model")
    assert (loaded.optimizer, loaded.loss) == (None, None)
    loaded.compile(optimizer, "mse", metrics)
    assert weights(loaded) == weights(model)


def test_an_activation_of_their_own_is_named(tmp_path: Path) -> None:
    model = ag.Sequential([layers.Dense(1, activation=lambda x: x)])
    model.build((None, 4))
    model.save(tmp_path / "model")
    with pytest.raises(ag.TrainingError, match="Its reason: The activation of <Dense 'dense'> is a function of your own"):
        ag.load_model(tmp_path / "model")


def test_functions_of_their_own_are_given_again(tmp_path: Path) -> None:
    def loss(y_true: Any, y_pred: Any) -> Any:
        return np.mean(np.square(y_pred - y_true), -1)

    whole, part = (ag.Sequential([layers.Dense(1)], seed=1) for _ in range(2))
    x, y = X[:, 0, :, 0], Y.reshape(-1, 1)
    for model in (whole, part):
        model.compile(train.Adam(0.01), loss)
    whole.fit(x, y, epochs=2, verbose=0)
    part.fit(x, y, epochs=1, verbose=0)
    part.save(tmp_path / "model")
    loaded = ag.load_model(tmp_path / "model")
    loaded.compile(train.Adam(0.01), loss)
    loaded.fit(x, y, epochs=2, initial_epoch=1, verbose=0)
    assert weights(loaded) == weights(whole)
    again = ag.load_model(tmp_path / "model")
    with pytest.raises(ag.TrainingError, match="goes on from a state of rule 'sgd'"):
        again.compile("sgd", loss)
    again.compile("sgd", loss)  # begins anew
    assert again.optimizer is not None
    assert again.optimizer.global_step == 0


def test_saving_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ag.Sequential([layers.Dense(2)])
    with pytest.raises(ag.TrainingError, match="has no variables yet: build it, or train it first"):
        model.save(tmp_path / "model")
    model.build((None, 3))
    model.save(tmp_path / "model")
    first = (tmp_path / "model").read_bytes()
    model.variables[0].assign(np.zeros((3, 2)))

    def full(file: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="the disk is full"):
        model.save(tmp_path / "model")
    monkeypatch.undo()
    assert (tmp_path / "model").read_bytes() == first
    assert os.listdir(tmp_path) == ["model"]
    dense = layers.Dense(2)
    twice = ag.Sequential([dense, layers.Dense(3), dense])
    twice.build((None, 3))
    twice.save(tmp_path / "model")
    with pytest.raises(ag.TrainingError, match="A layer stands twice"):
        ag.load_model(tmp_path / "model")


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Any]:
    """What is in the file of a trained model."""
    model = make()
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as data:
        return dict(data)


def _load(folder: Path, arrays: dict[str, Any], config: Any = None) -> ag.Sequential:
    arrays = dict(arrays)
    if config is not None:
        arrays["model"] = np.array(config if isinstance(config, str) else json.dumps(config))
    np.savez(folder / "bad.npz", allow_pickle=True, **arrays)
    return ag.load_model(folder / "bad.npz")


def test_files_that_are_no_models_are_refused(saved: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ag.load_model(tmp_path / "nothing")
    (tmp_path / "text").write_text("no model")
    np.save(tmp_path / "one.npy", np.zeros(3))
    data = (tmp_path / "good.npz").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    for name in ("text", "one.npy", "cut"):
        with pytest.raises(ag.TrainingError, match=f"{name}' holds no model: "):
            ag.load_model(tmp_path / name)
    for model, message in (
        (np.array([object()]), "holds no model: .*pickle"),
        (np.zeros(3), "does not say 'ampgraph model 1'"),
        (np.array("{"), "holds no model: Expecting"),
        (np.array("[" * 100_000), "holds no model: "),
        (np.array("[]"), "does not say"),
        (np.array('{"format": "ampgraph model 2"}'), "does not say"),
    ):
        with pytest.raises(ag.TrainingError, match=message):
            _load(tmp_path, {**saved, "model": model})
    del (rest := dict(saved))["model"]
    with pytest.raises(ag.TrainingError, match="holds no model: it does not say 'ampgraph model 1'"):
        _load(tmp_path, rest)
    with pytest.raises(ag.TrainingError, match=r"something else than a model. Received: 'more'"):
        _load(tmp_path, {**saved, "more": np.zeros(3)})


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("layers/class", "Model", "A saved model is a Sequential"),
        ("layers/layers/0/class", "os.system", r"A saved layer is one of .*Dense"),
        ("layers/layers/0/class", ["Dense"], r"A saved layer is one of"),
        ("layers/layers/0/filters", 10**12, r"A saved array float32\[3, 2, 1, 1000000000000\] is needed for 'conv2d/kernel'"),
        ("layers/layers/0/filters", 2.5, "takes a positive integer as filters. Received: 2.5"),
        ("layers/layers/0/shape", 3, "Conv2D has options that it does not take: .*'shape'"),
        ("layers/layers/0/activation", "__import__", "An activation is a function"),
        ("layers/layers/0/name", "../x", "The name of a layer"),
        ("layers/layers/2/pool_size", [10**30, 1], "holds no model that can be made"),
        ("input/shape", [None, 10**15, 10**15, 1], "holds no model that can be made"),
        ("input/shape", "many", "holds no model that can be made"),
        ("input/dtype", "object", "holds no model that can be made"),
        ("compile/loss/name", "eval", "A loss is a function of y_true and y_pred, or one of"),
        ("compile/loss/from_logits", "yes", "This loss has no such options"),
        ("compile/metrics", ["acuracy"], "Did you mean 'accuracy'"),
        ("compile/optimizer/inner/class", "Optimizer", "A saved optimizer is one of SGD, Adam"),
        ("compile/optimizer/inner/beta_1", "much", "holds no model that can be made"),
        ("compile/optimizer/loss_scale/class", "Model", "A saved loss scale is one of FixedLossScale, DynamicLossScale"),
        ("compile/optimizer/loss_scale/scale", -1, "DynamicLossScale needs a scale between"),
        ("compile/optimizer/policy", "preset = 'none'", "holds no model that can be made"),
        ("compile/optimizer", None, "A saved optimizer is one of"),
        ("frozen", 3, "holds no model that can be made"),
        ("compile/policy", 3, "holds no model that can be made"),
    ],
)
def test_what_files_say_is_checked(place: str, value: Any, message: str, saved: dict[str, Any], tmp_path: Path) -> None:
    config: Any = json.loads(str(saved["model"]))
    *path, last = place.split("/")
    inner = config
    for key in path:
        inner = inner[int(key) if isinstance(inner, list) else key]
    inner[last] = value
    with pytest.raises(ag.TrainingError, match=message):
        _load(tmp_path, saved, config)


def test_arrays_are_checked(saved: dict[str, Any], tmp_path: Path) -> None:
    kernel = saved["variables/dense/kernel"]
    for name, array, message in (
        (
            "variables/dense/kernel",
            kernel[:-1],
            r"A saved array float32\[27, 8\] is needed for 'dense/kernel'. Received: float32\[26, 8\]",
        ),
        ("variables/dense/kernel", kernel.astype(np.float64), r"is needed for 'dense/kernel'. Received: float64"),
        (
            "variables/middle/dropout/state",
            np.zeros(2),
            r"int64\[2\] is needed for 'middle/dropout/state'. Received: float64\[2\]",
        ),
        ("variables/more", kernel, "holds the variables"),
        ("optimizer/inner/rule", np.array("sgd"), "goes on from a state of rule 'adam'"),
        ("optimizer/loss_scale/scale", np.array(np.nan), "needs a scale between"),
    ):
        with pytest.raises(ag.TrainingError, match=message):
            _load(tmp_path, {**saved, name: array})
    del (rest := dict(saved))["variables/dense/kernel"]
    with pytest.raises(ag.TrainingError, match=r"is needed for 'dense/kernel'. Received: none"):
        _load(tmp_path, rest)


def test_damaged_files_are_refused_or_right(saved: dict[str, Any], tmp_path: Path) -> None:
    """Whatever byte is another: a sentence, or the model that was saved."""
    data, rng = (tmp_path / "good.npz").read_bytes(), random.Random(0)
    for _ in range(60):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "bad.npz").write_bytes(damaged)
        with contextlib.suppress(ag.TrainingError):
            assert weights(ag.load_model(tmp_path / "bad.npz")) == {
                name[10:]: array.tobytes() for name, array in saved.items() if name.startswith("variables/")
            }


def test_files_hold_no_pickles(saved: dict[str, Any], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "good.npz") as archive:
        for name in archive.namelist():
            assert archive.read(name)[:6] == b"\x93NUMPY"
    assert not [name for name, array in saved.items() if array.dtype == object]
