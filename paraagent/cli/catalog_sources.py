"""`paraagent catalog add`, `remove` and `sources`: what this home adds to every catalog that is built in it."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from paraagent.catalog.crawl import Archive
    from paraagent.config import Profile
    from pipelines.home import Home
    from pipelines.runner import Outcome

SourceArgument = Annotated[
    str, typer.Argument(help="openapi:FILE|DIR|URL, mcp:COMMAND|URL, toolbench:DIR, apibank:FILE or a package.")
]
ProfileOption = Annotated[str | None, typer.Option(help="Build this profile's catalog, not the one used last.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
_NAMES = 5


def add(source: SourceArgument, profile: ProfileOption = None, json: JsonOption = False) -> None:
    """Take tools of your own into the catalog; a source that is there already is read again.

    Example: paraagent catalog add "mcp:uvx mcp-server-time"
    """
    from paraagent.catalog.crawl import fetch
    from paraagent.catalog.spec import parse_spec
    from paraagent.cli.current import usual_profile
    from paraagent.cli.run import display
    from paraagent.errors import UsageError
    from pipelines.added import added, change
    from pipelines.home import Home
    from pipelines.settings import absolute_source, load_profile, profile_file

    home = Home.locate()
    spec = parse_spec(absolute_source(source))
    profile = profile or usual_profile(home)
    settings = load_profile(profile)
    progress, shown = display()
    with home.writable(), shown:
        archive = fetch(spec, home.downloads, progress, refresh=True)
    if spec.own:
        from paraagent.catalog.trial import trial

        found = trial(archive, settings.catalog)
        if not found.usable:
            why = f" ({found.example[:240]})" if found.example else ""
            raise UsageError(f"The source {spec.source} holds no usable operation{why}: the catalog is as it was")
    before = added(home)
    known = {*settings.catalog.sources, *settings.catalog.added}
    if spec.text not in known:
        change(home, lambda specs: specs if spec.text in specs else [*specs, spec.text])
    try:
        outcome = _build(home, settings, profile_file(profile))
    except BaseException:
        if spec.text not in before and spec.text not in known:
            change(home, lambda specs: [other for other in specs if other != spec.text])
        raise
    _print_added(outcome, archive, json)


def remove(source: SourceArgument, profile: ProfileOption = None, json: JsonOption = False) -> None:
    """Take a source that was added out of the catalog again.

    Example: paraagent catalog remove openapi:petstore.yaml
    """
    from paraagent.catalog.spec import parse_spec
    from paraagent.cli.current import usual_profile
    from paraagent.errors import UsageError
    from pipelines.added import added, change
    from pipelines.home import Home
    from pipelines.settings import absolute_source, load_profile, profile_file

    home = Home.locate()
    there = added(home)
    short = {parse_spec(text).source: text for text in there}
    given = absolute_source(source)
    text = given if given in there else short.get(source)
    if text is None:
        near = difflib.get_close_matches(source, [*short, *there], n=1, cutoff=0.3)
        hint = f"did you mean {near[0]!r}?" if near else "`paraagent catalog add` brings one"
        raise UsageError(f"The source {source!r} was not added to {home.root}: {hint}")
    profile = profile or usual_profile(home)
    settings = load_profile(profile)
    change(home, lambda specs: [other for other in specs if other != text])
    outcome = _build(home, settings, profile_file(profile))
    tools = outcome.manifest.rows.get("tools", 0)
    if json:
        _print_json({"removed": text, "tools": tools})
    else:
        print(f"Removed {parse_spec(text).source}: the catalog has {tools:,} tools")


def sources(json: JsonOption = False) -> None:
    """List the sources that were added.

    Example: paraagent catalog sources
    """
    from paraagent.catalog.spec import parse_spec
    from pipelines.added import added
    from pipelines.home import Home

    there = [{"source": parse_spec(text).source, "spec": text} for text in added(Home.locate())]
    if json:
        _print_json({"added": there})
    elif there:
        for entry in there:
            print(f"{entry['source']}  {entry['spec']}")
    else:
        print('No source was added: paraagent catalog add "mcp:COMMAND" or openapi:FILE brings one')


def _build(home: Home, profile: Profile, file: str) -> Outcome:
    """The stage `catalog` alone, in this process: it takes seconds, which starting a server would double."""
    from paraagent.cli.run import display, terminated_is_interrupted
    from pipelines.plan import Request
    from pipelines.runner import Runner

    progress, shown = display()
    with shown, terminated_is_interrupted():
        [outcome] = Runner(Request(profile, ("catalog",), file=file), home, progress).run()
    return outcome


def _print_added(outcome: Outcome, archive: Archive, json: bool) -> None:
    from paraagent.catalog.store import Catalog

    where = [archive.spec.source, archive.version]
    with Catalog.open(outcome.path / "catalog.duckdb") as catalog:
        names = [
            n
            for (n,) in catalog.rows("SELECT name FROM tools WHERE source = ? AND source_version = ? ORDER BY 1", where)
        ]
        reasons = catalog.rows(
            "SELECT reason, count(*), any_value(source_name || ': ' || detail) FROM quarantine"
            " WHERE source = ? GROUP BY ALL ORDER BY ALL",
            where[:1],
        )
    if json:
        quarantine = {reason: count for reason, count, _ in reasons}
        _print_json(
            {
                "source": where[0],
                "spec": archive.spec.text,
                "tools": len(names),
                "names": names,
                "quarantine": quarantine,
            }
        )
        return
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    print(f"Added {len(names):,} tool{'s' * (len(names) != 1)} of {where[0]}: {', '.join(names[:_NAMES])}{more}")
    for reason, count, example in reasons:
        print(f"{count:,} quarantined as {reason}, for example {example[:160]}")


def _print_json(document: Any) -> None:
    import orjson

    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
