"""Where op schemas come from: one module per vocabulary."""

from ..schema import OpSchema
from . import ampgraph, tf


def find_schema(domain: str, op_type: str) -> OpSchema | None:
    """Return the schema of an op, or None when its vocabulary does not define it.

    Args:
        domain: ``"tf"`` or ``"ampgraph"``.
        op_type: Name of the op.
    """
    if domain == "tf":
        return tf.find(op_type)
    if domain == "ampgraph":
        return ampgraph.find(op_type)
    return None
