"""The taggers of the suite autobatch in JAX, batched by hand: a minibatch is padded to its longest
sentence, and that to one of a few sizes, each of which is compiled in front of the clock.

Usage: autobatch_jax.py FOLDER [NAME ...] [--batches N].
"""
import os

from autobatch_common import (CHARACTER_HIDDEN, CHARACTER_WIDTH, RATE, SYNTHETIC_LAYERS,
                              SYNTHETIC_WIDTH, WIDTH, arguments, data, train)

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import jax
import jax.numpy as jnp
import numpy as np

LENGTHS, SPELLINGS, RARE = (32, 40, 48, 64, 80, 96, 120, 144), (16, 24, 40), 64


def size(n, sizes):
    return next(s for s in sizes if s >= n)


def padded(lists, length):
    """Numbers by place and list, and which of them are there."""
    x = np.zeros((length, len(lists)), np.int32)
    for at, numbers in enumerate(lists):
        x[:len(numbers), at] = numbers
    there = np.arange(length)[:, None] < np.array([len(numbers) for numbers in lists])
    return x, there


class Weights:
    def __init__(self):
        self.source = np.random.default_rng(1)

    def matrix(self, n, m):
        scale = (6 / (n + m)) ** 0.5
        return jnp.asarray(self.source.uniform(-scale, scale, (n, m)), jnp.float32)

    def words(self, n, width):
        return jnp.asarray(self.source.normal(0, width ** -0.5, (n, width)), jnp.float32)

    def lstm(self, inputs, outputs):
        return {"W": self.matrix(inputs, 4 * outputs), "U": self.matrix(outputs, 4 * outputs),
                "b": jnp.zeros(4 * outputs).at[outputs:2 * outputs].set(1)}

    def layer(self, inputs, outputs):
        return self.lstm(inputs, outputs), self.lstm(inputs, outputs)


def lstm(p, x, there, reverse):
    """States (places, batch, width); where nothing is there the state stays, and so the way back
    begins at each sentence's end."""
    def cell(state, step):
        h, c = state
        gates, here = step
        i, f, o, u = jnp.split(gates + h @ p["U"], 4, -1)
        after = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(u)
        c = jnp.where(here, after, c)
        h = jnp.where(here, jax.nn.sigmoid(o) * jnp.tanh(after), h)
        return (h, c), h

    start = jnp.zeros((x.shape[1], p["U"].shape[0]), jnp.float32)
    return jax.lax.scan(cell, (start, start), (x @ p["W"] + p["b"], there[:, :, None]),
                        reverse=reverse)[1]


def both_ways(layer, x, there):
    return jnp.concatenate([lstm(layer[0], x, there, False), lstm(layer[1], x, there, True)], -1)


def cross_entropy(logits, tags, there):
    picked = jnp.take_along_axis(logits, tags[:, :, None], -1)[:, :, 0]
    return jnp.sum(jnp.where(there, jax.nn.logsumexp(logits, -1) - picked, 0))


class Tagger:
    def __init__(self, words, tags, characters):
        w = Weights()
        self.start = {"words": w.words(words, WIDTH), "layer": w.layer(WIDTH, WIDTH),
                      "H": w.matrix(2 * WIDTH, WIDTH), "O": w.matrix(WIDTH, tags)}

    def arrays(self, sentences):
        length = size(max(map(len, sentences)), LENGTHS)
        words, there = padded([[word for word, _, _ in s] for s in sentences], length)
        tags, _ = padded([[tag for _, tag, _ in s] for s in sentences], length)
        return words, tags, there

    def inputs(self, p, words, *spelling):
        return p["words"][words]

    def loss(self, p, words, tags, there, *spelling):
        x = both_ways(p["layer"], self.inputs(p, words, *spelling), there)
        return cross_entropy(jnp.tanh(x @ p["H"]) @ p["O"], tags, there)


class TaggerChars(Tagger):
    def __init__(self, words, tags, characters):
        super().__init__(words, tags, characters)
        w = Weights()
        self.start["characters"] = w.words(characters, CHARACTER_WIDTH)
        self.start["spelled"] = w.layer(CHARACTER_WIDTH, CHARACTER_HIDDEN)

    def arrays(self, sentences):
        words, tags, there = super().arrays(sentences)
        rare = [(at, n, spelling) for n, s in enumerate(sentences)
                for at, (_, _, spelling) in enumerate(s) if spelling]
        more = -len(rare) % RARE
        # What is added goes to a place that is not there.
        at = np.array([r[0] for r in rare] + [len(words)] * more, np.int32)
        n = np.array([r[1] for r in rare] + [0] * more, np.int32)
        spellings = [r[2] for r in rare] + [[]] * more
        longest = size(max(map(len, spellings), default=0), SPELLINGS)
        return words, tags, there, at, n, *padded(spellings, longest)

    def inputs(self, p, words, at, n, characters, there):
        x = p["characters"][characters]
        forward, backward = p["spelled"]
        ends = jnp.concatenate([lstm(forward, x, there, False)[-1],
                                lstm(backward, x, there, True)[0]], -1)
        return p["words"][words].at[at, n].set(ends, mode="drop")


class SyntheticTagger(Tagger):
    def __init__(self, words, tags, characters):
        w = Weights()
        widths = [SYNTHETIC_WIDTH] + [2 * WIDTH] * (SYNTHETIC_LAYERS - 1)
        self.start = {"words": w.words(words, SYNTHETIC_WIDTH),
                      "layers": [w.layer(n, WIDTH) for n in widths],
                      "O": w.matrix(2 * WIDTH, tags)}

    def loss(self, p, words, tags, there):
        x = p["words"][words]
        for layer in p["layers"]:
            x = both_ways(layer, x, there)
        return cross_entropy(x @ p["O"], tags, there)


def adam(model):
    """A compiled step from parameters, moments and a count to the next ones, and the loss."""
    def step(state, *arrays):
        p, m, v, n = state
        loss, g = jax.value_and_grad(model.loss)(p, *arrays)
        n = n + 1
        each = jax.tree_util.tree_map
        m = each(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = each(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        a, b = 1 / (1 - 0.9 ** n), 1 / (1 - 0.999 ** n)
        p = each(lambda p, m, v: p - RATE * (m * a) / (jnp.sqrt(v * b) + 1e-8), p, m, v)
        return (p, m, v, n), loss

    return jax.jit(step, donate_argnums=0)


models = {"tagger": (Tagger, "tagger"), "tagger_chars": (TaggerChars, "tagger"),
          "synthetic_tagger": (SyntheticTagger, "synthetic")}


def main():
    options = arguments()
    for name in options.names or models:
        make, file = models[name]
        (_, *head), examples = data.read(options.folder / f"{file}.txt", True)
        model = make(*head)
        compiled, known = adam(model), {}
        zeros = jax.tree_util.tree_map(jnp.zeros_like, model.start)
        state = model.start, zeros, jax.tree_util.tree_map(jnp.zeros_like, zeros), jnp.float32(0)

        def signature(arrays):
            return tuple(x.shape for x in arrays)

        def prepare(batch):
            arrays = model.arrays(batch)
            if signature(arrays) not in known:
                known[signature(arrays)] = compiled.lower(state, *arrays).compile()

        def step(batch):
            nonlocal state
            arrays = model.arrays(batch)
            state, loss = known[signature(arrays)](state, *arrays)
            return loss

        train(name, "jax", examples, step, options.batches, prepare)


main()
