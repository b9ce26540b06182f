"""Policies by name, as `--policy` gives them: who writes the turns."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from paraagent.errors import UsageError

if TYPE_CHECKING:
    from paraagent.agents.policy import Policy
    from paraagent.config import AgentConfig, Profile
    from paraagent.paraact.paradigm import Paradigm
    from pipelines.home import Home

_BUILT = ("base", "sft", "rl")
NAMES = "person, oracle, base, sft, rl, local:DIR or openai:MODEL"


def open_policy(name: str, home: Home, profile: str | None, settings: Profile, *, group: int = 1) -> Policy:
    """The policy of that name. A local model is loaded here, an endpoint is not asked yet.

    Raises:
        UsageError: nobody has that name.
        RunError: its model is not built, or its folder holds none.
    """
    kind, _, rest = name.partition(":")
    if name == "person":
        from paraagent.agents.person import PersonPolicy

        return PersonPolicy(sys.stdin, sys.stderr)
    if name == "oracle":
        from paraagent.agents.oracle import OraclePolicy

        return OraclePolicy()
    if kind == "openai" and rest:
        from paraagent.agents.openai import OpenAIPolicy

        return OpenAIPolicy(endpoint(settings.agent, rest), settings.env, name=name)
    if kind in ("openai", "local") and not rest:
        raise UsageError(f"--policy {name} names no {'model' if kind == 'openai' else 'folder'}: choose {NAMES}")
    if name not in _BUILT and not (kind == "local" and rest):
        raise UsageError(f"There is no policy {name}: choose {NAMES}")
    from paraagent.agents.local import LocalPolicy
    from paraagent.cli.current import require_artifact

    if kind == "local":
        folder = Path(rest).expanduser()
    else:
        folder = require_artifact(home, profile, "model" if name == "base" else name) / "model"
    return LocalPolicy(folder, settings.env, name=name, group=group)


def endpoint(config: AgentConfig, model: str) -> AgentConfig:
    """The endpoint of a model: `agent.base_url`, else $OPENAI_BASE_URL.

    Raises:
        UsageError: the variable holds no address.
    """
    from pydantic import ValidationError

    from paraagent.config import AgentConfig

    named = os.environ.get("OPENAI_BASE_URL")
    address = named if named and config.base_url == AgentConfig().base_url else config.base_url
    try:
        return AgentConfig.model_validate(config.model_dump() | {"model": model, "base_url": address})
    except ValidationError as error:
        raise UsageError("$OPENAI_BASE_URL should be http(s)://HOST/PATH, without user, password or query") from error


def paradigm_named(name: str) -> Paradigm:
    """Raises UsageError where there is none of that name."""
    from paraagent.paraact.paradigm import PARADIGMS
    from paraagent.trace import ParadigmName

    found = next((paradigm for key, paradigm in PARADIGMS.items() if key == name), None)
    if found is None:
        raise UsageError(f"There is no paradigm {name}: choose {', '.join(get_args(ParadigmName))}")
    return found
