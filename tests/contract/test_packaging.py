"""The package lists of pyproject.toml name what is on disk, and nothing else."""

import importlib.metadata
import re
import tomllib

import ampgraph

from .modules import ROOT, setuptools_config


def test_every_package_folder_is_listed() -> None:
    config = setuptools_config()
    on_disk = set()
    for package, folder in config["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            on_disk.add(".".join((package, *init.parent.relative_to(ROOT / folder).parts)))
    assert set(config["packages"]) == on_disk


def test_every_folder_with_modules_is_a_package() -> None:
    for folder in setuptools_config()["package-dir"].values():
        for module in (ROOT / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), f"{module.parent} has no __init__.py"


def test_every_data_file_is_shipped() -> None:
    config = setuptools_config()
    shipped, on_disk = set(), set()
    for package in config["packages"]:
        above, _, name = package.rpartition(".")
        folder = ROOT / (config["package-dir"].get(package) or f"{config['package-dir'].get(above, '')}/{name}")
        if not folder.is_dir():  # more than one level below the mapped folder
            top = ".".join(package.split(".")[:2])
            folder = ROOT / config["package-dir"][top] / "/".join(package.split(".")[2:])
        on_disk |= {path for path in folder.iterdir() if path.is_file() and path.suffix not in (".py", ".pyc")}
        for pattern in config["package-data"].get(package, ()):
            matches = set(folder.glob(pattern))
            assert matches, f"package-data of {package}: nothing matches {pattern}"
            shipped |= matches
    assert shipped == on_disk


def test_the_version_is_the_installed_one() -> None:
    assert importlib.metadata.version("ampgraph") == ampgraph.__version__
    assert f"\n## {ampgraph.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_dependency_is_pinned_at_both_ends() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    normal = {re.split(r"[<>=\[ ]", entry)[0] for entry in project["project"]["dependencies"]}
    groups = {entry for group in project["dependency-groups"].values() for entry in group if isinstance(entry, str)}
    tools = {re.split(r"[<>=\[ ]", entry)[0] for entry in groups}
    assert normal == _pins("constraints-oldest.txt")
    assert normal | tools <= _pins("constraints.txt")


def test_the_oldest_pins_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8"), re.MULTILINE))
    for entry in project["project"]["dependencies"]:
        name, lowest = re.match(r"([\w-]+)>=([\d.]+)", entry).groups()  # type: ignore[union-attr]
        assert re.sub(r"(\.0)+$", "", pins[name]) == re.sub(r"(\.0)+$", "", lowest)


def _pins(file: str) -> set[str]:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert "://" not in text
    return set(re.findall(r"^([\w-]+)==", text, re.MULTILINE))
