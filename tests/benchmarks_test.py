"""The benchmarks' sources that use vt compile (-fsyntax-only, warnings are errors): they are only built where somebody runs them.

Usage: benchmarks_test.py COMPILER REPOSITORY FLAG...
"""
import concurrent.futures
import pathlib
import subprocess
import sys

compiler, repository, flags = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", repository, "-I", repository / "include", *flags,
           '-DVT_PERF_DATA=""', '-DVT_EXAMPLE_DATA=""']
sources = sorted(source for source in (repository / "perf").glob("*.cpp") if not source.name.startswith("native_"))
assert sources


def messages(source):
    return subprocess.run([*command, source], stderr=subprocess.PIPE, text=True).stderr


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    failed = False
    for source, said in zip(sources, pool.map(messages, sources)):
        if said:
            failed = True
            print(f"{source.name} does not compile:\n{said[:2000]}")
sys.exit(failed)
