"""``python -m bench.memory PB POLICY [OUTPUT…]``: load, rewrite, verify and save a graph; print this process's peak in bytes."""

import resource
import sys
from pathlib import Path

from ampgraph.graph.formats.files import load, save
from ampgraph.graph.verify import verify
from ampgraph.rewrite import Policy, convert


def main(path: str, policy: str, *outputs: str) -> int:
    """Do the work; return the peak of resident memory in bytes."""
    result = convert(load(path, outputs=outputs or None), Policy.parse(policy))
    verify(result.graph)
    save(result.graph, Path(path).with_suffix(".out.pb"))
    return peak()


def peak() -> int:
    """Return the peak of this process. Not ``ru_maxrss`` on Linux, which starts at the size of the process that forked."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
