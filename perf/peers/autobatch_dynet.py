"""The rows of the suite autobatch in DyNet: the five models, one example at a time, as a person
writes them; DyNet batches them or not.

Usage: autobatch_dynet.py FOLDER [NAME ...] [--batches N] [--unbatched] [--who WHO]. --unbatched:
without batching, and of one minibatch only unless N is given.
"""
import random
import sys

from autobatch_common import (CHARACTER_HIDDEN, CHARACTER_WIDTH, RATE, SYNTHETIC_LAYERS,
                              SYNTHETIC_WIDTH, WIDTH, arguments, data, train)

options = arguments(lambda parser: (parser.add_argument("--unbatched", action="store_true"),
                                    parser.add_argument("--who", default="dynet")))
who = options.who + "_unbatched" * options.unbatched
batches = options.batches or (1 if options.unbatched else None)

import dynet_config

# Megabytes for values, derivatives, parameters and scratch space.
dynet_config.set(mem="3000,3000,500,500", random_seed=1, autobatch=int(not options.unbatched))
import dynet as dy
import numpy as np

PARSER_WORD, PARSER_TAG, PARSER_HIDDEN, PARSER_HEAD = 100, 25, 200, 100
EXPLORE = 0.1


class Model:
    """Parameters, the trainer, and the loss of one example; `step` trains with a minibatch."""

    def __init__(self):
        self.parameters = dy.ParameterCollection()
        self.trainer = dy.AdamTrainer(self.parameters, RATE)
        self.trainer.set_clip_threshold(-1)  # the others do not clip

    def lookup(self, n, width):
        return self.parameters.add_lookup_parameters((n, width))

    def weights(self, *shape):
        return self.parameters.add_parameters(shape)

    def lstm(self, inputs, outputs):
        return dy.VanillaLSTMBuilder(1, inputs, outputs, self.parameters)

    def update(self, loss):
        value = loss.value()
        loss.backward()
        self.trainer.update()
        return value

    def step(self, batch):
        dy.renew_cg()
        return self.update(dy.esum([self.loss(example) for example in batch]))


def both_ways(layer, inputs):
    """What a layer's two LSTMs give for each input."""
    forward = layer[0].initial_state().transduce(inputs)
    backward = layer[1].initial_state().transduce(inputs[::-1])
    return [dy.concatenate([f, b]) for f, b in zip(forward, backward[::-1])]


class Tagger(Model):
    def __init__(self, head):
        super().__init__()
        words, tags, _ = head
        self.words = self.lookup(words, WIDTH)
        self.layer = self.lstm(WIDTH, WIDTH), self.lstm(WIDTH, WIDTH)
        self.H, self.O = self.weights(WIDTH, 2 * WIDTH), self.weights(tags, WIDTH)

    def word(self, word, characters):
        return dy.lookup(self.words, word)

    def loss(self, sentence):
        inputs = [self.word(word, characters) for word, _, characters in sentence]
        return dy.esum([dy.pickneglogsoftmax(self.O * dy.tanh(self.H * x), tag)
                        for x, (_, tag, _) in zip(both_ways(self.layer, inputs), sentence)])


class TaggerChars(Tagger):
    def __init__(self, head):
        super().__init__(head)
        self.characters = self.lookup(head[2], CHARACTER_WIDTH)
        self.spelled = [self.lstm(CHARACTER_WIDTH, CHARACTER_HIDDEN) for _ in range(2)]

    def word(self, word, characters):
        if not characters:
            return dy.lookup(self.words, word)
        inputs = [dy.lookup(self.characters, c) for c in characters]
        forward, backward = self.spelled
        return dy.concatenate([forward.initial_state().transduce(inputs)[-1],
                               backward.initial_state().transduce(inputs[::-1])[-1]])


class SyntheticTagger(Model):
    def __init__(self, head):
        super().__init__()
        words, tags, _ = head
        self.words = self.lookup(words, SYNTHETIC_WIDTH)
        widths = [SYNTHETIC_WIDTH] + [2 * WIDTH] * (SYNTHETIC_LAYERS - 1)
        self.layers = [(self.lstm(n, WIDTH), self.lstm(n, WIDTH)) for n in widths]
        self.O = self.weights(tags, 2 * WIDTH)

    def loss(self, sentence):
        states = [dy.lookup(self.words, word) for word, _, _ in sentence]
        for layer in self.layers:
            states = both_ways(layer, states)
        return dy.esum([dy.pickneglogsoftmax(self.O * x, tag)
                        for x, (_, tag, _) in zip(states, sentence)])


class TreeLSTM(Model):
    def __init__(self, head):
        super().__init__()
        words, classes = head
        self.words = self.lookup(words, WIDTH)
        self.W = [self.weights(WIDTH, WIDTH) for _ in "iou"]
        self.U = [self.weights(WIDTH, 2 * WIDTH) for _ in "iou"]
        self.F = [self.weights(WIDTH, WIDTH) for _ in "lr"]  # a child's forget gate each
        self.b = [self.weights(WIDTH) for _ in "iouf"]
        self.O = self.weights(classes, WIDTH)

    def cell(self, weights, x):
        i, o, u = (dy.affine_transform([b, w, x]) for b, w in zip(self.b, weights))
        return dy.cmult(dy.logistic(i), dy.tanh(u)), dy.logistic(o)

    def loss(self, tree):
        states, losses = [], []
        for left, right, word, label in tree:
            if left < 0:
                c, o = self.cell(self.W, dy.lookup(self.words, word))
            else:
                c, o = self.cell(self.U, dy.concatenate([states[left][0], states[right][0]]))
                for w, (h, below) in zip(self.F, (states[left], states[right])):
                    f = dy.logistic(dy.affine_transform([self.b[3], w, h]))
                    c = c + dy.cmult(f, below)
            h = dy.cmult(o, dy.tanh(c))
            states.append((h, c))
            losses.append(dy.pickneglogsoftmax(self.O * h, label))
        return dy.esum(losses)


class Item:
    """What lies on the stack or in the buffer: a word, and what the LSTMs say of the ends of the
    phrase that hangs from it."""

    def __init__(self, at, head, relation, vector):
        self.at, self.head, self.relation = at, head, relation
        self.left = self.right = vector


LEFT, RIGHT, SHIFT = range(3)


class Parse:
    """A sentence's state: arc-hybrid, with the root at the end of the buffer."""

    def __init__(self, items):
        self.stack, self.buffer = [], items[::-1]

    def done(self):
        return len(self.buffer) == 1 and not self.stack

    def allowed(self):
        return (bool(self.stack), len(self.stack) > 1, len(self.buffer) > 1)

    def costs(self):
        """How many arcs of the true tree each action makes impossible."""
        s0, s1 = (self.stack[-1] if self.stack else None), self.stack[-2:-1]
        b, beta = self.buffer[-1], self.buffer[:-1]
        left, right = 0, 0
        if s0:
            dependents = sum(x.head == s0.at for x in self.buffer)
            left = dependents + sum(x.at == s0.head for x in s1 + beta)
            right = dependents + sum(x.at == s0.head for x in self.buffer)
        shift = (sum(x.head == b.at for x in self.stack)
                 + sum(x.at == b.head for x in self.stack[:-1]))
        return left, right, shift

    def apply(self, action):
        if action == SHIFT:
            self.stack.append(self.buffer.pop())
            return
        child = self.stack.pop()
        if action == LEFT:
            self.buffer[-1].left = child.left
        else:
            self.stack[-1].right = child.right


class Parser(Model):
    """All sentences of a minibatch take their next action together: its scores are read at once."""

    def __init__(self, head):
        super().__init__()
        words, tags, self.relations = head
        self.words = self.lookup(words + 1, PARSER_WORD)  # and the root
        self.tags = self.lookup(tags + 1, PARSER_TAG)
        both = 2 * PARSER_HIDDEN
        self.layers = [(self.lstm(n, PARSER_HIDDEN), self.lstm(n, PARSER_HIDDEN))
                       for n in (PARSER_WORD + PARSER_TAG, both)]
        self.empty = self.weights(2 * both)
        # Which action; and which action with which relation.
        self.heads = [(self.weights(PARSER_HEAD, 8 * both), self.weights(PARSER_HEAD),
                       self.weights(n, PARSER_HEAD), self.weights(n))
                      for n in (3, 2 * self.relations + 1)]
        self.root = words, tags
        self.draw = random.Random(1).random

    def items(self, sentence):
        states = [dy.concatenate([dy.lookup(self.words, word), dy.lookup(self.tags, tag)])
                  for word, tag in [part[:2] for part in sentence] + [self.root]]
        for layer in self.layers:
            states = both_ways(layer, states)
        words = [Item(at + 1, head, relation, self.ends(x))
                 for at, ((_, _, head, relation), x) in enumerate(zip(sentence, states))]
        return words + [Item(0, -1, -1, self.ends(states[-1]))]

    def ends(self, x):
        """What an end that is this vector brings to the first layers."""
        return x

    def scores(self, parse):
        """A vector: LEFT with each relation, RIGHT with each relation, SHIFT."""
        action, labelled = (
            dy.affine_transform([b, w, x])
            for x, (w, b) in zip(self.first_layers(parse), self.second_layers()))
        return dy.affine_transform([labelled, self.spread, action])

    def first_layers(self, parse):
        ends = []
        for depth in range(3):
            ends += ([parse.stack[-1 - depth].left, parse.stack[-1 - depth].right]
                     if len(parse.stack) > depth else [self.empty])
        ends += [parse.buffer[-1].left, parse.buffer[-1].right]
        x = dy.concatenate(ends)
        return [dy.tanh(dy.affine_transform([b, w, x])) for w, b, _, _ in self.heads]

    def second_layers(self):
        return [(w, b) for _, _, w, b in self.heads]

    def next(self, parse, scores, values):
        """The action by the dynamic oracle; and the loss, if the margin is not kept."""
        n = self.relations
        allowed, costs = parse.allowed(), parse.costs()
        right = np.zeros(2 * n + 1, bool)
        possible = np.zeros(2 * n + 1, bool)
        for action, places in ((LEFT, slice(0, n)), (RIGHT, slice(n, 2 * n)),
                               (SHIFT, slice(2 * n, 2 * n + 1))):
            if allowed[action]:
                possible[places] = True
                if costs[action] == 0:
                    relation = 0 if action == SHIFT else parse.stack[-1].relation
                    right[places.start + relation] = True
        assert right.any()  # some action always costs nothing
        wrong = possible & ~right
        best = int(np.argmax(np.where(right, values, -np.inf)))
        loss = None
        chosen = best
        if wrong.any():
            other = int(np.argmax(np.where(wrong, values, -np.inf)))
            margin = values[best] - values[other]
            if not (margin > 1 or (margin > 0 and self.draw() > EXPLORE)):
                chosen = other
            if margin < 1:
                loss = dy.pick(scores, other) - dy.pick(scores, best) + 1.0
        parse.apply(LEFT if chosen < n else RIGHT if chosen < 2 * n else SHIFT)
        return loss

    def step(self, batch):
        dy.renew_cg()
        return self.steps(batch)

    def steps(self, batch):
        n = self.relations
        spread = np.zeros((2 * n + 1, 3))
        spread[:n, LEFT] = spread[n:2 * n, RIGHT] = spread[2 * n, SHIFT] = 1
        self.spread = dy.inputTensor(spread)
        parses = [Parse(self.items(sentence)) for sentence in batch]
        losses = []
        while parses := [parse for parse in parses if not parse.done()]:
            scores = [self.scores(parse) for parse in parses]
            scores[-1].forward()  # and all in front of it
            for parse, score in zip(parses, scores):
                loss = self.next(parse, score, score.npvalue())
                if loss is not None:
                    losses.append(loss)
        return self.update(dy.esum(losses)) if losses else 0.0


class ParserOnce(Parser):
    """The same; each vector is multiplied with the eight parts of the first layers once."""

    def __init__(self, head):
        super().__init__(head)
        both = 2 * PARSER_HIDDEN
        self.heads = [heads[2:] for heads in self.heads]
        self.parts = [self.weights(2 * PARSER_HEAD, both) for _ in range(8)]
        self.bias = self.weights(2 * PARSER_HEAD)

    def ends(self, x):
        return [part * x for part in self.parts]

    def step(self, batch):
        dy.renew_cg()
        empty = dy.pick_range(self.empty, 0, 2 * PARSER_HIDDEN), dy.pick_range(
            self.empty, 2 * PARSER_HIDDEN, 4 * PARSER_HIDDEN)
        self.missing = [self.ends(x) for x in empty]
        return self.steps(batch)

    def first_layers(self, parse):
        items = [parse.stack[-1 - depth] if len(parse.stack) > depth else None
                 for depth in range(3)] + [parse.buffer[-1]]
        ends = []
        for item in items:
            left, right = (item.left, item.right) if item else self.missing
            ends += [left[len(ends)], right[len(ends) + 1]]
        x = dy.tanh(dy.esum([self.bias] + ends))
        return dy.pick_range(x, 0, PARSER_HEAD), dy.pick_range(x, PARSER_HEAD, 2 * PARSER_HEAD)

    def second_layers(self):
        return self.heads


models = {"tagger": (Tagger, "tagger", True), "tagger_chars": (TaggerChars, "tagger", True),
          "tree_lstm": (TreeLSTM, "trees", False), "parser": (Parser, "parses", False),
          "parser_once": (ParserOnce, "parses", False),
          "synthetic_tagger": (SyntheticTagger, "synthetic", True)}


for name in options.names or models:
    make, file, with_list = models[name]
    (_, *head), examples = data.read(options.folder / f"{file}.txt", with_list)
    train(name, who, examples, make(head).step, batches)
