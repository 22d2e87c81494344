"""atoll-model eval against the log-probabilities of Hugging Face's transformers, for each family."""
import json
import math
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

import torch
import transformers

from fixture import ROOT
from hf_models import gpt2, llama
from small_tokenizer import VOCABULARY, small_tokenizer

CONTEXT = 64


def log_probabilities(model, tokens, first):
    """Of tokens[first:] after those before them, in one reading."""
    with torch.no_grad():
        logits = model(torch.tensor([tokens[:-1]])).logits[0].float()
    table = torch.log_softmax(logits, -1)
    return [table[at - 1, tokens[at]].item() for at in range(first, len(tokens))]


def windows(count, context, stride):
    """(begin, end, first scored) of each reading of a text."""
    start = 1
    while start < count:
        end = min(count, start + (context if start == 1 else stride))
        yield max(0, end - context - 1), end, start
        start = end


def loss_of(model, tokens, context, stride):
    total = 0
    for begin, end, first in windows(len(tokens), context, stride):
        total -= sum(log_probabilities(model, tokens[begin:end], first - begin))
    return total / (len(tokens) - 1)


class EvalTest(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory(prefix="atoll-eval-")
        self.addCleanup(self.kept.cleanup)
        self.folder = pathlib.Path(self.kept.name)
        self.programs = pathlib.Path(os.environ["ATOLL_TEST_BIN"])

    def eval(self, *arguments, code=0):
        done = subprocess.run([self.programs / "atoll-model", "eval", "--threads", "1", "--device", "cpu", *map(str, arguments)],
                              capture_output=True, text=True, timeout=120, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def tasks(self, *arguments):
        return [model["tasks"] for model in json.loads(self.eval("--json", *arguments))["models"]]

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def save(self, model, name, tokenizer=None):
        model.save_pretrained(self.folder / name)
        if tokenizer:
            tokenizer.save(str(self.folder / name / "tokenizer.json"))

    def families(self):
        settings = {"max_position_embeddings": CONTEXT}
        yield "gpt2", gpt2(n_positions=CONTEXT)
        yield "llama", llama(transformers.LlamaConfig, tie_word_embeddings=False, **settings)
        yield "qwen2", llama(transformers.Qwen2Config, **settings)
        yield "qwen3", llama(transformers.Qwen3Config, head_dim=32, **settings)

    def test_loss_of_every_family_is_that_of_transformers(self):
        text = (ROOT / "LICENSE").read_text()[:1500]
        self.write("text.txt", text)
        tokens = list(text.encode())
        for name, model in self.families():
            with self.subTest(name):
                self.save(model, name)
                for stride in (CONTEXT, 16):
                    (result,), = self.tasks("--model", name, "--tokenizer", "bytes", "--text", "text.txt", "--stride", stride)
                    expected = loss_of(model, tokens, CONTEXT, stride)
                    self.assertAlmostEqual(result["loss"], expected, delta=1e-4)
                    self.assertEqual(result["tokens"], len(tokens) - 1)
                    self.assertAlmostEqual(result["perplexity"], math.exp(expected), delta=1e-3 * math.exp(expected))
                    self.assertAlmostEqual(result["bits_per_byte"], expected / math.log(2), delta=2e-4)
                    self.assertIn("first token", result["notes"][0])

    def test_token_files_and_folders(self):
        model = gpt2(n_positions=CONTEXT)
        self.save(model, "model")
        text = (ROOT / "README.md").read_text()
        self.write("text.txt", text)
        subprocess.run([self.programs / "atoll-data", "tokenize", "--out", self.folder / "tokens", self.folder / "text.txt"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        held_out = list((self.folder / "tokens/val.bin").read_bytes()[1024::2])
        (folder, file), = self.tasks("--model", "model", "--data", "tokens", "--data", "tokens/val.bin")
        expected = loss_of(model, held_out, CONTEXT, CONTEXT)
        for result in folder, file:
            self.assertAlmostEqual(result["loss"], expected, delta=1e-4)
            self.assertEqual(result["tokens"], len(held_out) - 1)
        self.assertAlmostEqual(folder["bits_per_byte"], expected / math.log(2), delta=2e-4)
        self.assertNotIn("bits_per_byte", file)
        self.assertIn("bits per byte are unknown for tokens/val.bin", file["notes"][0])
        (part,), = self.tasks("--model", "model", "--data", "tokens/val.bin", "--limit-tokens", 100)
        self.assertAlmostEqual(part["loss"], loss_of(model, held_out[:100], CONTEXT, CONTEXT), delta=1e-4)

    def test_tokens_of_another_tokenizer_are_rejected(self):
        tokenizer = small_tokenizer()
        model = gpt2(n_positions=CONTEXT, vocab_size=VOCABULARY)
        self.save(model, "model", tokenizer)
        self.write("text.txt", (ROOT / "README.md").read_text())
        for name, arguments in (("bytes", []), ("bpe", ["--tokenizer", "model"])):
            subprocess.run([self.programs / "atoll-data", "tokenize", *arguments, "--out", name, "text.txt"], check=True, cwd=self.folder,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.tasks("--model", "model", "--data", "bpe")
        said = self.eval("--model", "model", "--data", "bytes", code=6)
        self.assertIn("bytes: its tokens are those of the tokenizer 'bytes', and model is measured with", said)
        said = self.eval("--model", "model", "--tokenizer", "bytes", "--data", "bpe", code=6)
        self.assertIn("model is measured with 'bytes'", said)
        warned = subprocess.run([self.programs / "atoll-model", "eval", "--model", "model", "--tokenizer", "bytes", "--text", "text.txt"],
                                capture_output=True, text=True, timeout=120, check=True, cwd=self.folder).stderr
        self.assertIn("the tokenizer in model is", warned)

    def test_questions_of_llm_c(self):
        model = gpt2(n_positions=CONTEXT)
        self.save(model, "model")
        generator = torch.Generator().manual_seed(3)
        questions, numbers = [], []
        for index in range(40):
            draw = lambda low, high: torch.randint(256, (int(torch.randint(low, high, (1,), generator=generator)),),
                                                   generator=generator).tolist()
            context, answers = draw(5, 80), [draw(1, 20) for _ in range(4)]
            questions.append((context, answers, index % 4))
            body = [index, index % 4, 4, len(context), *context]
            for answer in answers:
                body += [len(answer), *answer]
            numbers += [65535, 2 * (len(body) + 2), *body]
        header = struct.pack("<256i", 20240522, 1, len(questions), 1000, *[0] * 252)
        (self.folder / "choices.bin").write_bytes(header + struct.pack(f"<{len(numbers)}H", *numbers))
        right = mean = 0
        for context, answers, label in questions:
            scores = [log_probabilities(model, (context + answer)[-CONTEXT - 1:], len((context + answer)[-CONTEXT - 1:]) - len(answer))
                      for answer in answers]
            right += max(range(4), key=lambda i: sum(scores[i])) == label
            mean += max(range(4), key=lambda i: sum(scores[i]) / len(scores[i])) == label
        (result,), = self.tasks("--model", "model", "--choices", "choices.bin")
        self.assertEqual(result["questions"], 40)
        self.assertAlmostEqual(result["acc"], right / 40)
        self.assertAlmostEqual(result["acc_norm"], mean / 40)
        (result,), = self.tasks("--model", "model", "--choices", "choices.bin", "--limit", 7)
        self.assertEqual(result["questions"], 7)

    def test_models_beside_each_other(self):
        tokenizer = small_tokenizer()
        torch.manual_seed(1)
        self.save(gpt2(n_positions=CONTEXT, vocab_size=VOCABULARY), "one", tokenizer)
        self.save(llama(transformers.LlamaConfig, vocab_size=VOCABULARY), "two", tokenizer)
        self.write("text.txt", (ROOT / "LICENSE").read_text()[:800])
        self.write("anatomy_test.csv", "Where?,here,there,nowhere,everywhere,B\nWhen?,now,then,never,always,D\n")
        self.write("anatomy_dev.csv", "Why?,so,thus,hence,then,A\n")
        given = ["--model", "one", "--model", "two/", "--text", "text.txt", "--mmlu", "anatomy_test.csv", "--mmlu-examples",
                 "anatomy_dev.csv", "--shots", 1]
        together = self.tasks(*given)
        self.assertEqual(len(together), 2)
        for name, tasks in zip(("one", "two"), together):
            self.assertEqual(self.tasks(*[word for word in given[4:]], "--model", name), [tasks])
            self.assertEqual(tasks[1]["subjects"]["anatomy"]["acc"], tasks[1]["acc"])
        table = self.eval(*given).splitlines()
        self.assertEqual(table[0].split(), ["one", "two"])
        for row in ("loss", "perplexity", "bits per byte", "accuracy of letters", "accuracy of answers", "accuracy of answers by length"):
            self.assertTrue(any(line.startswith("  " + row + " ") for line in table), f"{row}: {table}")
        self.assertIn("anatomy_test.csv  (2 questions)", table)

    def test_says_what_is_wrong(self):
        model = gpt2(n_positions=CONTEXT)
        self.save(model, "model")
        self.write("text.txt", "some text")
        self.write("bad.jsonl", '{"ctx_a": 3}\n')
        self.assertIn("needs something to measure", self.eval("--model", "model", code=2))
        self.assertIn("text.txt cannot be turned into tokens: name the tokenizer's file", self.eval("--model", "model", "--text", "text.txt", code=2))
        self.assertIn('bad.jsonl, line 1: "activity_label" is missing', self.eval("--model", "model", "--hellaswag", "bad.jsonl", code=6))
        weights = (self.folder / "model/model.safetensors").read_bytes()
        (self.folder / "cut").mkdir()
        self.write("cut/config.json", (self.folder / "model/config.json").read_text())
        (self.folder / "cut/model.safetensors").write_bytes(weights[:-1])
        self.assertIn("cut/model.safetensors", self.eval("--model", "cut", "--tokenizer", "bytes", "--text", "text.txt", code=6))
        self.assertIn("absent.bin", self.eval("--model", "model", "--data", "absent.bin", code=6))
        self.assertIn("absent", self.eval("--model", "absent", "--text", "text.txt", code=6))
        self.assertIn("--stride 65: model sees 64 tokens", self.eval("--model", "model", "--tokenizer", "bytes", "--text", "text.txt", "--stride", 65, code=2))
        self.assertIn("--mmlu-examples", self.eval("--model", "model", "--mmlu", "bad.jsonl", "--shots", 2, code=2))
        self.assertIn("--admin", self.eval("--version", 3, "--coordinator", "127.0.0.1:1", "--data", "tokens", code=2))
        self.write("wide.txt", "\u00e9\u00e9\u00e9")
        small = gpt2(n_positions=CONTEXT, vocab_size=100)
        self.save(small, "small")
        self.assertIn("outside the model's vocabulary of 100", self.eval("--model", "small", "--tokenizer", "bytes", "--text", "wide.txt", code=2))


if __name__ == "__main__":
    unittest.main()
