"""Models: trainings of Keras reproduced, the seed's example, and what data are refused."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import layers

from .keras_data import KERAS, array


def mlp(**options: Any) -> ag.Sequential:
    """Return a small model."""
    return ag.Sequential([layers.Dense(8, activation="relu"), layers.Dense(3, activation="softmax")], **options)


def compiled(loss: Any = "mse", metrics: Any = (), **options: Any) -> ag.Sequential:
    """Return a small model that can be trained."""
    model = mlp(seed=0)
    model.compile(options.pop("optimizer", "sgd"), loss, metrics, **options)
    return model


X, Y = np.random.default_rng(0).random((20, 4)), np.random.default_rng(1).random((20, 3))


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in KERAS["fits"]])
def test_trains_as_keras_does(case: Any) -> None:
    """The last batch of each epoch is a short one, and its numbers count for as much."""
    model = ag.Sequential([getattr(layers, kind)(**options) for kind, options in case["layers"]])
    model.compile(getattr(ag.train, case["optimizer"])(case["rate"]), case["loss"], case["metrics"])
    x, y = array(case["x"]), array(case["y"])
    model.build(x.shape)
    for variable, start in zip(model.variables, case["start"], strict=True):
        variable.assign(array(start))
    history = model.fit(x, y, shuffle=False, verbose=0, **case["options"])
    assert history.history.keys() == case["history"].keys()
    for name, numbers in case["history"].items():
        assert history.history[name] == pytest.approx(numbers, rel=2e-5), name
    for variable, end in zip(model.variables, case["end"], strict=True):
        np.testing.assert_allclose(variable.value, array(end), rtol=2e-4, atol=2e-6)
    assert model.evaluate(x, y) == pytest.approx(case["evaluate"], rel=2e-5)
    np.testing.assert_allclose(model.predict(x[:5]), array(case["predict"]), rtol=2e-4, atol=2e-6)


def test_trains_in_mixed_precision() -> None:
    """The example with which enable_mixed_precision_graph_rewrite is described, in the words of this library."""
    model = ag.Sequential(
        [
            ag.layers.Dense(64, activation="relu"),
            ag.layers.Dense(64, activation="softmax"),
        ]
    )

    opt = ag.train.SGD()
    opt = ag.enable_mixed_precision_graph_rewrite(opt, target="cpu")
    model.compile(loss="mse", optimizer=opt)

    x_train = np.random.random((1024, 64))
    y_train = np.random.random((1024, 64))
    history = model.fit(x_train, y_train, verbose=0)

    assert opt.global_step + history.history["skipped"][0] == 32
    assert history.history["loss_scale"] == [opt.loss_scale.scale]
    assert 0.25 < history.history["loss"][0] < 0.4
    assert model.train_step is not None
    (found,) = model.train_step.cache.values()
    assert found.dtype("dense/MatMul") is ag.find_dtype("float16")
    assert found.dtype("dense_1/MatMul") is ag.find_dtype("float16")
    assert found.dtype("loss/Mean_1") is ag.find_dtype("float32")
    assert {variable.dtype for variable in model.variables} == {np.dtype(np.float32)}


def test_a_layer_may_stay_float32() -> None:
    model = ag.Sequential([layers.Dense(8, activation="relu"), layers.Dense(3, dtype="float32")], seed=0)
    model.compile(ag.enable_mixed_precision_graph_rewrite(ag.train.SGD(), target="cpu"), "mse")
    model.fit(X, Y, verbose=0)
    assert model.train_step is not None
    (found,) = model.train_step.cache.values()
    assert found.dtype("dense/MatMul") is ag.find_dtype("float16")
    assert found.dtype("dense_1/MatMul") is ag.find_dtype("float32")


def test_an_epoch_is_traced_for_two_sizes_and_everything_else_once() -> None:
    model = compiled(metrics=["mae"])
    model.fit(X, Y, batch_size=8, epochs=2, verbose=0, validation_data=(X[:9], Y[:9]))
    for x in (X, X[:7], X[:1]):
        assert model.predict(x, batch_size=6).shape == (len(x), 3)
    model.evaluate(X, Y, batch_size=7)
    assert model.train_step is not None
    assert list(model.train_step.cache) == ["x: f32[8,4], y: f32[8,3]", "x: f32[4,4], y: f32[4,3]"]
    assert [list(function.cache) for function in model._functions.values()] == [["x: f32[?,4], y: f32[?,3]"], ["x: f32[?,4]"]]


def test_a_short_last_batch_counts_for_its_examples() -> None:
    model = compiled(metrics=["mae"])
    whole = model.evaluate(X, Y, batch_size=20)
    for batch_size in (7, 19, 50):
        assert model.evaluate(X, Y, batch_size=batch_size) == pytest.approx(whole, rel=1e-6)
    np.testing.assert_allclose(model.predict(X, batch_size=7), model.predict(X, batch_size=20), rtol=1e-6)


def test_evaluation_is_float32_unless_a_policy_says_otherwise() -> None:
    opt = ag.enable_mixed_precision_graph_rewrite(ag.train.SGD(), target="cpu")
    results = []
    for policy in (None, opt.policy):
        model = compiled(optimizer=opt, policy=policy)
        results.append(model.predict(X))
        assert opt.policy is not None
        (function,) = model._functions.values()
        (found,) = function.cache.values()
        assert found.dtype("dense/MatMul") is ag.find_dtype("float32" if policy is None else "float16")
    assert results[0].tolist() != results[1].tolist()
    np.testing.assert_allclose(*results, rtol=1e-2)


def test_a_model_is_called_and_is_a_part_of_functions() -> None:
    model = mlp(seed=0)
    np.testing.assert_allclose(model(X), model.predict(X), rtol=1e-6)

    @ag.function
    def doubled(x: Any) -> Any:
        return model(x) * 2

    np.testing.assert_allclose(doubled(X), model.predict(X) * 2, rtol=1e-6)
    assert [variable.name for variable in doubled.cache["x: f64[20,4]"].variables.values()] == [
        variable.name for variable in model.variables
    ]


def test_models_train_that_are_classes_of_their_own() -> None:
    class Net(ag.Model):
        def __init__(self) -> None:
            super().__init__(seed=0)
            self.embed = layers.Embedding(5, 4)
            self.heads = [layers.Dense(4), layers.Dense(4)]
            self.out = layers.Dense(5)

        def call(self, x: Any) -> Any:
            h = self.embed(x)
            return self.out(ag.nn.attention(self.heads[0](h), self.heads[1](h), h, causal=True))

    model = Net()
    loss = ag.train.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(ag.train.Adam(0.05), loss, metrics=["accuracy"])
    x = np.random.default_rng(0).integers(5, size=(40, 6))
    history = model.fit(x, (x + 1) % 5, epochs=20, batch_size=16, verbose=0)
    assert history.history["accuracy"][0] < 0.6
    assert history.history["accuracy"][-1] > 0.95
    assert [layer.name for layer in model.layers] == ["embedding", "dense", "dense_1", "dense_2"]


def test_batch_norm_and_dropout_train() -> None:
    model = ag.Sequential(
        [
            layers.Conv2D(4, 3),
            layers.BatchNormalization(),
            layers.Activation("relu"),
            layers.Dropout(0.2),
            layers.Flatten(),
            layers.Dense(2),
        ],
        seed=0,
    )
    model.compile(ag.train.Adam(0.01), "mse")
    x, y = np.random.default_rng(0).random((16, 5, 5, 2)), np.random.default_rng(1).random((16, 2))
    history = model.fit(x, y, epochs=30, batch_size=8, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0] / 2
    names = [variable.name for variable in model.variables if variable not in set(model.trainable_variables)]
    assert names == ["batch_normalization/moving_mean", "batch_normalization/moving_variance", "dropout/state"]
    assert int(model.variables[-3].value[1] != 0) == 1
    np.testing.assert_array_equal(model.predict(x), model.predict(x))  # no dropout


def test_prints_its_layers(capsys: pytest.CaptureFixture[str]) -> None:
    model = ag.Sequential([layers.Conv2D(4, 3), layers.BatchNormalization(), layers.Flatten(), layers.Dense(2, dtype="float32")])
    model.summary()
    assert "not built" in capsys.readouterr().out
    model.build((None, 6, 6, 1))
    model.summary()
    printed = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.splitlines() if line.startswith("│")]
    assert rows == [
        ["conv2d", "Conv2D", "[?,4,4,4]", "", "40"],
        ["batch_normalization", "BatchNormalization", "[?,4,4,4]", "", "16"],
        ["flatten", "Flatten", "[?,64]", "", "0"],
        ["dense", "Dense", "[?,2]", "float32", "130"],
    ]
    assert printed.splitlines()[0].strip() == "Sequential 'sequential'"
    assert printed.splitlines()[-1] == "186 parameters, 178 of them trainable"


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, Y[:5], "Every example in x has its target in y. Received: 20 examples and 5 targets"),
        (X[:0], Y[:0], r"x holds nothing. Received: float64\[0, 4\]"),
        (np.where(X[3, 2] == X, np.nan, X), Y, r"x holds numbers that are not finite in float32. Received: nan at \[3, 2\]"),
        (X, Y + np.eye(20, 3, -2) * 1e300, r"y holds numbers that are not finite in float32. Received: inf at \[2, 0\]"),
        (np.float64(3), Y, r"first axis is that of the examples. Received: float64\[\]"),
        (X.astype(str), Y, r"x is an array of numbers .* Received: <U"),
        (X.astype(object), Y, "x is an array of numbers .* Received: object"),
        (X, Y[:, :2], r"compares arrays of one shape. Received: targets \[20,2\] for predictions \[20,3\]"),
        (
            [[1.0, 2.0], [3.0]],
            Y[:2],
            r"x is no array: its rows differ in their lengths, or hold something else\. setting an array",
        ),
        (X[:, 0], Y, r"Layer 'dense' takes inputs of at least 2 dimensions, .* Received: shape \[(\?|\d+)\]"),
    ],
)
def test_data_that_make_no_sense_are_refused(x: Any, y: Any, message: str) -> None:
    model = compiled()
    model.build((None, 4))
    before = [variable.value.copy() for variable in model.variables]
    with pytest.raises(ag.TrainingError, match=message):
        model.fit(x, y, verbose=0)
    assert all((variable.value == value).all() for variable, value in zip(model.variables, before, strict=True))
    with pytest.raises(ag.TrainingError, match=message):
        compiled().fit(x, y, verbose=0)


def test_inputs_of_another_shape_are_refused() -> None:
    model = compiled()
    model.fit(X, Y, verbose=0)
    for call in (lambda: model.predict(X[:, :3]), lambda: model.evaluate(X[:, :3], Y), lambda: model.fit(X[:, :3], Y, verbose=0)):
        with pytest.raises(
            ag.TrainingError, match=r"Layer 'dense' was built for inputs whose last size is 4. Received: shape \[.*,3\]"
        ):
            call()


@pytest.mark.parametrize(("label", "message"), [(3, r"from 0 up to 3, .* Received: 3 at \[7\]"), (-1, r"Received: -1 at \[7\]")])
def test_labels_out_of_range_are_refused(label: int, message: str) -> None:
    labels = np.arange(20) % 3
    model = compiled("sparse_categorical_crossentropy")
    model.fit(X, labels, verbose=0)
    labels[7] = label
    for call in (model.fit, model.evaluate):
        with pytest.raises(ag.TrainingError, match=message):
            call(X, labels, verbose=0)
    with pytest.raises(ag.TrainingError, match=message):
        model.fit(X, np.arange(20) % 3, validation_data=(X, labels), verbose=0)


def test_a_model_must_be_compiled() -> None:
    with pytest.raises(ag.TrainingError, match=r"compile\(optimizer=…, loss=…\) says how .* Received: fit before it"):
        mlp().fit(X, Y)
    with pytest.raises(ag.TrainingError, match="Received: evaluate before it"):
        mlp().evaluate(X, Y)
    with pytest.raises(ag.TrainingError, match=r"Did you mean 'adam'.* Received: 'adem'"):
        mlp().compile("adem", "mse")
    with pytest.raises(ag.TrainingError, match=r"An optimizer is one of ampgraph.train"):
        mlp().compile(ag.train.SGD, "mse")  # type: ignore[arg-type]
    with pytest.raises(ag.TrainingError, match="Did you mean 'mae'"):
        mlp().compile("sgd", "maes")
    model = compiled()
    before = model.optimizer
    for wrong in ({"policy": "float16"}, {"metrics": ["maes"]}, {"loss": "maes"}):
        with pytest.raises(
            ag.TrainingError, match=r"A policy is an ampgraph\.Policy, or None\. Received: 'float16'|Did you mean 'mae'"
        ):
            model.compile(**{"optimizer": "sgd", "loss": "mse", **wrong})  # type: ignore[arg-type]
        assert model.optimizer is before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is an integer of at least 1. Received: 0"),
        ({"epochs": 1.5}, "epochs is an integer of at least 1. Received: 1.5"),
        ({"verbose": "auto"}, "verbose is 0, 1 or 2. Received: 'auto'"),
        ({"validation_split": 1}, "from 0 up to 1. Received: 1"),
        ({"validation_split": 0.99}, "leaves nothing on one side. Received: 20 examples"),
        ({"validation_split": 0.5, "validation_data": (X, Y)}, "not from both"),
        ({"validation_data": X}, "a pair of inputs and targets. Received: ndarray"),
        ({"seed": -1}, r"seed is an integer of at least 0\. Received: -1"),
        ({"seed": "a"}, r"seed is an integer of at least 0\. Received: 'a'"),
        ({"callbacks": 5}, r"callbacks is a list of objects with the methods of ampgraph\.train\.Callback\. Received: 5"),
        ({"callbacks": [5]}, r"callbacks is a list of objects .* Received: 5"),
        ({"callbacks": ag.train.Callback()}, r"callbacks is a list of objects .* Received: <.*Callback object"),
        ({"callbacks": [ag.train.Callback]}, r"callbacks is a list of objects .* Received: <class "),
        ({"validation_data": (X, Y[:3])}, r"in validation_data\[0\] has its target in validation_data\[1\]"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ag.TrainingError, match=message):
        compiled().fit(X, Y, **options)
