"""The taggers of the suite autobatch in PyTorch, batched by hand: packed sequences.

Usage: autobatch_torch.py FOLDER [NAME ...] [--batches N].
"""
from autobatch_common import (CHARACTER_HIDDEN, CHARACTER_WIDTH, RATE, SYNTHETIC_LAYERS,
                              SYNTHETIC_WIDTH, WIDTH, arguments, data, train)

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

torch.set_num_threads(1)
torch.manual_seed(1)


def packed(lists):
    return pack_sequence([torch.tensor(x) for x in lists], enforce_sorted=False)


def words_of(n, width):
    words = nn.Embedding(n, width)
    nn.init.normal_(words.weight, std=width ** -0.5)
    return words


def with_data(sequence, x):
    """The same sequences, with other data for their elements."""
    return PackedSequence(x, sequence.batch_sizes, sequence.sorted_indices,
                          sequence.unsorted_indices)


class Tagger(nn.Module):
    def __init__(self, words, tags, characters):
        super().__init__()
        self.words = words_of(words, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, bidirectional=True)
        self.H = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.O = nn.Linear(WIDTH, tags, bias=False)

    def inputs(self, sentences, words):
        return self.words(words.data)

    def logits(self, states):
        return self.O(torch.tanh(self.H(states)))

    def forward(self, sentences):
        words = packed([[word for word, _, _ in s] for s in sentences])
        tags = packed([[tag for _, tag, _ in s] for s in sentences])
        states, _ = self.lstm(with_data(words, self.inputs(sentences, words)))
        return nn.functional.cross_entropy(self.logits(states.data), tags.data, reduction="sum")


class TaggerChars(Tagger):
    def __init__(self, words, tags, characters):
        super().__init__(words, tags, characters)
        self.characters = words_of(characters, CHARACTER_WIDTH)
        self.spelled = nn.LSTM(CHARACTER_WIDTH, CHARACTER_HIDDEN, bidirectional=True)

    def inputs(self, sentences, words):
        rare = [characters for s in sentences for _, _, characters in s if characters]
        x = super().inputs(sentences, words)
        if not rare:
            return x
        numbers = iter(range(len(rare)))
        which = packed([[next(numbers) if characters else -1 for _, _, characters in s]
                        for s in sentences]).data
        spelling = packed(rare)
        _, (last, _) = self.spelled(with_data(spelling, self.characters(spelling.data)))
        at = torch.nonzero(which >= 0)[:, 0]
        return x.index_copy(0, at, torch.cat([last[0], last[1]], 1)[which[at]])


class SyntheticTagger(Tagger):
    def __init__(self, words, tags, characters):
        nn.Module.__init__(self)
        self.words = words_of(words, SYNTHETIC_WIDTH)
        self.lstm = nn.LSTM(SYNTHETIC_WIDTH, WIDTH, SYNTHETIC_LAYERS, bidirectional=True)
        self.O = nn.Linear(2 * WIDTH, tags, bias=False)

    def logits(self, states):
        return self.O(states)


models = {"tagger": (Tagger, "tagger"), "tagger_chars": (TaggerChars, "tagger"),
          "synthetic_tagger": (SyntheticTagger, "synthetic")}


def main():
    options = arguments()
    for name in options.names or models:
        make, file = models[name]
        (_, *head), examples = data.read(options.folder / f"{file}.txt", True)
        model = make(*head)
        trainer = torch.optim.Adam(model.parameters(), RATE, fused=True)

        def step(batch):
            trainer.zero_grad()
            loss = model(batch)
            loss.backward()
            trainer.step()
            return loss.item()

        train(name, "torch", examples, step, options.batches)


main()
