"""The interface of the standard's own test suite, ``onnx.backend.base``."""

from collections.abc import Sequence
from typing import Any

from onnx.backend.base import Backend, BackendRep

from ..graph.errors import KernelError
from ..graph.formats.onnx import read_model
from .program import Program, compile


class PreparedModel(BackendRep):
    """A model that can be run."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Run the model on an array for each input, in their order or by name; return its outputs in order."""
        feeds = dict(inputs) if isinstance(inputs, dict) else self._by_name(inputs)
        return tuple(self.program(feeds).values())

    def _by_name(self, inputs: Sequence[Any]) -> dict[str, Any]:
        names = self.program.input_names
        if len(inputs) < len(names):
            values = self.program.graph.inputs
            names = tuple(name for name, value in zip(names, values, strict=True) if "default" not in value.producer.attributes)
        if len(inputs) > len(names):
            raise KernelError(f"The model has {len(names)} inputs. Received: {len(inputs)}")
        return dict(zip(names, inputs, strict=False))


class AmpgraphBackend(Backend):
    """Runs ONNX models as programs."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_: Any) -> PreparedModel:
        """Make a ``ModelProto`` ready to run on ``"CPU"``, ``"CUDA"`` or ``"CUDA:N"``."""
        return PreparedModel(compile(read_model(model), _device(device)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Run a model once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether programs run on the device here."""
        from .backend import get_backend

        try:
            get_backend(_device(device))
        except KernelError:
            return False
        return True


def _device(device: str) -> str:
    return device.lower().replace("cuda", "gpu")


prepare = AmpgraphBackend.prepare
run_model = AmpgraphBackend.run_model
supports_device = AmpgraphBackend.supports_device
