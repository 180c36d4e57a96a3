"""The text form of graphs: ``print_graph`` writes it, ``parse_graph`` reads it, identity both ways.

::

    graph mlp(%x: f32[1024,64], %w: f32[64,64]) <producer=2474> {
      %h: f32[1024,64] = tf.MatMul<T=f32>(%x, %w) {transpose_b=true} name="dense/MatMul" device="/gpu:0" control=["init"]
      %"grad/Neg:0": f32[1024,64], %b: i32[] = vendor.Op(%h, _, %w) {axis=1}
      return %h, loss=%b
    }
    function body(%x: f32[]) {
      return out=%x
    }

- A value is ``%name``, quoted when it is not a plain word; ``%name#1`` is the second value of that name (an invalid graph).
- A type is a dtype's short name and a shape: ``f32`` has unknown rank, ``f32[?,64,n]`` an unknown and a symbolic size,
  ``?`` an unknown dtype. Result types are always printed; they may be left out of text to parse.
- ``<T=f32>`` holds the type variables. One that equals the op's default is left out, ``T=?`` is one without a dtype. In text
  to parse the others may be left out too: they follow from result types, operands, then defaults.
- ``{…}`` holds the other attributes, without those at their default: ``-1``, ``0.5`` (float32; ``0.1d`` is a double),
  ``true``, ``"bytes\\n"``, ``s"text"``, ``shape[2,?]``, ``shape[*]``, ``dense<f32[2], [1.0, nan]>``,
  ``dense<f32[64,64], splat 0.0>``, ``dense<f32[64,64], #0123456789abcdef>`` (over 16 elements),
  ``@function{T=dtype:f32}``, ``$T`` (supplied by a function's caller), ``dtype:f32``, ``none`` and ``[lists]``.
- ``name="…"`` is left out where it is the first result's name (TensorFlow, ampgraph) or empty (all others). ``control=[…]`` names
  nodes; one without a unique name is ``#12``, its place among graph inputs and nodes.
- Nodes stand in file order, which need not be topological. ``//`` starts a comment.
"""

from .text_parse import parse_graph
from .text_print import constants_of, print_graph

__all__ = ["constants_of", "parse_graph", "print_graph"]
