"""The logits of models that transformers loads from folders, and everything that it says while it loads them.

    pretrained_logits.py OPTIONS.json RESULT.json

OPTIONS.json: {"cases": [case...]}, with in each case
  folder   of the model
  tokens   [token...]
  logits   file to write: float32 [tokens, vocabulary]. The model computes in float32, whatever the folder holds

RESULT.json: [{"class": name of the model's class, "complaints": [text...]}...]
"""
import json
import pathlib
import sys

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from hf_models import Complaints  # noqa: E402  from the folder above


def look_at(case):
    with Complaints() as complaints:
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            case["folder"], output_loading_info=True, dtype=torch.float32, attn_implementation="eager")
    said = complaints.said + [f"{key}: {names}" for key, names in report.items() if names]
    with torch.no_grad():
        logits = model.eval()(torch.tensor([case["tokens"]])).logits[0]
    logits.numpy().astype("<f4").tofile(case["logits"])
    return {"class": type(model).__name__, "complaints": said}


def main():
    torch.set_num_threads(1)
    with open(sys.argv[1]) as file:
        cases = json.load(file)["cases"]
    result = [look_at(case) for case in cases]
    with open(sys.argv[2], "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
