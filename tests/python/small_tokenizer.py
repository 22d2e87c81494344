"""A tokenizer of 400 tokens, trained on the README, in the files of Hugging Face's tokenizers."""
import tokenizers

from fixture import ROOT

VOCABULARY, END = 400, "<|endoftext|>"


def small_tokenizer():
    """Its first token ends a text."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train([str(ROOT / "README.md")], tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[END]))
    return tokenizer
