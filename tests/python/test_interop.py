"""The real Trainer of Hugging Face and of Lightning."""
import signal
import unittest
import warnings

import lightning
import torch
import transformers

import atoll
import atoll.lightning
import atoll.transformers
from fixture import RunTest, wait_for


def tiny_gpt2():
    torch.manual_seed(3)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=1, n_head=2,
                                                                bos_token_id=0, eos_token_id=0))


def sentences(count=24):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 50, (count, 16), generator=generator)
    return [{"input_ids": row, "labels": row} for row in ids]


class Numbered(torch.utils.data.Dataset):
    """Samples that say which they are. `fails_at`: raises when that many have been read."""

    def __init__(self, count, fails_at=None):
        self.count, self.fails_at, self.read = count, fails_at, 0

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        self.read += 1
        if self.read == self.fails_at:
            raise ZeroDivisionError
        row = torch.tensor([index // 50, index % 50] + 14 * [0])
        return {"input_ids": row, "labels": row}


class TransformersTest(RunTest):
    def trainer(self, hub, model, name="w0", max_steps=1000, data=None, callbacks=(), **more):
        self.callback = atoll.transformers.AtollCallback(hub.data, **self.options(name))
        arguments = transformers.TrainingArguments(**{
            "output_dir": str(self.folder / "out"), "per_device_train_batch_size": 4, "max_steps": max_steps, "report_to": [],
            "save_strategy": "no", "use_cpu": True, "disable_tqdm": True, **more})
        return transformers.Trainer(model, arguments, train_dataset=data or sentences(), callbacks=[self.callback, *callbacks])

    def test_the_trainer_stops_with_the_run(self):
        hub = self.coordinator(rounds=3, steps=4, batch=8, learning_rate=0.01, model={"external": {"context": 16}})
        trainer = self.trainer(hub, tiny_gpt2(), gradient_accumulation_steps=2)
        trainer.train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(trainer.state.global_step, 12)
        self.assertEqual(hub.contributors(), {1: ["w0"], 2: ["w0"], 3: ["w0"]})
        names = sorted(atoll.pull(hub.data))
        self.assertIn("transformer.wte.weight", names)
        self.assertNotIn("lm_head.weight", names)  # tied
        self.assertEqual(hub.tokens(), 12 * 8 * 16)

    def test_the_trainer_ends_first_and_comes_back(self):
        hub = self.coordinator(rounds=3, steps=4, batch=4, learning_rate=0.01, model={"external": {"context": 16}})
        self.trainer(hub, tiny_gpt2(), max_steps=6).train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.DRAINED)
        wait_for(lambda: hub.head() == 2, "the pushed steps to be merged")
        trainer = self.trainer(hub, tiny_gpt2())
        trainer.train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(self.callback.run.samples, 4 * (6 + trainer.state.global_step))

    def test_the_trainer_reads_its_part_of_shared_data(self):
        hub = self.coordinator(rounds=2, steps=2, batch=4, learning_rate=0.01, data={"mode": "shared", "partitions": 2},
                               model={"external": {"context": 16}})
        seen = []
        model = tiny_gpt2()
        model.register_forward_pre_hook(lambda _, __, keywords: seen.append(keywords["input_ids"].tolist()), with_kwargs=True)
        trainer = self.trainer(hub, model)
        trainer.train()
        from atoll.data_order import PartitionSampler
        run = self.callback.run
        order = iter(PartitionSampler(24, int(run.config["config"]["run"]["seed"]), 0, 2, 0))
        expected = [[sentences()[next(order)]["input_ids"].tolist() for _ in range(4)] for _ in range(2)]
        self.assertEqual(seen[:2], expected)

    def test_an_exception_leaves_without_a_push(self):
        """Wherever it comes from; and the same Trainer can train again."""
        hub = self.coordinator(rounds=3, steps=4, batch=4, learning_rate=0.01, model={"external": {"context": 16}})
        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

        class Raises(transformers.TrainerCallback):
            at = ""

            def on_substep_end(self, *_, **__):
                if self.at == "substep":
                    raise KeyError("substep")

            def on_train_end(self, *_, **__):
                if self.at == "end":
                    raise KeyError("end")

        other = Raises()
        data = Numbered(24, fails_at=14)
        trainer = self.trainer(hub, tiny_gpt2(), data=data, max_steps=2, gradient_accumulation_steps=2, per_device_train_batch_size=2)
        trainer.callback_handler.callbacks.insert(0, other)
        for at, failure in (("", ZeroDivisionError), ("substep", KeyError), ("end", KeyError)):
            other.at = at
            trainer.args.max_steps = 1 if at == "end" else 1000
            with self.assertRaises(failure):
                trainer.train()
            self.assertFalse(self.callback.run.running, at)
            self.assertEqual((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)), before)
            self.assertEqual(len(trainer.model._forward_pre_hooks), 0)
            self.assertNotIn("step", vars(trainer.optimizer.optimizer))
            self.assertEqual(hub.head(), 0)
        other.at, trainer.args.max_steps = "", 1000
        trainer.train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(hub.contributors(), {1: ["w0"], 2: ["w0"], 3: ["w0"]})

    def test_a_trainer_with_a_loop_of_its_own_is_warned_about(self):
        hub = self.coordinator(rounds=2, steps=2, batch=4, learning_rate=0.01, model={"external": {"context": 16}})
        trainer = self.trainer(hub, tiny_gpt2())
        guarded = transformers.Trainer._inner_training_loop

        class Own(transformers.Trainer):
            _inner_training_loop = guarded.__wrapped__

        trainer.__class__ = Own
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            trainer.train()
        self.assertTrue([one for one in caught if "this Trainer has a training loop of its own" in str(one.message)])
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)


class Tiny(lightning.LightningModule):
    def __init__(self, fails_at=-1):
        super().__init__()
        torch.manual_seed(2)
        self.layer = torch.nn.Linear(4, 1)
        self.fails_at = fails_at

    def training_step(self, batch, index):
        if index == self.fails_at:
            raise ZeroDivisionError
        inputs, targets = batch
        return (self.layer(inputs) - targets).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class LightningTest(RunTest):
    def fit(self, hub, module, **more):
        from test_run import loader
        self.callback = atoll.lightning.AtollCallback(hub.data, **self.options())
        trainer = lightning.Trainer(max_epochs=more.pop("max_epochs", -1), logger=False, enable_checkpointing=False, accelerator="cpu",
                                    enable_progress_bar=False, enable_model_summary=False, callbacks=[self.callback], **more)
        trainer.fit(module, loader())
        return trainer

    def test_the_trainer_stops_with_the_run(self):
        hub = self.coordinator(rounds=3, steps=4)
        trainer = self.fit(hub, Tiny())
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(trainer.global_step, 12)
        self.assertEqual(hub.contributors(), {1: ["w0"], 2: ["w0"], 3: ["w0"]})
        self.assertEqual(hub.tokens(), 36)

    def test_accumulation_and_clipping(self):
        hub = self.coordinator(rounds=2, steps=3, batch=6)
        trainer = self.fit(hub, Tiny(), accumulate_grad_batches=2, gradient_clip_val=0.5)
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(trainer.global_step, 6)

    def test_the_trainer_ends_first(self):
        hub = self.coordinator(rounds=5, steps=6)
        self.fit(hub, Tiny(), max_epochs=2)
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.DRAINED)
        wait_for(lambda: hub.head() == 2, "the pushed steps to be merged")

    def test_an_exception_leaves_without_a_push(self):
        hub = self.coordinator(rounds=3, steps=4)
        with self.assertRaises(ZeroDivisionError):
            self.fit(hub, Tiny(fails_at=2))
        self.assertEqual(hub.head(), 0)

    def test_a_run_that_is_over(self):
        hub = self.coordinator(rounds=1, steps=1)
        self.fit(hub, Tiny())
        trainer = self.fit(hub, Tiny())
        self.assertEqual(trainer.global_step, 0)


class StatefulTest(RunTest):
    def test_a_stateful_dataloader_continues(self):
        from torchdata.stateful_dataloader import StatefulDataLoader

        from test_run import model_and_optimizer, take_step
        hub = self.coordinator(rounds=4, steps=3)
        seen = []
        for stop in (6, None):
            batches = StatefulDataLoader(torch.arange(20), batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(4))
            model, optimizer = model_and_optimizer()
            with atoll.join(hub.data, model, optimizer, **self.options()) as run:
                for count, batch in enumerate(run.steps(batches)):
                    seen.append(batch.tolist())
                    take_step(model, optimizer, (torch.ones(3, 4), torch.zeros(3, 1)))
                    if count + 1 == stop:
                        break
        self.assertEqual(sorted(sum(seen[:7], [])), list(range(20)))  # the first pass, over both lives


if __name__ == "__main__":
    unittest.main()
