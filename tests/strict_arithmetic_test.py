#!/usr/bin/env python3
"""Arithmetic of the sources is what is written, whatever flags the program around is compiled with.

Usage: strict_arithmetic_test.py SOURCES_HPP COMPILER -- OPTIONS_OF_THE_LIBRARY…

A few functions stand in the place of the sources in sources.hpp, once in each of its parts; then in
a file of the compiled library, with its options. Both are compiled with flags that change results.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

FUNCTIONS = """
namespace part_{0} {{
#define KEPT [[gnu::noinline]] inline
KEPT bool is_nan(double a) {{ return a != a; }}
KEPT double rest(double a, double b) {{ return (a + b) - a; }}
KEPT double fused(double a, double b, double c) {{ return a * b + c; }}
KEPT double quotients(double a, double b, double c) {{ return (a / c) - (b / c); }}
KEPT double zero(double a) {{ return a + 0.0; }}
template <class T> [[gnu::noinline]] T fused_later(T a, T b, T c) {{ return a * b + c; }}
}}
"""

MAIN = """
int main() {{
  using namespace part_{0};
  volatile double nan = __builtin_nan(""), one = 1, tiny = 1e-20, zero_below = -0.0;
  volatile double factor = 1 + 0x1p-30, product = 1 + 0x1p-29, forty_nine = 49;
  if (!is_nan(nan)) return 1;
  if (rest(one, tiny) != 0) return 2;
  if (fused(factor, factor, -product) != 0) return 3;
  if (fused_later(double(factor), double(factor), -double(product)) != 0) return 4;
  if (quotients(forty_nine, 0, forty_nine) != 1) return 5;
  const double sum = zero(zero_below);
  unsigned long bits;
  __builtin_memcpy(&bits, &sum, sizeof bits);
  return bits == 0 ? 0 : 6;
}}
"""


def with_functions(sources):
    """sources.hpp with a part's functions for the first include of each part."""
    lines, parts, in_part = [], 0, False
    for line in sources.read_text().splitlines():
        if line.startswith("#include"):
            if not in_part:
                lines.append(FUNCTIONS.format(parts))
                parts += 1
            in_part = True
        elif line.startswith("#pragma once"):
            continue
        else:
            in_part = in_part and not line.startswith("#pragma")
            lines.append(line)
    return "\n".join(lines), parts


def main():
    at = sys.argv.index("--")
    sources, compiler, options = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[at + 1:]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    clang = re.search(r"clang version (\d+)", version)
    unsafe = [["-funsafe-math-optimizations"],
              ["-fassociative-math", "-freciprocal-math", "-fno-signed-zeros",
               "-fno-trapping-math"]]
    text, parts = with_functions(sources)
    # GCC's have macros, so that vt.hpp refuses them.
    in_unit = [["-march=native"], *(unsafe if clang else [])]
    in_library = [[f, "-march=native"]
                  for f in ("-O2", "-ffast-math", "-Ofast", "-ffinite-math-only")] + unsafe
    # Products and sums that clang 18 and later do not optimise they fuse: see sources.hpp.
    strict_parts = 1 if clang and int(clang[1]) >= 18 else parts
    cases = [(text, part, flags, []) for part in range(strict_parts) for flags in in_unit]
    cases += [(FUNCTIONS.format(0), 0, flags, options) for flags in in_library]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program, binary = pathlib.Path(folder) / "program.cpp", pathlib.Path(folder) / "program"
        for body, part, flags, own in cases:
            program.write_text(body + MAIN.format(part))
            command = [compiler, "-std=gnu++20", "-O2", *flags, *own, str(program),
                       "-o", str(binary)]
            made = subprocess.run(command, capture_output=True, text=True)
            code = made.returncode and made.stderr or subprocess.run([str(binary)]).returncode
            if code:
                failed += 1
                print(f"part {part}, {' '.join(flags + own)}: {code}")
    print(f"{len(cases)} programs: {failed} failures")
    return 1 if failed or parts < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
