"""From a profile's TOML file and `--set` to a checked `Profile`, or one sentence that names the wrong setting."""

from __future__ import annotations

import difflib
import json
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from paraagent.config import Profile
from paraagent.errors import UsageError

_LARGEST = 10**18
_UNTOLD = frozenset({"base_url", "api_key_env"})
"""Settings into which a key or a password is put by mistake: no message repeats what they were given."""
_LOCAL_PREFIXES = ("openapi:", "toolbench:", "apibank:", "local:")


def profile_names() -> list[str]:
    """The profiles that come with the program."""
    return sorted(entry.name[:-5] for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def load_profile(profile: str, overrides: Mapping[str, Any] | Sequence[str] = ()) -> Profile:
    """Read a built-in profile by name, or a TOML file, and apply overrides.

    Args:
        profile: `quick`, or a path that ends in `.toml` or has a folder in it.
        overrides: `section.key=value` strings from the command line, or a mapping from `section.key` to values.

    Raises:
        UsageError: unknown profile, broken TOML, unknown setting or wrong type.
    """
    path = _find(profile)
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"The profile {path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"The profile {path} is not valid TOML: {error}") from error
    data.setdefault("name", path.stem)
    _check(data, f"the profile {path}")
    _resolve(data, path.parent)
    return _check(_overridden(data, overrides), "--set")


def with_settings(profile: Profile, overrides: Mapping[str, Any] | Sequence[str]) -> Profile:
    """The profile with overrides, as `load_profile` takes them. Raises `UsageError` as it does."""
    return _check(_overridden(profile.model_dump(mode="json"), overrides), "--set")


def _overridden(data: dict[str, Any], overrides: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """The data of a profile, whose paths are absolute, with overrides put in; a whole table replaces the old one."""
    pairs = overrides.items() if isinstance(overrides, Mapping) else [_split(text) for text in overrides]
    for key, value in pairs:
        annotation = _annotation(key)
        _put(data, key, _parse(value, annotation) if isinstance(value, str) else value)
    _resolve(data, Path.cwd())
    return data


def absolute_source(source: str) -> str:
    """A catalog source as it is meant from the current folder, with its path made absolute."""
    return str(_absolute(source, Path.cwd()))


def profile_name(profile: str) -> str:
    """The name under which the artifacts of a built-in profile or of a TOML file are found.

    Raises:
        UsageError: the file is missing or wrong.
    """
    return load_profile(profile).name if _is_path(profile) else profile


def profile_file(profile: str) -> str:
    """The absolute path of a profile that is a TOML file; empty for a built-in one."""
    return str(_find(profile)) if _is_path(profile) else ""


def _is_path(profile: str) -> bool:
    return profile.endswith(".toml") or "/" in profile


def _folder() -> Path:
    """The folder of the built-in profiles; a real folder, since fixtures beside them are named by path."""
    return Path(str(resources.files("pipelines") / "profiles"))


def _find(profile: str) -> Path:
    if _is_path(profile):
        path = Path(profile).expanduser().absolute()
        if path.exists() and not path.is_file():
            raise UsageError(f"The profile {profile} is no file: give the path of a TOML file or one of {_listing()}")
        if not path.is_file():
            raise UsageError(f"There is no profile file {profile}: give the path of a TOML file or one of {_listing()}")
        return path
    path = _folder() / f"{profile}.toml"
    if not path.is_file():
        near = difflib.get_close_matches(profile, profile_names(), n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {_listing()} or give the path of a TOML file"
        raise UsageError(f"There is no profile {profile}: {hint}")
    return path


def _listing() -> str:
    return ", ".join(profile_names())


def _check(data: dict[str, Any], where: str) -> Profile:
    for key, value in _whole_numbers(data, ""):
        if not -_LARGEST <= value <= _LARGEST:
            raise UsageError(f"The setting {key} in {where} should be a number of at most 18 digits, not {value}")
    try:
        return Profile.model_validate_json(json.dumps(data))
    except (ValidationError, TypeError) as error:
        if isinstance(error, ValidationError):
            raise UsageError(_sentence(error, where)) from error
        raise UsageError(f"A value in {where} has no place in a profile: {error}") from error


def _whole_numbers(data: Mapping[str, Any], at: str) -> Iterator[tuple[str, int]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _whole_numbers(value, f"{at}{name}.")
        elif isinstance(value, int):
            yield f"{at}{name}", value


def _sentence(error: ValidationError, where: str) -> str:
    """The first fault in words; the rest counted."""
    faults = error.errors()
    fault = faults[0]
    location = [str(part) for part in fault["loc"] if part != "[key]"]
    key = ".".join(location)
    if fault["type"] == "extra_forbidden":
        text = _unknown(key, where)
    else:
        message = fault["msg"].removeprefix("Input ").removeprefix("Value error, ")
        if fault["type"] == "too_short":
            message = "should not be empty"
        elif fault["type"] == "dict_type":
            message = "should be a table such as {NAME = 1}"
        text = f"The setting {key} in {where} {message}"
        table = fault["type"] == "value_error" and isinstance(fault["input"], dict)
        if not table and _UNTOLD.isdisjoint(location):
            text += f", not {_shown(fault['input'])}"
    return text if len(faults) == 1 else f"{text} (and {len(faults) - 1} more)"


def _shown(value: Any) -> str:
    return "a table" if isinstance(value, dict) else json.dumps(value)


def _unknown(key: str, where: str) -> str:
    prefix, _, last = key.rpartition(".")
    model = _model(prefix.split(".") if prefix else [])
    names = sorted(model.model_fields) if model else []
    near = difflib.get_close_matches(last, names, n=1, cutoff=0.5) or _elsewhere(last)
    if not near:
        return f"There is no setting {key}, named in {where}: {prefix or 'a profile'} has {', '.join(names)}"
    full = near[0] if "." in near[0] or not prefix else f"{prefix}.{near[0]}"
    return f"There is no setting {key}, named in {where}: did you mean {full}?"


def _elsewhere(name: str) -> list[str]:
    """Settings of that name in any section."""
    found = []
    for section in Profile.model_fields:
        model = _model([section])
        if model is not None and name in model.model_fields:
            found.append(f"{section}.{name}")
    return found


def _model(path: Sequence[str]) -> type[BaseModel] | None:
    model: type[BaseModel] = Profile
    for part in path:
        field = model.model_fields.get(part)
        if field is None or not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)):
            return None
        model = field.annotation
    return model


def _annotation(key: str) -> Any:
    """The declared type of a setting; `Any` below a free table such as `tasks.shapes`.

    Raises:
        UsageError: there is no such setting.
    """
    parts = key.split(".")
    model: Any = Profile
    for position, part in enumerate(parts):
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return Any
        if part not in model.model_fields:
            raise UsageError(_unknown(".".join(parts[: position + 1]), "--set"))
        model = model.model_fields[part].annotation
    if isinstance(model, type) and issubclass(model, BaseModel):
        raise UsageError(f"{key}, named in --set, is a section: set one of {', '.join(sorted(model.model_fields))}")
    return model


def _split(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set takes section.key=value, for example sft.learning_rate=1e-4, not {text}")
    return key.strip(), value.strip()


def _parse(value: str, annotation: Any) -> Any:
    """A value as TOML or JSON would read it; plain text where the setting is text; `a,b` for a list."""
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = _table(value) or (value.split(",") if typing.get_origin(annotation) is list else _number(value))
    takes_text = annotation is str or typing.get_origin(annotation) is typing.Literal
    return value if takes_text and not isinstance(parsed, str) else parsed


def _table(value: str) -> dict[str, Any] | None:
    """A table as JSON writes it, as the documentation of the settings does; None for anything else."""
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _number(value: str) -> Any:
    """`1e-4` is a number to a person, though TOML wants `1.0e-4` in places."""
    try:
        return float(value)
    except ValueError:
        return value


def _put(data: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for section in sections:
        if not isinstance(data.get(section), dict):
            data[section] = {}
        data = data[section]
    data[last] = value


def _resolve(data: dict[str, Any], folder: Path) -> None:
    """Make relative files absolute: they are meant from the profile's folder, or from here in `--set`."""
    catalog = data.get("catalog")
    for key in ("sources", "added"):
        if isinstance(catalog, dict) and isinstance(catalog.get(key), list):
            catalog[key] = [_absolute(source, folder) for source in catalog[key]]
    model = data.get("model")
    if isinstance(model, dict) and "source" in model:
        model["source"] = _absolute(model["source"], folder)
    env = data.get("env")
    if isinstance(env, dict) and isinstance(env.get("recordings"), list):
        env["recordings"] = [_path(path, folder) for path in env["recordings"]]


def _absolute(source: Any, folder: Path) -> Any:
    if not isinstance(source, str) or "://" in source:
        return source
    for prefix in _LOCAL_PREFIXES:
        if source.startswith(prefix):
            return f"{prefix}{_path(source.removeprefix(prefix), folder)}"
    return source


def _path(path: Any, folder: Path) -> Any:
    return str((folder / Path(path).expanduser()).resolve()) if isinstance(path, str) else path
