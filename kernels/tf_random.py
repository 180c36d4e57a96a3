"""TensorFlow: random numbers, by the counter-based generator and in the order of TensorFlow's own CPU kernels.

So a stateless op gives TensorFlow's numbers for a seed, up to the last bits of logarithms and sines. The others, given a seed,
go on where their last run stopped; without one they start anywhere.

Source of the generator: Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", Philox4x32-10.
"""

from math import prod
from typing import Any

from ..graph.errors import KernelError
from .call import Call
from .handle import Handle
from .random import chosen_classes
from .registry import kernel
from .room import check_room
from .shape import ints

#: Blocks of four words kept for each block of results of a distribution that may reject numbers.
_RESERVED = 256
#: What scrambles the seeds of stateless ops.
_SEED_KEY = (0x3EC8F720, 0x02461E29)


def philox(xp: Any, counter: Any, key: tuple[int, int]) -> Any:
    """Return blocks of four random words.

    Args:
        xp: The array module.
        counter: [blocks, 4] words, in uint64.
        key: Two words.

    Returns:
        [blocks, 4] words, in uint64.
    """
    low = xp.uint64(0xFFFFFFFF)
    half = xp.uint64(32)
    c0, c1, c2, c3 = (counter[:, i] for i in range(4))
    k0, k1 = key
    for _ in range(10):
        p0, p1 = c0 * xp.uint64(0xD2511F53), c2 * xp.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (p1 >> half) ^ c1 ^ xp.uint64(k0), p1 & low, (p0 >> half) ^ c3 ^ xp.uint64(k1), p0 & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return xp.stack([c0, c1, c2, c3], axis=1)


class Stream:
    """Random words from a counter on.

    Args:
        xp: The array module.
        key: Two words.
        counter: Counts blocks, below 2**128.
    """

    def __init__(self, xp: Any, key: tuple[int, int], counter: int) -> None:
        self.xp, self.key, self.counter = xp, key, counter

    def blocks(self, places: Any) -> Any:
        """Return the blocks at ``places`` (uint64) after the counter: [places, 4] words."""
        xp = self.xp
        start = self.counter & (2**64 - 1)
        low = places + xp.uint64(start)  # wraps
        high = xp.full(low.shape, self.counter >> 64, dtype=xp.uint64) + (low < xp.uint64(start)).astype(xp.uint64)
        mask, half = xp.uint64(0xFFFFFFFF), xp.uint64(32)
        return philox(xp, xp.stack([low & mask, low >> half, high & mask, high >> half], axis=1), self.key)

    def words(self, count: int) -> Any:
        """Return the next ``count`` words, as uint32."""
        places = self.xp.arange(-(-count // 4), dtype=self.xp.uint64)
        return self.blocks(places).reshape(-1)[:count].astype(self.xp.uint32)

    def doubles(self, count: int) -> Any:
        """Return the next ``count`` pairs of words, as uint64."""
        words = self.words(2 * count).astype(self.xp.uint64).reshape(-1, 2)
        return words[:, 0] | words[:, 1] << self.xp.uint64(32)


def seeded(xp: Any, seed: Any) -> Stream:
    """Return what a stateless op draws from for a seed of two integers."""
    if seed.shape != (2,):
        raise KernelError(f"A seed is two integers. Received: shape {list(seed.shape)}")
    s0, s1 = (int(s) & (2**64 - 1) for s in seed)
    words = [s0 & 0xFFFFFFFF, s0 >> 32, s1 & 0xFFFFFFFF, s1 >> 32]
    mix = ints(philox(xp, xp.asarray([words], dtype=xp.uint64), _SEED_KEY))
    return Stream(xp, (mix[0], mix[1]), mix[2] << 64 | mix[3] << 96)


def keyed(xp: Any, key: Any, counter: Any) -> Stream:
    """Return what the second versions of stateless ops draw from: a key and a counter."""
    k = int(key.reshape(-1)[0])
    c = [int(part) for part in counter.reshape(-1)[:2]]
    return Stream(xp, (k & 0xFFFFFFFF, k >> 32), c[0] | c[1] << 64)


def stateful(call: Call, count: int) -> Stream:
    """Return what an op with the attributes ``seed`` and ``seed2`` draws from, and remember where it stops."""
    seeds = [int(call.attr(name, 0)) & (2**64 - 1) for name in ("seed", "seed2")]
    if not any(seeds):
        import secrets

        seeds = [secrets.randbits(64), secrets.randbits(64)]
    place = Handle(call.node.name, "random numbers")
    used = call.state.get(place, 0)
    call.state[place] = used + count * _RESERVED
    return Stream(call.xp, (seeds[0] & 0xFFFFFFFF, seeds[0] >> 32), (seeds[1] << 64) + used)


def uniform(stream: Stream, count: int, dtype: str) -> Any:
    """Return numbers in [0, 1): a fraction of random bits, as many as the dtype has, in float32 or float64."""
    xp = stream.xp
    if dtype == "float64":
        bits = stream.words(2 * count).astype(xp.uint64).reshape(-1, 2)
        return ((bits[:, 0] & xp.uint64(0xFFFFF)) << xp.uint64(32) | bits[:, 1]).astype(xp.float64) * 2.0**-52
    width = {"float16": 10, "bfloat16": 7}.get(dtype, 23)
    return (stream.words(count) & xp.uint32((1 << width) - 1)).astype(xp.float32) * xp.float32(2.0**-width)


def _normal_pairs(xp: Any, a: Any, b: Any) -> Any:
    """Return two normal numbers for each two uniform ones, by the method of Box and Muller: [..., 2]."""
    radius = xp.sqrt(-2 * xp.log(xp.maximum(a, a.dtype.type(1e-7))))
    angle = (2 * xp.pi * b.astype(xp.float64)).astype(b.dtype)  # rounded once, as TensorFlow does
    return xp.stack([xp.sin(angle) * radius, xp.cos(angle) * radius], axis=-1)


def normal(stream: Stream, count: int, dtype: str) -> Any:
    """Return normal numbers, in float32 or float64."""
    even = count + count % 2
    pairs = uniform(stream, even, "float64" if dtype == "float64" else "float32").reshape(-1, 2)
    return _normal_pairs(stream.xp, pairs[:, 0], pairs[:, 1]).reshape(-1)[:count]


def truncated_normal(stream: Stream, count: int, dtype: str) -> Any:
    """Return normal numbers between -2 and 2: others are drawn again, each block of four (float64: two) from its own stretch."""
    xp = stream.xp
    wide = dtype == "float64"
    size = 2 if wide else 4
    groups = -(-count // size)
    stretch = size * _RESERVED // 4
    steps = 8  # blocks looked at; more where they do not do
    todo = xp.arange(groups)
    result = xp.empty((groups, size), dtype=xp.float64 if wide else xp.float32)
    while todo.size:
        places = todo.astype(xp.uint64)[:, None] * xp.uint64(stretch) + xp.arange(steps, dtype=xp.uint64)
        words = stream.blocks(places.reshape(-1)).reshape(todo.size, -1)
        candidates = _candidates(xp, words, wide)
        fits = xp.abs(candidates) < 2
        done = fits.sum(-1) >= size
        first = xp.argsort(~fits[done], axis=-1, kind="stable")[:, :size]
        result[todo[done]] = xp.take_along_axis(candidates[done], first, axis=-1)
        todo, steps = todo[~done], steps * 2
    return result.reshape(-1)[:count]


def _candidates(xp: Any, words: Any, wide: bool) -> Any:
    if wide:
        bits = words.reshape(*words.shape[:-1], -1, 2)
        numbers = ((bits[..., 0] & xp.uint64(0xFFFFF)) << xp.uint64(32) | bits[..., 1]).astype(xp.float64) * 2.0**-52
    else:
        numbers = (words & xp.uint64(0x7FFFFF)).astype(xp.float32) * xp.float32(2.0**-23)
    pairs = numbers.reshape(*words.shape[:-1], -1, 2)
    return _normal_pairs(xp, pairs[..., 0], pairs[..., 1]).reshape(*words.shape[:-1], -1)


_DISTRIBUTIONS = {"Uniform": uniform, "Normal": normal, "TruncatedNormal": truncated_normal}


def _drawn(call: Call, kind: str, shape: Any, stream: Stream | None = None) -> Any:
    sizes = ints(shape)
    check_room(call.xp, sizes, 32)
    count = prod(sizes)
    dtype = call.dtypes[0]
    numbers = _DISTRIBUTIONS[kind](stream or stateful(call, count), count, "float32" if dtype is None else dtype.name)
    return numbers.reshape(sizes)


def _register(kind: str, stateless: str, *others: str) -> None:
    kernel(f"tf:{stateless}")(lambda call, shape, seed: _drawn(call, kind, shape, seeded(call.xp, seed)))
    kernel(f"tf:{stateless}V2")(
        lambda call, shape, key, counter, alg: _drawn(call, kind, shape, keyed(call.xp, key, _philox(counter, alg)))
    )
    kernel(*(f"tf:{name}" for name in others))(lambda call, shape: _drawn(call, kind, shape))


def _philox(counter: Any, alg: Any) -> Any:
    """Return the counter, if the algorithm that goes with it is this one."""
    if int(alg) not in (1, 3):
        raise KernelError(f"Random numbers come from the Philox algorithm only, number 1 or 3. Received: {int(alg)}")
    return counter


_register("Uniform", "StatelessRandomUniform", "RandomUniform")
_register("Normal", "StatelessRandomNormal", "RandomStandardNormal")
_register("TruncatedNormal", "StatelessTruncatedNormal", "TruncatedNormal")


def _integers(call: Call, stream: Stream, sizes: list[int], low: Any, high: Any) -> Any:
    """Return integers: a random word, or two, modulo the size of the range."""
    dtype, count = call.dtypes[0], prod(sizes)
    assert dtype is not None
    words = stream.doubles(count) if dtype.bits == 64 else stream.words(count)
    if low is None:
        return words.view(dtype.numpy).reshape(sizes)
    if int(low) >= int(high):
        raise KernelError(f"{call.node.op_type}: minval is less than maxval. Received: {int(low)} and {int(high)}")
    span = words.dtype.type(int(high) - int(low))
    return (words % span).view(low.dtype).reshape(sizes) + low.reshape(())


@kernel("tf:StatelessRandomUniformInt")
def _stateless_int(call: Call, shape: Any, seed: Any, low: Any, high: Any) -> Any:
    return _integers(call, seeded(call.xp, seed), ints(shape), low, high)


@kernel("tf:StatelessRandomUniformIntV2")
def _stateless_int_v2(call: Call, shape: Any, key: Any, counter: Any, alg: Any, low: Any, high: Any) -> Any:
    return _integers(call, keyed(call.xp, key, _philox(counter, alg)), ints(shape), low, high)


@kernel("tf:StatelessRandomUniformFullInt")
def _stateless_full_int(call: Call, shape: Any, seed: Any) -> Any:
    return _integers(call, seeded(call.xp, seed), ints(shape), None, None)


@kernel("tf:StatelessRandomUniformFullIntV2")
def _stateless_full_int_v2(call: Call, shape: Any, key: Any, counter: Any, alg: Any) -> Any:
    return _integers(call, keyed(call.xp, key, _philox(counter, alg)), ints(shape), None, None)


@kernel("tf:RandomUniformInt")
def _random_int(call: Call, shape: Any, low: Any, high: Any) -> Any:
    sizes = ints(shape)
    return _integers(call, stateful(call, prod(sizes)), sizes, low, high)


@kernel("tf:StatelessRandomGetKeyCounter", "tf:StatelessRandomGetKeyCounterAlg")
def _key_counter(call: Call, seed: Any) -> Any:
    """Return the key and the counter that belong to a seed, and the number of the algorithm."""
    xp, stream = call.xp, seeded(call.xp, seed)
    key = xp.asarray([stream.key[0] | stream.key[1] << 32], dtype=xp.uint64)
    counter = xp.asarray([stream.counter & (2**64 - 1), stream.counter >> 64], dtype=xp.uint64)
    return (key, counter, xp.asarray(1, dtype=xp.int32))[: call.results]


@kernel("tf:StatelessRandomGetAlg")
def _alg(call: Call) -> Any:
    return call.xp.asarray(1, dtype=call.xp.int32)


@kernel("tf:RandomShuffle", moves=True)
def _random_shuffle(call: Call, x: Any) -> Any:
    """Put rows into another order."""
    if not x.ndim:
        return x
    keys = stateful(call, x.shape[0]).doubles(x.shape[0])
    return x[call.xp.argsort(keys, kind="stable")]


def _classes(call: Call, stream: Stream, logits: Any, count: int) -> Any:
    """Return ``count`` classes for each row of unnormalized log-probabilities."""
    return chosen_classes(call, logits, uniform(stream, len(logits) * count, "float64").reshape(len(logits), count))


@kernel("tf:Multinomial")
def _multinomial(call: Call, logits: Any, samples: Any) -> Any:
    return _classes(call, stateful(call, 2 * len(logits) * int(samples)), logits, int(samples))


@kernel("tf:StatelessMultinomial")
def _stateless_multinomial(call: Call, logits: Any, samples: Any, seed: Any) -> Any:
    return _classes(call, seeded(call.xp, seed), logits, int(samples))
