"""Checks every include in include/ and src/ against the layer order, and the opening of files."""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
# Who may include whom, by folder. A file belongs to the longest prefix that fits.
may_include = {
    "include/vt": set(),
    "src/trace": {"include/vt"},
    "src/transforms/vmap": {"include/vt", "src/trace"},
    "src/transforms/grad": {"include/vt", "src/trace"},
    "src/transforms": {"include/vt", "src/trace", "src/transforms/vmap", "src/transforms/grad"},
    "src/jit": {"include/vt", "src/trace"},
    "src/jit/cpu": {"include/vt", "src/trace", "src/jit"},
    "src/jit/cuda": {"include/vt", "src/trace", "src/jit"},
}
heavy = re.compile(r"<(llvm|llvm-c|cuda|cuda_runtime|nvrtc|Eigen|eigen3|unsupported)[/.]")
heavy_allowed = {"include/vt/eigen.hpp"}


def layer_of(path):
    best = max((l for l in may_include if path.startswith(l + "/")), key=len, default=None)
    return best


errors = []
count = 0
files = sorted(p for d in ("include", "src") for p in (root / d).rglob("*")
               if p.suffix in (".hpp", ".cpp", ".inc"))
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
        if heavy.search(f"<{target}") and (layer == "include/vt" and name not in heavy_allowed):
            errors.append(f"{name}:{number}: a public header includes {target}")
        if kind == "<" and not target.startswith("vt/"):
            continue
        if kind == "<":
            resolved = "include/" + target
        else:
            resolved = (file.parent / target).resolve().relative_to(root.resolve()).as_posix()
        if not (root / resolved).exists():
            errors.append(f"{name}:{number}: {target} does not exist")
            continue
        if resolved == "include/vt/sources.hpp" and name == "include/vt/vt.hpp":
            continue
        other = layer_of(resolved)
        if other != layer and other not in may_include[layer]:
            errors.append(f"{name}:{number}: {layer} must not include {resolved}")


def defines_before(name, macro, seen):
    """Whether what `name` includes in front of the first use of `macro` defines it: an unknown
    macro counts as 0 and drops all that it guards."""
    text = (root / name).read_text(encoding="utf-8")
    if re.search(rf"^#define {macro}\b", text, re.M):
        return True
    for target in re.findall(r'^#include "([^"]+)"', text.split(f"#if {macro}")[0], re.M):
        included = ((root / name).parent / target).resolve().relative_to(root.resolve()).as_posix()
        if included in seen or not (root / included).exists():
            continue
        seen.add(included)
        if defines_before(included, macro, seen):
            return True
    return False


for file in files:
    name = file.relative_to(root).as_posix()
    asks = "#if VT_HAS_LLVM_HEADERS" in file.read_text(encoding="utf-8")
    if asks and not defines_before(name, "VT_HAS_LLVM_HEADERS", set()):
        errors.append(f"{name}: asks for VT_HAS_LLVM_HEADERS, which no include before it defines")
if count == 0:
    errors.append("no include was found: the check itself is broken")
print("\n".join(errors) if errors
      else f"{len(files)} files, {count} includes, all within the layer order")
sys.exit(1 if errors else 0)
