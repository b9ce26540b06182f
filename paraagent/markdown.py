"""Markdown from a Jinja template that stands beside its module."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def render_markdown(template: Path, **values: Any) -> str:
    """The text of a template file; a name that it uses and nobody gives is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=False,  # for values that are counted here or come from the profile and the catalog
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).render(**values)
