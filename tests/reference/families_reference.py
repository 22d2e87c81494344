"""Trains models of Hugging Face's transformers, with no code of ours: what Atoll's models are compared with.

    families_reference.py OPTIONS.json RESULT.json

OPTIONS.json: {"cases": [case...]}, with in each case
  config         what the model's config.json has, with model_type
  context        tokens that the model sees at once
  initial        file of the parameters: float32, in the model's order, without gaps
  end_of_text    the token that ends a document, none of which sees another; negative: each sequence is one text
  tokens         file of int64 [batches, sequences, context + 1]; step n trains on batch n modulo batches
  gradients      file to write: those of the first step, as `initial`
  steps, learning_rate, beta1, beta2, epsilon, weight_decay (on matrices only), clip_norm

RESULT.json: [{"tensors": [[name, shape]...], "losses": [before step 0, before step 1, ...]}...]
"""

import json
import sys

import numpy as np
import torch
import transformers


def make_model(case):
    config = transformers.AutoConfig.for_model(**case["config"])
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().train()
    values = torch.from_numpy(np.fromfile(case["initial"], dtype="<f4"))
    sizes = [parameter.numel() for parameter in model.parameters()]
    with torch.no_grad():
        for parameter, part in zip(model.parameters(), values.split(sizes), strict=True):
            parameter.copy_(part.view_as(parameter))
    return model


def documents_of(inputs, end_of_text):
    """position_ids, and a 4-D mask that is added to the attention: each document sees itself only."""
    batch, time = inputs.shape
    positions, mask = torch.zeros_like(inputs), torch.full((batch, 1, time, time), torch.finfo(torch.float32).min)
    for row in range(batch):
        begin = 0
        for at in range(time):
            positions[row, at] = at - begin
            mask[row, 0, at, begin:at + 1] = 0
            if inputs[row, at] == end_of_text:
                begin = at + 1
    return positions, mask


def loss_of(model, window, end_of_text):
    inputs, targets = window[:, :-1], window[:, 1:].clone()
    if end_of_text < 0:
        logits = model(input_ids=inputs, use_cache=False).logits
    else:
        positions, mask = documents_of(inputs, end_of_text)
        logits = model(input_ids=inputs, position_ids=positions, attention_mask=mask, use_cache=False).logits
        targets[inputs == end_of_text] = -100
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(case):
    model = make_model(case)
    batches = torch.from_numpy(np.fromfile(case["tokens"], dtype="<i8")).view(-1, case["sequences"], case["context"] + 1)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": case["weight_decay"]}, {"params": vectors, "weight_decay": 0}],
        lr=case["learning_rate"], betas=(case["beta1"], case["beta2"]), eps=case["epsilon"])
    losses = []
    for step in range(case["steps"]):
        window = batches[step % len(batches)]
        loss = loss_of(model, window, case.get("end_of_text", -1))
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            torch.cat([p.grad.flatten() for p in model.parameters()]).numpy().astype("<f4").tofile(case["gradients"])
        torch.nn.utils.clip_grad_norm_(model.parameters(), case["clip_norm"])
        optimizer.step()
    return {"tensors": [[name, list(p.shape)] for name, p in model.named_parameters()], "losses": losses}


def main():
    torch.set_num_threads(1)
    with open(sys.argv[1]) as file:
        cases = json.load(file)["cases"]
    result = [train(case) for case in cases]
    with open(sys.argv[2], "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
