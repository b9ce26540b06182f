"""A tiny random Llama with a byte-level tokenizer of its own: the whole pipeline in seconds, no download."""

from __future__ import annotations

from paraagent.agents.language_model import END_OF_TEXT, LanguageModel
from paraagent.agents.transcript import END, START
from paraagent.paraact.prompt import paraact_prompt

VOCABULARY = 614
SIZES = {
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
"""Of its `config.json`."""
_TEXT = (
    paraact_prompt(references=False),
    "system user assistant",
    "<think>I need two tools, one for each part of the request.</think>",
    '<plan>{"capacity_slots": ["weather", "stocks"]}</plan>',
    "<search_tool>weather: get the current weather of a city</search_tool>\n<tools>\n</tools>",
    '{"name": "get_weather", "description": "The weather.", "parameters": {"city": "string", "days?": "integer"}}',
    '<plan>{"available_tools": ["a"], "execution_flow": [{"step": 1, "parallel": ["a"]}], "dependencies": []}</plan>',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 3}}</tool_call>',
    '<tool_response>{"name": "get_weather", "result": {"error": {"type": "NotFoundError", "msg": "No such id."}}}',
    "</tool_response>",
    "<answer>The temperature is 21 degrees and the price is 304.5 USD.</answer>",
)


def tiny_model(seed: int) -> LanguageModel:
    """About 0.2 million random weights; the same seed gives the same bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(_TEXT, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=START, eos_token=END, pad_token=END_OF_TEXT, clean_up_tokenization_spaces=False
    )
    config = LlamaConfig(
        **{name: value for name, value in SIZES.items() if name != "model_type"},
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    return LanguageModel(model, tokenizer)
