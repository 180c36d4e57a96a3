"""TensorFlow's Einsum, as products of matrices where two operands have an axis to sum over in common."""

from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .matmul import product
from .registry import kernel


@kernel("tf:Einsum")
def _einsum(call: Call, *operands: Any) -> Any:
    equation = call.attr("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands) or not arrow:
        raise KernelError(f"Einsum has an equation with a term for each operand and a result. Received: {equation!r}")
    terms, result = _spelt_out(terms, result, operands)
    distinct = "".join(dict.fromkeys(result))
    if len(operands) == 2:
        (a, term_a), (b, term_b) = (
            _diagonal(call.xp, x, term, set(other) | set(result))
            for x, term, other in zip(operands, terms, terms[::-1], strict=True)
        )
        array = _pair(call.xp, a, term_a, b, term_b, distinct)
    else:
        array = call.xp.einsum(f"{','.join(terms)}->{distinct}", *operands, optimize=len(operands) > 2)
    return array if distinct == result else _inflated(call.xp, array, distinct, result)


def _spelt_out(terms: list[str], result: str, operands: Any) -> tuple[list[str], str]:
    """Put letters in the place of every ellipsis."""
    if not any("..." in term for term in terms):
        return terms, result.replace("...", "")
    used = set("".join(terms))
    free = [letter for letter in map(chr, range(97, 400)) if letter.isalpha() and letter not in used]
    counts = [x.ndim - len(term) + 3 if "..." in term else 0 for x, term in zip(operands, terms, strict=True)]
    most = max(counts)
    letters = "".join(free[:most])
    new = [term.replace("...", letters[most - count :]) for term, count in zip(terms, counts, strict=True)]
    return new, result.replace("...", letters)


def _diagonal(xp: Any, x: Any, term: str, kept: set[str]) -> tuple[Any, str]:
    """Take diagonals over repeated letters, and sum over letters that nothing else has."""
    if x.ndim != len(term):
        raise KernelError(f"Einsum: an operand has an axis for each letter of its term. Received: {term!r} for {list(x.shape)}")
    new = "".join(letter for letter in dict.fromkeys(term) if letter in kept)
    return (x, term) if new == term else (xp.einsum(_letters(f"{term}->{new}"), x), new)


def _letters(equation: str) -> str:
    """Return the equation in the letters that NumPy takes."""
    found: dict[str, str] = {}
    names = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return "".join(c if c in ",->" else found.get(c) or found.setdefault(c, next(names)) for c in equation)


def _pair(xp: Any, a: Any, term_a: str, b: Any, term_b: str, result: str) -> Any:
    """Multiply two operands: shared axes that stay are a batch, shared axes that go are summed over in one matrix product."""
    sizes = dict(zip(term_a, a.shape, strict=True))
    for letter, size in zip(term_b, b.shape, strict=True):
        if sizes.setdefault(letter, size) == 1:
            sizes[letter] = size
    # An axis of size 1 that the other operand stretches is dropped from its own.
    a, term_a = _unstretched(a, term_a, sizes)
    b, term_b = _unstretched(b, term_b, sizes)
    batch = [c for c in term_a if c in term_b and c in result]
    summed = [c for c in term_a if c in term_b and c not in result]
    rows = [c for c in term_a if c not in term_b]
    columns = [c for c in term_b if c not in term_a]
    if any(c not in result for c in rows + columns):
        raise KernelError(
            f"Einsum: axes of size 1 are stretched only if they stay. Received: {term_a!r}, {term_b!r} and {result!r}"
        )

    def grouped(x: Any, term: str, *groups: list[str]) -> Any:
        x = x.transpose([term.index(c) for group in groups for c in group])
        shape = [sizes[c] for c in groups[0]]
        for group in groups[1:]:
            count = 1
            for c in group:
                count *= sizes[c]
            shape.append(count)
        return x.reshape(shape)

    array = product(xp, grouped(a, term_a, batch, rows, summed), grouped(b, term_b, batch, summed, columns))
    order = [*batch, *rows, *columns]
    return array.reshape([sizes[c] for c in order]).transpose([order.index(c) for c in result])


def _unstretched(x: Any, term: str, sizes: dict[str, int]) -> tuple[Any, str]:
    gone = [i for i, c in enumerate(term) if x.shape[i] == 1 and sizes[c] != 1]
    bad = [c for i, c in enumerate(term) if x.shape[i] not in (1, sizes[c])]
    if bad:
        raise KernelError(f"Einsum: operands differ in the size of an axis. Received: {bad[0]!r} in shape {list(x.shape)}")
    return x.squeeze(tuple(gone)), "".join(c for i, c in enumerate(term) if i not in gone)


def _inflated(xp: Any, x: Any, distinct: str, result: str) -> Any:
    """Put axes on the diagonals of a result that repeats their letters; the rest is 0."""
    sizes = dict(zip(distinct, x.shape, strict=True))
    out = xp.zeros([sizes[c] for c in result], dtype=x.dtype)
    places = xp.ix_(*[xp.arange(size) for size in x.shape])
    out[tuple(places[distinct.index(c)] for c in result)] = x
    return out
