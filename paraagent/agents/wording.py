"""Wording: sentences of `thoughts.toml`, varied by chance."""

from __future__ import annotations

import random
import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

_FORMS: dict[str, list[str]] = tomllib.loads(files("paraagent.agents").joinpath("thoughts.toml").read_text("utf-8"))
_CHOICE = re.compile(r"\[([^\[\]]*)\]")


_T = TypeVar("_T")


class FirstChoice(random.Random):
    """Chance that always takes the first: the plain wording of a form."""

    def choice(self, seq: SupportsLenAndGetItem[_T]) -> _T:
        return seq[0]


def word(form: str, choices: random.Random, **values: str) -> str:
    """A sentence of this form; the first letter is a capital unless a value begins it."""
    template = choices.choice(_FORMS[form])
    plain = _CHOICE.sub(lambda found: choices.choice(found[1].split("|")), template)
    return " ".join(plain.format(**values).split())
