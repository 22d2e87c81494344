"""lm-evaluation-harness, as it is in the registry: with its `hf` backend on a folder, with `local-completions` through atoll-model serve,
and beside atoll-model eval. All of them measure the same questions and texts from local files.
"""
import csv
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import unittest

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")

import lm_eval  # noqa: E402  after its settings
import lm_eval.tasks  # noqa: E402
import transformers  # noqa: E402

from fixture import ROOT  # noqa: E402
from hf_models import gpt2, llama  # noqa: E402
from served_model import ServedModel  # noqa: E402
from small_tokenizer import END, VOCABULARY, small_tokenizer  # noqa: E402

CONTEXT, QUESTIONS, SHOTS = 384, 24, 2
OWN_TASKS = pathlib.Path(lm_eval.__file__).parent / "tasks"

# The harness's own tasks, with files of ours for their data.
TASKS = """
task: atoll_hellaswag
include: {own}/hellaswag/hellaswag.yaml
dataset_path: json
dataset_kwargs: {{data_files: {{validation: {data}/hellaswag.jsonl}}}}
training_split: null
---
task: atoll_hellaswag_long
include: {own}/hellaswag/hellaswag.yaml
dataset_path: json
dataset_kwargs: {{data_files: {{validation: {data}/long.jsonl}}}}
training_split: null
---
task: atoll_mmlu
include: {own}/mmlu/default/_default_template_yaml
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}/world_history.jsonl, dev: {data}/examples.jsonl}}}}
description: "The following are multiple choice questions (with answers) about world history.\\n\\n"
---
task: atoll_mmlu_answers
include: {own}/mmlu/continuation/_continuation_template_yaml
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}/world_history.jsonl, dev: {data}/examples.jsonl}}}}
description: "The following are questions (with answers) about world history.\\n\\n"
---
task: atoll_text
output_type: loglikelihood_rolling
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}/text.jsonl}}}}
test_split: test
doc_to_text: ""
doc_to_target: "{{{{text}}}}"
metric_list: [{{metric: bits_per_byte}}]
"""


def sentences():
    text = (ROOT / "docs/concepts.md").read_text() + (ROOT / "docs/internals/architecture.md").read_text()
    return [" ".join(part.split()) for part in re.findall(r"[A-Z][^.|`#]{30,160}\.", text)]


class HarnessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory(prefix="atoll-harness-")
        cls.addClassCleanup(cls.kept.cleanup)
        cls.folder = pathlib.Path(cls.kept.name)
        os.environ["HF_HOME"] = str(cls.folder / "home")
        cls.random = random.Random(4)
        cls.sentences = sentences()
        cls.write_questions()
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=small_tokenizer(), eos_token=END)
        for name, model in (("gpt2", gpt2(n_positions=CONTEXT, vocab_size=VOCABULARY, eos_token_id=0)),
                            ("llama", llama(transformers.LlamaConfig, max_position_embeddings=CONTEXT, vocab_size=VOCABULARY, eos_token_id=0))):
            model.save_pretrained(cls.folder / name)
            tokenizer.save_pretrained(cls.folder / name)
        tasks = cls.folder / "tasks"
        tasks.mkdir()
        for number, task in enumerate(TASKS.format(own=OWN_TASKS, data=cls.folder).split("---")):
            (tasks / f"{number}.yaml").write_text(task)
        cls.manager = lm_eval.tasks.TaskManager(include_path=str(tasks), include_defaults=False)

    @classmethod
    def write_lines(cls, name, rows):
        (cls.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    @classmethod
    def write_questions(cls):
        pick = lambda: cls.random.choice(cls.sentences)  # noqa: E731
        swag = lambda context: {"activity_label": "Reading the docs", "ctx_a": context, "ctx_b": "the Reader",  # noqa: E731
                                "endings": [cls.random.choice(["", "[step] ", " [title] "]) + pick() for _ in range(4)],
                                "label": str(cls.random.randrange(4))}
        cls.write_lines("hellaswag.jsonl", [swag(pick()) for _ in range(QUESTIONS)])
        cls.write_lines("long.jsonl", [swag(" ".join(pick() for _ in range(25))) for _ in range(6)])
        mmlu = lambda: {"subject": "world_history", "question": pick() + " ", "choices": [pick()[:40] for _ in range(4)],  # noqa: E731
                        "answer": cls.random.randrange(4)}
        questions = [mmlu() for _ in range(QUESTIONS)]
        cls.write_lines("world_history.jsonl", questions)
        examples = [{**mmlu(), "question": "Who?", "choices": ["I", "you", "he", "we"]} for _ in range(SHOTS)]
        cls.write_lines("examples.jsonl", examples)
        with open(cls.folder / "world_history_test.csv", "w", newline="") as file:
            csv.writer(file).writerows([[q["question"], *q["choices"], "ABCD"[q["answer"]]] for q in questions])
        text = (ROOT / "LICENSE").read_text()[:4000]
        (cls.folder / "text.txt").write_text(text)
        cls.write_lines("text.jsonl", [{"text": text}])

    def harness(self, model, arguments, tasks, shots=0):
        """Results and samples by task."""
        found = lm_eval.simple_evaluate(model=model, model_args=arguments, tasks=tasks, num_fewshot=shots, batch_size=8, task_manager=self.manager,
                                        bootstrap_iters=0, log_samples=True, random_seed=1, device="cpu" if model == "hf" else None)
        return found["results"], found["samples"]

    def hf(self, name, tasks, shots=0):
        return self.harness("hf", f"pretrained={self.folder / name},dtype=float32,max_length={CONTEXT}", tasks, shots)

    def eval(self, name, *arguments):
        done = subprocess.run([pathlib.Path(os.environ["ATOLL_TEST_BIN"]) / "atoll-model", "eval", "--json", "--threads", "1", "--device", "cpu",
                               "--model", name, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["models"][0]["tasks"]

    def test_eval_has_the_scores_of_the_hf_backend(self):
        for name in ("gpt2", "llama"):
            with self.subTest(name):
                theirs, _ = self.hf(name, ["atoll_hellaswag", "atoll_hellaswag_long", "atoll_text"])
                theirs.update(self.hf(name, ["atoll_mmlu", "atoll_mmlu_answers"], shots=SHOTS)[0])
                text, swag, long, mmlu, table = self.eval(
                    name, "--text", "text.txt", "--hellaswag", "hellaswag.jsonl", "--hellaswag", "long.jsonl", "--mmlu", "world_history.jsonl",
                    "--mmlu", "world_history_test.csv", "--mmlu-examples", "examples.jsonl", "--shots", SHOTS)
                for ours, task in ((swag, "atoll_hellaswag"), (long, "atoll_hellaswag_long")):
                    for key in ("acc", "acc_norm"):
                        self.assertAlmostEqual(ours[key], theirs[task][key + ",none"], msg=f"{task} {key}")
                for ours in (mmlu, table):
                    self.assertAlmostEqual(ours["acc"], theirs["atoll_mmlu"]["acc,none"])
                    self.assertAlmostEqual(ours["answers_acc"], theirs["atoll_mmlu_answers"]["acc,none"])
                    self.assertAlmostEqual(ours["answers_acc_norm"], theirs["atoll_mmlu_answers"]["acc_norm,none"])
                self.assertAlmostEqual(text["bits_per_byte"], theirs["atoll_text"]["bits_per_byte,none"], delta=1e-4)
                self.assertGreater(len({swag["acc"], swag["acc_norm"], mmlu["acc"], mmlu["answers_acc"]}), 1, "one number shows little")

    def test_the_harness_gets_the_same_through_serve(self):
        tasks = ["atoll_hellaswag", "atoll_mmlu", "atoll_mmlu_answers"]
        for name in ("gpt2", "llama"):
            with self.subTest(name), ServedModel("--model", name, cwd=self.folder) as served:
                theirs, samples = self.hf(name, tasks)
                arguments = (f"model={name},base_url={served.url}/v1/completions,tokenizer={self.folder / name},max_length={CONTEXT + 1},"
                             "num_concurrent=2,max_retries=1")
                ours, answers = self.harness("local-completions", arguments, tasks)
                for task in tasks:
                    for key, value in theirs[task].items():
                        if key.startswith("acc"):
                            self.assertAlmostEqual(ours[task][key], value, msg=f"{task} {key}")
                    self.compare_answers(samples[task], answers[task])
                self.assertEqual(served.stop()[0], 0)

    def compare_answers(self, expected, found):
        by_question = lambda samples: {sample["doc_id"]: sample["filtered_resps"] for sample in samples}  # noqa: E731
        expected, found = by_question(expected), by_question(found)
        self.assertEqual(set(expected), set(found))
        self.assertEqual(len(expected), QUESTIONS)
        for question, answers in expected.items():
            for (theirs, greedy), (ours, also) in zip(answers, found[question], strict=True):
                self.assertAlmostEqual(float(ours), float(theirs), delta=1e-3)
                self.assertEqual(str(also), str(greedy))

    def test_text_through_serve(self):
        (self.folder / "short.txt").write_text((self.folder / "text.txt").read_text()[:300])
        self.write_lines("text.jsonl", [{"text": (self.folder / "short.txt").read_text()}])
        self.addCleanup(self.write_questions)
        with ServedModel("--model", "gpt2", cwd=self.folder) as served:
            arguments = f"model=gpt2,base_url={served.url}/v1/completions,tokenizer={self.folder / 'gpt2'},max_length={CONTEXT + 1}"
            ours, _ = self.harness("local-completions", arguments, ["atoll_text"])
            (text,) = self.eval("gpt2", "--text", "short.txt")
            self.assertAlmostEqual(ours["atoll_text"]["bits_per_byte,none"], text["bits_per_byte"], delta=1e-4)


if __name__ == "__main__":
    unittest.main()
