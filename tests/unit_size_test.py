"""Holds the one unit of header-only mode to a budget of functions: what a prototype waits for is
nearly proportional to them."""
import collections
import re
import subprocess
import sys

nm, archive = sys.argv[1:]
# GCC 12, x86-64, -O1. Lower it where something became leaner; what raises it needs a reason.
# Without VT_CUDA. 11,700 before small entries of the disk cache shared files, first calls became
# near linear, nesting too, and parameters refused bools (11,930). 11,520 before kernels shared
# mappings and were dropped, files were written whole and checked, and nothing followed the locale
# (11,666; 52 CPU seconds on a busy machine). 11,310 before complex functions kept Annex G, special
# functions their tails and linear algebra its digits on hard matrices (11,511; 45 CPU seconds, as
# before). 11,240 before short rows went lane by lane and axes in front of them as one (11,300).
# 11,200 before lanes of regions lay along any axis and real transforms were shared by threads
# (11,196). 11,050 before loops knew their own derivatives, so that higher orders of reverse mode
# fit in memory. 10,950 before products of few rows, few columns and long sums had kernels of their
# own. 10,900 before chains of products had all that they need (10,901 as CMake builds it). 10,815
# before products that hand their rows on (attention). 10,800 before blocks of turned squares.
# 10,700 before decompositions of f32 in f32 and of real eigenvalues in real numbers. 10,200 before
# plans of memory and blocks chosen by them, explain's page, perf and gdb, sorting networks.
budget = 12000

advice = """\
Most are instances of templates, a millisecond of compiling each, however short.
What helped before:
  - convert elements to f64, i64 or u64 piece by piece and write one loop per op
    (src/trace/interpret/wide_loops.hpp), not one per dtype;
  - FunctionRef for parameters and Function for what is kept (vt/detail/function.hpp) instead of
    std::function;
  - Vec, HashMap, Box, new_shared, any_of … of vt (vt/small_vec.hpp, vt/detail/,
    src/trace/base/hash_map.hpp) instead of the standard ones;
  - a loop over a table of plain function pointers instead of a table of lambdas or a visited
    variant;
  - a source that runs rarely belongs to the second part of include/vt/sources.hpp."""


def family(name):
    """The name without template arguments and parameters: what a source calls the function."""
    depth, plain = 0, ""
    name = name.replace("operator<", "operator_less").replace("operator>", "operator_greater")
    for c in name.replace("->", ""):
        depth += c == "<"
        if depth == 0:
            plain += c
        depth -= c == ">" and depth > 0
    return re.sub(r"\(.*", "", plain).split(" ")[-1]


symbols = subprocess.run([nm, "-C", "--defined-only", archive], check=True, capture_output=True,
                         text=True).stdout.splitlines()
# A set, as constructors have two symbols.
functions = {m[1] for m in (re.match(r"[0-9a-f]+ [tTwW] (.*)", line) for line in symbols) if m}
print(f"{len(functions)} functions, budget {budget}")
if len(functions) < budget // 2:
    sys.exit("far too few: is this the object of the whole library?")
if len(functions) > budget:
    for name, count in collections.Counter(map(family, functions)).most_common(25):
        print(f"{count:6} {name}")
    more = len(functions) - budget
    sys.exit(f"The one unit has {more} functions more than its budget.\n{advice}")
