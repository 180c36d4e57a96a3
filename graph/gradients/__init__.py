"""Gradients of TensorFlow graphs: :func:`gradients` adds the nodes that compute them.

The rules, one for each op, stand in tables by op family. A rule takes a :class:`~.builder.Builder`, the node, and the
gradient of each of its results (None where nothing depends on it); it returns the gradient of each operand, None where
there is none.
"""

from .sweep import gradients

__all__ = ["gradients"]
