"""How many MFLOP of matrix products training with one example of the suite autobatch takes, on
average over the data: twice the sizes of each product, three times (forward, and back to the inputs
and to the weights). Usage: flops.py FOLDER.
"""
import sys
from pathlib import Path

import data

WIDTH, CHARACTER_WIDTH, CHARACTER_HIDDEN = 256, 64, 128
HIDDEN, HEAD = 200, 100  # of the parser


def lstm(inputs, outputs):
    """A step of both directions."""
    return 2 * 4 * outputs * (inputs + outputs)


def main():
    folder = Path(sys.argv[1])
    (examples, _, tags, _), tagged = data.read(folder / "tagger.txt", True)
    tokens = sum(map(len, tagged))
    characters = sum(len(part[2]) for sentence in tagged for part in sentence)
    products = {"tagger": tokens * (lstm(WIDTH, WIDTH) + 2 * WIDTH * WIDTH + WIDTH * tags)}
    products["tagger_chars"] = (products["tagger"]
                                + characters * lstm(CHARACTER_WIDTH, CHARACTER_HIDDEN))

    (_, _, classes), trees = data.read(folder / "trees.txt", False)
    nodes = sum(map(len, trees))
    leaves = sum(left < 0 for tree in trees for left, *_ in tree)
    products["tree_lstm"] = (leaves * 3 * WIDTH * WIDTH
                             + (nodes - leaves) * (3 * 2 * WIDTH * WIDTH + 2 * WIDTH * WIDTH)
                             + nodes * WIDTH * classes)

    (_, _, _, relations), parses = data.read(folder / "parses.txt", False)
    words = sum(map(len, parses))
    read = (words + examples) * (lstm(125, HIDDEN) + lstm(2 * HIDDEN, HIDDEN))
    ends, last = 8 * 2 * HIDDEN * 2 * HEAD, HEAD * (2 * relations + 1 + 3)
    products["parser"] = read + 2 * words * (ends + last)
    products["parser_once"] = read + (words + examples) * ends + 2 * words * last

    (_, _, tags, _), synthetic = data.read(folder / "synthetic.txt", True)
    products["synthetic_tagger"] = sum(map(len, synthetic)) * (
        lstm(200, WIDTH) + lstm(2 * WIDTH, WIDTH) + 2 * WIDTH * tags)
    for name, n in products.items():
        print(f"{name} {2 * 3 * n / examples / 1e6:.0f}")


main()
