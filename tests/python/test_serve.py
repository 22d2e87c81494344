"""atoll-model serve: its answers against Hugging Face's transformers, its bounds, and what it says to wrong requests."""
import concurrent.futures
import pathlib
import socket
import tempfile
import unittest

import torch
import transformers

from hf_models import gpt2, llama
from served_model import ServedModel
from small_tokenizer import VOCABULARY, small_tokenizer

CONTEXT = 64


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory(prefix="atoll-serve-")
        cls.addClassCleanup(cls.kept.cleanup)
        cls.folder = pathlib.Path(cls.kept.name)
        cls.tokenizer = small_tokenizer()
        cls.model = gpt2(n_positions=CONTEXT, vocab_size=VOCABULARY)
        cls.model.save_pretrained(cls.folder / "model")
        cls.tokenizer.save(str(cls.folder / "model/tokenizer.json"))
        cls.served = ServedModel("--model", "model", cwd=cls.folder)
        cls.addClassCleanup(cls.served.stop)

    def table(self, model, tokens):
        with torch.no_grad():
            return torch.log_softmax(model(torch.tensor([tokens])).logits[0].float(), -1)

    def check_scores(self, model, prompt, choice, ranked):
        """An echo of `prompt` and one greedy token."""
        table = self.table(model, prompt)
        drawn = int(table[-1].argmax())
        tokens = prompt + [drawn]
        scores, likeliest = choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"]
        self.assertEqual(len(scores), len(tokens))
        self.assertIsNone(scores[0])
        self.assertIsNone(likeliest[0])
        for at in range(1, len(tokens)):
            self.assertAlmostEqual(scores[at], table[at - 1, tokens[at]].item(), delta=1e-4)
            self.assertAlmostEqual(max(likeliest[at].values()), table[at - 1].max().item(), delta=1e-4)
            self.assertIn(scores[at], likeliest[at].values(), "the token itself is among them, with the same bits")
            self.assertLessEqual(len(likeliest[at]), ranked + 1)
        return drawn

    def test_scores_of_every_family_are_those_of_transformers(self):
        families = [("gpt2", gpt2(n_positions=CONTEXT)), ("llama", llama(transformers.LlamaConfig)),
                    ("qwen2", llama(transformers.Qwen2Config)), ("qwen3", llama(transformers.Qwen3Config, head_dim=32))]
        prompts = [[5], list(range(7, 40)), [200, 3, 200, 9, 9], [1] * CONTEXT]
        for name, model in families:
            with self.subTest(name):
                model.save_pretrained(self.folder / name)
                with ServedModel("--model", self.folder / name) as served:
                    self.assertEqual(served.model, name)
                    reply = served.complete(model=name, prompt=prompts, max_tokens=1, temperature=0, logprobs=2, echo=True)
                    self.assertEqual([choice["index"] for choice in reply["choices"]], [0, 1, 2, 3])
                    for prompt, choice in zip(prompts, reply["choices"]):
                        drawn = self.check_scores(model, prompt, choice, 2)
                        self.assertEqual(choice["text"], "", "there is no tokenizer")
                        self.assertEqual(choice["logprobs"]["tokens"], [f"token_id:{token}" for token in prompt + [drawn]])
                    code, logged = served.stop()
                    self.assertEqual(code, 0)
                    self.assertIn("prompts must be token numbers", logged)

    def test_writes_text_as_transformers_does(self):
        prompt = "The coordinator holds"
        tokens = self.tokenizer.encode(prompt).ids
        with torch.no_grad():
            text = self.model.generate(torch.tensor([tokens]), max_new_tokens=30, do_sample=False, pad_token_id=0)[0].tolist()
        reply = self.served.complete(model="model", prompt=prompt, max_tokens=30, temperature=0, logprobs=1)
        choice = reply["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(reply["usage"], {"prompt_tokens": len(tokens), "completion_tokens": 30, "total_tokens": len(tokens) + 30})
        written = self.tokenizer.decode(text[len(tokens):], skip_special_tokens=False)
        self.assertEqual(choice["text"].encode(errors="replace").decode(), written)
        table = self.table(self.model, text[:-1])
        for at, score in enumerate(choice["logprobs"]["token_logprobs"]):
            self.assertAlmostEqual(score, table[len(tokens) + at - 1, text[len(tokens) + at]].item(), delta=1e-4)
        self.assertEqual(self.served.complete(prompt=prompt, max_tokens=30, temperature=0, echo=True)["choices"][0]["text"], prompt + choice["text"])
        self.assertEqual(self.served.complete(prompt=[tokens, prompt], max_tokens=30, temperature=0)["choices"][1]["text"], choice["text"])

    def test_scores_without_drawing(self):
        tokens = list(range(20, 20 + CONTEXT + 1))
        choice = self.served.complete(prompt=tokens, max_tokens=0, logprobs=0, echo=True)["choices"][0]
        table = self.table(self.model, tokens[:-1])
        for at in range(1, len(tokens)):
            self.assertAlmostEqual(choice["logprobs"]["token_logprobs"][at], table[at - 1, tokens[at]].item(), delta=1e-4)
            self.assertEqual(len(choice["logprobs"]["top_logprobs"][at]), 1)
        offsets = choice["logprobs"]["text_offset"]
        self.assertEqual(offsets, sorted(offsets))

    def test_draws_as_its_seed_says(self):
        given = {"prompt": "The ", "max_tokens": 30, "top_p": 0.9}
        drawn = self.served.complete(seed=5, **given)["choices"][0]["text"]
        self.assertEqual(drawn, self.served.complete(seed=5, **given)["choices"][0]["text"])
        self.assertNotEqual(drawn, self.served.complete(seed=6, **given)["choices"][0]["text"])
        self.assertNotEqual(self.served.complete(**given)["choices"][0]["text"], self.served.complete(**given)["choices"][0]["text"])
        two = self.served.complete(seed=5, **{**given, "prompt": ["The ", "The "]})["choices"]
        self.assertNotEqual(two[0]["text"], two[1]["text"])

    def test_ends_at_a_text_or_token_that_ends_it(self):
        whole = self.served.complete(prompt="The run", max_tokens=40, temperature=0)["choices"][0]["text"]
        stop = next(letter for letter in whole[8:] if letter.isascii() and letter.isalnum())
        cut = self.served.complete(prompt="The run", max_tokens=40, temperature=0, stop=[stop, "never that"])["choices"][0]
        self.assertEqual(cut["text"], whole[:whole.index(stop)])
        self.assertEqual(cut["finish_reason"], "stop")
        tokens = self.tokenizer.encode("The run").ids
        with torch.no_grad():
            drawn = self.model.generate(torch.tensor([tokens]), max_new_tokens=10, do_sample=False, pad_token_id=0)[0].tolist()[len(tokens):]
        self.model.generation_config.eos_token_id = drawn[4]
        self.model.save_pretrained(self.folder / "ends")
        self.model.generation_config.eos_token_id = None
        first = drawn.index(drawn[4])
        with ServedModel("--model", self.folder / "ends") as served:
            choice = served.complete(prompt=tokens, max_tokens=10, temperature=0, logprobs=1)["choices"][0]
            self.assertEqual(choice["finish_reason"], "stop")
            self.assertEqual(choice["logprobs"]["tokens"], [f"token_id:{token}" for token in drawn[:first + 1]])

    def test_models_and_health(self):
        self.assertEqual(self.served.ask("/healthz"), (200, "ok\n"))
        status, models = self.served.ask("/v1/models")
        self.assertEqual((status, [model["id"] for model in models["data"]]), (200, ["model"]))
        self.assertEqual(self.served.ask("/v1/models/model")[1]["max_model_len"], CONTEXT)

    def test_says_what_is_wrong_as_the_api_does(self):
        for status, path, body, more, words in [
                (404, "/v1/completions", {"model": "gpt-4", "prompt": "a"}, {}, "the model 'gpt-4' does not exist"),
                (400, "/v1/completions", {"prompt": "a", "stream": True}, {}, "'stream' must be false"),
                (400, "/v1/completions", {"prompt": "a b c d e f", "max_tokens": 63}, {}, "the model sees 64 at once"),
                (400, "/v1/completions", {"prompt": [VOCABULARY]}, {}, "holds token 400"),
                (400, "/v1/completions", b"{", {}, "the body"),
                (400, "/v1/completions", {"prompt": "a"}, {"headers": {"Content-Type": "text/plain"}}, "Content-Type: application/json"),
                (403, "/v1/completions", {"prompt": "a"}, {"headers": {"Origin": "http://evil.example"}}, "web pages may not call"),
                (405, "/v1/completions", None, {}, "takes POST only"),
                (405, "/v1/models", {}, {}, "takes GET only"),
                (404, "/v1/chat/completions", {"messages": []}, {}, "unknown path")]:
            with self.subTest(words):
                found, reply = self.served.ask(path, body, **more)
                self.assertEqual(found, status, reply)
                self.assertIn(words, reply["error"]["message"])
                self.assertEqual(reply["error"]["type"], "invalid_request_error")
        self.assertEqual(self.served.ask("/v1/completions", {"prompt": 3})[1]["error"]["param"], "prompt")
        self.assertEqual(self.served.ask("/v1/completions", {"model": "x", "prompt": "a"})[1]["error"]["code"], "model_not_found")
        large = b'{"prompt": "' + b"a" * (9 << 20) + b'"}'
        status, reply = self.served.ask("/v1/completions", large)
        self.assertEqual((status, sorted(reply["error"])), (413, ["code", "message", "param", "type"]))
        self.assertEqual(self.served.ask("/healthz")[0], 200)

    def test_needs_its_key_where_it_has_one(self):
        (self.folder / "key").write_text("secret-1\n")
        with ServedModel("--model", "model", "--api-key-file", "key", cwd=self.folder) as served:
            for headers in ({}, {"Authorization": "Bearer secret-2"}, {"Authorization": "secret-1"}):
                for path, body in (("/v1/models", None), ("/v1/completions", {"prompt": "a"})):
                    status, reply = served.ask(path, body, headers=headers)
                    self.assertEqual((status, reply["error"]["code"]), (401, "invalid_api_key"))
            self.assertEqual(served.ask("/v1/models", headers={"Authorization": "Bearer secret-1"})[0], 200)
            self.assertEqual(served.ask("/healthz")[0], 200)

    def test_bounds_time_and_waiting_requests(self):
        with ServedModel("--model", "model", "--timeout", "0.001", "--max-waiting", "1", cwd=self.folder) as served:
            status, reply = served.ask("/v1/completions", {"prompt": ["a"] * 100, "max_tokens": 60})
            self.assertEqual((status, reply["error"]["type"]), (504, "server_error"))
            self.assertIn("--timeout", reply["error"]["message"])
        with ServedModel("--model", "model", "--max-waiting", "1", cwd=self.folder) as served:
            body = {"prompt": ["a"] * 128, "max_tokens": 60}
            with concurrent.futures.ThreadPoolExecutor(8) as callers:
                statuses = [done.result()[0] for done in [callers.submit(served.ask, "/v1/completions", body) for _ in range(8)]]
            self.assertIn(200, statuses)
            self.assertLessEqual(set(statuses), {200, 503})
            self.assertEqual(served.stop()[0], 0)

    def test_stops_while_it_works(self):
        with ServedModel("--model", "model", cwd=self.folder) as served:
            silent = socket.create_connection(served.url.removeprefix("http://").split(":"))
            self.addCleanup(silent.close)
            with concurrent.futures.ThreadPoolExecutor(2) as callers:
                asked = [callers.submit(served.ask, "/v1/completions", {"prompt": ["a"] * 128, "max_tokens": 60}) for _ in range(2)]
                code, logged = served.stop()
                self.assertEqual(code, 0, logged)
                for done in asked:
                    try:
                        self.assertIn(done.result()[0], (200, 503))
                    except OSError:
                        pass  # it was not connected yet, or not answered any more

    def test_says_what_it_needs(self):
        for arguments, words in [(("--model", "absent"), "absent"),
                                 (("--model", "model", "--api-key-file", "absent"), "absent"),
                                 (("--model", "model", "--tokenizer", "absent"), "there is no file 'absent'")]:
            with self.subTest(words), self.assertRaisesRegex(AssertionError, words):
                ServedModel(*arguments, cwd=self.folder)
        with self.assertRaisesRegex(AssertionError, "--insecure-bind"):
            ServedModel("--model", "model", listen="0.0.0.0:0", cwd=self.folder)


if __name__ == "__main__":
    unittest.main()
