"""R_step: were the right tools found and called."""

from __future__ import annotations

from paraagent.config import RewardConfig
from paraagent.paraact.protocol import fold
from paraagent.task import Task
from paraagent.trace import Episode


def step_reward(task: Task, episode: Episode, config: RewardConfig) -> float:
    """0.4 · (targets called with success / targets) + 0.1 · (targets that a visible search returned / targets).

    An equivalent version of a target counts as that target. Without targets: 0.5 if no call was made, else 0.
    """
    alike = {slot.tool: slot.equivalents for slot in task.slots}
    targets = [{fold(name) for name in (target, *alike.get(target, ()))} for target in task.targets]
    if not targets:
        return 0.0 if episode.calls else config.step_no_tool
    called = {fold(call.name) for call in episode.calls if call.ok}
    found = {fold(name) for search in episode.searches if search.visible for name in search.hits}
    called_share, found_share = (
        sum(bool(target & names) for target in targets) / len(targets) for names in (called, found)
    )
    return config.step_called * called_share + config.step_found * found_share
