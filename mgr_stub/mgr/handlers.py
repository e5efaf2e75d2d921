"""Command handlers of a module: arguments from annotations, and parsing of words.

Follows the `ceph` command and mgr_module's CLI classes: the signature of a handler is its
command's syntax.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import typing
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from ..errors import StubError, invalid

#: Parameters that are not arguments of the command.
_NOT_ARGUMENTS = ("_", "self", "mgr", "inbuf", "return")

_TRUE = ("true", "yes", "1", "on")
_FALSE = ("false", "no", "0", "off")


@dataclass(frozen=True)
class Argument:
    """One argument of a command: `kind` is str, int, float, bool or an Enum class."""

    name: str
    kind: Any
    required: bool
    many: bool

    def describe(self) -> str:
        if isinstance(self.kind, type) and issubclass(self.kind, enum.Enum):
            shown = "|".join(str(member.value) for member in self.kind)
        else:
            shown = {str: "string", bool: "bool"}.get(self.kind, self.kind.__name__)
        more = ""
        if self.many:
            more = "..."
        return f"{self.name}(<{shown}>{more})"

    def convert(self, word: str) -> Any:
        """Returns the typed value of a word; StubError if it does not fit."""
        try:
            if self.kind is bool:
                if word.lower() in _TRUE:
                    return True
                if word.lower() in _FALSE:
                    return False
                raise ValueError
            return self.kind(word)
        except ValueError:
            raise invalid(f"Invalid command: {word} is not valid for {self.describe()}") from None

    def accepts(self, word: str) -> bool:
        try:
            self.convert(word)
        except StubError:
            return False
        return True


@dataclass
class Handler:
    """A registered command: prefix, permission, the function and its arguments."""

    prefix: str
    perm: str
    poll: bool
    function: Callable[..., Any]
    arguments: List[Argument] = field(default_factory=list)
    description: str = ""

    def call(self, module: Any, given: Dict[str, Any]) -> Any:
        """Calls the function with those given values that it has parameters for."""
        names = {argument.name for argument in self.arguments}
        return self.function(module, **{k: v for k, v in given.items() if k in names})


class CommandDecorator:
    """Decorator shared by both styles of command classes; `COMMANDS` is the registry."""

    COMMANDS: Dict[str, Handler]

    def __init__(self, prefix: str, perm: str = "rw", poll: bool = False) -> None:
        self.prefix = prefix
        self.perm = perm
        self.poll = poll

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        self.COMMANDS[self.prefix] = describe_function(self.prefix, self.perm, self.poll, func)
        return func


def describe_function(prefix: str, perm: str, poll: bool, function: Callable[..., Any]) -> Handler:
    """Returns the Handler of a function.

    AssertionError for an argument without an annotation, ValueError for an annotation that Ceph
    cannot use, such as the strings of `from __future__ import annotations`. In Ceph, too, the
    number of annotations, with the return value's, determines the first optional argument. Without
    a return annotation the last required argument becomes optional.
    """
    spec = inspect.getfullargspec(_innermost(function))
    hints = spec.annotations
    first_optional = len(spec.annotations) - len(spec.defaults or ())
    arguments = []
    for index, name in enumerate(spec.args):
        if name in _NOT_ARGUMENTS:
            continue
        assert name in hints, f"'{name}' is not annotated for {function}"
        kind, optional, many = _unwrap(hints[name])
        arguments.append(Argument(name, kind, index < first_optional and not optional, many))
    return Handler(prefix, perm, poll, function, arguments,
                   (inspect.getdoc(function) or "").replace("\n", " "))


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function inside of decorators: Ceph reads its signature (_extract_target_func,
    from 18 on).
    """
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _unwrap(hint: Any) -> Tuple[Any, bool, bool]:
    """Returns (kind, optional, many) of an annotation."""
    optional = many = False
    if typing.get_origin(hint) is Union:
        inner = [choice for choice in typing.get_args(hint) if choice is not type(None)]
        if len(inner) != 1:
            raise ValueError(f"unknown type '{hint}'")
        hint = inner[0]
        optional = True
    if typing.get_origin(hint) in (list, collections.abc.Sequence):
        hint = typing.get_args(hint)[0]
        many = True
    if hint not in (str, int, float, bool) and not (
            isinstance(hint, type) and issubclass(hint, enum.Enum)):
        raise ValueError(f"unknown type '{hint}'")
    return hint, optional, many


def find_handler(handlers: Dict[str, Handler], words: Sequence[str]) -> Optional[Handler]:
    """Returns the handler with the longest prefix of the words, or None."""
    for count in range(len(words), 0, -1):
        handler = handlers.get(" ".join(words[:count]))
        if handler is not None:
            return handler
    return None


def parse_words(handler: Handler, words: Sequence[str]) -> Dict[str, Any]:
    """Returns the arguments in the words after the prefix; StubError (EINVAL) if they are not
    valid.

    Accepts `--name value`, `--name=value`, `--flag` and positional words in the order of the
    parameters; `--format` (`-f`) is an option of the `ceph` command itself and is dropped if the
    handler has no `format`.
    """
    by_name = {argument.name: argument for argument in handler.arguments}
    given: Dict[str, Any] = {}
    positional: List[str] = []
    queue = list(words)
    only_positional = False
    while queue:
        word = queue.pop(0)
        if word == "--" and not only_positional:
            only_positional = True
        elif only_positional or not _is_option(word):
            positional.append(word)
        else:
            _take_option(word, queue, by_name, given)
    _take_positional(handler, positional, given)
    for argument in handler.arguments:
        if argument.required and argument.name not in given:
            raise invalid(
                f"Invalid command: missing required parameter {argument.describe()}")
    return given


def _is_option(word: str) -> bool:
    return word == "-f" or (word.startswith("--") and len(word) > 2)


def _take_option(word: str, queue: List[str], by_name: Dict[str, Argument],
                 given: Dict[str, Any]) -> None:
    flag, equals, value = word.partition("=")
    name = flag[2:].replace("-", "_")
    if flag == "-f":
        name = "format"
    argument = by_name.get(name)
    if argument is None and name != "format":
        raise invalid(f"Invalid command: unused arguments: ['{word}']")
    if argument is not None and argument.kind is bool and not equals:
        given[name] = True
        if queue and queue[0].lower() in _TRUE + _FALSE:
            given[name] = argument.convert(queue.pop(0))
        return
    if not equals:
        if not queue:
            raise invalid(f"Invalid command: {flag} needs a value")
        value = queue.pop(0)
    if argument is None:
        return
    converted = argument.convert(value)
    if argument.many:
        given.setdefault(name, []).append(converted)
    else:
        given[name] = converted


def _take_positional(handler: Handler, words: List[str], given: Dict[str, Any]) -> None:
    rest = list(words)
    for argument in handler.arguments:
        if argument.name == "format" or argument.kind is bool:
            # from 18 on these and all later parameters are never positional
            break
        if not rest or argument.name in given:
            continue
        if argument.many:
            given[argument.name] = list(map(argument.convert, rest))
            rest = []
        elif argument.required or argument.accepts(rest[0]):
            given[argument.name] = argument.convert(rest.pop(0))
    if rest:
        raise invalid(f"Invalid command: unused arguments: {rest}")
