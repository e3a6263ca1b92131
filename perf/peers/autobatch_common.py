"""What the peers of the suite autobatch share: the data, the order of the examples, the passes over
them, and the rows that they print. Import it first: it sets the number of threads."""
import argparse
import json
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC",
                 "PJRT_NPROC"):
    os.environ[variable] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "autobatch"))

import data

BATCH = data.BATCH
WIDTH = 256                    # of words and of hidden states
CHARACTER_WIDTH, CHARACTER_HIDDEN = 64, WIDTH // 2
SYNTHETIC_WIDTH, SYNTHETIC_LAYERS = 200, 2
RATE = 1e-3                    # Adam's


def arguments(more=None):
    """FOLDER [NAME ...] [--batches N]: where the data is, the rows that are wanted, and how many
    minibatches to train with, if not all; `more` adds others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--batches", type=int)
    if more:
        more(parser)
    return parser.parse_args()


def minibatches(examples, batches, shuffled):
    """In the order of the file; or in another one, whose minibatches nobody has seen."""
    n = len(examples)
    at = [(i * 77 + 5) % n if shuffled else i for i in range(n)]
    made = [[examples[i] for i in at[k:k + BATCH]] for k in range(0, n, BATCH)]
    return made[:batches]


def parts(batch):
    return sum(len(example) for example in batch)


def train(name, who, examples, step, batches=None, prepare=None):
    """Two passes over the minibatches: the first one in the order of the file, the second one,
    which counts, in another order. `step` trains with a minibatch and gives its loss, a sum;
    `prepare` is called with each minibatch in front of the clock, as a compiler may have to."""
    passes = [minibatches(examples, batches, shuffled) for shuffled in (False, True)]
    row = {"name": name, "who": who, "unit": "examples/s"}
    if prepare:
        begin = time.perf_counter()
        for batch in passes[0] + passes[1]:
            prepare(batch)
        row["prepared_s"] = round(time.perf_counter() - begin, 2)
    for key, wanted in zip(("first", "value"), passes):
        begin, used = time.perf_counter(), time.process_time()
        losses = [float(step(batch)) / parts(batch) for batch in wanted]
        seconds = time.perf_counter() - begin
        row[key] = round(sum(map(len, wanted)) / seconds, 3)
        row.setdefault("losses", [round(loss, 4) for loss in losses])
    row["last_loss"] = round(losses[-1], 4)
    row["processors"] = round((time.process_time() - used) / seconds, 2)
    row["examples"] = sum(map(len, passes[1]))
    print(json.dumps(row), flush=True)
    print(f"{name} {who}: {row['value']:.1f}/s", file=sys.stderr, flush=True)
