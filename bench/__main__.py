"""``python -m bench`` lists the benchmarks, ``python -m bench NAME --help`` says what one of them measures."""

import argparse
import sys
from collections.abc import Sequence

from bench import executor, onnx, ops, parity, rewrite, startup, train

_BENCHMARKS = {
    "rewrite": rewrite,
    "onnx": onnx,
    "run": executor,
    "ops": ops,
    "train": train,
    "parity": parity,
    "startup": startup,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark that the arguments name, or list them all; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Benchmarks of ampgraph.")
    commands = parser.add_subparsers(dest="benchmark", metavar="BENCHMARK")
    for name, module in _BENCHMARKS.items():
        text = str(module.__doc__)
        command = commands.add_parser(
            name, help=text.splitlines()[0], description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        module.add_arguments(command)
    options = parser.parse_args(arguments)
    if options.benchmark is None:
        parser.print_help()
        return 0
    try:
        _BENCHMARKS[options.benchmark].run(options)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
