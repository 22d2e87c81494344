"""Hugging Face's Trainer that waits for a coordinator. Usage: waiting_trainer.py ADDRESS STATE_DIR

Prints a line for each optimizer step, and what a program does after training.
"""
import sys

import transformers

import atoll
import atoll.transformers
from test_interop import sentences, tiny_gpt2


class Told(transformers.TrainerCallback):
    def on_optimizer_step(self, *_, **__):
        print("stepped", flush=True)


def main():
    address, state_dir = sys.argv[1:]
    callback = atoll.transformers.AtollCallback(address, name="w0", state_dir=state_dir, progress=False)
    arguments = transformers.TrainingArguments(output_dir=f"{state_dir}-trainer", max_steps=1000, report_to=[], save_strategy="no", use_cpu=True,
                                               disable_tqdm=True)
    transformers.Trainer(tiny_gpt2(), arguments, train_dataset=sentences(), callbacks=[callback, Told()]).train()
    print("trained", flush=True)
    atoll.pull(address)


if __name__ == "__main__":
    main()
