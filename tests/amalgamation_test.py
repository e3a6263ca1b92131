"""Checks that the amalgamated file is the headers and sources, token for token, with and without
the implementation and LLVM.

What the suites prove of the one unit they prove of the file then; compiling all of them twice would
show nothing more.
Usage: amalgamation_test.py COMPILER INCLUDE_DIR AMALGAMATED_DIR [-isystem DIR]..."""
import subprocess
import sys

compiler, headers, amalgamated = sys.argv[1:4]
systems = sys.argv[4:]


def tokens(include_dir, flags):
    command = [compiler, "-std=c++20", "-E", "-P", "-I", include_dir, *flags, "-x", "c++", "-"]
    run = subprocess.run(command, input="#include <vt/vt.hpp>\n", capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return run.stdout.split()


# Without any search path LLVM and Eigen are not found: other parts stand under `#if` then.
for implementation in ([], ["-DVT_IMPLEMENTATION"]):
    for found in (systems, []):
        flags = implementation + found
        ours, theirs = tokens(headers, flags), tokens(amalgamated, flags)
        if ours == theirs:
            continue
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b),
                  min(len(ours), len(theirs)))
        part = slice(max(at - 12, 0), at + 6)
        sys.exit(f"the amalgamated file differs with {' '.join(flags) or 'no flags'}, "
                 f"at token {at}:\n  headers:     {' '.join(ours[part])}\n"
                 f"  amalgamated: {' '.join(theirs[part])}")
print("the amalgamated file is the same text")
