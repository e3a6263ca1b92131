#!/usr/bin/env python3
"""Programs that must not compile, and what the compiler says of each.

Usage: wrong_programs_test.py INCLUDE_DIR COMPILER… [-- FLAG…]

Every file in tests/wrong_programs is compiled by each compiler. Its first lines, "// expect: TEXT",
must be found in the first error, that is in the first twenty lines of the output (runs of white
space count as one space, quotation marks of any sort are alike); a comment line that begins with
several spaces continues the one above. A file with "// only: clang" or "// only: g++" among these
lines is for that compiler. "// compiles" instead of an expectation says that the program does
compile: it keeps a check from being too strict. The whole output must be short, and hold one error.

Nearly all that a compiler does for one of them is to read vt's headers. So many are compiled as one
file first, each in a namespace, and the output is divided by the files that it names. A program
whose part is not as it must be is compiled alone, and that decides.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

LINES_READ = 20
MOST_LINES = 30  # of the whole output
HERE = pathlib.Path(__file__).resolve().parent / "wrong_programs"


def is_clang(compiler):
    return "clang" in subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout


def precompiled(compiler, clang, flags, folder):
    """Flags that include vt.hpp, read once, without a warning."""
    header = folder / "pre.hpp"
    header.write_text("#include <vt/vt.hpp>\n")
    out = folder / ("pre.hpp.pch" if clang else "pre.hpp.gch")
    subprocess.run([compiler, *flags, "-Werror", "-x", "c++-header", str(header), "-o", str(out)],
                   check=True)
    return ["-include-pch", str(out)] if clang else ["-include", str(header)]


def plain(text):
    return re.sub(r"\s+", " ", re.sub("[‘’'`\"]", "'", text))


class Program:
    def __init__(self, path):
        self.path, self.text = path, path.read_text()
        head = []
        for line in self.text.splitlines():
            if not line.startswith("//"):
                break
            if head and line.startswith("//    "):  # goes on with the line above
                head[-1] += " " + line[2:].strip()
            else:
                head.append(line[2:].strip())
        self.expected = [line.removeprefix("expect:").strip() for line in head
                         if line.startswith("expect:")]
        self.only = [line.removeprefix("only:").strip() for line in head
                     if line.startswith("only:")]
        self.compiles = "compiles" in head

    def is_for(self, clang):
        return not self.only or any(("clang" in name) == clang for name in self.only)


def run(command):
    return subprocess.run(command, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})


def parts_of(output, paths):
    """The lines of each diagnostic, under the path of the program that it is about."""
    context = re.compile(r"In file included from |\s+from |.*: (In |At )|"
                         r".*:\s+((recursively )?required|in .constexpr. expansion of) ")
    diagnostics, before = [], []  # before: context lines that the next diagnostic begins with
    for line in output.splitlines():
        if context.match(line) and ": error:" not in line and ": note:" not in line:
            before.append(line)
        elif re.search(r": (fatal )?(error|warning):", line):
            diagnostics.append(before + [line])
            before = []
        elif diagnostics:
            diagnostics[-1] += before + [line]
            before = []
    parts = {path: [] for path in paths}
    for lines in diagnostics:
        named = [n for line in lines for n in re.findall(r"(?:^|\s)(/[^:\s]+\.cpp):\d+", line)
                 if n in parts]
        if named:
            parts[named[0]] += lines
    return parts


def together(programs, compiler, clang, flags, folder):
    """What the compiler says of each program when it reads all of them as one file."""
    includes = sorted({line for p in programs for line in p.text.splitlines()
                       if line.startswith("#include")})
    text = "\n".join(includes) + "\n"
    for i, p in enumerate(programs):
        body = "\n".join("" if line.startswith("#include") else line
                         for line in p.text.splitlines())
        text += f'namespace program_{i} {{\n#line 1 "{p.path}"\n{body}\n}}\n'
    handle, name = tempfile.mkstemp(".cpp", dir=folder)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
    # Their main functions are none here.
    unlimited = ["-Wno-return-type", "-Wno-main", "-ferror-limit=0" if clang else "-fmax-errors=0"]
    output = run([compiler, *flags, *unlimited, "-fsyntax-only", name]).stderr
    return parts_of(output, [str(p.path) for p in programs])


def complaint(program, lines, failed):
    """What is wrong with the compiler's answer, or nothing."""
    # What a reader sees: the output without the list of files that include each other.
    shown = [line for line in lines
             if not re.match(r"(In file included from|\s+from) ", line)]
    text = "\n".join(shown[:LINES_READ])
    if program.compiles:
        return "does not compile without a word:\n" + text if failed or lines else None
    if not program.expected:
        return "has no line '// expect: TEXT'"
    if not failed:
        return "compiles"
    missing = [e for e in program.expected if plain(e) not in plain(text)]
    if missing:
        return "the first lines do not say " + ", ".join(repr(e) for e in missing) + f":\n{text}"
    first = next((line for line in shown if re.search(r"\berror:", line)), "")
    if not any(plain(e) in plain(first) for e in program.expected):
        return f"what is expected stands in no first error:\n{text}"
    errors = sum(bool(re.search(r"\berror:", line)) for line in shown)
    if errors > 1 or len(shown) > MOST_LINES:
        return f"{errors} errors in {len(shown)} lines:\n{text}"
    return None


def complaint_alone(program, compiler, flags):
    answer = run([compiler, *flags, "-fsyntax-only", str(program.path)])
    return complaint(program, answer.stderr.splitlines(), answer.returncode != 0)


def main():
    arguments = sys.argv[1:]
    flags = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    include, compilers = arguments[0], arguments[1:]
    programs = [Program(path) for path in sorted(HERE.rglob("*.cpp"))]
    failed = alone = 0
    for compiler in compilers:
        clang = is_clang(compiler)
        every = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
                 "-Wold-style-cast", "-Wno-unused-result", "-I", include, *flags]
        if clang:
            every.append("-Wno-unknown-warning-option")
        own = [p for p in programs if p.is_for(clang)]
        with tempfile.TemporaryDirectory() as folder, \
                concurrent.futures.ThreadPoolExecutor(2) as pool:
            every += precompiled(compiler, clang, every, pathlib.Path(folder))
            lines = {}
            for parts in pool.map(lambda some: together(some, compiler, clang, every, folder),
                                  [own[0::2], own[1::2]]):
                lines.update(parts)
            # That nothing is said of a program may be the fault of its neighbours.
            again = [p for p in own if p.compiles
                     or complaint(p, lines[str(p.path)], bool(lines[str(p.path)]))]
            alone += len(again)
            answers = pool.map(lambda p: complaint_alone(p, compiler, every), again)
            for program, answer in zip(again, answers):
                if answer:
                    failed += 1
                    print(f"{program.path.name} ({compiler}): {answer}\n")
    print(f"{len(programs)} programs, {len(compilers)} compilers, {alone} compiled alone: "
          f"{failed} failures")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
