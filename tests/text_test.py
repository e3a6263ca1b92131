"""Checks the text of the tree: no line beyond 100 characters, C++ as clang-format writes it, and
no large file that is no text.

Usage: text_test.py REPOSITORY. Where clang-format-19 is not installed only the lines are checked.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

COLUMNS = 100
LARGEST_BINARY = 1 << 20  # bytes: a package or a program that was added by mistake is larger
root = Path(sys.argv[1])
# Numbers that programs write and read, and a text that is not ours.
exempt = ("perf/data/", "perf/results/", "examples/data/", "LICENSE")
# Lines that hold one address, which cannot be broken.
address = re.compile(r"\s*(\S+ )?\S*https?://\S+")

listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True)
names = [n for n in listed.stdout.decode().split("\0") if n and not n.startswith(exempt)]
names = [n for n in names if (root / n).is_file()]  # and not deleted since the last commit
errors = []
texts = 0
for name in names:
    content = (root / name).read_bytes()
    if b"\0" in content:  # no text
        if len(content) > LARGEST_BINARY:
            errors.append(f"{name}: {len(content)} bytes that are no text: is it here by mistake?")
        continue
    texts += 1
    for number, line in enumerate(content.decode("utf-8").split("\n"), 1):
        if len(line) > COLUMNS and not address.fullmatch(line):
            errors.append(f"{name}:{number}: {len(line)} characters, {COLUMNS} are allowed")
if texts == 0:
    errors.append("no text was found: the check itself is broken")

formatter = shutil.which("clang-format-19")
sources = [n for n in names if n.endswith((".hpp", ".h", ".cpp"))]
if formatter and sources:
    run = subprocess.run([formatter, "--dry-run", "--Werror", *sources], cwd=root,
                         stderr=subprocess.PIPE, text=True)
    wrong = {}
    for line in run.stderr.splitlines():
        found = re.match(r"(.*?):(\d+):\d+: error:", line)
        if found:
            wrong.setdefault(found[1], found[2])
    errors += [f"{n}:{line}: clang-format-19 writes this otherwise" for n, line in wrong.items()]
    if run.returncode and not wrong:
        errors.append(f"clang-format-19 fails: {run.stderr[:1000]}")
if errors:
    sys.exit("\n".join(errors))
checked = f"{len(sources)} sources" if formatter else "no source, as there is no clang-format-19,"
print(f"{texts} texts within {COLUMNS} columns, {checked} formatted")
