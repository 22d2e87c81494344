"""atoll-model generate against the greedy decoding of Hugging Face's transformers, for each family."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import tokenizers
import torch
import transformers

from fixture import ROOT
from hf_models import gpt2, llama

PROMPT = [11, 250, 3, 77, 3]
TOKENS = 200
ROTARY = {"rope_type": "llama3", "rope_theta": 5e3, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}


class GenerateTest(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory(prefix="atoll-generate-")
        self.addCleanup(self.kept.cleanup)
        self.folder = pathlib.Path(self.kept.name)

    def generate(self, *arguments, program="atoll-model", code=0):
        command = [pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / program, "generate", "--model", self.folder, "--threads", "1",
                   *arguments]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done.stdout if code == 0 else done.stderr.decode()

    def numbers(self, *arguments, **more):
        prompt = " ".join(str(token) for token in PROMPT)
        return [int(word) for word in self.generate("--prompt-tokens", prompt, *arguments, **more).split()]

    def greedy(self, model):
        model.save_pretrained(self.folder)
        with torch.no_grad():
            text = model.generate(torch.tensor([PROMPT]), max_new_tokens=TOKENS, do_sample=False, pad_token_id=0)
        expected = text[0, len(PROMPT):].tolist()
        self.assertGreater(len(set(expected)), 3, "a text of one token shows little")
        self.assertEqual(self.numbers("--temperature", "0", "--tokens", str(TOKENS)), expected)
        return expected

    def test_gpt2(self):
        expected = self.greedy(gpt2(n_positions=256))
        self.assertEqual(self.numbers("--temperature", "0", "--tokens", "20", program="atoll-worker"), expected[:20])

    def test_llama(self):
        self.greedy(llama(transformers.LlamaConfig, max_position_embeddings=256, tie_word_embeddings=False,
                          rope_parameters=ROTARY))

    def test_qwen2(self):
        self.greedy(llama(transformers.Qwen2Config, max_position_embeddings=256))

    def test_qwen3(self):
        self.greedy(llama(transformers.Qwen3Config, max_position_embeddings=256, head_dim=32))

    def test_text_with_the_tokenizer_of_the_folder(self):
        """The prompt's tokens and the text are those of transformers, with the tokenizer.json beside the weights or elsewhere."""
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = tokenizers.decoders.ByteLevel()
        tokenizer.train([str(ROOT / "README.md")], tokenizers.trainers.BpeTrainer(
            vocab_size=400, show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
        model = gpt2(n_positions=256, vocab_size=400)
        model.save_pretrained(self.folder)
        greedy, prompt = ("--temperature", "0", "--tokens", "60"), "The coordinator holds"
        self.assertIn("nothing says which tokenizer", self.generate(*greedy, "--prompt", prompt, code=2))
        tokens = tokenizer.encode(prompt).ids
        with torch.no_grad():
            text = model.generate(torch.tensor([tokens]), max_new_tokens=60, do_sample=False, pad_token_id=0)[0].tolist()
        elsewhere = self.folder / "elsewhere.json"
        tokenizer.save(str(elsewhere))
        self.assertEqual(self.generate(*greedy, "--prompt", prompt, "--tokenizer", elsewhere).decode(errors="replace"), tokenizer.decode(text) + "\n")
        tokenizer.save(str(self.folder / "tokenizer.json"))
        self.assertEqual(self.generate(*greedy, "--prompt", prompt).decode(errors="replace"), tokenizer.decode(text) + "\n")
        self.assertIn("no file 'gpt3'", self.generate("--prompt", prompt, "--tokenizer", "gpt3", code=2))

    def test_ends_at_the_tokens_and_texts_that_end_it(self):
        model = gpt2(n_positions=256)
        expected = self.greedy(model)
        end = expected[30]
        first = expected.index(end)
        greedy = ("--temperature", "0", "--tokens", str(TOKENS))
        self.assertEqual(self.numbers(*greedy, "--stop-token", str(end)), expected[:first])
        model.generation_config.eos_token_id = end
        model.save_pretrained(self.folder)
        self.assertEqual(self.numbers(*greedy), expected[:first])
        other = next(token for token in range(256) if token not in expected)
        model.generation_config.eos_token_id = [other, end]  # each of them ends a text, as in Llama 3
        model.save_pretrained(self.folder)
        self.assertEqual(self.numbers(*greedy), expected[:first])
        model.generation_config.eos_token_id = None
        model.save_pretrained(self.folder)
        text = self.generate(*greedy, "--tokenizer", "bytes", "--prompt", "ab")
        self.assertTrue(text.startswith(b"ab") and len(text) == 2 + TOKENS + 1, text)
        stop = next(text[at:at + 1] for at in range(20, TOKENS) if 32 < text[at] < 127)
        self.assertEqual(self.generate(*greedy, "--tokenizer", "bytes", "--prompt", "ab", "--stop", stop.decode()),
                         text[:2 + text[2:].index(stop)] + b"\n")

    def test_draws_as_its_seed_says(self):
        gpt2(n_positions=256).save_pretrained(self.folder)
        drawn = self.numbers("--top-p", "0.9", "--top-k", "0", "--seed", "5")
        self.assertEqual(drawn, self.numbers("--top-p", "0.9", "--top-k", "0", "--seed", "5"))
        self.assertNotEqual(drawn, self.numbers("--top-p", "0.9", "--top-k", "0", "--seed", "6"))
        self.assertEqual(self.numbers("--top-k", "1"), self.numbers("--temperature", "0"))

    def test_says_what_it_needs(self):
        gpt2(n_positions=256).save_pretrained(self.folder)
        self.assertIn("--prompt-tokens", self.generate("--prompt", "ab", code=2))
        self.assertIn("'12x' is not the number of a token", self.generate("--prompt-tokens", "1 12x", code=2))
        self.assertIn("prompt token 256 is outside", self.generate("--prompt-tokens", "256", code=2))
        self.folder = self.folder / "model.safetensors"
        self.assertIn("--config", self.generate("--prompt-tokens", "1", code=2))


if __name__ == "__main__":
    unittest.main()
