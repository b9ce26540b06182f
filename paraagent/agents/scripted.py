"""ScriptedPolicy: turns that stand written before the episode begins, as from a trace whose model is not at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paraagent.agents.policy import Completion, Conversation
from paraagent.trace import Episode


class ScriptedPolicy:
    """Plays the texts of each task, one a turn; after the last one its context is full."""

    lockstep = False

    def __init__(self, texts: Mapping[str, Sequence[str]], name: str = "scripted", group: int = 64) -> None:
        """`texts` are the turns by task id."""
        self.name, self.group, self._texts = name, group, texts

    @classmethod
    def of(cls, episode: Episode) -> ScriptedPolicy:
        """Plays an episode again."""
        return cls({episode.task_id: [turn.text for turn in episode.turns]}, episode.policy)

    async def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """The next turn of each conversation."""
        return [self._next(conversation) for conversation in conversations]

    def _next(self, conversation: Conversation) -> Completion:
        texts = self._texts[conversation.task.task_id]
        number = sum(message["role"] == "assistant" for message in conversation.messages)
        return Completion(texts[number]) if number < len(texts) else Completion("", exhausted=True)
