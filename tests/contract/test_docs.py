"""The pages under docs/ are true: their Python runs, the files they name exist, the reading order leaves no module out."""

import re
from pathlib import Path

import pytest

from .modules import ROOT, Module, modules

PAGES = sorted((ROOT / "docs").glob("*.md"))
READING_ORDER = (ROOT / "docs" / "reading_order.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs(page: Path) -> None:
    namespace: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        exec(compile(block, page.name, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_policies_can_be_read(page: Path) -> None:
    from ampgraph import Policy

    for block in re.findall(r"^```toml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        assert Policy.from_toml(block).lists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), link


def test_the_reading_order_names_files_that_exist() -> None:
    names = re.findall(r"`((?:\w+/)+[\w.*]*)`", READING_ORDER)
    assert len(names) > 50
    for name in names:
        assert list(ROOT.glob(name.rstrip("/"))), name


@pytest.mark.parametrize("module", [pytest.param(module, id=module.name) for module in modules()])
def test_the_reading_order_leads_to_every_module(module: Module) -> None:
    path = module.path.relative_to(ROOT).as_posix()
    command = path.startswith("src/ampgraph/cli/") and "@click.command" in module.path.read_text(encoding="utf-8")
    if not command and module.path.name != "__init__.py":
        assert f"`{path}`" in READING_ORDER


def test_every_folder_of_recorded_data_says_what_it_is() -> None:
    folders = [path for path in (ROOT / "tests" / "data").iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        text = (folder / "README.md").read_text(encoding="utf-8")
        assert "TensorFlow 2." in text or "written for these tests" in text, folder
