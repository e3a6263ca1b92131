"""The data of the suite autobatch: writes random examples that are the same in every run, and reads
them for the peers. README.md beside this file has the formats.

Usage: data.py FOLDER [EXAMPLES]. Writes tagger.txt, trees.txt, parses.txt and synthetic.txt, and
prints what they amount to.
"""
import bisect
import itertools
import math
import random
import sys
from pathlib import Path

EXAMPLES, BATCH = 640, 64
WORDS, TAGS, CHARACTERS = 10_000, 5, 80  # word 0 is the unknown one, which rare tokens have
OUTSIDE, RARE = 0.835, 0.07  # shares of the tokens: of class 0, and of rare words
SYNTHETIC_WORDS, SYNTHETIC_TAGS, SYNTHETIC_LENGTH = 1000, 300, 40
CLASSES = 5  # of a tree's node
SKEW = 2.6  # with this power the smaller child has 29.5 % of the leaves, on average over all nodes
PARTS_OF_SPEECH, RELATIONS = 45, 40


class Source:
    """Random numbers that depend on the seed alone: of Python's generator only random() is promised
    to stay as it is."""

    def __init__(self, seed):
        self.uniform = random.Random(seed).random

    def below(self, n):
        return int(self.uniform() * n)

    def log_normal(self, mean, deviation, most):
        """Rounded, and between 1 and `most`."""
        normal = (math.sqrt(-2 * math.log(1 - self.uniform()))
                  * math.cos(2 * math.pi * self.uniform()))
        return max(1, min(most, round(math.exp(mean + deviation * normal))))

    def length(self):
        """Of a sentence: on average 23 words."""
        return self.log_normal(2.977, 0.595, 144)


class Zipf:
    """Numbers below n; the k-th is drawn in proportion to 1 / (k + 1)."""

    def __init__(self, n):
        self.sums = list(itertools.accumulate(1 / (k + 1) for k in range(n)))

    def draw(self, source):
        return bisect.bisect(self.sums, source.uniform() * self.sums[-1])


def sentences(examples):
    """A sentence: a list of (word, tag, characters)."""
    source, zipf = Source(1), Zipf(WORDS - 1)

    def token():
        tag = 0 if source.uniform() < OUTSIDE else 1 + source.below(TAGS - 1)
        if source.uniform() >= RARE:
            return 1 + zipf.draw(source), tag, []
        return 0, tag, [source.below(CHARACTERS)
                        for _ in range(source.log_normal(1.906, 0.401, 40))]

    return [[token() for _ in range(source.length())] for _ in range(examples)]


def synthetic(examples):
    """Sentences of one length; the tag follows from the word."""
    source = Source(4)
    words = ([source.below(SYNTHETIC_WORDS) for _ in range(SYNTHETIC_LENGTH)]
             for _ in range(examples))
    return [[(word, word % SYNTHETIC_TAGS, []) for word in line] for line in words]


def trees(examples):
    """A tree: a list of (left, right, word, class), children in front of their parents; a leaf has
    -1 as children, any other node has -1 as its word."""
    source, zipf = Source(2), Zipf(WORDS)

    def grow(leaves, nodes):
        if leaves == 1:
            nodes.append((-1, -1, zipf.draw(source), source.below(CLASSES)))
            return
        smaller = max(1, min(leaves // 2, round(leaves * 0.5 * source.uniform() ** SKEW)))
        first = smaller if source.uniform() < 0.5 else leaves - smaller
        grow(first, nodes)
        left = len(nodes) - 1
        grow(leaves - first, nodes)
        # Class 0 is the common one, as neutral phrases are.
        label = 0 if source.uniform() < 0.5 else source.below(CLASSES)
        nodes.append((left, len(nodes) - 1, -1, label))

    made = []
    for _ in range(examples):
        made.append([])
        grow(source.log_normal(2.808, 0.581, 52), made[-1])
    return made


def parses(examples):
    """A parse: a list of (word, part of speech, head, relation); the words count from 1, and head 0
    is the root. The trees are projective; a word's part of speech tells its relation, and is odd if
    the head stands to its left."""
    source, word, half = Source(3), Zipf(WORDS), Zipf(PARTS_OF_SPEECH // 2)

    def attach(first, size, parent, heads):
        """Makes a tree of the words first … first + size − 1: one of them is the head, and what
        lies on its left and right falls into pieces that hang from it."""
        if size == 0:
            return
        head = first + source.below(size)
        heads[head] = parent
        for start, left in ((first, head - first), (head + 1, first + size - head - 1)):
            while left:
                piece = 1 + int(left * source.uniform() ** 2)
                attach(start, piece, head, heads)
                start, left = start + piece, left - piece

    made = []
    for _ in range(examples):
        heads = [0] * (source.length() + 1)
        attach(1, len(heads) - 1, 0, heads)
        made.append([])
        for at, head in enumerate(heads[1:], 1):
            tag = 2 * half.draw(source) + (head < at)
            made[-1].append((word.draw(source), tag, head, tag % RELATIONS))
    return made


def write(path, head, examples):
    """A line of numbers that describe the file, then a line an example: how many parts it has, and
    their numbers; a list is preceded by its length."""
    def flat(part):
        for x in part:
            yield from (len(x), *x) if isinstance(x, list) else (x,)

    with open(path, "w") as file:
        print(len(examples), *head, file=file)
        for example in examples:
            print(len(example), *(x for part in example for x in flat(part)), file=file)


def read(path, with_list):
    """What `write` wrote: the numbers of the first line, and the examples."""
    lines = Path(path).read_text().splitlines()
    examples = []
    for line in lines[1:]:
        numbers = iter([int(x) for x in line.split()])
        example = []
        for _ in range(next(numbers)):
            part = [next(numbers) for _ in range(2 if with_list else 4)]
            if with_list:
                part.append([next(numbers) for _ in range(next(numbers))])
            example.append(tuple(part))
        examples.append(example)
    return [int(x) for x in lines[0].split()], examples


def smaller_share(made):
    """The share of the leaves that the smaller child has, on average over all nodes."""
    shares = []
    for tree in made:
        leaves = []
        for left, right, *_ in tree:
            leaves.append(1 if left < 0 else leaves[left] + leaves[right])
            if left >= 0:
                shares.append(min(leaves[left], leaves[right]) / leaves[-1])
    return sum(shares) / len(shares)


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    examples = int(sys.argv[2]) if len(sys.argv) > 2 else EXAMPLES
    tagged, made, parsed = sentences(examples), trees(examples), parses(examples)
    write(folder / "tagger.txt", (WORDS, TAGS, CHARACTERS), tagged)
    write(folder / "synthetic.txt", (SYNTHETIC_WORDS, SYNTHETIC_TAGS, 0), synthetic(examples))
    write(folder / "trees.txt", (WORDS, CLASSES), made)
    write(folder / "parses.txt", (WORDS, PARTS_OF_SPEECH, RELATIONS), parsed)

    tokens = [token for sentence in tagged for token in sentence]
    rare = [len(token[2]) for token in tokens if token[2]]
    leaves = [(len(tree) + 1) // 2 for tree in made]
    print(f"{examples} examples a file, seeds 1 to 4\n"
          f"tagger: {len(tokens) / examples:.2f} tokens, at most {max(map(len, tagged))};"
          f" {sum(t[1] == 0 for t in tokens) / len(tokens):.1%} of class 0,"
          f" {len(rare) / len(tokens):.1%} rare, of {sum(rare) / len(rare):.2f} characters\n"
          f"trees: {sum(leaves) / examples:.2f} leaves, at most {max(leaves)};"
          f" the smaller child has {smaller_share(made):.1%} of them\n"
          f"parses: {sum(map(len, parsed)) / examples:.2f} words, at most {max(map(len, parsed))}",
          file=sys.stderr)


if __name__ == "__main__":
    main()
