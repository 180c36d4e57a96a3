"""Text."""

from typing import Any

import numpy as np
import pytest

from ampgraph.graph.errors import KernelError
from tests.kernels.one_node import run_op


def strings(*items: str) -> np.ndarray:
    result = np.empty(len(items), object)
    result[:] = items
    return result


def test_joining_broadcasts() -> None:
    y = run_op("StringConcat", strings("a", "é").reshape(2, 1), strings("x", ""))
    assert y.tolist() == [["ax", "a"], ["éx", "é"]]
    assert run_op("StringConcat", np.array("a", object), np.array("b", object)).tolist() == "ab"


def test_splitting_fills_up_with_empty_strings() -> None:
    parts, counts = run_op("StringSplit", strings("a,b,,c", "", "d"), results=2, delimiter=b",", maxsplit=2)
    assert parts.tolist() == [["a", "b", ",c"], ["", "", ""], ["d", "", ""]]
    assert counts.tolist() == [3, 1, 1]
    parts, counts = run_op("StringSplit", strings("  a  b ", ""), results=2)
    assert (parts.tolist(), counts.tolist()) == ([["a", "b"], ["", ""]], [2, 0])


def test_matching_means_the_whole() -> None:
    assert run_op("RegexFullMatch", strings("ab", "abc", "xab"), pattern=b"a.").tolist() == [True, False, False]
    with pytest.raises(
        KernelError, match=r"Node 'RegexFullMatch' .* the pattern has a '\(' without its '\)' at 1. Received: '\('"
    ):
        run_op("RegexFullMatch", strings("a"), pattern=b"(")


def test_stop_words_are_compared_as_asked_and_the_case_changes_afterwards() -> None:
    words = strings("The", "Cat", "the")
    assert run_op("StringNormalizer", words, stopwords=[b"the"], case_change_action=b"UPPER").tolist() == ["CAT"]
    kept = run_op("StringNormalizer", words, stopwords=[b"the"], is_case_sensitive=1, case_change_action=b"LOWER")
    assert kept.tolist() == ["the", "cat"]
    assert run_op("StringNormalizer", words.reshape(1, 3), stopwords=[b"the", b"cat"]).tolist() == [[""]]
    with pytest.raises(KernelError, match=r"\[C\] or \[1, C\]"):
        run_op("StringNormalizer", words.reshape(3, 1))


POOL: dict[str, Any] = {"ngram_counts": [0, 2], "ngram_indexes": [1, 0, 3], "min_gram_length": 1, "max_gram_length": 2}


@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_n_grams_are_counted(kind: str) -> None:
    """One-grams 5 and 7 go to columns 1 and 0; the two-gram (5, 7) to column 3; column 2 stays empty."""
    tokens = [[5, 7, 9, 5, 5, 7], [9, 9, 9, 9, 9, 5]]
    pool: dict[str, Any]
    if kind == "numbers":
        x, pool = np.array(tokens), {"pool_int64s": [5, 7, 5, 7]}
    else:
        x, pool = np.array([[str(token) for token in row] for row in tokens], object), {"pool_strings": [b"5", b"7", b"5", b"7"]}
    assert run_op("TfIdfVectorizer", x, max_skip_count=0, mode=b"TF", **POOL, **pool).tolist() == [[2, 3, 0, 2], [0, 1, 0, 0]]
    # One token between: also (5, _, 7) at the end.
    assert run_op("TfIdfVectorizer", x[0], max_skip_count=1, mode=b"TF", **POOL, **pool).tolist() == [2, 3, 0, 3]
    weights: dict[str, Any] = {"weights": [0.5, 2.0, 3.0], **POOL, **pool}
    assert run_op("TfIdfVectorizer", x[0], max_skip_count=0, mode=b"IDF", **weights).tolist() == [2, 0.5, 0, 3]
    assert run_op("TfIdfVectorizer", x[0], max_skip_count=0, mode=b"TFIDF", **weights).tolist() == [4, 1.5, 0, 6]


def test_rows_shorter_than_an_n_gram_have_none() -> None:
    y = run_op("TfIdfVectorizer", np.zeros((1, 0), np.int64), max_skip_count=0, mode=b"TF", pool_int64s=[5, 7, 5, 7], **POOL)
    assert y.tolist() == [[0, 0, 0, 0]]
