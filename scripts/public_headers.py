"""Reads the public headers: what include/vt/*.hpp declares in namespace vt, as users read it.

Headers are formatted by clang-format and hold declarations only of the kinds that are named here; a
declaration of another kind is an error. Not shown are vt::detail, what stands behind a comment that
begins with `// Internal:`, and overloads that exist to be refused by a static_assert. Signatures
have a Tensor for vt::Operand, an int for vt::Param<int>, std::function for vt's own, parameters by
value, and no parameter for the caller's file and line."""

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100
UNNAMED = {"Shape": "shape", "DType": "dtype", "Tensor": "x", "PrintSink": "sink"}
# Overloads that differ only in how deep their braces are nested are shown as one.
BRACES = re.compile(r"\bBraces[1-4]<[^<>]*>")
MACRO = re.compile(
    r"VT_WITH_LINE\((?:\[\[nodiscard\]\] )?auto, (\w+), detail::(\w+)\)|VT_ASSIGNS\((.+?)\)\n"
)
KIND = re.compile(r"\bError\((\w+)\)")  # pages write Error (shape)


class Declaration:
    def __init__(self, name, kind, text, doc, file, internal=False):
        self.name = name  # qualified below vt: "sum", "linalg::norm"
        self.names = [name]  # of constants declared together
        self.kind = kind  # function, class, enum, alias, concept, constant, using
        self.text = text  # the signature as lines of code, or the class with its members
        self.doc = doc  # lines of its /// comment
        self.trailing = []  # lines of its ///< comment
        self.file = file
        self.internal = internal
        self.also = []  # other names by which a using declaration makes it known
        self.place = 0  # among the declarations of its header


# --- reading headers --------------------------------------------------------------------------


def match_close(text, i):
    """The place of the bracket that closes the one at i."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    stack = []
    while i < len(text):
        c = text[i]
        if text.startswith("//", i):
            i = text.index("\n", i)
        elif c == '"' or (c == "'" and not text[i - 1].isalnum()):
            end = i + 1
            while text[end] != c:
                end += 2 if text[end] == "\\" else 1
            i = end
        elif c in pairs:
            stack.append(pairs[c])
        elif stack and c == stack[-1]:
            stack.pop()
            if not stack:
                return i
        i += 1
    raise ValueError("brackets do not match: " + text[:80])


def match_angle(text, i):
    """The place of the > that closes the < at i, in a list of template parameters or arguments."""
    depth = 0
    while i < len(text):
        if text[i] in "(":
            i = match_close(text, i)
        elif text[i] == "<":
            depth += 1
        elif text[i] == ">":
            depth -= 1
            if depth == 0:
                return i
        i += 1
    raise ValueError("angle brackets do not match: " + text[:80])


def split_commas(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "(<[{":
            depth += 1
        elif c in ")>]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def declaration_end(text, i):
    """(where the head ends, the body's bounds or None, where the next declaration may begin)"""
    behind = i
    while m := re.compile(r"template\s*<").match(text, behind):
        behind = match_angle(text, m.end() - 1) + 1
        behind += len(text[behind:]) - len(text[behind:].lstrip())
    aggregate = re.compile(r"(class|struct|enum|union)\b").match(text, behind)
    while True:
        c = text[i]
        if text.startswith("//", i):
            i = text.index("\n", i)
        elif c == '"':
            i = text.index('"', i + 1)
        elif c in "([":
            i = match_close(text, i)
        elif c == ";":
            return i, None, i + 1
        elif c == "{":
            close = match_close(text, i)
            if aggregate:
                end = text.index(";", close)
                return i, (i + 1, close), end + 1
            rest = text[close + 1 :].lstrip()
            if rest.startswith(";"):
                return text.index(";", close), None, text.index(";", close) + 1
            if not rest.startswith((",", "{")):
                return i, (i + 1, close), close + 1
            i = close
        i += 1


def strip_line_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def template_parameters(head):
    """([(constraint, name, pack?)], head without them, the text of the list)"""
    parameters, lists = [], []
    while m := re.match(r"template\s*<", head):
        close = match_angle(head, m.end() - 1)
        inside = head[m.end() : close]
        lists.append(" ".join(inside.split()))
        for p in split_commas(inside):
            m2 = re.match(r"(.*?)(\.\.\.)?\s*(\w+)?(\s*=.*)?$", " ".join(p.split()))
            constraint, pack, name = m2.group(1).strip(), bool(m2.group(2)), m2.group(3)
            parameters.append((constraint, name or "", pack))
        head = head[close + 1 :].lstrip()
    if head.startswith("requires"):
        lines = head.split("\n")
        clause = lines.pop(0)
        while lines and (
            clause.count("(") > clause.count(")") or clause.rstrip().endswith(("&&", "||"))
        ):
            clause += lines.pop(0)
        head = "\n".join(lines).lstrip()
    return parameters, head, lists


def plain_type(text):
    """A type or parameter as a user reads it."""
    text = " ".join(text.split())
    while m := re.search(r"\bParam<", text):
        close = match_angle(text, m.end() - 1)
        text = text[: m.start()] + text[m.end() : close] + text[close + 1 :]
    text = re.sub(r"\bdetail::ParamFor<(.*?)>\s", r"\1 ", text)
    text = re.sub(r"\bdetail::Function<", "std::function<", text)
    text = re.sub(r"\bdetail::LiftedTree<(\w+)>", r"\1", text)
    text = re.sub(r"\bOperand\b", "Tensor", text)
    text = re.sub(r"\bDim\b", "std::int64_t", text)
    text = BRACES.sub("{…}", text)
    return text


def by_value(text):
    """const T& and T&& as T."""
    m = re.match(r"const (.*?)\s*&(?!&)(.*)$", text)
    if m and m.group(1).count("<") == m.group(1).count(">"):
        return (m.group(1) + m.group(2)).strip()
    return re.sub(r"^([^&=]*?)&&", r"\1", text)


def parameter(text):
    """One parameter, or None where it only carries the caller's line."""
    text = " ".join(text.split())
    if "__builtin_" in text or re.match(r"(const )?CallSite\b", text):
        return None
    head, _, default = text.partition(" = ")
    head = plain_type(by_value(head))
    if head in UNNAMED:
        head += " " + UNNAMED[head]
    return head + (" = " + plain_type(default) if default else "")


def function_text(head, body, scope, class_name):
    """(name, signature) of a function, or None where users do not call it."""
    parameters, head, _ = template_parameters(head)
    if any(c == "std::same_as<bool>" for c, _, _ in parameters):
        return None
    if body is not None and re.search(r"static_assert\(\s*!sizeof", body):
        return None
    head = " ".join(head.split())
    head = re.sub(r"\[\[.*?\]\]\s*", "", head)
    head = re.sub(r"\b(inline|constexpr|explicit|friend|virtual|noexcept)\b\s*", "", head).strip()
    static = head.startswith("static ")
    head = re.sub(r"^static\s+", "", head)
    m = re.search(r"(operator(?:\(\)|\[\]|\s*[-+*/%=!<>&|^~]+|\s+bool)|~?[A-Za-z_]\w*)\s*\(", head)
    if not m:
        return None
    name = re.sub(r"\s+", " ", m.group(1))
    close = match_close(head, m.end() - 1)
    inside, before, after = (
        head[m.end() : close],
        head[: m.start()].strip(),
        head[close + 1 :].strip(),
    )
    if name.startswith("~") or re.search(r"&&|= delete", re.sub(r"^const", "", after)):
        return None
    own = class_name and re.sub(r"<.*", "", class_name)
    if own and name == own and re.match(rf"(const )?{own}\s*&", inside.strip()):
        return None
    if own and name == "operator=" and re.match(rf"(const )?{own}\b", inside.strip()):
        return None
    after = "const" if after.startswith("const") else ""
    given = [p for p in (parameter(p) for p in split_commas(inside)) if p is not None]
    before = plain_type(by_value(before))
    explicit = []
    for constraint, t, pack in parameters:
        used = [k for k, p in enumerate(given) if re.search(rf"\b{t}\b", p)]
        if m2 := re.match(r"detail::ParamFor<(.*)>$", constraint):
            given = [re.sub(rf"\b{t}\b", m2.group(1), p) for p in given]
        elif m2 := re.match(r"std::same_as<(.*)>$", constraint):
            given = [re.sub(rf"\b{t}\b", m2.group(1), p) for p in given]
        elif not used:
            if constraint in ("class", "typename"):
                constraint = ""
            if not (given and any("{…}" in p for p in given)):
                explicit.append((constraint + ("..." if pack else "") + " " + t).strip())
        elif (
            constraint in ("Element", "Number", "std::integral", "std::floating_point")
            and len(used) == 1
            and not re.search(rf"\b{t}\b", before)
            and len(re.findall(rf"\b{t}\b", given[used[0]])) == 1
        ):
            given[used[0]] = re.sub(rf"\b{t}\b", constraint + " auto", given[used[0]])
    # Template arguments that are given by name: grad<0, 1>(f), x.item<float>().
    shown = (
        ("" if class_name else scope) + name + ("<" + ", ".join(explicit) + ">" if explicit else "")
    )
    start = ("static " if static else "") + (before + " " if before else "") + shown + "("
    if name == "operator bool":
        start = "explicit operator bool("
    end = ")" + (" const" if after else "") + ";"
    return name, wrap_call(start, given, end)


def wrap_call(start, given, end, width=WIDTH - 4):
    """The call on one line, or with its parameters wrapped below each other."""
    line = start + ", ".join(given) + end
    if len(line) <= width:
        return line
    pad = " " * len(start) if len(start) < 60 else "    "
    lines, current = [], start
    if len(start) >= 60:
        lines, current = [start], pad
    for k, p in enumerate(given):
        piece = p + (", " if k + 1 < len(given) else end)
        if len(current + piece.rstrip()) > width and current.strip() and current != start:
            lines.append(current.rstrip())
            current = pad
        current += piece
    return "\n".join(lines + [current.rstrip()])


class Header:
    """The declarations of one header."""

    def __init__(self, path):
        self.path, self.file = path, path.name
        self.text = path.read_text(encoding="utf-8")
        self.declarations = []
        for m in re.finditer(r"^namespace (vt(?:::\w+)*) \{", self.text, re.M):
            close = match_close(self.text, m.end() - 1)
            parts = m.group(1).split("::")[1:]
            if "detail" not in parts:
                self.scope(m.end(), close, "".join(p + "::" for p in parts), self.declarations)

    def scope(self, i, end, scope, out, class_name=None, public=True):
        """Appends what is declared between i and end, in namespace `scope` or a class, to out."""
        text, doc, internal, last = self.text, [], False, None
        while True:
            while i < end and text[i].isspace():
                i += 1
            if i >= end:
                return
            line_end = text.index("\n", i)
            if text.startswith("///<", i):
                if last is not None:
                    last.trailing.append(text[i + 4 : line_end].strip())
                i = line_end
                continue
            if text.startswith("///", i):
                doc.append(text[i + 4 : line_end].rstrip())
                i = line_end
                continue
            if text.startswith("//", i):
                comment = text[i + 2 : line_end].strip()
                internal = internal or comment.startswith("Internal:")
                if class_name and comment.startswith("For vt itself"):
                    public = False
                i = line_end
                continue
            if text[i] == "#":
                while text[line_end - 1] == "\\":
                    line_end = text.index("\n", line_end + 1)
                i, doc = line_end, []
                continue
            if m := re.compile(r"(public|private|protected):").match(text, i):
                public, i = m.group(1) == "public", m.end()
                continue
            if m := re.compile(r"namespace (\w+) \{").match(text, i):
                close = match_close(text, m.end() - 1)
                if m.group(1) != "detail":
                    self.scope(m.end(), close, scope + m.group(1) + "::", out)
                i, doc, internal = close + 1, [], False
                continue
            if m := MACRO.match(text, i):
                last = self.macro(m, scope, doc)
                if last:
                    out.append(last)
                i, doc, internal = m.end(), [], False
                continue
            if m := re.compile(r"VT_\w+\(|static_assert\(").match(text, i):
                i = match_close(text, m.end() - 1) + 1
                i += text.startswith(";", i)
                continue
            head_end, body, following = declaration_end(text, i)
            head = strip_line_comments(text[i:head_end]).strip()
            last = None
            if public and head:
                last = self.declare(head, body, following, scope, doc, class_name, internal)
                if last is not None:
                    out.append(last)
            i, doc, internal = following, [], False

    def macro(self, m, scope, doc):
        """What VT_ASSIGNS and VT_WITH_LINE declare."""
        if m.group(3):
            name = f"operator{m.group(3)}="
            return Declaration(
                name, "function", f"Tensor& {name}(Tensor& a, Tensor b);", doc, self.file
            )
        # name(arguments…) is name_at(line, arguments…).
        at = m.group(2)
        detail = (self.path.parent / "detail").glob("*.hpp")
        text = "".join([self.text, *(p.read_text(encoding="utf-8") for p in detail)])
        heads = re.findall(rf"(?:auto|>|\bT) {at}\((.*?)\) \{{", text, re.S)
        given = max(heads, key=lambda h: "..." in h)
        inside = [parameter(p) for p in split_commas(given)]
        text = wrap_call(f"auto {scope}{m.group(1)}(", [p for p in inside if p], ");")
        return Declaration(scope + m.group(1), "function", text, doc, self.file)

    def declare(self, head, body, following, scope, doc, class_name, internal):
        """The Declaration of such a head, or None where it declares nothing that users need."""
        make = lambda name, kind, text: Declaration(
            scope + name, kind, text, doc, self.file, internal
        )
        flat = " ".join(head.split())
        parameters, bare, lists = template_parameters(head)
        bare = " ".join(bare.split())
        prefix = "".join(f"template <{t}>\n" for t in lists if t)
        if m := re.match(r"using\s+(\w+) = (.*)", bare):
            type = plain_type(m.group(2))
            if class_name or "detail::" in type and not re.search(r"detail::\w+Mode$", type):
                return None
            if type.startswith("detail::"):
                return make(m.group(1), "enum", hidden_enum(m.group(1)))
            return make(
                m.group(1),
                "alias",
                prefix + f"using {scope}{m.group(1)} = {type};",
            )
        if bare.startswith("using "):
            if class_name:
                return None
            made = make("", "using", bare + ";")
            made.names = [re.sub(r"^vt::", "", n.strip()) for n in bare[6:].split(",")]
            return made
        if m := re.match(r"concept (\w+) =", bare):
            return make(m.group(1), "concept", f"concept {scope}{m.group(1)};")
        if (
            bare.startswith("friend")
            and "operator" not in bare
            or bare.startswith("template class")
        ):
            return None
        if (m := re.match(r"(class|struct|enum class|enum) (\w+)?", bare)) and body:
            if m.group(1).startswith("enum"):
                return make(
                    m.group(2), "enum", self.enum_text(bare, body, following, scope, class_name)
                )
            return make(
                m.group(2),
                "class",
                prefix + self.class_text(bare, body, following, m.group(1), scope, class_name),
            )
        if re.match(r"(class|struct|enum)\b", bare) or bare.startswith("template <> "):
            return None  # declared here, defined elsewhere
        if "::" in bare.split("(")[0].split(" ")[-1] and not class_name and "(" in bare:
            return None  # a member defined outside of its class
        is_function = re.search(
            r"(operator\S*|\boperator bool|\w)\s*\(",
            re.sub(r"=.*", "", bare) if "operator" not in bare else bare,
        )
        if is_function and not re.match(r"^[^(]*<[^>]*\([^>]*>\s+\w+( =.*)?$", bare):
            made = function_text(
                head, self.text[body[0] : body[1]] if body else None, scope, class_name
            )
            return make(made[0], "function", made[1]) if made else None
        if class_name:
            if re.match(r"(static )?(inline )?constexpr", bare) and "detail::" in bare:
                return None
            if "detail::" in bare:
                return None
            text = plain_type(bare) + ";"
            return make(re.sub(r"\W.*", "", bare.split(" ")[-1]), "constant", text)
        m = re.match(r"inline constexpr (\w+) (.*)", bare)
        if not m:
            raise ValueError(f"{self.file}: not understood: {flat[:120]}")
        names = [re.match(r"\w+", part).group(0) for part in split_commas(m.group(2))]
        text = textwrap.wrap(
            f"constexpr {m.group(1)} " + ", ".join(scope + n for n in names) + ";",
            WIDTH - 4,
            subsequent_indent="    ",
        )
        made = make(names[0], "constant", "\n".join(text))
        made.names = [scope + n for n in names]
        return made

    def enum_text(self, bare, body, following, scope, class_name):
        inside = self.text[body[0] : body[1]]
        name = re.match(r"enum(?: class)? (\w+)", bare).group(1)
        after = " ".join(self.text[body[1] + 1 : following - 1].split())
        rows, pending = [], []
        for line in inside.split("\n"):
            code, _, comment = line.partition("//")
            comment = KIND.sub(r"Error (\1)", comment.lstrip("/").lstrip("<").strip())
            if not code.strip():
                if comment:
                    (rows if rows and "///<" in line else pending).append(("", comment))
                continue
            rows += pending + [(code.strip(), comment)]
            pending = []
        if not any(comment for _, comment in rows):
            values = " ".join(code for code, _ in rows).rstrip(",")
            head = f"enum class {'' if class_name else scope}{name} {{"
            end = f"}}{' ' + after if after else ''};"
            if len(head + values + end) + 2 <= WIDTH - 4:
                return f"{head} {values} {end}"
            inside = textwrap.wrap(values, WIDTH - 4, initial_indent="  ", subsequent_indent="  ")
            return "\n".join([head, *inside, end])
        width = max(len(code) for code, _ in rows)
        lines = [
            f"  {code:{width}}  // {comment}".rstrip(" /") if comment else "  " + code
            for code, comment in rows
        ]
        return f"enum class {'' if class_name else scope}{name} {{\n" + "\n".join(lines) + "\n};"

    def class_text(self, bare, body, following, key, scope, class_name):
        bare = re.sub(r"\bstd::span<const Tensor>", "std::span<const Tensor>", bare)
        m = re.match(r"(?:class|struct) ([\w]+(?:<[^:{]*>)?)\s*(?:: (.*))?$", bare)
        name, base = m.group(1), m.group(2)
        if base and re.search(r"detail::|SmallVec|Eigen::", base):
            base = None
        members = []
        self.scope(body[0], body[1], "", members, class_name=name, public=key == "struct")
        after = " ".join(self.text[body[1] + 1 : following - 1].split())
        lines, seen = [], set()
        for d in members:
            if d.internal or d.text in seen or "detail::" in d.text or d.name == "Iterator":
                continue
            seen.add(d.text)
            lines += ["  " + l for l in code_lines(d, doc_inside=True, width=WIDTH - 2)]
        head = f"{key} {'' if class_name else scope}{name}" + (
            f" : {plain_type(base)}" if base else ""
        )
        if not lines:
            return head + " {};"
        return (
            head + " {\n" + "\n".join(aligned(lines)) + "\n}" + (" " + after if after else "") + ";"
        )


def aligned(lines):
    """The comments behind neighbouring declarations one below the other, where there is room."""
    out, run = [], []

    def flush():
        split = [line.split("  // ", 1) for line in run]
        width = max((len(code) for code, _ in split), default=0)
        fits = all(width + 5 + len(comment) <= WIDTH for _, comment in split)
        out.extend(f"{c:{width}}  // {n}" if fits else f"{c}  // {n}" for c, n in split)
        run.clear()

    for line in lines:
        if "  // " in line and not line.lstrip().startswith("//"):
            run.append(line)
        else:
            flush()
            out.append(line)
    flush()
    return out


def hidden_enum(name):
    """An enum that a public alias names, from the headers of vt::detail."""
    for path in sorted((ROOT / "include" / "vt" / "detail").glob("*.hpp")):
        m = re.search(
            rf"enum class {name}[^{{;]*\{{(.*?)\}};", path.read_text(encoding="utf-8"), re.S
        )
        if m:
            return f"enum class {name} {{ {' '.join(strip_line_comments(m.group(1)).split())} }};"
    raise ValueError(f"vt::detail has no enum {name}")


def code_lines(d, doc_inside=False, width=WIDTH):
    """The lines of code that show a declaration, with its short comment behind or above."""
    lines = d.text.split("\n")
    notes = []
    if doc_inside and d.doc:
        notes += textwrap.wrap(KIND.sub(r"Error (\1)", " ".join(d.doc)), width - 3)
    trailing = " ".join(d.trailing)
    if d.also:
        trailing = "; ".join(
            filter(
                None,
                [trailing, "also " + ", ".join(a if "::" in a else "vt::" + a for a in d.also)],
            )
        )
    if trailing:
        if len(lines[-1]) + len(trailing) + 5 <= width and not notes:
            lines[-1] += "  // " + trailing
        else:
            notes += textwrap.wrap(trailing, width - 3)
    return ["// " + n for n in notes] + lines


def read_headers():
    found = []
    for path in sorted((ROOT / "include" / "vt").glob("*.hpp")):
        declarations = Header(path).declarations
        for place, d in enumerate(declarations):
            d.place = place
        found += declarations
    by_name = {}
    for d in found:
        if d.internal or d.kind == "using":
            continue
        for name in d.names:
            same = by_name.setdefault(name, [])
            if all(d.text != other.text for other in same):
                same.append(d)
    for d in found:
        if d.kind != "using":
            continue
        for name in d.names:
            # In vt a second name of a function of linalg; in vt::special one of vt's.
            target = by_name.get(name)
            if target is None:
                raise ValueError(f"{d.file}: a using declaration of {name}, which is not public")
            scope = d.name
            last = name.split("::")[-1]
            for t in target:
                t.also = t.also or []
                if scope + last not in t.also:
                    t.also.append(scope + last)
    return by_name
