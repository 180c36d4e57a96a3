"""Groups of tests that need more than the base install: skipped where it is missing, and named at the end with the reason."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

# No deadlines: how long an example takes says more about the machine. Where CI is set, hypothesis has a profile of its own.
hypothesis.settings.register_profile("local", deadline=None)
if "CI" not in os.environ:
    hypothesis.settings.load_profile("local")


def _missing_gpu() -> str:
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    import cupy  # pyright: ignore[reportMissingImports]

    try:
        return "" if cupy.cuda.runtime.getDeviceCount() else "there is no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU ({error})"


def _missing_tensorflow() -> str:
    return "" if importlib.util.find_spec("tensorflow") else "TensorFlow is not installed; pip install tensorflow-cpu"


def _missing_graphviz() -> str:
    return "" if shutil.which("dot") else "there is no program dot; apt install graphviz"


def _missing_goldens() -> str:
    folder = os.environ.get("AMPGRAPH_GOLDENS")
    if not folder:
        return "AMPGRAPH_GOLDENS names no folder with the full golden sets; the share in this repository was run"
    return "" if Path(folder).is_dir() else f"AMPGRAPH_GOLDENS={folder} is no folder"


#: For every marker: why its tests cannot run here, or an empty string.
GROUPS: dict[str, Callable[[], str]] = {
    "gpu": _missing_gpu,
    "tensorflow": _missing_tensorflow,
    "graphviz": _missing_graphviz,
    "goldens": _missing_goldens,
}
#: More of the same, not a capability: never an error.
MORE = {"goldens", "nightly"}

_not_run = pytest.StashKey[dict[str, str]]()
_counts = pytest.StashKey[dict[str, int]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--may-skip`` and ``--more-examples``."""
    parser.addoption("--more-examples", type=int, metavar="N", help="try N times as many examples of every hypothesis test")
    parser.addoption(
        "--may-skip",
        metavar="GROUPS",
        help=f"fail when a group of tests other than these (separated by commas, of {', '.join(GROUPS)}) cannot run",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Find out which groups cannot run here."""
    config.stash[_not_run] = {group: reason for group, missing in GROUPS.items() if (reason := missing())}
    if config.getoption("--more-examples") is None:
        config.stash[_not_run]["nightly"] = "they take minutes; make nightly runs them"
    config.stash[_counts] = dict.fromkeys((*GROUPS, "nightly"), 0)
    allowed: str | None = config.getoption("--may-skip")
    if allowed is None:
        return
    names = set(allowed.split(","))
    if unknown := names - set(GROUPS):
        raise pytest.UsageError(f"--may-skip: there is no group {sorted(unknown)}, there are {', '.join(GROUPS)}.")
    for group, reason in config.stash[_not_run].items():
        if group not in names | MORE:
            raise pytest.UsageError(f"The tests of group {group} must run, but cannot: {reason}.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests of groups that cannot run here; give hypothesis tests more examples."""
    factor: int | None = config.getoption("--more-examples")
    for item in items:
        for group, reason in config.stash[_not_run].items():
            if item.get_closest_marker(group):
                config.stash[_counts][group] += 1
                item.add_marker(pytest.mark.skip(reason=f"{group}: {reason}"))

    if factor is not None:
        # Tests set their number of examples themselves, so a profile would not reach them.
        tests = {item.obj for item in items if isinstance(item, pytest.Function) and hypothesis.is_hypothesis_test(item.obj)}
        for test in tests:
            settings: hypothesis.settings = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = hypothesis.settings(settings, max_examples=settings.max_examples * factor)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> Iterator[None]:
    """Write one line for each group that was not run."""
    yield
    for group, reason in config.stash[_not_run].items():
        count = config.stash[_counts][group]
        terminalreporter.write_line(f"not run: {group} ({count} test{'s' * (count != 1)}): {reason}", yellow=True)
