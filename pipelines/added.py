"""The sources that a home adds to every catalog built in it: `sources.json`, a list of specs in the order they came."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from paraagent.config import Profile
from paraagent.errors import RunError
from paraagent.files import write_json
from pipelines.home import Home


def added(home: Home) -> list[str]:
    """Raises RunError where the file is not what was written there."""
    try:
        specs = orjson.loads(home.sources_path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except orjson.JSONDecodeError as error:
        raise RunError(
            f"{home.sources_path} is not valid JSON ({error}): remove it and add the sources again"
        ) from error
    except OSError as error:
        raise RunError(f"The home {home.root} cannot be read ({error.strerror}): name another with --home") from error
    if not isinstance(specs, list) or not all(isinstance(spec, str) for spec in specs):
        raise RunError(f"{home.sources_path} is not a list of sources: remove it and add the sources again")
    return specs


def change(home: Home, to: Callable[[list[str]], list[str]]) -> None:
    """Replace the list by what `to` makes of it; two commands at once do not lose each other's change."""
    from filelock import FileLock

    with home.writable(), FileLock(home.root / "sources.lock"):
        write_json(home.sources_path, to(added(home)))


def with_added(profile: Profile, home: Home) -> Profile:
    """The profile as this home builds it: fingerprints, manifests and `build_info` see the home's sources too."""
    catalog = profile.catalog
    known = {*catalog.sources, *catalog.added}
    more = [spec for spec in added(home) if spec not in known]
    if not more:
        return profile
    return profile.model_copy(update={"catalog": catalog.model_copy(update={"added": [*catalog.added, *more]})})
