#!/usr/bin/env python3
"""What may stand around vt's headers: macros of other headers, LLVM's headers of any version.

Usage: headers_test.py INCLUDE_DIR COMPILER… [-- FLAG…]

Macros: Windows, X11 and Qt define names in lower case or without a prefix. Public headers are
preprocessed with such macros and use none of them; with the sources behind them they use neither
min nor max, also not behind the last line: a program keeps its own. Nor need the standard library's
headers stand in front of such macros.
LLVM: with headers of a version that vt does not support the only error is the one that says so.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# Those of headers that are included in front of vt's, of functions with their parameters.
MIN_MAX = ["min(a, b)", "max(a, b)"]
MACROS = MIN_MAX + [
    "near", "far", "small", "IN", "OUT", "interface", "ERROR", "DELETE", "TRUE", "FALSE", "VOID",
    "None", "Bool", "Status", "Success", "Always", "True", "False", "slots", "signals", "emit",
    "foreach(a, b)", "forever", "major(a)", "minor(a)"]
# What vt includes: read first, as it is not vt's.
OUTSIDE = ["bits/stdc++.h", "dlfcn.h", "fcntl.h", "fmt/format.h", "llvm-c/DebugInfo.h",
           "llvm-c/LLJIT.h", "llvm-c/Transforms/PassBuilder.h", "pthread.h", "sys/mman.h",
           "sys/stat.h", "ucontext.h", "unistd.h", "Eigen/Dense",
           "unsupported/Eigen/CXX11/ThreadPool"]


def run(command, text):
    return subprocess.run([*command, "-x", "c++", "-"], input=text, capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})


def macros_used(command, include, macros, own):
    """The macros that vt's text has used, with the file, or what the preprocessor complains of."""
    text = "".join(f"#include <{name}>\n" for name in OUTSIDE)
    for macro in macros:
        name = macro.split("(")[0]
        text += f"#undef {name}\n#define {macro} macro_from_outside_{name}\n"
    text += "".join(f"#include <vt/{name}>\n" for name in own)
    for macro in macros:
        name = macro.split("(")[0]
        text += f"#ifndef {name}\n#error vt has undefined {name}\n#endif\n"
    answer = run([*command, "-E"], text)
    found = {line for line in answer.stderr.splitlines() if " error:" in line}
    file = ""
    for line in answer.stdout.splitlines():
        if marker := re.match(r'# \d+ "(.*?)"', line):
            file = pathlib.Path(marker[1])
        elif "macro_from_outside_" in line and file.resolve().is_relative_to(include.parent):
            found |= {f"{file}: {name}" for name in re.findall(r"\bmacro_from_outside_(\w+)", line)}
    return sorted(found)


def macros_before_the_library(command):
    """vt.hpp behind macros that stand in front of most of the standard library, or nothing."""
    text = "#include <algorithm>\n"
    for macro in MIN_MAX:
        text += f"#define {macro} 0\n"
    text += "#include <vt/vt.hpp>\nint main() { return vt::ones({3}).rank() * max(1, 2); }\n"
    answer = run([*command, "-fsyntax-only"], text)
    return f"macros min and max in front:\n{answer.stderr[:2000]}" if answer.returncode else None


def of_other_llvm(command, version, folder, how):
    """What is wrong with the compiler's answer to LLVM's headers of this version, or nothing."""
    root = pathlib.Path(folder) / str(version)
    for name, text in (("llvm-c/Core.h", "#error headers of LLVM are read\n"),
                       ("llvm/Config/llvm-config.h", f"#define LLVM_VERSION_MAJOR {version}\n")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    answer = run([*command[:1], "-I", root, *command[1:], "-DVT_IMPLEMENTATION", how],
                 "#include <vt/vt.hpp>\n")
    errors = [line for line in answer.stderr.splitlines() if " error: " in line]
    if len(errors) != 1 or "vt supports LLVM 18 to 20" not in errors[0]:
        return f"LLVM {version}: {len(errors)} errors\n" + answer.stderr[:2000]
    return None


def main():
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    include, compilers = pathlib.Path(arguments[0]).resolve(), arguments[1:]
    own = sorted(path.name for path in (include / "vt").glob("*.hpp"))
    own.remove("nanobind.hpp")  # needs nanobind: compiled by io/python_test.py
    failed = []
    for compiler in compilers:
        command = [compiler, "-std=c++20", "-I", str(include), *flags]
        failed += macros_used(command, include, MACROS, own)
        failed += macros_used([*command, "-DVT_IMPLEMENTATION", "-DVT_CUDA"], include, MIN_MAX, own)
        if complaint := macros_before_the_library(command):
            failed.append(complaint)
        with tempfile.TemporaryDirectory() as folder:
            # One of them whole: the sources behind the error compile.
            how = {17: "-E", 21: "-fsyntax-only" if compiler == compilers[0] else "-E"}
            for version in how:
                if complaint := of_other_llvm(command, version, folder, how[version]):
                    failed.append(complaint)
    print("\n".join(failed) or f"{len(own)} headers, {len(compilers)} compilers")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
