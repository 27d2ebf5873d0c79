"""One-place changes of a module's syntax tree."""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

SWAPPED: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
REMOVABLE: Final = (ast.Assign, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Delete)
SKIPPED: Final = ("annotation", "returns", "decorator_list", "bases", "format_spec")
"""Fields of a node that hold no decision."""
SHOWN: Final = 90
"""Characters of a changed piece of code that a report shows."""


@dataclass(frozen=True)
class Mutation:
    """One change of one module; equal for the same text wherever its line moves."""

    module: str
    source: str
    """The source line, without its indentation."""
    before: str
    after: str
    occurrence: int
    """Which one, if the module has the same change of the same line several times."""
    path: Path = field(compare=False)
    line: int = field(compare=False)
    place: int = field(compare=False)
    variant: int = field(compare=False)

    def rank(self, seed: str) -> bytes:
        """Return the sort key that draws a sample; an edit elsewhere does not change it."""
        key = (seed, self.module, self.source, self.before, self.after, str(self.occurrence))
        return hashlib.sha256("\0".join(key).encode()).digest()

    def compile(self) -> Any:
        """Return the code object of the whole module with this change."""
        tree = ast.parse(self.path.read_text())
        place = list(_places(tree))[self.place]
        changed = ast.copy_location(_variants(place)[self.variant], place.node)
        if place.index is None:
            setattr(place.parent, place.field, changed)
        else:
            getattr(place.parent, place.field)[place.index] = changed
        return compile(ast.fix_missing_locations(tree), str(self.path), "exec")


class _Place(NamedTuple):
    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST
    in_function: bool


def list_mutations(module: str, path: Path) -> list[Mutation]:
    """Return every change that the table of operators allows in a module."""
    text = path.read_text()
    lines = text.splitlines()
    seen: Counter[tuple[str, str, str]] = Counter()
    mutations = []
    for number, place in enumerate(_places(ast.parse(text))):
        for variant, changed in enumerate(_variants(place)):
            line = place.node.lineno  # type: ignore[attr-defined]
            key = (lines[line - 1].strip(), _first_line(place.node), _first_line(changed))
            mutations.append(Mutation(module, *key, seen[key], path, line, number, variant))
            seen[key] += 1
    return mutations


def _places(
    parent: ast.AST,
    in_function: bool = False,  # noqa: FBT001, FBT002 - internal recursion
) -> Iterator[_Place]:
    inside = in_function or isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for name, value in ast.iter_fields(parent):
        if name in SKIPPED or (name == "keywords" and isinstance(parent, ast.ClassDef)):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(node, ast.AST) or _is_irrelevant(node):
                continue
            yield _Place(parent, name, index, node, inside)
            yield from _places(node, inside)


def _is_irrelevant(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()):  # a docstring
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.keyword(arg="strict"):  # of zip(): a check of what is so anyway
            return True
        case ast.keyword(arg="maxsize"):  # of lru_cache(): no result depends on it
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id="assert_never"))):  # for the type checker
            return True
    return False


def _variants(place: _Place) -> list[ast.AST]:  # noqa: C901, PLR0911 - a table of operators
    """Return the nodes that can take the place of this one."""
    node = place.node
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPPED:
            return [_changed(node, ops=[SWAPPED[type(op)]()])]
        case ast.BoolOp(op=op):
            return [_changed(node, op=SWAPPED[type(op)]())]
        case ast.BinOp(op=op) if type(op) in SWAPPED:
            is_type = isinstance(op, ast.BitOr) and not place.in_function
            return [] if is_type else [_changed(node, op=SWAPPED[type(op)]())]
        case ast.Constant(value=bool() as value):
            return [ast.Constant(not value)]
        case ast.Constant(value=int() | float() as value):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
        case ast.If(test=test):
            return [_changed(node, test=ast.UnaryOp(ast.Not(), test))]
        case ast.IfExp(body=body, orelse=orelse):
            return [_changed(node, body=orelse, orelse=body)]
        case ast.Return(value=ast.expr() as value) if not _is_nothing(value):
            return [ast.Return(ast.Constant(None))]
        case ast.Expr() if place.in_function:
            return [ast.Pass()]
        case ast.stmt() if isinstance(node, REMOVABLE) and place.in_function:
            return [ast.Pass()]
    return []


def _is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, False)


def _changed(node: ast.AST, **fields: Any) -> ast.AST:
    return type(node)(**dict(ast.iter_fields(node)) | fields)


def _first_line(node: ast.AST) -> str:
    line = ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
    return line if len(line) <= SHOWN else line[:SHOWN] + "…"
