"""Where programs run: the gate in front of GPUs, with a stand-in for CuPy; and one run on a real one."""

import sys
import types
from typing import Any

import numpy as np
import pytest

import ampgraph as ag
from ampgraph.kernels.backend import get_backend

GRAPH = "graph g(%x: f16[2,2]) {\n  %y: f16[2,2] = MatMul<T=f16>(%x, %x)\n  %z: f16[2,2] = Exp<T=f16>(%y)\n  return %z\n}"


def fake_cupy(capabilities: list[str], error: str = "") -> Any:
    """Return a module like CuPy on a machine with GPUs of these compute capabilities."""

    class CUDARuntimeError(RuntimeError):
        pass

    def count() -> int:
        if error:
            raise CUDARuntimeError(error)
        return len(capabilities)

    runtime = types.SimpleNamespace(getDeviceCount=count, CUDARuntimeError=CUDARuntimeError)
    module = types.ModuleType("cupy")
    device = lambda number: types.SimpleNamespace(compute_capability=capabilities[number])
    module.cuda = types.SimpleNamespace(runtime=runtime, Device=device)  # type: ignore[attr-defined]
    return module


def test_the_cpu_is_numpy() -> None:
    backend = get_backend("cpu")
    assert (backend.name, backend.xp) == ("cpu", np)


@pytest.mark.parametrize(
    ("device", "capabilities", "name"),
    [
        ("gpu", ["80"], "gpu:0"),
        ("gpu:1", ["60", "120"], "gpu:1"),
        ("auto", ["70"], "gpu:0"),
        ("auto", ["61"], "cpu"),
        ("auto", [], "cpu"),
    ],
)
def test_gpus_from_7_0_on_are_used(monkeypatch: pytest.MonkeyPatch, device: str, capabilities: list[str], name: str) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(capabilities))
    backend = get_backend(device)
    assert backend.name == name
    assert backend.xp.__name__ == ("numpy" if name == "cpu" else "cupy")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (None, r"CuPy cannot be imported .* Run on 'cpu'"),
        (fake_cupy([], "no driver"), r"CuPy finds no GPU \(no driver\)"),
        (fake_cupy([]), "there are 0 GPUs, counted from 0"),
        (fake_cupy(["61"]), r"its compute capability is 6.1, and 7.0 is needed"),
    ],
)
def test_why_a_gpu_cannot_be_used(monkeypatch: pytest.MonkeyPatch, module: Any, message: str) -> None:
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(ag.KernelError, match=message):
        get_backend("gpu")


@pytest.mark.gpu
def test_a_gpu_computes_the_same() -> None:
    import cupy  # pyright: ignore[reportMissingImports]

    graph = ag.parse_graph(GRAPH)
    x = np.array([[1, 2], [3, 0.5]], np.float16)
    found = ag.compile(graph, "gpu")({"x": cupy.asarray(x)})["z"]
    expected = ag.compile(graph, "cpu")({"x": x})["z"]
    assert isinstance(found, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(found).astype(np.float64), expected.astype(np.float64), rtol=2e-3)


def test_the_backend_interface_runs_models_by_order_and_by_name() -> None:
    from onnx import TensorProto, helper

    from ampgraph import backend

    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "abc"]
    model = helper.make_model(
        helper.make_graph([helper.make_node("Sub", ["a", "b"], ["c"])], "g", infos[:2], infos[2:]),
        opset_imports=[helper.make_opsetid("", 21)],
    )
    a, b = np.array([5, 6], np.float32), np.array([1, 2], np.float32)
    assert backend.run_model(model, [a, b])[0].tolist() == [4, 4]
    assert backend.prepare(model).run({"b": a, "a": b})[0].tolist() == [-4, -4]
    assert backend.supports_device("CPU")
    assert not backend.supports_device("TPU")
    with pytest.raises(ag.KernelError, match=r"The model has 2 inputs. Received: 3"):
        backend.prepare(model).run([a, b, a])
    with pytest.raises(ag.KernelError, match=r"Input 'b' .* has no feed"):
        backend.prepare(model).run([a])
