"""Layers: Keras's results, names, variables made at the first call, and what they refuse."""

from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph import layers
from ampgraph.train.layers.activations import ACTIVATIONS, find_activation

from .keras_data import KERAS, array

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{i}-{case['kind']}") for i, case in enumerate(KERAS["layers"])])
def test_layers_compute_what_keras_computes(case: Any) -> None:
    layer = getattr(layers, case["kind"])(**case["options"])
    x = array(case["x"])
    layer(x)
    assert [variable.name.rpartition("/")[2] for variable in layer.variables] == list(case["weights"])
    for variable, weights in zip(layer.variables, case["weights"].values(), strict=True):
        variable.assign(array(weights))
    np.testing.assert_allclose(layer(x), array(case["y"]), rtol=1e-5, atol=1e-6)


def test_every_activation_is_compared() -> None:
    compared = {case["options"].get("activation") for case in KERAS["layers"]}
    assert compared >= ACTIVATIONS.keys() - {"linear", "swish"}
    assert find_activation("swish") is find_activation("silu")
    assert find_activation(None)(X) is X


def test_start_values_are_those_of_keras() -> None:
    dense = layers.Dense(300, seed=1)
    dense.build((None, 500))
    limit = np.sqrt(6 / 800)
    assert 0.99 * limit < np.abs(dense.kernel.value).max() <= limit
    assert abs(dense.kernel.value.std() - limit / np.sqrt(3)) < limit / 100
    conv = layers.Conv2D(64, 3, seed=1)
    conv.build((None, 8, 8, 32))
    limit = np.sqrt(6 / (9 * (32 + 64)))
    assert 0.99 * limit < np.abs(conv.kernel.value).max() <= limit
    lstm = layers.LSTM(8)
    lstm.build((None, None, 3))
    kernel = lstm.recurrent_kernel.value
    np.testing.assert_allclose(kernel @ kernel.T, np.eye(8), atol=1e-6)
    assert lstm.bias.value.reshape(4, 8).sum(1).tolist() == [0, 8, 0, 0]
    assert {variable.dtype.name for layer in (dense, conv, lstm) for variable in layer.variables} == {"float32"}


def test_start_values_follow_from_seeds_and_leave_numpys_alone() -> None:
    def weights(**options: Any) -> Any:
        model = ag.Sequential([layers.Dense(4), layers.Dense(4, **options)], seed=3)
        model.build((None, 4))
        return [variable.value.tolist() for variable in model.variables]

    before: Any = np.random.get_state()
    first = weights()
    after: Any = np.random.get_state()
    assert before[1].tolist() == after[1].tolist()
    assert weights() == first
    assert first[0] != first[2]  # the kernels of two layers
    other = weights(seed=4)
    assert other[:2] == first[:2]
    assert other[2] != first[2]
    model = ag.Sequential([layers.Dense(4)])
    model.build((None, 4))
    assert model.variables[0].value.tolist() != first[0]


def test_layers_are_named_in_their_model() -> None:
    inner = ag.Sequential([layers.Dense(2), layers.Dense(2)])
    model = ag.Sequential([layers.Dense(2), layers.Dense(2, name="middle"), layers.Dense(2), inner, layers.MaxPool2D()])
    assert [layer.name for layer in model.layers] == ["dense", "middle", "dense", "sequential", "max_pool2d"]
    model = ag.Sequential(model.layers[:-1])
    model.build((None, 2))
    kernels = [variable.name for variable in model.variables if variable.ndim == 2]
    assert kernels == [f"{name}/kernel" for name in ("dense", "middle", "dense_1", "sequential/dense", "sequential/dense_1")]
    named = ag.Sequential([layers.Dense(2)], name="critic")
    named.build((None, 2))
    assert [variable.name for variable in named.variables] == ["critic/dense/kernel", "critic/dense/bias"]
    with pytest.raises(ag.TrainingError, match=r"differ in their names. Received: 'a' twice"):
        ag.Sequential([layers.Dense(2, name="a"), layers.Dense(2, name="a")]).build((None, 2))


def test_layers_of_their_own_work_in_a_function() -> None:
    """Those that the function makes are made once for each signature."""

    @ag.function(policy=ag.Policy(target="cpu"))
    def f(x: Any) -> Any:
        return layers.Dense(2)(x) + layers.Dense(2, dtype="float32")(x)

    assert f(X).dtype == np.float32
    (found,) = f.cache.values()
    assert list(found.variables) == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]
    assert found.dtype("dense/MatMul") is ag.find_dtype("float16")
    assert found.dtype("dense_1/MatMul") is ag.find_dtype("float32")


def test_a_layer_converts_floats() -> None:
    dense = layers.Dense(2, seed=1)
    result = dense(X)
    for dtype in (np.float64, np.float16):
        found = dense(X.astype(dtype))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, result, rtol=1e-2, atol=1e-2)
    assert dense(np.ones((1, 4), np.uint8)).tolist() == dense(np.ones((1, 4), np.float32)).tolist()


def test_training_is_passed_on() -> None:
    class Net(ag.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.drop = [layers.Dropout(0.5, seed=2)]
            self.norm = {"a": layers.BatchNormalization()}

        def call(self, x: Any) -> Any:
            return self.norm["a"](self.drop[0](x))

    net, x = Net(), np.ones((100, 4), np.float32)
    assert np.ptp(net(x)) == 0
    assert [variable.name for variable in net.variables] == [
        "net/dropout/state",
        *(f"net/batch_normalization/{name}" for name in ("gamma", "beta", "moving_mean", "moving_variance")),
    ]
    assert [variable.name.rpartition("/")[2] for variable in net.trainable_variables] == ["gamma", "beta"]
    first, second = net(x, training=True), net(x, training=True)
    assert first.std() > 0.5
    assert (first != second).any()
    assert 0.005 < net.norm["a"].moving_mean.value.mean() < 0.05  # about 1, times 0.01 in each of two steps


def test_running_means_do_not_take_over_what_is_not_finite() -> None:
    norm = layers.BatchNormalization()
    x = np.array([[1, np.inf], [3, 1]], np.float32)
    norm(x, training=True)
    assert norm.moving_mean.value.tolist() == pytest.approx([0.02, 0])
    assert norm.moving_variance.value.tolist() == pytest.approx([0.99 + 0.01 * 2, 1])


def test_dropout_keeps_the_mean_and_repeats_with_its_state() -> None:
    drop = layers.Dropout(0.25, seed=1)
    x = np.ones((100, 100), np.float32)
    drop.build(x.shape)
    start = drop.state.value.copy()
    first = drop(x, training=True)
    assert abs(first.mean() - 1) < 0.02
    assert sorted(set(first.ravel().tolist())) == pytest.approx([0, 4 / 3])
    assert (drop(x, training=True) != first).any()
    drop.state.assign(start)
    assert (drop(x, training=True) == first).all()
    np.testing.assert_array_equal(drop(x), x)


def test_own_layers_and_variables_count() -> None:
    class Scale(layers.Layer):
        def __init__(self) -> None:
            super().__init__(name="scale")
            self.offset = ag.Variable(np.float32(1), name="offset")
            self.steps = ag.Variable(0, name="steps")

        def setup(self, shape: tuple[int | None, ...]) -> None:
            self.factor = self.add_variable("factor", shape[-1:], lambda rng, shape: np.full(shape, 2, np.float32))

        def call(self, x: Any, bonus: float = 0.0) -> Any:
            return x * self.factor + self.offset + bonus

    scale = Scale()
    np.testing.assert_allclose(scale(X, bonus=0.5), X * 2 + 1.5)
    assert [variable.name for variable in scale.variables] == ["scale/factor", "offset", "steps"]
    assert [variable.name for variable in scale.trainable_variables] == ["scale/factor", "offset"]
    with pytest.raises(NotImplementedError, match=r"Layer needs a method call"):
        layers.Layer()(X)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: layers.Dense(0), "Layer 'dense' takes a positive integer as units. Received: 0"),
        (lambda: layers.Dense(True), "positive integer as units. Received: True"),
        (lambda: layers.Dense(2, activation="rellu"), "Did you mean 'relu'.* Received: 'rellu'"),
        (lambda: layers.Dense(2, name="a/b"), "The name of a layer is of letters, digits and _.-. Received: 'a/b'"),
        (lambda: layers.Dense(2, dtype="float16"), "dtype of a layer is 'float32'.*Received: 'float16'"),
        (lambda: layers.Dense(2, seed=-1), "A seed is an integer that is not negative. Received: -1"),
        (lambda: layers.Dropout(1), "'dropout' takes a rate from 0 up to 1, which is not included. Received: 1"),
        (lambda: layers.Conv2D(2, (3, 3, 3)), "one integer as kernel_size, or two for height and width. Received: \\(3, 3, 3\\)"),
        (lambda: layers.MaxPool2D(padding="full"), "'max_pool2d' takes the padding 'valid' or 'same'. Received: 'full'"),
        (lambda: layers.BatchNormalization(momentum=1), "at least 0 and less than 1 as momentum. Received: 1"),
        (lambda: layers.LayerNormalization(epsilon=-1), "a number not negative as epsilon. Received: -1"),
        (
            lambda: ag.Sequential([np.tanh]),  # pyright: ignore[reportArgumentType]
            "A Sequential is made of layers, .*Activation makes one of a function. Received: <ufunc",
        ),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ag.TrainingError, match=message):
        make()


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (layers.Dense(2), (3,), r"'dense' takes inputs of at least 2 dimensions, .* Received: shape \[3\]"),
        (layers.Conv2D(2, 3), (3, 4), r"'conv2d' takes inputs of 4 dimensions. Received: shape \[3,4\]"),
        (layers.LSTM(2), (3, 4), r"'lstm' takes inputs of 3 dimensions. Received: shape \[3,4\]"),
        (layers.GlobalAveragePool2D(), (3, 4), r"takes inputs of 4 dimensions. Received: shape \[3,4\]"),
        (layers.MaxPool2D(), (3, 4), r"takes inputs of 4 dimensions. Received: shape \[3,4\]"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(layer: Any, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ag.TrainingError, match=message):
        layer(np.ones(shape, np.float32))


def test_a_built_layer_keeps_its_sizes() -> None:
    dense = layers.Dense(2)
    dense(X)
    with pytest.raises(ag.TrainingError, match=r"'dense' was built for inputs whose last size is 4. Received: shape \[3,3\]"):
        dense(X[:, :3])
    with pytest.raises(ag.TrainingError, match=r"sizes are known and positive.*a variable 'kernel' of shape \[None, 2\]"):
        layers.Dense(2).build((None, None))
    model = ag.Sequential([dense])
    model.build((None, 4))
    with pytest.raises(ag.TrainingError, match="was built already"):
        model.add(layers.Dense(2))


def test_classes_are_told_what_they_got_wrong() -> None:
    with pytest.raises(ag.TrainingError, match=r"makes its variables in setup\(self, shape\).* Received: class Early"):

        class Early(layers.Layer):
            def build(self, shape: Any) -> None: ...

            def call(self, x: Any) -> Any:
                return x

    class Broken(ag.Model):
        @property
        def broken(self) -> Any:
            return X.nothing  # type: ignore[attr-defined]

        def call(self, x: Any) -> Any:
            return self.dense(x)  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match=r"'Broken' object has no attribute 'dense'$"):
        Broken()(X)
    with pytest.raises(AttributeError, match=r"'numpy.ndarray' object has no attribute 'nothing'"):
        _ = Broken().broken
