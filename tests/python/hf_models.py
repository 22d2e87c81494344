"""Small models of Hugging Face's transformers with random weights, and what it says while it loads one."""
import logging
import warnings

import torch
import transformers

VOCABULARY, WIDTH, LAYERS, HEADS = 256, 64, 2, 4


def roughened(model):
    """With weights that make attention far from uniform, and gains and biases that matter."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model.eval()


def gpt2(**more):
    """A GPT-2 with random weights and biases."""
    settings = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
                "bos_token_id": None, "eos_token_id": None, **more}
    torch.manual_seed(7)
    return roughened(transformers.GPT2LMHeadModel(transformers.GPT2Config(**settings)))


def llama(family, **more):
    """A model of the Llama family with random weights: LlamaConfig, Qwen2Config or Qwen3Config."""
    torch.manual_seed(7)
    settings = {"vocab_size": VOCABULARY, "max_position_embeddings": 64, "hidden_size": WIDTH, "intermediate_size": 96,
                "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
                "tie_word_embeddings": True, "bos_token_id": None, "eos_token_id": None, **more}
    return roughened(transformers.AutoModelForCausalLM.from_config(family(**settings)))


class Complaints(logging.Handler):
    """What transformers logs and Python warns of."""

    def __enter__(self):
        self.said = []
        transformers.logging.get_logger("transformers").addHandler(self)
        self.caught = warnings.catch_warnings(record=True)
        self.warned = self.caught.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, *error):
        self.caught.__exit__(*error)
        transformers.logging.get_logger("transformers").removeHandler(self)
        self.said += [str(warning.message) for warning in self.warned]

    def emit(self, record):
        if record.levelno >= logging.WARNING:
            self.said.append(record.getMessage())
