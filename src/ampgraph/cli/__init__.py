"""The command line ``ampgraph``.

Data goes to stdout, messages and progress to stderr; ``-`` is stdin or stdout. Exit codes: 0 done, 1 the model cannot be
handled, 2 bad arguments, 130 interrupted (``diff`` and ``compare`` as diff(1): 0 same, 1 different, 2 trouble). Everything heavier than
click is imported by the commands that need it, so that ``ampgraph --help`` answers at once.
"""

import click

import ampgraph
from ampgraph.cli.advise import advise
from ampgraph.cli.compare import compare
from ampgraph.cli.demo import demo
from ampgraph.cli.diff import diff
from ampgraph.cli.doctor import doctor
from ampgraph.cli.dump import dump
from ampgraph.cli.explain import explain
from ampgraph.cli.lists import lists
from ampgraph.cli.policy import policy
from ampgraph.cli.program import Program
from ampgraph.cli.rewrite import rewrite
from ampgraph.cli.run import run
from ampgraph.cli.show import show
from ampgraph.cli.verify import verify


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ampgraph.__version__, prog_name="ampgraph")
def program() -> None:
    """Automatic mixed precision for dataflow graphs.

    A float32 model goes in (ONNX; TensorFlow's GraphDef or SavedModel; .json, .txt); the one that comes out computes in
    float16 or bfloat16 what is safe there, and every decision can be explained.
    """


for _command in (rewrite, explain, advise, show, dump, diff, run, compare, lists, policy, verify, doctor, demo):
    program.add_command(_command)


def main() -> None:
    """Run the command line and exit."""
    program(prog_name="ampgraph")
