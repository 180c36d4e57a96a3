"""The environment variables of Grappler's auto_mixed_precision."""

import pytest

from ampgraph.graph.errors import OpListError
from ampgraph.lists import Color, OpLists, read_environment
from ampgraph.lists.environment import PREFIX


def load(**variables: str) -> OpLists:
    return OpLists.from_env("cuda_fp16", {PREFIX + name: value for name, value in variables.items()})


def test_adds_then_removes() -> None:
    lists = load(INFERLIST_ADD="Sin,Cos,Tan", INFERLIST_REMOVE="Softmax,Cos", DENYLIST_REMOVE="Exp", ALLOWLIST_ADD="Exp")
    assert (lists.list_of("Sin"), lists.list_of("Cos"), lists.list_of("Softmax")) == (Color.GRAY, None, None)
    assert lists.list_of("Exp") is Color.ALLOW


def test_legacy_spellings_come_after_the_new_ones() -> None:
    assert load(INFERLIST_ADD="Sin", GRAYLIST_REMOVE="Sin").list_of("Sin") is None
    assert load(INFERLIST_REMOVE="Sin", GRAYLIST_ADD="Sin").list_of("Sin") is Color.GRAY
    assert load(WHITELIST_ADD="Sin").list_of("Sin") is Color.ALLOW
    assert load(BLACKLIST_REMOVE="Mean").list_of("Mean") is None
    assert load(CLEARLIST_ADD="Cos,Rint").list_of("Rint") is Color.CLEAR


def test_names_are_not_trimmed() -> None:
    lists = load(INFERLIST_REMOVE="BiasAdd, Softmax,")
    assert (lists.list_of("BiasAdd"), lists.list_of("Softmax")) == (None, Color.GRAY)
    assert [edit.op for edit in lists.unknown(["Softmax"])] == [" Softmax"]


def test_an_op_on_two_lists_is_an_error() -> None:
    with pytest.raises(OpListError, match="'Relu' is on the AllowList and on the ClearList"):
        load(ALLOWLIST_ADD="Relu")
    assert load(ALLOWLIST_ADD="Relu", LEVEL="TENSOR_CORES_ONLY").list_of("Relu") is Color.ALLOW


def test_levels_in_any_case_and_unknown_ones() -> None:
    assert load(LEVEL="treat_infer_as_deny").list_of("Softmax") is Color.DENY
    assert load(LEVEL="bogus").list_of("Softmax") is Color.GRAY


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("0", False), ("False", False)])
def test_booleans(text: str, value: bool) -> None:
    found = read_environment({PREFIX + name: text for name in ("IGNORE_PERFORMANCE", "SIMULATE_GPU", "EMULATE_FP16")})
    assert (found.ignore_performance, found.simulate_gpu, found.emulate_fp16) == (value, value, value)
    found = read_environment({})
    assert (found.ignore_performance, found.simulate_gpu, found.emulate_fp16) == (False, False, True)


@pytest.mark.parametrize("text", ["", "yes", " 1", "2"])
def test_bad_booleans(text: str) -> None:
    with pytest.raises(OpListError, match=f"SIMULATE_GPU must be 0, 1, false or true. Received: '{text}'"):
        read_environment({PREFIX + "SIMULATE_GPU": text})


def test_the_environment_is_read_only_when_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "DENYLIST_ADD", "Sin")
    assert OpLists.load("cuda_fp16").list_of("Sin") is None
    assert OpLists.from_env("cuda_fp16").list_of("Sin") is Color.DENY
