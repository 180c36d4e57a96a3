"""``ampgraph demo``: a small graph before and after, and why."""

import click

from ampgraph.cli.output import print_text
from ampgraph.cli.program import Command

_GRAPH = """
graph demo() {
  %x: f32[32,64] = tf.Placeholder<dtype=f32>() {shape=shape[32,64]}
  %w: f32[64,64] = tf.Placeholder<dtype=f32>() {shape=shape[64,64]}
  %h: f32[32,64] = tf.MatMul<T=f32>(%x, %w)
  %relu: f32[32,64] = tf.Relu<T=f32>(%h)
  %logits: f32[32,64] = tf.MatMul<T=f32>(%relu, %w)
  %exp: f32[32,64] = tf.Exp<T=f32>(%logits)
  %y: f32[32,64] = tf.Tanh<T=f32>(%exp)
  %out: f32[32,64] = tf.Identity<T=f32>(%y)
  return %out
}
"""


@click.command(cls=Command)
def demo() -> None:
    """Rewrite a small built-in graph and print why."""
    from ampgraph.graph.text import parse_graph
    from ampgraph.rewrite import auto_mixed_precision

    graph = parse_graph(_GRAPH)
    result = auto_mixed_precision(graph)
    for title, text in (("before", str(graph)), ("after", str(result.graph))):
        print_text(f"// {title}\n{text}\n")
    print_text("// why\n" + "\n".join(map(str, result.report.explain())))
