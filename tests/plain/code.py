"""How much the code does and how densely it is written, counted from its syntax trees.

An operation is an expression other than a bare name, or a statement that branches. Layout does not
change that count, so packing lines gains nothing. A branch is a point where one of several things
may happen; a branch inside an expression is harder to read than an `if`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Iterator, List, Set, Union

MOST_NODES = 30
MOST_BRANCHES = 2
MOST_LINES = 60

_BRANCHING = (ast.If, ast.For, ast.While, ast.ExceptHandler)
_FREE = (ast.Name, ast.JoinedStr, ast.FormattedValue)
#: A call with so many keywords is written one argument a line, as a record is.
_RECORD_KEYWORDS = 4


@dataclass
class Figures:
    """What is counted of a folder."""

    operations: int = 0
    branch_statements: int = 0
    branches_inside: int = 0                                # of branches inside expressions
    dense: List[str] = field(default_factory=list)          # "file:line (nodes, branches)"
    long_functions: List[str] = field(default_factory=list)  # "file:line name"

    @property
    def inside_percent(self) -> float:
        """The share of all branches that are inside expressions, in per cent."""
        branches = self.branches_inside + self.branch_statements
        return 100.0 * self.branches_inside / max(1, branches)


def measure(folder: Path) -> Figures:
    """Counts all Python files below a folder."""
    figures = Figures()
    for path in sorted(folder.rglob("*.py")):
        tree = parsed(path)
        where = str(path.relative_to(folder.parent))
        _count(tree, where, figures)
    return figures


@lru_cache(maxsize=None)   # prose asks for the same files
def parsed(path: Path) -> ast.Module:
    """Returns the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _count(tree: ast.AST, where: str, figures: Figures) -> None:
    annotations = _annotations(tree)
    for node in ast.walk(tree):
        is_work = isinstance(node, ast.expr) and not isinstance(node, _FREE)
        if is_work and id(node) not in annotations:
            figures.operations += 1
        if isinstance(node, (*_BRANCHING, ast.With)):
            figures.operations += 1
        if isinstance(node, _BRANCHING):
            figures.branch_statements += 1
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            _count_lines(node, where, figures)
        if isinstance(node, ast.stmt):
            _count_expressions(node, where, figures)


def _count_lines(function: Union[ast.FunctionDef, ast.AsyncFunctionDef], where: str,
                 figures: Figures) -> None:
    first = function.lineno
    if (function.end_lineno or first) - first >= MOST_LINES:
        figures.long_functions.append(f"{where}:{first} {function.name}")


def _count_expressions(statement: ast.stmt, where: str, figures: Figures) -> None:
    for expression in _expressions(statement):
        parts = list(ast.walk(expression))
        nodes = sum(isinstance(node, ast.expr) for node in parts)
        branches = sum(map(_branches, parts))
        figures.branches_inside += branches
        if nodes > MOST_NODES or branches > MOST_BRANCHES:
            line = getattr(expression, "lineno", statement.lineno)
            figures.dense.append(f"{where}:{line} ({nodes} nodes, {branches} branches)")


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yields the expressions of a statement, without those of the statements inside it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return   # a docstring
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, (ast.expr, ast.withitem)):
            yield from _fields(child)


def _fields(expression: ast.AST) -> Iterator[ast.AST]:
    """Yields the fields of a record one by one, because each stands on a line of its own."""
    parts: List[ast.expr] = []
    if isinstance(expression, ast.Dict):
        parts = expression.values
    elif isinstance(expression, (ast.List, ast.Tuple, ast.Set)):
        parts = expression.elts
    elif isinstance(expression, ast.Call) and len(expression.keywords) >= _RECORD_KEYWORDS:
        parts = [*expression.args, *(keyword.value for keyword in expression.keywords)]
    else:
        yield expression
    for part in parts:
        yield from _fields(part)


def _branches(node: ast.AST) -> int:
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    if isinstance(node, (ast.IfExp, ast.comprehension, ast.Lambda)):
        return 1
    return 1 if _is_text_by_condition(node) else 0


def _is_text_by_condition(node: ast.AST) -> bool:
    """Returns True for a product such as `"s" * (count > 1)`, which is a hidden `if`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    for side in (node.left, node.right):
        if isinstance(side, (ast.List, ast.JoinedStr)):
            return True
        if isinstance(side, ast.Constant) and isinstance(side.value, str):
            return True
    return False


def _annotations(tree: ast.AST) -> Set[int]:
    """Returns the ids of all nodes of type annotations."""
    found: Set[int] = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            root = getattr(node, name, None)
            if root is not None:
                found.update(id(part) for part in ast.walk(root))
    return found
