"""One rank of Hugging Face's Trainer, over gloo. Usage: trainer_rank.py RANK FILE_STORE ADDRESS STATE_DIR OUT SPLIT_BATCHES DISPATCH_BATCHES

Writes the samples that it has trained on to OUT.RANK.
"""
import json
import os
import sys

import torch
import torch.distributed
import transformers

import atoll.transformers
from test_interop import Numbered, record_training, tiny_gpt2


def main():
    rank, store, address, state_dir, out, split, dispatch = sys.argv[1:]
    # What torchrun sets. The store needs no port, and accelerate takes the group that is there.
    os.environ.update({"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": "0"})
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
    model = tiny_gpt2()
    trained = record_training(model)
    callback = atoll.transformers.AtollCallback(address, name="w0", state_dir=state_dir, progress=False)
    arguments = transformers.TrainingArguments(
        output_dir=f"{out}-trainer", per_device_train_batch_size=4 if split == "True" else 2, max_steps=1000, report_to=[], save_strategy="no",
        use_cpu=True, ddp_backend="gloo", disable_tqdm=True, accelerator_config={"split_batches": split == "True",
                                                                                 "dispatch_batches": dispatch == "True"})
    transformers.Trainer(model, arguments, train_dataset=Numbered(128), callbacks=[callback]).train()
    with open(f"{out}.{rank}", "w") as file:
        json.dump({"end": callback.run.end_reason.name, "trained": trained, "seed": int(callback.run.config["config"]["run"]["seed"])}, file)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
