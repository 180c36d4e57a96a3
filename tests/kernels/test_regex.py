"""Regular expressions: Python's own matcher is the judge, where it comes to an end."""

import random
import re

import pytest

from ampgraph.graph import KernelError
from ampgraph.kernels.regex import Pattern

ONES = ["a", "b", ".", "[ab]", "[^a]", "[]a-]", r"\w", r"\d", r"\W", r"\s", "^", "$", r"\b", r"\B", r"\.", r"\x61", "-", "é"]
REPEATS = ["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?", "??", "{1,2}?"]


def made_up(rng: random.Random, depth: int) -> str:
    kind = rng.random()
    if not depth or kind < 0.35:
        return rng.choice(ONES)
    if kind < 0.55:
        return made_up(rng, depth - 1) + made_up(rng, depth - 1)
    if kind < 0.7:
        return f"({made_up(rng, depth - 1)}|{made_up(rng, depth - 1)})"
    if kind < 0.8:
        return f"(?{rng.choice(['P<n>', 'i:', 's:', ''])}{made_up(rng, 0)})".replace("(?a", "(a")
    return f"(?:{made_up(rng, depth - 1)}){rng.choice(REPEATS)}"


def test_patterns_match_what_python_says() -> None:
    rng = random.Random(0)
    matched = compared = 0
    for _ in range(1500):
        text = made_up(rng, 4)
        try:
            judge = re.compile(text.replace("$", r"\Z"), re.ASCII)
        except re.error:
            continue
        pattern = Pattern(text)
        for _ in range(6):
            word = "".join(rng.choice("abAé-. 1\n") for _ in range(rng.randrange(6)))
            assert pattern.fullmatch(word) == (judge.fullmatch(word) is not None), (text, word)
            matched += pattern.fullmatch(word)
            compared += 1
    assert compared > 5000
    assert matched > 500


@pytest.mark.parametrize("text", ["(a*)*b", "(a|a)*b", "(a|aa)+b", "(a+)+b", "a*a*a*a*a*b", "(.*)(.*)(.*)(.*)[^a]"])
def test_no_pattern_takes_forever(text: str) -> None:
    assert not Pattern(text).fullmatch("a" * 2000)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        (r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)", "a.b-c@gmail.com", "a.b-c@gmail.org"),
        (r"(?i)ab(?-i)c", "ABc", "ABC"),
        (r"(?P<year>\d{4})-(?<month>\d\d)", "2024-10", "2024-1"),
        (r"(?s:.)*x{2,}", "\nxx", "\nx"),
        (r"(?m)a$\nb", "a\nb", "a\n\nb"),
        (r"a$", "a", "a\n"),
        (r"\x{1F600}?\z", "\U0001f600", "x"),
        ("a{,2}", "a{,2}", "aa"),  # as in RE2, which takes that for text
        ("|a", "", "b"),
        (r"\w+", "word", "größe"),
    ],
)
def test_what_re2_says(text: str, yes: str, no: str) -> None:
    pattern = Pattern(text)
    assert pattern.fullmatch(yes)
    assert not pattern.fullmatch(no)


@pytest.mark.parametrize(
    "text",
    [
        *("(", "a)", "(?=a)", "(?<!a)", r"(a)\1", "[a", "a**", "a*+", "*a", "a{2,1}", "a{5000}", "((a{999}){999})", "(?P=n)"),
        *("(?>a)", "(" * 10**5, r"\pL", "[[:alpha:]]", "(?", "\\", "(?x)a", "[]", "[b-a]"),
    ],
)
def test_what_re2_refuses_or_is_too_large(text: str) -> None:
    with pytest.raises(KernelError, match=r"RegexFullMatch: the pattern has .* Received: "):
        Pattern(text)
