"""Odd but plausible use of models: a right result, or a sentence that says what to do."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import layers, train

RNG = np.random.default_rng(5)
X = RNG.standard_normal((20, 3)).astype(np.float32)
Y = RNG.standard_normal((20, 2)).astype(np.float32)


def made(*parts: Any, optimizer: Any = "sgd", loss: Any = "mse", **options: Any) -> ag.Sequential:
    model = ag.Sequential(parts or (layers.Dense(4, activation="tanh"), layers.Dense(2)), seed=0)
    model.compile(optimizer, loss, **options)
    return model


class Free(ag.Model):
    """Returns whatever a function makes of a dense layer's results."""

    def __init__(self, function: Any, units: int = 2) -> None:
        super().__init__(seed=0)
        self.dense = layers.Dense(units)
        self.function = function

    def call(self, x: Any) -> Any:
        return self.function(self.dense(x))


def test_targets_larger_than_float16_has_are_trained_on() -> None:
    opt = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.1), target="cpu")
    model = made(optimizer=opt)
    large = Y * 1e5
    history = model.fit(X, large, verbose=0)
    # Before the first step it is float32's loss, but for the low matrix products.
    expected = np.mean(np.square(large.astype(float) - made().predict(X)))
    np.testing.assert_allclose(history.history["loss"], [expected], rtol=1e-6)


@pytest.mark.parametrize(
    "layer", [layers.Dense(2), layers.Flatten(), layers.Activation("relu"), layers.Dropout(0.5), layers.LayerNormalization()]
)
@pytest.mark.parametrize("x", [[[1.0, 2.0]], None, 1.0, "text"])
def test_layers_take_arrays(layer: Any, x: Any) -> None:
    with pytest.raises(ag.TrainingError, match=r"takes an array: numpy.asarray makes one. Received: "):
        layer(x)


def test_layers_take_variables_and_constants_of_functions() -> None:
    dense, x = layers.Dense(2, seed=0), np.array([[1, 2, 3]], np.float32)
    prompt = ag.Variable(x, name="prompt")
    expected = dense(x)

    @ag.function
    def both() -> Any:
        return dense(prompt), dense(x)

    assert [found.tolist() for found in both()] == [expected.tolist()] * 2


@pytest.mark.parametrize("x", [np.ones((2, 3), complex), np.array([["a", "b", "c"]])])
def test_layers_take_real_numbers(x: Any) -> None:
    with pytest.raises(ag.TrainingError, match=r"Layer 'dense' takes real numbers. Received: "):
        layers.Dense(2)(x)


def test_predictions_come_in_the_models_containers() -> None:
    plain = Free(lambda y: y).predict(X)
    found = Free(lambda y: {"two": (y, y[:, 0]), "one": y * 2}).predict(X, batch_size=8)
    np.testing.assert_allclose(found["two"][0], plain, rtol=1e-5)
    np.testing.assert_allclose(found["two"][1], plain[:, 0], rtol=1e-5)
    np.testing.assert_allclose(found["one"], 2 * plain, rtol=1e-5)


@pytest.mark.parametrize("result", [np.mean, lambda y: 1.0, lambda y: (y, None)])
def test_predictions_have_an_axis_of_examples(result: Any) -> None:
    with pytest.raises(ag.TrainingError, match=r"predict joins arrays whose first axis is that of the examples. Received: "):
        Free(result).predict(X, batch_size=8)


@pytest.mark.parametrize("result", [None, (1, 2), {"a": 1}])
def test_losses_and_metrics_return_arrays(result: Any) -> None:
    with pytest.raises(ag.TrainingError, match=r"Losses and metrics return an array, .* from 'loss'"):
        made(loss=lambda y, p: result).fit(X, Y, verbose=0)

    def odd(y: Any, p: Any) -> Any:
        return result

    with pytest.raises(ag.TrainingError, match=r"Losses and metrics return an array, .* from 'odd'"):
        made(metrics=[odd]).fit(X, Y, verbose=0)


def test_accuracy_of_one_prediction_for_each_example() -> None:
    model = Free(lambda y: y[:, 0], units=1)
    model.compile("sgd", lambda y, p: np.square(p - y), metrics=["accuracy"])
    truth = (X[:, 0] > 0).astype(int)
    expected = np.mean((model.predict(X) > 0.5) == truth)
    assert 0 < expected < 1
    assert model.evaluate(X, truth, batch_size=8)["accuracy"] == pytest.approx(expected)
    model = Free(np.mean)
    model.compile("sgd", lambda y, p: p, metrics=["accuracy"])
    with pytest.raises(ag.TrainingError, match="accuracy takes a prediction for each example"):
        model.evaluate(X, truth)


def test_models_without_variables_do_not_train() -> None:
    class Forgetful(ag.Model):
        def call(self, x: Any) -> Any:
            return layers.Dense(2)(x)

    for model, received in [(Forgetful(), "no layers"), (ag.Sequential([layers.Flatten()]), "Flatten")]:
        model.compile("sgd", lambda y, p: np.mean(p))
        with pytest.raises(ag.TrainingError, match=rf"has no variables to train. .* Received: .*{received}"):
            model.fit(X, Y, verbose=0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda model: model.build(3), "built for a shape, such as .* Received: 3"),
        (lambda model: model.build(()), r"built for a shape, such as .* Received: \(\)"),
        (lambda model: model.build((None, -3)), r"Received: \(None, -3\)"),
        (lambda model: model.build("abc"), "Received: 'abc'"),
        (lambda model: model.build((None, 3), "floot"), "inputs of models are numbers. Received: 'floot'"),
        (lambda model: ag.Sequential(layers.Dense(2)), "a list of layers. Received: <Dense 'dense'>"),  # type: ignore[arg-type]
        (lambda model: model.add(model), "no layer of its own. Received: <Sequential"),
        (lambda model: ag.Sequential(None), "a list of layers. Received: None"),  # type: ignore[arg-type]
        (lambda model: model.compile("sgd", "MSE"), "Did you mean 'mse'"),
        (lambda model: model.compile("sgd", "mse", ["Accuracy"]), "Did you mean 'accuracy'"),
        (lambda model: layers.Dense(2, activation="ReLU"), "Did you mean 'relu'"),
        (lambda model: model.fit(np.ma.masked_array(X, X > 0), Y), "x is a masked array"),
        (lambda model: model.fit(iter([X]), Y), "Received: list_iterator"),
        (lambda model: model.fit({"a": X}, Y), "Received: dict"),
    ],
)
def test_what_makes_no_sense_is_refused(build: Any, message: str) -> None:
    with pytest.raises(ag.TrainingError, match=message):
        build(made())


def test_a_callback_may_train_the_model_itself() -> None:
    class Again(train.Callback):
        def on_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            self.model.fit(X, Y, verbose=0)

    model = made()
    history = model.fit(X, Y, verbose=0, epochs=2, batch_size=10, callbacks=[Again()])
    assert model.history is history
    assert (len(history.epoch), len(history.steps["loss"])) == (2, 4)


def test_a_callback_may_set_the_learning_rate_of_a_wrapped_optimizer() -> None:
    opt = ag.enable_mixed_precision_graph_rewrite(train.SGD(0.5), target="cpu")

    class Stop(train.Callback):
        def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
            assert self.model.optimizer is opt
            opt.learning_rate = 0.0

    model = made(optimizer=opt)
    history = model.fit(X, Y, verbose=0, epochs=3, shuffle=False, callbacks=[Stop()]).history["loss"]
    assert history[0] != history[1] == history[2]
    assert opt.inner.learning_rate == opt.learning_rate == 0


@pytest.mark.parametrize("path", ["{epoch.real.foo}", "{loss[0]}"])
def test_braces_of_paths_are_checked(path: str) -> None:
    with pytest.raises(ag.TrainingError, match="has braces for epoch, loss only"):
        made().fit(X, Y, verbose=0, callbacks=[train.ModelCheckpoint(path)])


@pytest.mark.parametrize(
    "optimizer", [train.SGD(0.1), train.SGD(0.1, momentum=0.9), train.LAMB(0.01), train.Adagrad(train.CosineDecay(0.1, 9))]
)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_goes_on_bit_by_bit(copied: Any, optimizer: train.Optimizer) -> None:
    model = made(
        layers.Dense(4),
        layers.BatchNormalization(),
        layers.Dropout(0.5),
        layers.Dense(2),
        optimizer=ag.enable_mixed_precision_graph_rewrite(copy.deepcopy(optimizer), target="cpu"),
        metrics=["mae"],
    )
    model.fit(X, Y, verbose=0)
    before = [variable.value.copy() for variable in model.variables]
    other = copied(model)
    histories = [one.fit(X, Y, verbose=0, epochs=2).history for one in (other, model)]
    assert histories[0] == histories[1]
    for one, two, start in zip(model.variables, other.variables, before, strict=True):
        assert one is not two
        assert one.value.tobytes() == two.value.tobytes() != start.tobytes()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda variable: pickle.loads(pickle.dumps(variable))])
def test_what_a_copied_variable_holds_is_not_handed_out(copied: Any) -> None:
    variable = copied(ag.Variable([1.0, 2.0], "w", trainable=False))
    assert (variable.name, variable.dtype, variable.trainable) == ("w", np.float32, False)
    found = ag.function(lambda: variable.value)()
    found += 1
    assert variable.value.tolist() == [1, 2]


def test_an_optimizer_trains_one_model_of_the_same_names() -> None:
    opt = train.Adam(0.01)
    made(optimizer=opt).fit(X, Y, verbose=0)
    other = made(optimizer=opt)
    with pytest.raises(ag.TrainingError, match=r"Adam.* has trained variables of another model that are called 'dense/kernel'"):
        other.fit(X, Y, verbose=0)
    named = ag.Sequential([layers.Dense(2)], name="named", seed=0)
    named.compile(opt, "mse")
    named.fit(X, Y, verbose=0)
    assert opt.global_step == 2


def test_a_layer_may_know_its_model() -> None:
    model = made()
    model.layers[0].owner = model  # type: ignore[attr-defined]
    model.fit(X, Y, verbose=0)
    assert [variable.name for variable in model.variables] == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]


@pytest.mark.parametrize(
    "make", [lambda part: train.Adam(beta_1=part), lambda part: train.AdamW(beta_2=part), lambda part: train.RMSprop(rho=part)]
)
@pytest.mark.parametrize("part", [1, 1.5])
def test_running_means_take_something_over(make: Any, part: float) -> None:
    with pytest.raises(ag.TrainingError, match=rf"from 0 up to 1, which is not included. Received: {part}"):
        make(part)


def test_a_loss_that_is_none_is_not_scaled() -> None:
    opt = ag.enable_mixed_precision_graph_rewrite(train.SGD(), target="cpu")
    with pytest.raises(ag.TraceError, match="Received: None"):
        ag.trace(lambda x: opt.get_scaled_loss(None), X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: train.EarlyStopping(None), "EarlyStopping watches a number of the logs by its name. Received: None"),
        (lambda: train.EarlyStopping(min_delta="a"), "min_delta of EarlyStopping is a finite number. Received: 'a'"),
        (lambda: train.EarlyStopping(min_delta=float("nan")), "min_delta of EarlyStopping is a finite number. Received: nan"),
        (lambda: train.save_checkpoint("a.npz", [], None), "has an optimizer of ampgraph.train. Received: None"),
        (lambda: train.save_checkpoint("a.npz", [X], train.SGD()), "hold a list of variables, .* Received: array"),
        (lambda: train.load_checkpoint("a.npz", 3, train.SGD()), "hold a list of variables, .* Received: 3"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ag.TrainingError, match=message):
        make()


def test_a_model_that_forgets_to_begin() -> None:
    class Forgetful(ag.Model):
        def __init__(self) -> None:
            self.dense = layers.Dense(2)

    for use in (repr, lambda model: model.predict(X), lambda model: model.compile("sgd", "mse"), lambda model: model(X)):
        with pytest.raises(ag.TrainingError, match=r"__init__ of Forgetful calls super\(\).__init__\(\) first"):
            use(Forgetful())
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'fitt'"):
        made().fitt(X, Y)  # type: ignore[attr-defined]


def test_what_is_not_trained_is_not_trained_after_loading(tmp_path: Path) -> None:
    model = made()
    model.build((None, 3))
    model.variables[0].trainable = False
    model.fit(X, Y, verbose=0)
    model.save(tmp_path / "model.npz")
    other = train.load_model(tmp_path / "model.npz")
    for one in (model, other):
        one.fit(X, Y, verbose=0, epochs=2, initial_epoch=1, seed=1)
    assert [variable.trainable for variable in other.variables] == [False, True, True, True]
    assert [v.value.tobytes() for v in other.variables] == [v.value.tobytes() for v in model.variables]
