"""Checks every include of include/ and src/ against the order of the folders, that sources include
what declares the names they use, how many files each folder holds, and the opening of files."""
import posixpath
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
# Who may include whom, by folder: a row names the folders whose headers it may use, beside its own
# and include/vt. A file belongs to the folder that holds it. The rows go from the bottom up, and
# each may only name rows above it: so there is no circle.
T, J, C, G = "src/trace/", "src/jit/", "src/jit/cpu/", "src/jit/cuda/"
V, D, S = "src/transforms/vmap", "src/transforms/grad", "src/transforms/distributed"
BASE, IR, RECORD = T + "base", T + "ir", T + "record"
ELEMENTS, PROCESSES = T + "elements", T + "processes"
rows = [
    ("include/vt", []),
    ("include/vt/detail", []),
    (BASE, []),
    (IR, [BASE]),
    (PROCESSES, [BASE, IR]),
    (IR + "/shape_rules", [IR]),
    (ELEMENTS, [IR]),
    (T + "fiber", [BASE]),
    (T + "numerics", [BASE, IR]),
    (RECORD, [BASE, IR, T + "fiber"]),
    (T + "interpret", [BASE, IR, T + "numerics", PROCESSES, RECORD]),
    (T + "simplify", [BASE, IR, RECORD]),
    (T + "io", [BASE, IR, RECORD, T + "interpret"]),
    (T + "ops/support", [BASE, IR, RECORD]),
    (T + "ops", [BASE, IR, RECORD, T + "ops/support"]),
    (T + "ops/linalg", [RECORD, T + "ops/support"]),
    (T + "ops/special", [T + "numerics", T + "ops/support"]),
    (T + "ops/random", [BASE, T + "numerics", RECORD, T + "ops/support", T + "ops/special"]),
    (V, [BASE, IR, RECORD]),
    (V + "/rules", [BASE, IR, RECORD, V]),
    (D, [BASE, IR, ELEMENTS, RECORD]),
    (D + "/control", [IR, RECORD, D]),
    (D + "/rules", [IR, T + "numerics", RECORD, D, D + "/control"]),
    ("src/transforms/autobatch", [BASE, IR, T + "fiber", RECORD]),
    ("src/transforms/dataset", [BASE, RECORD]),
    (S, [BASE, IR, PROCESSES, RECORD, T + "io"]),
    ("src/transforms/solvers", [IR, RECORD, T + "ops/support", V, D, S]),
    ("src/transforms", [IR, RECORD, T + "ops/support", V, D, S]),
    (J + "services", [BASE, IR]),
    (J + "report", [BASE, IR, PROCESSES, J + "services"]),
    (J + "nest", [BASE, IR]),
    (J + "fusion", [BASE, IR, RECORD, J + "nest"]),
    (J + "regions", [BASE, IR, ELEMENTS, RECORD, J + "nest"]),
    (J + "lanes", [BASE, IR, J + "services"]),
    (J + "passes", [BASE, IR, RECORD, J + "report", J + "fusion", J + "regions", J + "lanes"]),
    (C + "llvm", [BASE, IR, J + "services", J + "report", J + "nest"]),
    (C + "math", [T + "numerics", C + "llvm"]),
    (C + "emit", [BASE, IR, T + "numerics", J + "nest", J + "regions", C + "llvm", C + "math"]),
    (C + "products", [BASE, J + "services", J + "nest", J + "fusion", C + "llvm"]),
    (C + "sort", [BASE, IR, J + "services", J + "fusion"]),
    (C + "runtime", [BASE, IR, PROCESSES, T + "numerics", RECORD, J + "services", J + "report",
                     J + "nest",
                     J + "fusion", J + "regions", J + "lanes", J + "passes", C + "llvm",
                     C + "products", C + "sort"]),
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
                     J + "regions", J + "lanes", J + "passes", G + "driver", G + "math",
                     G + "mapping", G + "libraries", G + "source", G + "products"]),
    ("src/jit", [BASE, IR, PROCESSES, T + "numerics", RECORD, J + "services", J + "passes",
                 C + "products", C + "runtime"]),
]
may_include = {}
for folder, below in rows:
    assert all(f in may_include for f in below), f"{folder}: names a row that stands below it"
    may_include[folder] = {*below, "include/vt", "include/vt/detail"}
most_files = 30  # of a folder; include/vt is one namespace, and each header of it a feature
heavy = re.compile(r"<(llvm|llvm-c|cuda|cuda_runtime|nvrtc|Eigen|eigen3|unsupported)[/.]")
bare_lock = re.compile(r"(?<!LongMutex<)std::(shared_|recursive_|timed_)*mutex"
                       r"|std::condition_variable\b|\bpthread_mutex")
heavy_allowed = {"include/vt/eigen.hpp"}


def layer_of(path):
    folder = path.rsplit("/", 1)[0]
    return folder if folder in may_include else None


errors = []
count = 0
files = sorted(p for d in ("include", "src") for p in (root / d).rglob("*")
               if p.suffix in (".hpp", ".cpp", ".inc"))
for file in files:
    name = file.relative_to(root).as_posix()
    text = file.read_text(encoding="utf-8")
    if not text.startswith("// "):
        errors.append(f"{name}:1: does not open with a sentence on what it owns")
    if name == "include/vt/detail/sources.hpp":
        listed = set(re.findall(r'^#include "\.\./\.\./\.\./(src/.*\.cpp)"', text, re.M))
        present = {f.relative_to(root).as_posix() for f in files if f.suffix == ".cpp"}
        errors += [f"{name}: lists {f}, which is not there" for f in sorted(listed - present)]
        errors += [f"{name}: does not list {f}" for f in sorted(present - listed)]
        continue
    if file.parent == root / "include" / "vt":
        # A reader finds what a public header offers: what stands behind it is in vt/detail.
        for block in re.finditer(r"^namespace detail \{\n(.*?)^\}", text, re.M | re.S):
            if block[1].count("\n") > 80:
                line = text.count("\n", 0, block.start()) + 1
                errors.append(f"{name}:{line}: more than 80 lines of namespace detail")
    layer = layer_of(name)
    if layer is None:
        errors.append(f"{name}: in no known layer")
        continue
    for number, line in enumerate(text.splitlines(), 1):
        if bare_lock.search(line) and layer.startswith("src/") and file.stem != "locks":
            errors.append(f"{name}:{number}: a lock that a fork does not know; see base/locks.hpp")
        if re.search(r"\bTODO\b|\bFIXME\b|\bXXX\b", line):
            errors.append(f"{name}:{number}: unfinished: {line.strip()}")
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        count += 1
        kind, target = match.groups()
        public = layer.startswith("include/vt") and name not in heavy_allowed
        if heavy.search(f"<{target}") and public:
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
        if resolved == "include/vt/detail/sources.hpp" and name == "include/vt/vt.hpp":
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
        errors.append(f"{name}: nothing that it includes before defines VT_HAS_LLVM_HEADERS")
# The tests compile many sources as one, where each finds what those before it included. So names of
# two words and more that a header declares in a namespace (and thus not indented) are looked for.
texts = {f.relative_to(root).as_posix(): f.read_text(encoding="utf-8") for f in files}
head = re.compile(r"^(?:template <.*> *)?(?:class|struct|enum class|using|concept) (\w+)"
                  r"|^(?!return|#|//|\}|using|namespace)[\w:<>,&*\[\] ]* [&*]*(\w+)\(", re.M)
two_words = re.compile(r"[A-Z][a-z0-9]+[A-Z]\w*|[a-z]\w*_\w*[a-z0-9]")


def declared_by(text):
    return {a or b for a, b in head.findall(text) if two_words.fullmatch(a or b)}


def direct_includes(name):
    for kind, target in re.findall(r'^ *# *include ([<"])([^>"]+)[>"]', texts[name], re.M):
        place = "include" if kind == "<" else posixpath.dirname(name)
        other = posixpath.normpath(posixpath.join(place, target))
        if other in texts:
            yield other


def included_by(name, seen):
    for other in included[name]:
        if other not in seen:
            seen.add(other)
            included_by(other, seen)
    return seen


included = {name: list(direct_includes(name)) for name in texts}
declaring = {}
for name, text in texts.items():
    if name.endswith(".hpp"):
        for word in declared_by(text):
            declaring.setdefault(word, set()).add(name)
declaring.pop("static_assert")
assert {"HashMap", "op_weight"} <= declaring.keys(), "the check itself is broken"
for name, text in texts.items():
    if not name.endswith(".cpp"):
        continue
    code = re.sub(r'R"cuda\(.*?\)cuda"', "", text, flags=re.S)
    code = re.sub(r'"(\\.|[^"\\\n])*"', "", re.sub(r"//.*", "", code))
    used = set(re.findall(r"(?<![\w.>:])(\w+(?=\()|[A-Z]\w+)", code))
    own = set(re.findall(r"[\w>&*\]] [&*]?(\w+)(?=[ ]?[\[={(;,):])", code))
    seen = included_by(name, set())
    errors += [f"{name}: uses {word} of {min(declaring[word])}, which it does not include"
               for word in sorted(used & declaring.keys() - own) if not declaring[word] & seen]
others = {p.parent for top in ("tests", "perf", "examples") for p in (root / top).rglob("*.?pp")}
others = {p.relative_to(root).as_posix() for p in others if ".venv" not in p.parts}
for folder in sorted({*may_include, *others, "scripts"}):
    place = root / folder
    held = [p for p in place.iterdir() if p.is_file()] if place.is_dir() else []
    if not held and folder in may_include:
        errors.append(f"{folder}: has a row here and no files")
    if len(held) > most_files and folder != "include/vt":
        errors.append(f"{folder}: {len(held)} files, more than {most_files}")
if count == 0:
    errors.append("no include was found: the check itself is broken")
print("\n".join(errors) if errors
      else f"{len(files)} files, {count} includes, all within the layer order")
sys.exit(1 if errors else 0)
