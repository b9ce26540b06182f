"""Wording: sentences of `thoughts.toml`, varied by chance."""

from __future__ import annotations

import random
import re
import tomllib
from importlib.resources import files

_FORMS: dict[str, list[str]] = tomllib.loads(files("paraagent.agents").joinpath("thoughts.toml").read_text("utf-8"))
_CHOICE = re.compile(r"\[([^\[\]]*)\]")


def word(form: str, choices: random.Random, **values: str) -> str:
    """A sentence of this form; the first letter is a capital unless a value begins it."""
    template = choices.choice(_FORMS[form])
    plain = _CHOICE.sub(lambda found: choices.choice(found[1].split("|")), template)
    return " ".join(plain.format(**values).split())
