"""What `openapi:FILE|DIR|URL` names: documents with the files of the same folder that they refer to.

References are found as text, cheaply; what they mean is decided where the documents are read. A link out of the folder
is never opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from paraagent.catalog.parse import MAX_DOCUMENT
from paraagent.errors import UsageError

SUFFIXES = (".json", ".yaml", ".yml")
MAX_FILES = 20_000
_REFERENCE = re.compile(rb"""\$ref["']?\s*:\s*(?:"([^"#]+)|'([^'#]+)|([^\s"'#,}]+))""")
_ROOT = re.compile(rb"""(?:^|[{,\s])["']?(?:openapi|swagger)["']?\s*:""")
_HEAD_BYTES = 100_000


def is_url(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def label(name: str) -> str:
    """The last part of the path; of an address with its host."""
    if is_url(name):
        address = urlsplit(name)
        return "/".join(filter(None, (address.hostname, Path(address.path).name)))
    return Path(name).name


def located(name: str, downloads: Path, refresh: bool) -> Path:
    if is_url(name):
        from paraagent.catalog.web import fetched

        return fetched(name, downloads, "openapi", refresh)
    path = Path(name)
    if not path.exists():
        raise UsageError(
            f"The catalog source openapi:{path} does not exist: name an OpenAPI document, a folder of them or a URL"
        )
    _files(path)
    return path


def read(path: Path) -> Iterator[list[tuple[str, bytes]]]:
    """Every document with its parts behind it, by name; a file that is only a part of others is no document."""
    folder = (path if path.is_dir() else path.parent).resolve()
    names = [file.resolve().relative_to(folder).as_posix() for file in _files(path)]
    links = {name: _links(folder, name) for name in names}
    parts = {target for name in names for target in links[name] if target != name}
    for name in names:
        data = _bytes(folder / name)
        if name in parts and path.is_dir() and not _ROOT.search(data[:_HEAD_BYTES]):
            continue
        unit = [(name, data)]
        known, waiting = {name}, list(links[name])
        while waiting:
            target = waiting.pop(0)
            if target not in known:
                known.add(target)
                unit.append((target, _bytes(folder / target)))
                waiting += links[target] if target in links else _links(folder, target)
        yield unit


def _files(path: Path) -> list[Path]:
    """The documents that are named, sorted; never one that a link puts outside of the folder."""
    if path.is_file():
        return [path.resolve()]
    folder = path.resolve()
    found: list[Path] = []
    for file in path.rglob("*"):
        if file.suffix.lower() in SUFFIXES and file.is_file() and file.resolve().is_relative_to(folder):
            found.append(file)
            if len(found) > MAX_FILES:
                raise UsageError(
                    f"The catalog source openapi:{path} has more than {MAX_FILES:,} files: name a folder in it"
                )
    if not found:
        raise UsageError(
            f"The catalog source openapi:{path} holds no .json, .yaml or .yml file: name a document or a folder of them"
        )
    return sorted(found)


def _links(folder: Path, name: str) -> list[str]:
    """Files of the folder that a document refers to, in order."""
    found: dict[str, None] = {}
    for groups in _REFERENCE.findall(_bytes(folder / name)):
        link = unquote(b"".join(groups).decode("utf-8", "replace").replace("\\/", "/"))
        if "://" in link or link.startswith("/"):
            continue
        target = ((folder / name).parent / link).resolve()
        if target.is_relative_to(folder) and target.suffix.lower() in SUFFIXES and target.is_file():
            found[target.relative_to(folder).as_posix()] = None
    return list(found)


def _bytes(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MAX_DOCUMENT:
        raise UsageError(f"The file {path} has {size:,} bytes, more than the {MAX_DOCUMENT:,} of a document: split it")
    return path.read_bytes()
