"""The real Trainer of Hugging Face and of Lightning."""
import json
import signal
import unittest
import warnings

import accelerate
import lightning
import torch
import transformers

import atoll
import atoll.lightning
import atoll.transformers
from atoll.data import DataPosition
from atoll.data_order import PartitionSampler, SampleOrder
from fixture import PATIENCE_S, RunTest, wait_for

TAKES_ONE_WORKERS_VALUES = {"outer": {"optimizer": "sgd", "momentum": 0, "learning_rate": 1}, "codec": {"push": "fp32", "pull_delta": "none"}}


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


class Endless(torch.utils.data.IterableDataset):
    """Has a length, and no indices."""

    def __len__(self):
        return 24

    def __iter__(self):
        return iter(sentences())


def record_training(model):
    """A list to which the numbers of the samples are added that the model trains on."""
    trained = []

    def record(module, _, keywords):
        if module.training:
            trained.extend(int(row[0]) * 50 + int(row[1]) for row in keywords["input_ids"])

    model.register_forward_pre_hook(record, with_kwargs=True)
    return trained


class TransformersTest(RunTest):
    def trainer(self, hub, model, name="w0", max_steps=1000, data=None, callbacks=(), options=None, **more):
        self.callback = atoll.transformers.AtollCallback(hub.data, **self.options(name), **(options or {}))
        arguments = transformers.TrainingArguments(**{
            "output_dir": str(self.folder / "out"), "per_device_train_batch_size": 4, "max_steps": max_steps, "report_to": [],
            "save_strategy": "no", "use_cpu": True, "disable_tqdm": True, **more})
        return transformers.Trainer(model, arguments, train_dataset=data or sentences(), eval_dataset=sentences(4),
                                    callbacks=[self.callback, *callbacks])

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

    def test_the_loss_is_the_mean_of_the_micro_batches(self):
        """The Trainer divides the loss by itself: by the tokens of the step where the model takes num_items_in_batch."""
        class Plain(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = tiny_gpt2()

            def forward(self, input_ids, labels=None):
                return {"loss": self.inner(input_ids=input_ids, labels=labels).loss}

        for make in (tiny_gpt2, Plain):
            for accumulated in (1, 2):
                with self.subTest(make=make, accumulated=accumulated):
                    self.fresh()
                    hub = self.coordinator(rounds=1, steps=1, batch=8, learning_rate=1e-9, model={"external": {"context": 16}})
                    model = make()
                    for part in model.modules():
                        if isinstance(part, torch.nn.Dropout):
                            part.p = 0.0
                    done = self.trainer(hub, model, data=sentences(8), max_steps=1, gradient_accumulation_steps=accumulated,
                                 per_device_train_batch_size=8 // accumulated).train()
                    wait_for(lambda hub=hub: hub.head() == 1, "the round")
                    self.assertGreater(done.training_loss, 3)
                    self.assertAlmostEqual(hub.status()["rounds"][0]["train_loss"], done.training_loss, places=4)

    def test_the_trainer_ends_first_and_comes_back(self):
        hub = self.coordinator(rounds=3, steps=4, batch=4, learning_rate=0.01, model={"external": {"context": 16}})
        self.trainer(hub, tiny_gpt2(), max_steps=6).train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.DRAINED)
        wait_for(lambda: hub.head() == 2, "the pushed steps to be merged")
        trainer = self.trainer(hub, tiny_gpt2())
        trainer.train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(self.callback.run.samples, 4 * (6 + trainer.state.global_step))

    def test_a_run_that_is_over_gives_its_last_version(self):
        hub = self.coordinator(rounds=2, steps=2, batch=4, learning_rate=0.01, model={"external": {"context": 16}})
        for _ in range(2):
            trainer = self.trainer(hub, tiny_gpt2(), weight_decay=0.1)
            trainer.train()
            self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
            published = atoll.pull(hub.data)
            for name, parameter in trainer.model.named_parameters():
                self.assertTrue(torch.equal(parameter, published[name]), name)

    def test_the_trainer_reads_its_part_of_shared_data(self):
        hub = self.coordinator(rounds=2, steps=2, batch=4, learning_rate=0.01, data={"mode": "shared", "partitions": 2},
                               model={"external": {"context": 16}})
        seen = []
        model = tiny_gpt2()
        model.register_forward_pre_hook(lambda _, __, keywords: seen.append(keywords["input_ids"].tolist()), with_kwargs=True)
        trainer = self.trainer(hub, model)
        trainer.train()
        run = self.callback.run
        order = iter(PartitionSampler(24, int(run.config["config"]["run"]["seed"]), 0, 2, 0))
        expected = [[sentences()[next(order)]["input_ids"].tolist() for _ in range(4)] for _ in range(2)]
        self.assertEqual(seen[:2], expected)

    def shared(self, rounds, samples_per_step, **more):
        return self.coordinator(rounds=rounds, steps=2, batch=samples_per_step, learning_rate=0.01, model={"external": {"context": 16}},
                                data={"mode": "shared", "partitions": 8}, **more)

    def follows_the_run(self, **more):
        """Every round has another part. In two passes of the run each sample is trained on twice."""
        accumulated = more.get("gradient_accumulation_steps", 1)
        hub = self.shared(rounds=32 // accumulated, samples_per_step=2 * accumulated)
        model = tiny_gpt2()
        trained = record_training(model)
        trainer = self.trainer(hub, model, data=Numbered(64), per_device_train_batch_size=2, **more)
        trainer.train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual([sorted(trained[:64]), sorted(trained[64:])], 2 * [list(range(64))])
        self.assertIs(type(trainer.callback_handler.train_dataloader), accelerate.data_loader.DataLoaderShard)

    def test_the_trainer_follows_the_run_through_all_parts(self):
        self.follows_the_run()

    def test_batches_that_processes_have_drawn_ahead_are_dropped(self):
        self.follows_the_run(gradient_accumulation_steps=2, dataloader_num_workers=2)

    def test_processes_that_stay_follow_too(self):
        self.follows_the_run(dataloader_num_workers=1, dataloader_persistent_workers=True, dataloader_prefetch_factor=4)

    def test_the_next_life_goes_on_where_the_last_one_stopped(self):
        """Also when the Trainer goes on from a checkpoint: the place in the data is the run's."""
        hub = self.shared(rounds=16, samples_per_step=2)
        trained = []
        for more, resumed in (({"max_steps": 8, "save_strategy": "steps", "save_steps": 4}, None), ({}, True)):
            model = tiny_gpt2()
            seen = record_training(model)
            trainer = self.trainer(hub, model, data=Numbered(64), per_device_train_batch_size=2, **more)
            trainer.train(resume_from_checkpoint=resumed)
            self.assertFalse(trainer.args.ignore_data_skip)
            trained += seen
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(sorted(trained), list(range(64)))

    def test_a_later_pass_goes_on_where_the_last_life_stopped(self):
        """Each pass has an order of its own: the next life finds that of the pass it is in."""
        for data in ({"mode": "local"}, {"mode": "shared", "partitions": 1}):
            for lives in ((32,), (10, 12, 10)):
                self.fresh()
                with self.subTest(data=data, lives=lives):
                    hub = self.coordinator(rounds=16, steps=2, batch=2, learning_rate=0.01, model={"external": {"context": 16}}, data=data)
                    trained = []
                    for steps in lives:
                        model = tiny_gpt2()
                        seen = record_training(model)
                        self.trainer(hub, model, data=Numbered(16), per_device_train_batch_size=2, max_steps=steps).train()
                        trained += seen
                    self.assertEqual([sorted(trained[at:at + 16]) for at in range(0, 64, 16)], 4 * [list(range(16))])
                    self.assertNotEqual(trained[:16], trained[16:32])
                    if data["mode"] == "shared":
                        order = iter(PartitionSampler(16, int(self.callback.run.config["config"]["run"]["seed"]), 0, 1, 0))
                        self.assertEqual(trained, [next(order) for _ in range(64)])

    def test_lives_that_end_within_a_later_pass(self):
        """No pass skips a sample or repeats one, where all samples are one part. The last batch of a pass is smaller."""
        for data in ({"mode": "local"}, {"mode": "shared", "partitions": 1}):
            with self.subTest(**data):
                hub = self.coordinator(rounds=100, steps=2, batch=4, learning_rate=0.01, model={"external": {"context": 16}}, data=data)
                trained = []
                for steps in (9, 2, 7, 10):
                    model = tiny_gpt2()
                    seen = record_training(model)
                    self.trainer(hub, model, data=Numbered(26), max_steps=steps).train()
                    trained += seen
                passes = [trained[at:at + 26] for at in (0, 26, 52, 78)]
                self.assertEqual([sorted(one) for one in passes], 4 * [list(range(26))])
                self.assertEqual(len({tuple(one) for one in passes}), 4)
            self.fresh()

    def test_a_dropped_round_is_trained_on_again(self):
        hub = self.shared(rounds=4, samples_per_step=2)
        model = tiny_gpt2()
        trained = record_training(model)

        def spoil(_, __, output):
            if len(trained) == 8:  # the last step of the second round
                output.loss = output.loss * float("nan")
            return output

        model.register_forward_hook(spoil)
        self.trainer(hub, model, data=Numbered(64), per_device_train_batch_size=2).train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(trained[4:8], trained[8:12])
        self.assertEqual(len(set(trained)), 16)

    def test_data_without_indices_is_rejected(self):
        hub = self.shared(rounds=4, samples_per_step=4)
        with self.assertRaisesRegex(atoll.FailedPrecondition, "has no parts: it is a DataLoaderDispatcher over a Endless.*data.mode: local"):
            self.trainer(hub, tiny_gpt2(), data=Endless()).train()
        self.assertFalse(self.callback.run.running)
        self.assertEqual(hub.head(), 0)

    def test_workers_with_data_of_another_length_are_rejected(self):
        """Shared data must be equal. A fingerprint of the user's takes the place of the length, and None turns the check off."""
        hub = self.shared(rounds=4, samples_per_step=2)
        more = {"per_device_train_batch_size": 2}
        self.trainer(hub, tiny_gpt2(), data=Numbered(64), max_steps=2, **more).train()
        wait_for(lambda: hub.head() == 1, "the first contribution")
        for options, found in (({}, "63-samples"), ({"data_fingerprint": "mine"}, "mine")):
            with self.assertRaisesRegex(atoll.FailedPrecondition, f"fingerprint is '{found}', that of the first contribution, by worker "
                                        "'w0', is '64-samples'.*atollctl run reset-data"):
                self.trainer(hub, tiny_gpt2(), "w1", data=Numbered(63), options=options, **more).train()
        self.assertEqual(hub.contributors(), {1: ["w0"]})
        for name, count, options in (("w1", 64, {}), ("w2", 63, {"data_fingerprint": None})):
            self.trainer(hub, tiny_gpt2(), name, data=Numbered(count), max_steps=2, options=options, **more).train()
            self.assertEqual(self.callback.run.end_reason, atoll.EndReason.DRAINED)

    def test_data_of_the_workers_own_may_have_any_length(self):
        hub = self.coordinator(rounds=4, steps=2, batch=4, learning_rate=0.01, model={"external": {"context": 16}})
        for name, count in (("w0", 64), ("w1", 63)):
            self.trainer(hub, tiny_gpt2(), name, data=Numbered(count), max_steps=2).train()
            self.assertEqual(self.callback.run.end_reason, atoll.EndReason.DRAINED)

    def test_a_signal_ends_a_trainer_that_waits(self):
        """Before its first step there is nothing to keep, so the program ends as without Atoll."""
        for number, code in ((signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)):
            log = f"waits-{int(number)}.log"
            process = self.spawn("waiting_trainer.py", "127.0.0.1:1", self.folder / "state", log=log)
            wait_for(lambda: "waiting for the coordinator" in self.log(log), "the join to wait")
            process.send_signal(number)
            self.assertEqual(process.wait(PATIENCE_S), code, self.log(log))
            self.assertIn("atoll.join ended before the first step", self.log(log))
            for said in ("stepped", "trained"):
                self.assertNotIn(f"{said}\n", self.log(log))

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
        for at, failure, head in (("", ZeroDivisionError, 0), ("substep", KeyError, 0), ("end", KeyError, 1)):  # training was over
            other.at = at
            trainer.args.max_steps = 1 if at == "end" else 1000
            with self.assertRaises(failure):
                trainer.train()
            self.assertFalse(self.callback.run.running, at)
            self.assertEqual((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)), before)
            self.assertEqual(len(trainer.model._forward_pre_hooks), 0)
            self.assertNotIn("step", vars(trainer.optimizer.optimizer))
            wait_for(lambda head=head: hub.head() == head, "the steps of a training that was over")
        other.at, trainer.args.max_steps = "", 1000
        trainer.train()
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual(hub.contributors(), {version: ["w0"] for version in range(1, 5)})  # the first has one step

    def ends_within_a_round(self, stops, replaces, **more):
        """(published, trained values of the last step) of a Trainer that stops after 6 of 8 steps and then replaces the parameters."""
        hub = self.coordinator(rounds=3, steps=8, batch=4, learning_rate=0.01, model={"external": {"context": 16}},
                               **TAKES_ONE_WORKERS_VALUES)
        trained = {}

        class Records(transformers.TrainerCallback):
            def on_step_end(self, *_, model, **__):
                trained.update({name: parameter.detach().clone() for name, parameter in model.named_parameters()})

        model = tiny_gpt2()
        trainer = self.trainer(hub, model, callbacks=[Records(), *stops], eval_strategy="steps", eval_steps=2, save_strategy="steps",
                               save_steps=2, **more)
        trainer.callback_handler.callbacks.insert(0, replaces)
        trainer.train()
        self.assertEqual((trainer.state.global_step, self.callback.run.end_reason), (6, atoll.EndReason.DRAINED))
        wait_for(lambda: hub.head() == 1, "the pushed steps to be merged")
        self.assertEqual(hub.contributed_steps(), {1: {"w0": 6}})
        published = atoll.pull(hub.data)
        for name, values in published.items():
            torch.testing.assert_close(values, trained[name], rtol=0, atol=1e-6, msg=name)
        replaced = dict(trainer.model.named_parameters())
        self.assertFalse(torch.allclose(published["transformer.wte.weight"], replaced["transformer.wte.weight"], atol=1e-4))
        self.assertEqual(sorted(path.name for path in (self.folder / "out").iterdir()), [f"checkpoint-{step}" for step in (2, 4, 6)])
        for owner, name in ((trainer, "_load_best_model"), (trainer.callback_handler, "on_train_end")):
            self.assertNotIn(name, vars(owner))
        return trainer

    def test_the_best_checkpoint_is_not_pushed(self):
        """The Trainer loads it at its end. The loss falls, and the largest is taken for the best, so EarlyStoppingCallback ends after 6 steps."""
        stops = transformers.EarlyStoppingCallback(early_stopping_patience=2)
        trainer = self.ends_within_a_round([stops], transformers.TrainerCallback(), load_best_model_at_end=True,
                                           metric_for_best_model="eval_loss", greater_is_better=True)
        self.assertTrue(trainer.state.best_model_checkpoint.endswith("checkpoint-2"))

    def test_values_that_another_callback_writes_at_the_end_are_not_pushed(self):
        class Replaces(transformers.TrainerCallback):
            def on_train_end(self, *_, model, **__):
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.fill_(7)

        self.ends_within_a_round([], Replaces(), max_steps=6)

    def test_the_best_checkpoint_with_a_loop_of_its_own_is_rejected(self):
        hub = self.coordinator(rounds=2, steps=2, batch=4, learning_rate=0.01, model={"external": {"context": 16}})
        trainer = self.trainer(hub, tiny_gpt2(), eval_strategy="steps", eval_steps=2, save_strategy="steps", save_steps=2,
                               load_best_model_at_end=True)

        class Own(transformers.Trainer):
            _inner_training_loop = transformers.Trainer._inner_training_loop.__wrapped__

        trainer.__class__ = Own
        with self.assertRaisesRegex(atoll.FailedPrecondition, "load_best_model_at_end is set, .* Set load_best_model_at_end=False"):
            trainer.train()
        self.assertEqual(hub.head(), 0)

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


class RanksTest(RunTest):
    def follow_the_run(self, split, dispatch):
        """Two ranks are one worker. Together they train on the first 64 positions of the run."""
        hub = self.coordinator(rounds=8, steps=2, batch=4, learning_rate=0.01, model={"external": {"context": 16}},
                               data={"mode": "shared", "partitions": 4})
        out = self.folder / "out"
        ranks = [self.spawn("trainer_rank.py", rank, self.folder / "store", hub.data, self.folder / "state", out, split, dispatch,
                            log=f"rank{rank}.log") for rank in range(2)]
        for rank, process in enumerate(ranks):
            self.assertEqual(process.wait(PATIENCE_S), 0, self.log(f"rank{rank}.log"))
        found = [json.loads((self.folder / f"out.{rank}").read_text()) for rank in range(2)]
        self.assertEqual([rank["end"] for rank in found], ["FINISHED", "FINISHED"])
        self.assertEqual([len(rank["trained"]) for rank in found], [32, 32])
        order = SampleOrder(128, found[0]["seed"])
        self.assertEqual(sorted(found[0]["trained"] + found[1]["trained"]), sorted(order.at(position) for position in range(64)))

    def test_each_rank_has_its_batches(self):
        self.follow_the_run(split=False, dispatch=False)

    def test_each_rank_has_its_part_of_a_batch(self):
        self.follow_the_run(split=True, dispatch=False)

    def test_rank_0_reads_for_all(self):
        self.follow_the_run(split=False, dispatch=True)


class AccelerateTest(unittest.TestCase):
    def test_each_rank_gets_its_own_samples(self):
        """accelerate gives each rank some of the batches, or a part of every batch. No programs needed."""
        for split in (False, True):
            for rank in (0, 1):
                inner = torch.utils.data.DataLoader(torch.arange(48), batch_size=8 if split else 4, shuffle=True)
                loader = accelerate.data_loader.prepare_data_loader(inner, num_processes=2, process_index=rank, split_batches=split)
                position = DataPosition(rank=rank, ranks=2)
                position.seed = 7
                position.set_partition(1, 3)
                passes = len(loader)
                self.assertTrue(position.follow_run(loader))
                self.assertEqual(len(loader), passes)
                batches = iter(loader)
                own = iter(PartitionSampler(48, 7, rank * 3 + 1, 6, 0))
                self.assertEqual([next(batches).tolist() for _ in range(2)], [[next(own) for _ in range(4)] for _ in range(2)])
                position.set_partition(2, 3)
                position.seek(5)
                own = iter(PartitionSampler(48, 7, rank * 3 + 2, 6, 5))
                rest = [batch.tolist() for batch in batches]
                self.assertEqual(rest, [[next(own) for _ in range(4)] for _ in range(passes - 2)])
                self.assertEqual(position.samples, 5 + 4 * len(rest))
                position.release()
                self.assertIs(type(loader), accelerate.data_loader.DataLoaderShard)
                self.assertIsInstance(inner.batch_sampler.sampler, torch.utils.data.RandomSampler)

    def test_ranks_that_are_no_island_are_rejected(self):
        inner = torch.utils.data.DataLoader(torch.arange(48), batch_size=4)
        loader = accelerate.data_loader.prepare_data_loader(inner, num_processes=2, process_index=0)
        position = DataPosition()
        position.set_partition(1, 3)
        self.assertFalse(position.follow_run(loader))


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


class Counted(Tiny):
    """Brings its loader, and keeps the numbers of the samples that it trains on."""

    def __init__(self, workers):
        super().__init__()
        self.trained, self.workers = [], workers

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.arange(64), batch_size=2, shuffle=True, num_workers=self.workers)

    def training_step(self, batch, index):
        self.trained += batch.tolist()
        return self.layer(torch.ones(2, 4)).square().mean()


class LightningTest(RunTest):
    def fit(self, hub, module, data=None, before=(), options=None, **more):
        from test_run import loader
        self.callback = atoll.lightning.AtollCallback(hub.data, **self.options(), **(options or {}))
        trainer = lightning.Trainer(max_epochs=more.pop("max_epochs", -1), logger=False, enable_checkpointing=False, accelerator="cpu",
                                    enable_progress_bar=False, enable_model_summary=False, callbacks=[*before, self.callback], **more)
        trainer.fit(module, *([] if hasattr(module, "trained") else [data or loader()]))
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

    def test_the_loss_is_the_mean_of_the_micro_batches(self):
        """Lightning divides the loss by accumulate_grad_batches, also where an epoch ends with fewer batches."""
        from test_run import loader
        losses = [float((Tiny().layer(inputs) - targets).detach().square().mean()) for inputs, targets in loader()]
        for accumulated, limit in ((1, 4), (2, 4), (4, 4), (2, 1), (2, 3)):
            with self.subTest(accumulated=accumulated, limit=limit):
                self.fresh()
                hub = self.coordinator(rounds=1, steps=1 if limit == 1 else limit // accumulated + limit % accumulated, batch=3 * accumulated,
                                       learning_rate=1e-9)
                self.fit(hub, Tiny(), accumulate_grad_batches=accumulated, limit_train_batches=limit, max_epochs=1)
                steps = [losses[at:min(at + accumulated, limit)] for at in range(0, limit, accumulated)]
                expected = sum(sum(step) / len(step) for step in steps) / len(steps)
                wait_for(lambda hub=hub: hub.head() == 1, "the round")
                self.assertAlmostEqual(hub.status()["rounds"][0]["train_loss"], expected, places=4)

    def test_the_loss_of_manual_optimization(self):
        """Two optimizers: the sum of what both minimise, as in a loop of one's own."""
        class Manual(Tiny):
            def __init__(self):
                super().__init__()
                self.automatic_optimization = False

            def training_step(self, batch, index):
                for optimizer, part in zip(self.optimizers(), (0.25, 0.5)):
                    optimizer.zero_grad()
                    self.manual_backward(part + 0 * self.layer(batch[0]).sum())
                    optimizer.step()

            def configure_optimizers(self):
                return [torch.optim.SGD([parameter], lr=0.1) for parameter in self.parameters()]

        hub = self.coordinator(rounds=1, steps=2)
        self.fit(hub, Manual(), options={"counts": 1})
        self.assertAlmostEqual(hub.status()["rounds"][0]["train_loss"], 0.75, places=5)

    def test_as_many_batches_accumulate_as_may_pass_without_a_step(self):
        hub = self.coordinator(rounds=2, steps=3, batch=12)
        trainer = self.fit(hub, Tiny(), accumulate_grad_batches=4, options={"max_batches_per_step": 4})
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual((trainer.global_step, hub.tokens()), (6, 6 * 12))

    def test_accumulation_of_more_batches_is_rejected(self):
        grows = lightning.pytorch.callbacks.GradientAccumulationScheduler({0: 1, 1: 5})
        hub = self.coordinator(rounds=2, steps=30)
        for more in ({"accumulate_grad_batches": 5}, {"before": [grows]}):
            with self.assertRaisesRegex(atoll.InvalidArgument, r"accumulate_grad_batches=5 .* AtollCallback\(..., max_batches_per_step=5\)"):
                self.fit(hub, Tiny(), options={"max_batches_per_step": 4}, **more)
        self.assertEqual(hub.head(), 0)

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

    def test_values_that_another_callback_writes_at_the_end_are_not_pushed(self):
        """As WeightAveraging does, here with values that cannot be mistaken."""
        trained = {}

        class Replaces(lightning.Callback):
            def on_train_end(self, trainer, module):
                trained.update({name: parameter.detach().clone() for name, parameter in module.named_parameters()})
                with torch.no_grad():
                    for parameter in module.parameters():
                        parameter.fill_(7)

        hub = self.coordinator(rounds=3, steps=4, **TAKES_ONE_WORKERS_VALUES)
        module, replaces = Tiny(), Replaces()
        trainer = self.fit(hub, module, before=[replaces], max_steps=3)
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.DRAINED)
        wait_for(lambda: hub.head() == 1, "the pushed steps to be merged")
        self.assertEqual(hub.contributed_steps(), {1: {"w0": 3}})
        for name, values in atoll.pull(hub.data).items():
            torch.testing.assert_close(values, trained[name], rtol=0, atol=1e-6, msg=name)
        self.assertTrue((module.layer.weight == 7).all())
        self.assertEqual(trainer.callbacks[:2], [replaces, self.callback])

    def test_a_run_that_is_over(self):
        hub = self.coordinator(rounds=1, steps=1)
        self.fit(hub, Tiny())
        trainer = self.fit(hub, Tiny())
        self.assertEqual(trainer.global_step, 0)

    def follows_the_run(self, workers=0, **more):
        """As the Trainer of Hugging Face."""
        hub = self.coordinator(rounds=32, steps=2, batch=2, data={"mode": "shared", "partitions": 8})
        module = Counted(workers)
        self.fit(hub, module, **more)
        self.assertEqual(self.callback.run.end_reason, atoll.EndReason.FINISHED)
        self.assertEqual([sorted(module.trained[:64]), sorted(module.trained[64:])], 2 * [list(range(64))])

    def test_the_trainer_follows_the_run_through_all_parts(self):
        self.follows_the_run()

    def test_batches_that_processes_have_drawn_ahead_are_dropped(self):
        self.follows_the_run(workers=2)

    def test_lives_that_end_within_a_later_pass(self):
        """As the Trainer of Hugging Face."""
        for data in ({"mode": "local"}, {"mode": "shared", "partitions": 1}):
            for more in ({}, {"reload_dataloaders_every_n_epochs": 1}):
                with self.subTest(**data, **more):
                    hub = self.coordinator(rounds=100, steps=2, batch=2, data=data)
                    trained = []
                    for steps in (40, 8, 41, 39):
                        module = Counted(0)
                        self.fit(hub, module, max_steps=steps, **more)
                        trained += module.trained
                    passes = [trained[at:at + 64] for at in range(0, 256, 64)]
                    self.assertEqual([sorted(one) for one in passes], 4 * [list(range(64))])
                    self.assertEqual(len({tuple(one) for one in passes}), 4)
                self.fresh()

    def test_a_loader_that_is_made_for_each_epoch_follows_too(self):
        self.follows_the_run(reload_dataloaders_every_n_epochs=1, limit_train_batches=5)

    def test_workers_with_data_of_another_length_are_rejected(self):
        hub = self.coordinator(rounds=4, steps=4, data={"mode": "shared", "partitions": 2})
        self.fit(hub, Tiny(), max_epochs=1)
        wait_for(lambda: hub.head() == 1, "the first contribution")
        other = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(11, 4), torch.ones(11, 1)), batch_size=3)
        with self.assertRaisesRegex(atoll.FailedPrecondition, "fingerprint is '11-samples', that of .* is '12-samples'"):
            self.fit(hub, Tiny(), other)

    def test_data_without_indices_is_rejected(self):
        hub = self.coordinator(rounds=3, steps=2, batch=2, data={"mode": "shared", "partitions": 8})
        with self.assertRaisesRegex(atoll.FailedPrecondition, "has no parts: it is a DataLoader over a Endless"):
            self.fit(hub, Tiny(), torch.utils.data.DataLoader(Endless(), batch_size=2))
        self.assertFalse(self.callback.run.running)


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
