"""Applies the worked examples of docs/internals/extending.md to a copy of the sources, counts their
lines, compiles the copy as one unit and runs the programs of the page.

Also: where only the rows of the op table are there, the compiler names each table that lacks one.
The programs run on the CPU, and once more on the emulated device.
Usage: worked_examples_test.py COMPILER PROJECT_DIR WORK_DIR EMULATOR [-isystem DIR]..."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

compiler, project, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
emulator, systems = sys.argv[4], sys.argv[5:]
page = (project / "docs/internals/extending.md").read_text(encoding="utf-8")
most_lines_of_an_op = 9

PROGRAM = r"""
#define VT_IMPLEMENTATION
#include <vt/vt.hpp>
#include <cstdio>
static int failures = 0;
template <class T>
void check(const vt::Tensor& result, std::initializer_list<T> wanted) {
  int i = 0;
  for (T w : wanted)
    if (const double got = result[i++].item<double>(); got != static_cast<double>(w)) {
      std::printf("element %d is %g, not %g\n", i - 1, got, static_cast<double>(w));
      ++failures;
    }
}
"""


def sections(kind):
    """The fenced blocks of this kind, by the heading over them."""
    found, heading, block = {}, "", None
    for line in page.splitlines():
        if block is not None and line == "```":
            found.setdefault(heading, []).extend(block)
            block = None
        elif block is not None:
            block.append(line)
        elif line.startswith("## "):
            heading = line[3:]
        elif line == f"```{kind}":
            block = []
    return found


def changes(lines):
    """Yields (path, lines in front, new lines) of a diff block."""
    path, front, new = None, [], []
    for line in lines + ["--- "]:
        if (line.startswith("---") or line.startswith(" ")) and new:
            yield path, front, new
            front, new = [], []
        if line.startswith("---"):
            path, front = line[4:], []
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            front.append(line[1:])


def apply(tree, lines):
    """Returns how many lines src/ has got that are not part of a new file."""
    count = 0
    for path, front, new in changes(lines):
        file = tree / path
        if not front and not file.exists():
            file.write_text("\n".join(new) + "\n")
            continue
        count += len(new) if path.startswith("src/") else 0
        text = file.read_text(encoding="utf-8").splitlines()
        bare, wanted = ([t.rstrip("\\ ") for t in lines] for lines in (text, front))
        ends = [i for i in range(len(bare)) if bare[i - len(wanted) : i] == wanted]
        if len(ends) != 1:
            sys.exit(f"{path}: these lines are there {len(ends)} times:\n" + "\n".join(front))
        text[ends[0] : ends[0]] = new
        file.write_text("\n".join(text) + "\n", encoding="utf-8")
    return count


def fresh(name):
    tree = work / name
    shutil.rmtree(tree, ignore_errors=True)
    for folder in ("include", "src"):
        shutil.copytree(project / folder, tree / folder)
    return tree


def only(path, lines):
    """The part of a diff block that changes this file."""
    keep, here = [], False
    for line in lines:
        if line.startswith("---"):
            here = line[4:] == path
        if here:
            keep.append(line)
    return keep


def missing_rules(tree, source):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-DVT_CUDA", f"-I{tree}/include", *systems,
               str(tree / source)]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.returncode != 0 and "RuleMissingFor" in run.stderr and run.stderr


patches, programs = sections("diff"), sections("c++")

# Nothing is forgotten silently.
for heading, op, sources in (
    ("An op", "cube",
     ("src/trace/interpret/interpreter.cpp", "src/transforms/grad/rules/jvp.cpp",
      "src/jit/cpu/emit/ops.cpp", "src/jit/cuda/source/element_source.cpp")),
    ("A reduction", "reduce_xor",
     ("src/trace/interpret/interpreter.cpp", "src/jit/cuda/source/nest_source.cpp")),
):
    tree = fresh("gaps")
    apply(tree, only("src/trace/ir/op.hpp", patches[heading]))
    for source in sources:
        errors = missing_rules(tree, source)
        if not errors or op not in errors:
            sys.exit(f"{source} compiles without a row for {op}, or does not name it: {errors}")

tree = fresh("copy")
for heading, lines in patches.items():
    count = apply(tree, lines)
    print(f"{heading}: {count} lines in files of src/")
    if heading == "An op" and count > most_lines_of_an_op:
        sys.exit(f"an op takes {count} lines, more than {most_lines_of_an_op}")
body = "\n".join("{\n" + "\n".join(p) + "\n}" for p in programs.values())
source, program = tree / "examples.cpp", tree / "examples"
source.write_text(PROGRAM + "int main() {\n" + body + "\nreturn failures != 0;\n}\n")
command = [compiler, "-std=c++20", "-O0", "-DVT_CUDA", f"-I{tree}/include", *systems, str(source),
           "-o", str(program), "-ldl", "-pthread"]
if subprocess.run(command).returncode:
    sys.exit("the copy does not compile")
device = {"VT_BACKEND": "cuda", "VT_CUDA_LIBRARY": emulator, "VT_NVRTC_LIBRARY": emulator,
          "VT_CUBLAS_LIBRARY": "none", "VT_CUFFT_LIBRARY": "none", "VT_CUSOLVER_LIBRARY": "none"}
for variables in ({}, device):
    run = subprocess.run([program], timeout=300, env={**os.environ, **variables})
    if run.returncode:
        sys.exit(f"the examples end with {run.returncode} {'on the device' if variables else ''}")
print("the worked examples work")
