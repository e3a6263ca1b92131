#!/usr/bin/env python3
"""Programs that must not compile, and what the compiler says of each.

Usage: wrong_programs_test.py INCLUDE_DIR COMPILER… [-- FLAG…]

Every file in tests/wrong_programs is compiled by each compiler. Its first lines, "// expect: TEXT",
must be found in the first error, that is in the first twenty lines of the output (runs of white
space count as one space, quotation marks of any sort are alike); a comment line that begins with
several spaces continues the one above. A file with "// only: clang" or "// only: g++" among these
lines is for that compiler. "// compiles" instead of an expectation says that the program does
compile: it keeps a check from being too strict. The whole output must be short, and hold one error.
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


def complaint(program, compiler, clang, flags):
    """What is wrong with the compiler's answer, or nothing."""
    head = []
    for line in program.read_text().splitlines():
        if not line.startswith("//"):
            break
        if head and line.startswith("//    "):  # goes on with the line above
            head[-1] += " " + line[2:].strip()
        else:
            head.append(line[2:].strip())
    expected = [line.removeprefix("expect:").strip() for line in head if line.startswith("expect:")]
    only = [line.removeprefix("only:").strip() for line in head if line.startswith("only:")]
    if only and not any(("clang" in name) == clang for name in only):
        return None
    run = subprocess.run([compiler, *flags, "-fsyntax-only", str(program)], capture_output=True,
                         text=True,
                         env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})
    # What a reader sees: the output without the list of files that include each other.
    shown = [line for line in run.stderr.splitlines()
             if not re.match(r"(In file included from|\s+from) ", line)]
    text = "\n".join(shown[:LINES_READ])
    if "compiles" in head:
        good = run.returncode == 0 and not run.stderr
        return None if good else f"does not compile without a word:\n{text}"
    if not expected:
        return "has no line '// expect: TEXT'"
    if run.returncode == 0:
        return "compiles"
    missing = [e for e in expected if plain(e) not in plain(text)]
    if missing:
        return "the first lines do not say " + ", ".join(repr(e) for e in missing) + f":\n{text}"
    first = next((line for line in shown if re.search(r"\berror:", line)), "")
    if not any(plain(e) in plain(first) for e in expected):
        return f"what is expected stands in no first error:\n{text}"
    errors = sum(bool(re.search(r"\berror:", line)) for line in shown)
    if errors > 1 or len(shown) > MOST_LINES:
        return f"{errors} errors in {len(shown)} lines:\n{text}"
    return None


def main():
    arguments = sys.argv[1:]
    flags = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    include, compilers = arguments[0], arguments[1:]
    programs = sorted(HERE.rglob("*.cpp"))
    failed = 0
    for compiler in compilers:
        clang = is_clang(compiler)
        every = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow",
                 "-Wold-style-cast",
                 "-I", include, *flags]
        if clang:
            every.append("-Wno-unknown-warning-option")
        pool = concurrent.futures.ThreadPoolExecutor(2)
        with tempfile.TemporaryDirectory() as folder, pool:
            every += precompiled(compiler, clang, every, pathlib.Path(folder))
            answers = pool.map(lambda p: complaint(p, compiler, clang, every), programs)
            for program, answer in zip(programs, answers):
                if answer:
                    failed += 1
                    print(f"{program.name} ({compiler}): {answer}\n")
    print(f"{len(programs)} programs, {len(compilers)} compilers: {failed} failures")
    return 1 if failed or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
