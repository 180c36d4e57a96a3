"""``ampgraph doctor``: what is installed here, and what it is good for."""

import click

import ampgraph
from ampgraph.cli.output import print_json, print_table
from ampgraph.cli.program import Command

_NEEDED = {
    "numpy": "arrays",
    "networkx": "graphs",
    "ml_dtypes": "bfloat16",
    "protobuf": "TensorFlow files",
    "onnx": "ONNX files",
    "click": "this command line",
    "rich": "tables and progress on a terminal",
}
_OPTIONAL = {
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-intel"),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "tensorrt": ("tensorrt", "tensorrt-cu12", "tensorrt-cu13"),
    "cupy": ("cupy", "cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x"),
}
_USES = {
    "tensorflow": "not used; files are read and written without it",
    "onnxruntime": "not used; runs what was rewritten (--preset onnxruntime)",
    "tensorrt": "not used; builds engines of what was rewritten (--preset tensorrt)",
    "cupy": "`ampgraph run --device gpu`",
    "dot": "`ampgraph dump --format svg`",
    "GPU": "running with CuPy, from compute capability 7.0 on; what to rewrite for says --target",
}
_SECONDS = 10


@click.command(cls=Command)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say what is installed here and what each part is good for.

    Exits with 1 if something that ampgraph needs is missing.
    """
    import platform

    needed = {name: (_version(name), use) for name, use in _NEEDED.items()}
    rows = [
        ("ampgraph", ampgraph.__version__, "itself"),
        ("python", platform.python_version(), f"{platform.system()} {platform.machine()}"),
        *((name, version or "missing", use) for name, (version, use) in needed.items()),
        *((name, next(filter(None, map(_version, names)), "absent"), _USES[name]) for name, names in _OPTIONAL.items()),
        ("dot", _ask("dot", "-V") or "absent", _USES["dot"]),
        ("GPU", _ask("nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader") or "absent", _USES["GPU"]),
    ]
    if as_json:
        print_json({name: {"found": found, "use": use} for name, found, use in rows})
    else:
        print_table(("part", "found", "for"), rows)
    missing = [name for name, (version, _) in needed.items() if version is None]
    if missing:
        click.echo(f"error: ampgraph needs {', '.join(missing)}: pip install {' '.join(missing)}", err=True)
        ctx.exit(1)


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _ask(program: str, *arguments: str) -> str:
    """Return what a program says, on one line; empty if it is not there or fails."""
    import shutil
    import subprocess

    if shutil.which(program) is None:
        return ""
    try:
        run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ", ".join((run.stdout or run.stderr).split("\n")).strip(", ")
