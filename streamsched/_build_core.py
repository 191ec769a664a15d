# SPDX-License-Identifier: GPL-2.0-only
"""Generate the C source of streamsched._core from the project's headers.

The C preprocessor reads the headers with its line markers on. What comes from
a header of the project is kept, what comes from the system is left out.
Bodies of inline functions become plain declarations, array sizes become
numbers, and every macro that is an integer constant is offered under its name.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import operator
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# From these only types and constants are taken: the functions are shims.
SHIMS = "compat/"

# What C calls of a policy in Python (sim/foreign.h); streamsched/sim/pythonpolicy.py defines them.
CALLBACKS = """
extern "Python" {
int foreign_arrived(void *, u64, u64, u32, bool, bool, u64, u64, u64);
int foreign_choose(void *, u64, u64, u64 *);
int foreign_dispatched(void *, u64, u64);
int foreign_completed(void *, u64, u64);
int foreign_merged(void *, u64, u64, u32, u64);
int foreign_joins(void *, u64, u64, u64);
int foreign_removed(void *, u64, u64);
}
"""

TYPE_BYTES = {
    **dict.fromkeys(("char", "u8", "s8", "uint8_t", "int8_t", "bool", "_Bool"), 1),
    **dict.fromkeys(("u16", "s16", "uint16_t", "int16_t"), 2),
    **dict.fromkeys(("u32", "s32", "uint32_t", "int32_t", "int", "unsigned int"), 4),
    **dict.fromkeys(("u64", "s64", "uint64_t", "int64_t"), 8),
}
OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}

LINE_MARKER = re.compile(r'# (\d+) "([^"]*)"')
MACRO = re.compile(r"#define ([A-Z][A-Z0-9_]*)[ \t]+(\S.*)")
INTEGER = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\b")


def evaluate(expression: str) -> int:
    """The value of an integer constant expression of C, as array sizes have it."""
    text = re.sub(
        r"sizeof\s*\(\s*([a-z_0-9 ]+?)\s*\)", lambda m: str(TYPE_BYTES[m.group(1)]), expression
    )
    # C's octal numbers are an error in Python, which is what we want here.
    text = INTEGER.sub(lambda m: m.group(1), text)

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        raise ValueError(f"not an integer constant: {expression!r}")

    return value(ast.parse(" ".join(text.split()), mode="eval").body)


def preprocess(compiler: list[str], root: Path, text: str, *flags: str) -> str:
    """What the C preprocessor makes of @text with the project's include path."""
    command = [*compiler, "-E", "-x", "c", f"-I{root}", f"-I{root / 'compat'}", *flags, "-"]
    return subprocess.run(
        command, input=text, stdout=subprocess.PIPE, text=True, check=True, cwd=root
    ).stdout


def project_lines(preprocessed: str, root: Path) -> Iterator[tuple[str, str]]:
    """The lines that come from a file of the project, each with that file's name."""
    where = None
    for line in preprocessed.splitlines():
        marker = LINE_MARKER.match(line)
        if marker:
            path = Path(marker.group(2))
            path = path if path.is_absolute() else root / path
            where = None
            if path.is_file() and path.resolve().is_relative_to(root):
                where = path.resolve().relative_to(root).as_posix()
        elif where:
            yield where, line


def statements(text: str) -> Iterator[str]:
    """Split C declarations at file level; a function keeps its body."""
    depth = 0
    start = 0
    for at, char in enumerate(text):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            # A body ends here; a struct goes on to its semicolon.
            if depth == 0 and is_function(text[start:at]):
                yield text[start : at + 1].strip()
                start = at + 1
        elif char == ";" and depth == 0:
            yield text[start : at + 1].strip()
            start = at + 1
    if text[start:].strip():
        raise ValueError(f"left over after the last declaration: {text[start:].strip()[:80]!r}")


def is_function(text: str) -> bool:
    """Whether text up to a closing brace is a function's definition."""
    return text[: text.index("{")].rstrip().endswith(")")


def declaration(statement: str, shim: bool) -> str | None:
    """One declaration as cffi reads it; None when it is not to be offered."""
    statement = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", statement)
    head = statement.partition("{")[0]
    if "(" in head and not head.startswith("typedef"):
        if shim:
            return None
        head = re.sub(r"\b(static|inline|__inline|__inline__|extern)\b\s*", "", head)
        return head.rstrip().rstrip(";") + ";"
    return re.sub(
        r"\[([^\]]+)\]",
        lambda m: f"[{evaluate(m.group(1))}]",
        statement,
    )


def constants(compiler: list[str], root: Path, includes: str) -> Iterator[str]:
    """Names of the macros of the project's headers that are integer constants."""
    names: dict[str, None] = {}
    for where, line in project_lines(preprocess(compiler, root, includes, "-dD"), root):
        macro = MACRO.match(line)
        if macro and not where.startswith(SHIMS):
            names[macro.group(1)] = None
    # Let the preprocessor expand each, then look at what it has become.
    questions = "".join(f'"{name}" {name}\n' for name in names)
    expanded = preprocess(compiler, root, includes + questions, "-P")
    cast = re.compile(r"\(\s*(?:" + "|".join(TYPE_BYTES) + r")\s*\)")
    for name, body in re.findall(r'^"(\w+)" (.*)$', expanded, re.MULTILINE):
        if re.fullmatch(r"[\s\d()+\-*/%<>&|^~]+", INTEGER.sub("1", cast.sub("", body))):
            yield name


def make_cdef(compiler: list[str], root: Path, headers: list[str]) -> str:
    """The declarations of @headers and of what they include, for cffi's cdef()."""
    includes = "".join(f'#include "{header}"\n' for header in headers)
    parts: list[tuple[bool, str]] = []
    for where, line in project_lines(preprocess(compiler, root, includes), root):
        shim = where.startswith(SHIMS)
        if parts and parts[-1][0] == shim:
            parts[-1] = (shim, parts[-1][1] + "\n" + line)
        else:
            parts.append((shim, line))
    lines = [f"#define {name} ..." for name in constants(compiler, root, includes)]
    for shim, text in parts:
        lines += filter(None, (declaration(s, shim) for s in statements(text)))
    return "\n".join(lines) + "\n"


def sources_sha256(root: Path) -> str:
    """Of all C that the module is made of: whatever compiles it, results are the same."""
    found = hashlib.sha256()
    folders = ("compat", "core", "disk", "sim")
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.[ch]")):
        found.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def main() -> None:
    """Write the extension module's source, or only the declarations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the source tree")
    parser.add_argument("--output", type=Path, help="the C file to write; default: print the cdef")
    parser.add_argument("--compiler", default="cc", help="the C compiler's command")
    parser.add_argument("headers", nargs="+", help="whose functions, types and constants to offer")
    options = parser.parse_args()
    root = options.root.resolve()
    headers = options.headers
    cdef = make_cdef(shlex.split(options.compiler), root, headers)
    if options.output is None:
        sys.stdout.write(cdef)
        return

    from cffi import FFI

    ffi = FFI()
    ffi.cdef(cdef + CALLBACKS + "extern const char sources_sha256[];\n")
    source = "".join(f'#include "{header}"\n' for header in headers)
    source += f'const char sources_sha256[] = "{sources_sha256(root)}";\n'
    ffi.set_source("streamsched._core", source)
    ffi.emit_c_code(str(options.output))


if __name__ == "__main__":
    main()
