"""Time ``import ampgraph`` beside ``import numpy``, and ``ampgraph --help``.

Every command runs in new interpreters, in turns, after one run that is not counted; the table has medians. The import's
limit is for what it takes more than ``import numpy``.
"""

import argparse
import resource
import subprocess
import sys
import time

from bench.results import Limit, check_counts, console, limits_table, machine, median, table, write

_COMMANDS = {
    "nothing": ("-c", "pass"),
    "import numpy": ("-c", "import numpy"),
    "import ampgraph": ("-c", "import ampgraph"),
    "import ampgraph, and look up all its names": ("-c", "import ampgraph; [getattr(ampgraph, n) for n in ampgraph.__all__]"),
    "ampgraph --help": ("-m", "ampgraph", "--help"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--repeat", type=int, default=9, help="how often everything is timed [9]")
    parser.add_argument("--json", metavar="OUT", help="also write everything measured to this file")


def run(options: argparse.Namespace) -> None:
    """Measure and print.

    Raises:
        ValueError: If an option makes no sense.
        RuntimeError: If a command fails.
    """
    check_counts(options, "repeat")
    facts = machine()
    times: dict[str, dict[str, list[float]]] = {name: {"wall_s": [], "cpu_s": []} for name in _COMMANDS}
    for i in range(options.repeat + 1):
        for name, command in _COMMANDS.items():
            wall, cpu = _time(name, command)
            if i:
                times[name]["wall_s"].append(wall)
                times[name]["cpu_s"].append(cpu)
    middle = {name: median(found["wall_s"]) for name, found in times.items()}
    limits = [
        Limit("import ampgraph, more than import numpy", middle["import ampgraph"] - middle["import numpy"], 0.2, " s"),
        Limit("ampgraph --help", middle["ampgraph --help"], 0.4, " s"),
    ]
    rows = [(name, f"{middle[name]:.3f}", f"{median(found['cpu_s']):.3f}") for name, found in times.items()]
    screen = console()
    screen.print(table("Seconds", ("new interpreter", "wall", "CPU"), rows))
    screen.print()
    screen.print(limits_table(limits))
    if options.json:
        write(options.json, "startup", facts, limits, repeat=options.repeat, commands=times)


def _time(name: str, command: tuple[str, ...]) -> tuple[float, float]:
    """Return wall and processor time of a new interpreter, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, *command], check=False, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{name!r} failed: {done.stderr[-1000:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
