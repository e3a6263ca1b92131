"""Checks every include of include/ and src/ against the order of the folders, how many files each
folder holds, and the opening of files."""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
# Who may include whom, by folder: a row names the folders whose headers it may use, beside its own
# and include/vt. A file belongs to the folder that holds it. The rows go from the bottom up, and
# each may only name rows above it: so there is no circle.
T, J, C, G = "src/trace/", "src/jit/", "src/jit/cpu/", "src/jit/cuda/"
V, D = "src/transforms/vmap", "src/transforms/grad"
BASE, IR, RECORD = T + "base", T + "ir", T + "record"
rows = [
    ("include/vt", []),
    ("include/vt/detail", []),
    (BASE, []),
    (IR, [BASE]),
    (T + "numerics", [BASE, IR]),
    (RECORD, [BASE, IR]),
    (T + "interpret", [BASE, IR, T + "numerics", RECORD]),
    (T + "simplify", [BASE, IR, RECORD]),
    (T + "io", [BASE, IR, RECORD, T + "interpret"]),
    (T + "ops/support", [BASE, IR, RECORD]),
    (T + "ops", [BASE, IR, RECORD, T + "ops/support"]),
    (T + "ops/linalg", [RECORD, T + "ops/support"]),
    (T + "ops/special", [T + "numerics", T + "ops/support"]),
    (T + "ops/random", [T + "numerics", RECORD, T + "ops/support", T + "ops/special"]),
    (V, [BASE, IR, RECORD]),
    (V + "/rules", [BASE, IR, RECORD, V]),
    (D, [BASE, IR, RECORD]),
    (D + "/control", [IR, RECORD, D]),
    (D + "/rules", [IR, T + "numerics", RECORD, D, D + "/control"]),
    ("src/transforms/dataset", [BASE, RECORD]),
    ("src/transforms", [IR, RECORD, T + "ops/support", V, D]),
    (J + "services", [BASE, IR]),
    (J + "report", [BASE, IR, J + "services"]),
    (J + "nest", [BASE, IR]),
    (J + "fusion", [BASE, IR, RECORD, J + "nest"]),
    (J + "regions", [BASE, IR, RECORD, J + "nest"]),
    (J + "passes", [BASE, IR, RECORD, J + "fusion", J + "regions"]),
    (C + "llvm", [BASE, J + "services", J + "report", J + "nest"]),
    (C + "math", [T + "numerics", C + "llvm"]),
    (C + "emit", [BASE, IR, T + "numerics", J + "nest", J + "regions", C + "llvm", C + "math"]),
    (C + "products", [BASE, J + "services", J + "nest", J + "fusion", C + "llvm"]),
    (C + "runtime", [BASE, IR, T + "numerics", RECORD, J + "services", J + "report", J + "nest",
                     J + "fusion", J + "regions", J + "passes"]),
    ("src/jit/cpu", [BASE, J + "services", J + "nest", C + "llvm", C + "math", C + "emit",
                     C + "products", C + "runtime"]),
    (G + "driver", [BASE, RECORD, J + "fusion"]),
    (G + "math", []),
    (G + "mapping", [J + "nest", G + "driver"]),
    (G + "libraries", [BASE, T + "numerics", RECORD, J + "fusion", G + "driver"]),
    (G + "source", [BASE, IR, T + "numerics", RECORD, J + "nest", J + "fusion", J + "regions",
                    G + "driver", G + "mapping"]),
    (G + "products", [BASE, J + "fusion", G + "source"]),
    (G + "program", [BASE, IR, T + "numerics", RECORD, J + "services", J + "report", J + "fusion",
                     J + "regions", J + "passes", G + "driver", G + "math", G + "mapping",
                     G + "libraries", G + "source", G + "products"]),
    ("src/jit", [BASE, IR, RECORD, J + "services", J + "passes", C + "runtime"]),
]
may_include = {}
for folder, below in rows:
    assert all(f in may_include for f in below), f"{folder}: names a row that stands below it"
    may_include[folder] = {*below, "include/vt", "include/vt/detail"}
most_files = 30  # of a folder; include/vt is one namespace, and each header of it a feature
heavy = re.compile(r"<(llvm|llvm-c|cuda|cuda_runtime|nvrtc|Eigen|eigen3|unsupported)[/.]")
heavy_allowed = {"include/vt/eigen.hpp"}


def layer_of(path):
    folder = path.rsplit("/", 1)[0]
    return folder if folder in may_include else None


errors = []
count = 0
files = sorted(p for d in ("include", "src") for p in (root / d).rglob("*") if p.suffix in (".hpp", ".cpp", ".inc"))
for file in files:
    name = file.relative_to(root).as_posix()
    text = file.read_text(encoding="utf-8")
    if not text.startswith("// "):
        errors.append(f"{name}:1: does not open with a sentence on what it owns")
    if name == "include/vt/sources.hpp":
        listed = set(re.findall(r'^#include "\.\./\.\./(src/.*\.cpp)"', text, re.M))
        present = {f.relative_to(root).as_posix() for f in files if f.suffix == ".cpp"}
        errors += [f"{name}: lists {f}, which is not there" for f in sorted(listed - present)]
        errors += [f"{name}: does not list {f}" for f in sorted(present - listed)]
        continue
    layer = layer_of(name)
    if layer is None:
        errors.append(f"{name}: in no known layer")
        continue
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\bTODO\b|\bFIXME\b|\bXXX\b", line):
            errors.append(f"{name}:{number}: unfinished: {line.strip()}")
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        count += 1
        kind, target = match.groups()
        if heavy.search(f"<{target}") and (layer.startswith("include/vt") and name not in heavy_allowed):
            errors.append(f"{name}:{number}: a public header includes {target}")
        if kind == "<" and not target.startswith("vt/"):
            continue
        resolved = ("include/" + target) if kind == "<" else (file.parent / target).resolve().relative_to(root.resolve()).as_posix()
        if not (root / resolved).exists():
            errors.append(f"{name}:{number}: {target} does not exist")
            continue
        if resolved == "include/vt/sources.hpp" and name == "include/vt/vt.hpp":
            continue
        other = layer_of(resolved)
        if other != layer and other not in may_include[layer]:
            errors.append(f"{name}:{number}: {layer} must not include {resolved}")


def defines_before(name, macro, seen):
    """Whether what `name` includes in front of the first use of `macro` defines it: an unknown macro counts as 0 and drops all that it guards."""
    text = (root / name).read_text(encoding="utf-8")
    if re.search(rf"^#define {macro}\b", text, re.M):
        return True
    for target in re.findall(r'^#include "([^"]+)"', text.split(f"#if {macro}")[0], re.M):
        included = ((root / name).parent / target).resolve().relative_to(root.resolve()).as_posix()
        if included not in seen and (root / included).exists() and (seen.add(included) or defines_before(included, macro, seen)):
            return True
    return False


for file in files:
    if "#if VT_HAS_LLVM_HEADERS" in file.read_text(encoding="utf-8") and not defines_before(file.relative_to(root).as_posix(), "VT_HAS_LLVM_HEADERS", set()):
        errors.append(f"{file.relative_to(root)}: asks for VT_HAS_LLVM_HEADERS, which nothing that it includes before defines")
for folder in [*may_include, "tests", *(f"tests/{d.name}" for d in (root / "tests").iterdir() if d.is_dir()), "perf", "examples", "scripts"]:
    held = [p for p in (root / folder).iterdir() if p.is_file()] if (root / folder).is_dir() else []
    if not held and folder in may_include:
        errors.append(f"{folder}: has a row here and no files")
    if len(held) > most_files and folder != "include/vt":
        errors.append(f"{folder}: {len(held)} files, more than {most_files}")
if count == 0:
    errors.append("no include was found: the check itself is broken")
print("\n".join(errors) if errors else f"{len(files)} files, {count} includes, all within the layer order")
sys.exit(1 if errors else 0)
