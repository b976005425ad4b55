"""Scorers by name, registered in this process or declared by an installed package; and their options.

Options of scorers and trainings are checked against their annotations, from Python, files and command lines. A scorer with few
of them declares them as the parameters of a `@checked_init`; one with more, as a frozen dataclass:

    class SlideScorer(Scorer):
        @with_options(SlideOptions)
        def __init__(self, options: SlideOptions) -> None: ...

`SlideScorer("folder", fusion="agree")` is then checked at run time and by a type checker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Interval

from .errors import InputError, MissingPrerequisite, did_you_mean, unknown_name
from .resources import importing
from .scorer import Scorer

P = ParamSpec("P")
Options = TypeVar("Options")

Positive = Annotated[int, Ge(1)]
Share = Annotated[float, Interval(ge=0, le=1)]


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """A scorer's model and its device.

    Attributes:
        model: folder or hub id of the model.
        device: torch device; by default a GPU if there is one.
        revision: revision of the model on the hub.
    """

    model: str | None = None
    _: dataclasses.KW_ONLY
    device: str | None = None
    revision: str | None = None


_BOUNDS = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_LITERALS = {"true": True, "false": False, "none": None}


def checked_init(init: Callable[Concatenate[Any, P], None]) -> Callable[Concatenate[Any, P], None]:
    """Check the arguments of a scorer's `__init__` against its annotations; a message begins with the scorer's name."""

    @functools.wraps(init)
    def init_checked(self: Any, /, *args: P.args, **values: P.kwargs) -> None:
        make_options(functools.partial(init, self), self.name, *args, **values)

    return init_checked


def with_options(kind: Callable[P, Options]) -> Callable[[Callable[[Any, Options], None]], Callable[Concatenate[Any, P], None]]:
    """Make a scorer's `__init__` callable with the fields of the dataclass `kind`; it receives the checked dataclass."""

    def decorate(init: Callable[[Any, Options], None]) -> Callable[Concatenate[Any, P], None]:
        def init_checked(self: Any, /, *args: P.args, **values: P.kwargs) -> None:
            init(self, make_options(kind, self.name, *args, **values))

        parameters = inspect.signature(kind).parameters.values()
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        init_checked.__signature__ = inspect.Signature([own, *parameters])  # type: ignore[attr-defined]
        init_checked.__wrapped__ = kind  # type: ignore[attr-defined] # where the annotations are
        init_checked.__doc__ = init.__doc__
        return init_checked

    return decorate


def make_options(kind: Callable[P, Options], where: str, /, *args: P.args, **values: P.kwargs) -> Options:
    """Call `kind`, for example a dataclass, with options; raise an InputError for a wrong one."""
    signature = inspect.signature(kind)
    check_names(where, values, signature.parameters)
    try:
        bound = signature.bind(*args, **values)
    except TypeError as error:
        raise InputError(f"{where}: {error}. Give it.") from None
    hints = _hints(kind)
    for name, value in bound.arguments.items():
        check_value(where, name, value, hints.get(name, Any))
    return kind(*bound.args, **bound.kwargs)


def check_fields(options: Any, where: str) -> None:
    """Raise an InputError for a field of a dataclass that does not fit its annotation; for its `__post_init__`."""
    hints = _hints(type(options))
    for field in dataclasses.fields(options):
        check_value(where, field.name, getattr(options, field.name), hints.get(field.name, Any))


def check_names(where: str, names: Iterable[str], known: Collection[str] | None) -> None:
    """Raise an InputError for the first option that is not `known`, with the nearest known name; None allows any."""
    for name in names:
        if known is not None and name not in known:
            raise unknown_name(f"{where}: there is no option {name!r}", name, known)


def check_value(where: str, name: str, value: Any, kind: Any) -> None:
    """Raise an InputError if a value does not fit the annotation `kind`."""
    if not _fits(value, kind):
        raise wrong_value(where, name, value, in_words(kind), known=choices_of(kind))


def check_choice(where: str, name: str, value: object, choices: Iterable[str]) -> None:
    """Raise an InputError if a value is not one of `choices`, for choices that no annotation lists."""
    if value not in (known := tuple(choices)):
        raise wrong_value(where, name, value, f"one of {', '.join(known)}", known=known)


def wrong_value(where: str, name: str, value: object, expected: str, *, known: Iterable[str] = ()) -> InputError:
    """Return the error for a wrong value; it suggests the nearest of the words `known`.

    Example:
        >>> print(wrong_value("bleu", "n", 9, "a whole number from 1 to 4"))
        bleu: n is 9. Give a whole number from 1 to 4.
    """
    near = did_you_mean(value, known) if isinstance(value, str) else ""
    return InputError(f"{where}: {name} is {value!r}.{near} Give {expected}.")


def option_kinds(factory: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the options of a class or function with their annotations (`Any` without one); None if it takes any option."""
    parameters = inspect.signature(factory).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    hints = _hints(factory)
    return {one.name: hints.get(one.name, Any) for one in parameters if one.kind is not one.VAR_POSITIONAL}


def from_text(text: str, kind: Any = Any) -> Any:
    """Convert the text of an option with the annotation `kind`; a text that cannot be converted is returned unchanged.

    Example:
        >>> from_text("7", int | None), from_text("7", str), from_text("none", int | None), from_text("7")
        (7, '7', None, 7)
    """
    kinds = set(_flat(kind))
    for choice in (choice for one in kinds if get_origin(one) is Literal for choice in get_args(one)):
        if text == str(choice):
            return choice
    if text.lower() in _LITERALS and (type(value := _LITERALS[text.lower()]) in kinds or Any in kinds):
        return value
    for number in (int, float):
        if number in kinds or Any in kinds:
            with contextlib.suppress(ValueError):
                return number(text)
    return text


def pairs_from_text(pairs: Iterable[str], where: str, kinds: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert the pairs `name=value` of a command line."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"{where} {pair!r}: expected name=value.")
        if name in values:
            raise InputError(f"{where} {name}: is given twice. Leave one of them out.")
        values[name] = from_text(text, (kinds or {}).get(name, Any))
    return values


def retyped(values: Mapping[str, Any], factory: Callable[..., Any]) -> dict[str, Any]:
    """Convert options again by their annotations, after a host guessed their types: a revision made of digits is a text.

    Example:
        >>> def scorer(revision: str | None = None, clip: bool = False): ...
        >>> retyped({"revision": 1234567, "clip": "true"}, scorer)
        {'revision': '1234567', 'clip': True}
    """
    kinds = option_kinds(factory) or {}
    read: dict[str, Any] = {}
    for name, value in values.items():
        kind = kinds.get(name, Any)
        is_text = not isinstance(value, str) and not _fits(value, kind) and _fits(str(value), kind)
        read[name] = str(value) if is_text else from_text(value, kind) if isinstance(value, str) and name in kinds else value
    return read


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a class or function; empty if one is imported only for type checkers."""
    if isinstance(factory, functools.partial):
        factory = factory.func
    if isinstance(factory, type) and not dataclasses.is_dataclass(factory):
        factory = factory.__init__  # type: ignore[misc]
    try:
        return get_type_hints(inspect.unwrap(factory), include_extras=True)
    except (NameError, TypeError):
        return {}


def _flat(kind: Any) -> Iterator[Any]:
    """Yield the alternatives of an annotation, without their bounds."""
    if get_origin(kind) is Annotated:
        yield from _flat(get_args(kind)[0])
    elif get_origin(kind) in (Union, types.UnionType):
        for one in get_args(kind):
            yield from _flat(one)
    else:
        yield kind


@functools.cache
def _adapter(kind: Any) -> Any:
    """Return a validator as strict as a type checker; a protocol accepts anything, as pydantic cannot check it."""
    from pydantic import ConfigDict, InstanceOf, PydanticUserError, TypeAdapter
    from pydantic_core import SchemaError

    try:
        return TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True))
    except PydanticUserError:  # a dataclass or a model, with its own configuration
        return TypeAdapter(Annotated[kind, InstanceOf()])
    except SchemaError:
        return TypeAdapter(Any)


def _fits(value: Any, kind: Any) -> bool:
    try:
        _adapter(kind).validate_python(value, strict=True)
    except ValueError:
        # In strict mode it accepts only a dict for a mapping, a list or a tuple for a sequence, and before 2.10 only a str.
        if isinstance(value, str) and type(value) is not str:
            return _fits(str(value), kind)
        if isinstance(value, Mapping) and not isinstance(value, dict):
            return _fits(dict(value), kind)
        return isinstance(value, Sequence) and not isinstance(value, (str, bytes, list, tuple)) and _fits(list(value), kind)
    return True


def choices_of(kind: Any) -> list[str]:
    """Return the words of the `Literal`s in an annotation.

    Example:
        >>> choices_of(Literal["turn", "dialogue"] | None)
        ['turn', 'dialogue']
    """
    return [str(choice) for one in _flat(kind) if get_origin(one) is Literal for choice in get_args(one)]


def bounds_of(kind: Any) -> dict[str, float]:
    """Return the bounds of an annotation by their names in `annotated_types`.

    Example:
        >>> bounds_of(Share | None)
        {'ge': 0, 'le': 1}
    """
    if get_origin(kind) in (Union, types.UnionType):
        return {name: limit for one in get_args(kind) for name, limit in bounds_of(one).items()}
    bounds = ((name, getattr(bound, name, None)) for bound in get_args(kind)[1:] for name in _BOUNDS)
    return {name: limit for name, limit in bounds if limit is not None}


def in_words(kind: Any, *, is_short: bool = False) -> str:
    """Return an annotation as text; None, the value of an option left out, is not named.

    Example:
        >>> in_words(Share | None), in_words(Share | None, is_short=True)
        ('a number from 0 to 1', 'float from 0 to 1')
        >>> in_words(Literal["turn", "dialogue"] | bool, is_short=True)
        'turn|dialogue|bool'
    """
    origin = get_origin(kind)
    if origin is Annotated:
        bounds = " ".join(f"{_BOUNDS[name]} {limit}" for name, limit in bounds_of(kind).items())
        return f"{in_words(get_args(kind)[0], is_short=is_short)} {bounds}".rstrip()
    if origin in (Union, types.UnionType):
        alternatives = (in_words(one, is_short=is_short) for one in get_args(kind) if one is not type(None))
        return ("|" if is_short else " or ").join(alternatives)
    if origin is Literal:
        allowed = get_args(kind)
        if is_short:
            return "|".join(map(str, allowed))
        return f"one of {', '.join(map(str, allowed))}" if len(allowed) > 1 else repr(allowed[0])
    name = str(getattr(kind, "__name__", kind))
    return {"Sequence": "list", "Mapping": "dict"}.get(name, name) if is_short else _WORDS.get(kind, name)


ENTRY_POINT_GROUP = "dialeval_plugin.scorers"
ADVICE = "Type `dialeval scorers` for what each of them is and needs."

_factories: dict[str, Callable[..., Scorer]] = {}


def _source(factory: Callable[..., Scorer]) -> tuple[str, str]:
    """Return file and name of a factory; a file that runs as `__main__` and is imported too has two module names."""
    module = factory.__module__
    return getattr(sys.modules.get(module), "__file__", None) or module, factory.__qualname__


def register_scorer(name: str) -> Callable[[Callable[..., Scorer]], Callable[..., Scorer]]:
    """Register a scorer class or factory under `name` for this process; it takes precedence over a package's.

    An installed package declares an entry point in the group `dialeval_plugin.scorers` instead, imported on first use.

    Raises:
        InputError: another factory has the name.
    """

    def decorate(factory: Callable[..., Scorer]) -> Callable[..., Scorer]:
        known = _factories.get(name)
        if known is not None and _source(known) != _source(factory):
            one, other = (f"{each.__module__}:{each.__qualname__}" for each in (known, factory))
            raise InputError(f"scorer {name!r} is registered by {one} and by {other}. Rename one of them.")
        _factories[name] = factory
        return factory

    return decorate


def _last_change(folder: str) -> int | None:
    with suppress(OSError):
        return Path(folder).stat().st_mtime_ns
    return None


def _entry_points() -> dict[str, list[metadata.EntryPoint]]:
    """Return the declared scorers by name; a name has several if packages clash."""
    # Reading what every package declares takes ten milliseconds: again only where one was installed or removed.
    return _declared(tuple((folder, _last_change(folder)) for folder in sys.path))


@functools.lru_cache(maxsize=1)
def _declared(_folders: tuple[tuple[str, int | None], ...]) -> dict[str, list[metadata.EntryPoint]]:
    points: dict[str, dict[str, metadata.EntryPoint]] = {}
    for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        points.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: list(declared.values()) for name, declared in points.items()}


def scorer_names() -> list[str]:
    """Return the names of all scorers that can be loaded, sorted."""
    return sorted({*_factories, *_entry_points()})


def declaration(name: str) -> metadata.EntryPoint | None:
    """Return the entry point of the scorer `name`; None if it is registered, unknown, or declared twice."""
    declared = [] if name in _factories else _entry_points().get(name, [])
    return declared[0] if len(declared) == 1 else None


def scorer_factory(name: str) -> Callable[..., Scorer]:
    """Return the class or function that makes the scorer `name`."""
    if name in _factories:
        return _factories[name]
    declared = _entry_points().get(name, [])
    if not declared:
        raise unknown_name(f"there is no scorer {name!r}", name, scorer_names(), ADVICE)
    point, *others = declared
    if others:
        both = f"{point.value} and by {others[0].value}"
        raise InputError(f"scorer {name!r} is declared by {both}. Uninstall one of the packages.")
    try:
        with importing(f"scorer {name!r}"):
            factory: Callable[..., Scorer] = point.load()
    except MissingPrerequisite:
        raise
    except Exception as error:
        raise MissingPrerequisite(
            f"scorer {name!r} ({point.value}) cannot be imported: {error}. Repair or uninstall the package that declares it."
        ) from error
    return factory


def load_scorer(name: str, **options: Any) -> Scorer:
    """Make the scorer `name` with its options.

    Raises:
        InputError: the name or an option is unknown, or an option is missing.
        MissingPrerequisite: something that the scorer needs is missing; the message says how to get it.
    """
    factory = scorer_factory(name)
    check_names(name, options, option_kinds(factory))
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        raise InputError(f"{name}: {error}. Give it.") from None
    with importing(f"scorer {name!r}"):
        return factory(**options)
