"""The benchmarks' sources that use vt compile (-fsyntax-only, warnings are errors): they are only
built where somebody runs them.

Usage: benchmarks_test.py COMPILER REPOSITORY FLAG...
"""
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

compiler, repository, flags = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
           "-I", repository, "-I", repository / "include", *flags,
           '-DVT_PERF_DATA=""', '-DVT_EXAMPLE_DATA=""']
sources = sorted(source for source in (repository / "perf").rglob("*.cpp")
                 if not source.name.startswith("native_") and "peers" not in source.parts)
assert sources


with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
    # Read once for all of them. Where the compiler cannot use this it reads the text.
    headers = pathlib.Path(folder, "headers.hpp")
    headers.write_text("#include <vt/vt.hpp>\n", encoding="utf-8")
    precompile = [flag for flag in command if flag != "-fsyntax-only"]
    subprocess.run([*precompile, "-x", "c++-header", headers, "-o", f"{headers}.gch"], check=True)

    def messages(source):
        return subprocess.run([*command, "-include", headers, source], stderr=subprocess.PIPE,
                              text=True).stderr

    failed = False
    for source, said in zip(sources, pool.map(messages, sources)):
        if said:
            failed = True
            print(f"{source.name} does not compile:\n{said[:2000]}")
sys.exit(failed)
