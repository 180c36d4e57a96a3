"""Text: strings joined, split, matched and normalized, and n-grams counted.

Strings are ``str`` objects in arrays of objects, which exist in NumPy alone; so do these kernels, apart from the n-grams of
numbers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.errors import KernelError
from .call import Call, text_array
from .regex import Pattern
from .registry import kernel
from .room import check_room


def _strings(items: Sequence[str], shape: Sequence[int]) -> Any:
    """Return an array of objects: NumPy makes nested lists of strings an array of another kind."""
    result = np.empty(len(items), object)
    result[:] = items
    return result.reshape(shape)


@kernel("StringConcat", moves=True)
def string_concat(call: Call, x: Any, y: Any) -> Any:
    """Join strings pairwise; the shapes are broadcast."""
    return np.asarray(np.add(x, y, dtype=object), dtype=object)


@kernel("StringSplit", moves=True)
def string_split(call: Call, x: Any) -> tuple[Any, Any]:
    """Return the parts of each string along a new axis, filled up with empty strings, and how many each has."""
    delimiter, most = call.attr("delimiter", "") or None, call.attr("maxsplit", -1)
    parts = [text.split(delimiter, most) for text in x.ravel().tolist()]
    counts = [len(part) for part in parts]
    width = max(counts, default=0)
    filled = [item for part in parts for item in (*part, *[""] * (width - len(part)))]
    return _strings(filled, (*x.shape, width)), np.asarray(counts, dtype=np.int64).reshape(x.shape)


@kernel("RegexFullMatch", moves=True)
def regex_full_match(call: Call, x: Any) -> Any:
    """Return which strings a pattern of RE2 matches as a whole."""
    match = Pattern(call.attr("pattern", "")).fullmatch
    return np.asarray([match(text) for text in x.ravel().tolist()], dtype=bool).reshape(x.shape)


@kernel("StringNormalizer", moves=True)
def string_normalizer(call: Call, x: Any) -> Any:
    """Drop stop words, then change the case; of nothing left, one empty string. The locale plays no part."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise KernelError(f"StringNormalizer takes strings of shape [C] or [1, C]. Received: {list(x.shape)}")
    change: Any = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}.get(call.attr("case_change_action", "NONE"))
    if change is None:
        text = "StringNormalizer: the attribute case_change_action is LOWER, UPPER or NONE."
        raise KernelError(f"{text} Received: {call.attr('case_change_action')!r}")
    fold = str if call.attr("is_case_sensitive", 0) else str.lower
    stop = {fold(word) for word in call.attr("stopwords", [])}
    kept = [change(word) for word in x.ravel().tolist() if fold(word) not in stop] or [""]
    return _strings(kept, (1, len(kept)) if x.ndim == 2 else (len(kept),))


@kernel("TfIdfVectorizer")
def tf_idf_vectorizer(call: Call, x: Any) -> Any:
    """Count the n-grams of a pool in each row, tokens of an n-gram up to ``max_skip_count`` others apart; maybe weigh them.

    Tokens become small integers, and n-grams too, prefix by prefix, so that all windows are looked up at once.
    """
    xp = call.xp
    pool = call.attr("pool_strings", None) or call.attr("pool_int64s", None) or []
    columns = xp.asarray(call.attr("ngram_indexes"), dtype=xp.int64)
    tokens = text_array(np.asarray(pool, object)) if pool and isinstance(pool[0], str) else xp.asarray(pool, dtype=xp.int64)
    known, ids = xp.unique(tokens, return_inverse=True)
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    words = _look_up(xp, known, rows if rows.dtype.kind == "O" else rows.astype(xp.int64))
    shape = (rows.shape[0], int(columns.max()) + 1 if columns.size else 0)
    check_room(xp, shape, 4)
    counts = xp.zeros(shape, dtype=xp.float32)
    least, most, skips = (call.attr(name) for name in ("min_gram_length", "max_gram_length", "max_skip_count"))
    bounds = [*call.attr("ngram_counts"), len(pool)]
    first = 0
    for n in range(1, len(bounds)):
        grams = ids.reshape(-1)[bounds[n - 1] : bounds[n]]
        if len(grams) % n:
            raise KernelError(
                f"TfIdfVectorizer: the pool has {len(grams)} tokens of {n}-grams. Received: ngram_counts={bounds[:-1]}"
            )
        grams = grams.reshape(-1, n)
        places = columns[first : first + len(grams)]
        first += len(grams)
        if least <= n <= most and len(grams):
            for distance in range(1, min(skips + 2, rows.shape[1] + 1) if n > 1 else 2):
                _count(xp, counts, words, grams, places, distance)
    mode = call.attr("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise KernelError(f"TfIdfVectorizer: the attribute mode is TF, IDF or TFIDF. Received: {mode!r}")
    if mode == "IDF":
        counts = xp.minimum(counts, 1)
    weights = call.attr("weights", None)
    if mode != "TF" and weights:
        scale = xp.ones(counts.shape[1], dtype=xp.float32)
        scale[columns] = xp.asarray(weights, dtype=xp.float32)
        counts = counts * scale
    return counts if x.ndim > 1 else counts[0]


def _look_up(xp: Any, known: Any, values: Any) -> Any:
    """Return where in the sorted array ``known`` each value stands, -1 if it does not."""
    if not known.size:
        return xp.full(values.shape, -1)
    places = xp.minimum(xp.searchsorted(known, values), known.size - 1)
    return xp.where(known[places] == values, places, -1)


def _count(xp: Any, counts: Any, words: Any, grams: Any, columns: Any, distance: int) -> None:
    """Add to ``counts`` how often each row of ``grams`` stands in each row of ``words``, its tokens ``distance`` apart."""
    n = grams.shape[1]
    width = words.shape[1] - (n - 1) * distance
    if width <= 0:
        return
    base = int(max(words.max(), grams.max())) + 1
    keys, windows = grams[:, 0], words[:, :width]
    for k in range(1, n):
        part = words[:, k * distance : k * distance + width]
        keys = keys * base + grams[:, k]
        windows = xp.where((windows < 0) | (part < 0), -1, windows * base + part)
        prefixes, keys = xp.unique(keys, return_inverse=True)
        keys, windows = keys.reshape(-1), _look_up(xp, prefixes, windows)
    # Equal n-grams of the pool count into the column of the last of them.
    final = xp.zeros(int(keys.max()) + 1, dtype=xp.int64)
    final[keys] = columns
    known = xp.zeros(final.size, dtype=bool)
    known[keys] = True
    hit = (windows >= 0) & (windows < final.size)
    hit[hit] = known[windows[hit]]
    row = xp.nonzero(hit)[0]
    xp.add.at(counts, (row, final[windows[hit]]), 1)
