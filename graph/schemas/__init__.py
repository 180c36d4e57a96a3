"""Where op schemas come from: one module per vocabulary."""

from ..schema import OpSchema
from . import ampgraph, onnx, tf


def find_schema(domain: str, op_type: str, version: int = 0) -> OpSchema | None:
    """Return the schema of an op, or None when its vocabulary does not define it.

    Args:
        domain: ``"tf"``, ``"ampgraph"``, or an ONNX domain (``""`` is the standard's own).
        op_type: Name of the op.
        version: For ONNX, the version of the domain's vocabulary; 0 finds nothing.
    """
    if domain == "tf":
        return tf.find(op_type)
    if domain == "ampgraph":
        return ampgraph.find(op_type)
    return onnx.find(domain, op_type, version) if version else None
