"""State as bytes, the order of data, and the place in a loader: no programs needed."""
import pathlib
import random
import tempfile
import unittest

import numpy
import torch

import fixture  # noqa: F401
from atoll import DataLoss, FailedPrecondition, InvalidArgument, batch, random_state, state
from atoll.data import DataPosition, LoaderIsOver
from atoll.data_order import PartitionSampler, SampleOrder
from atoll.pass_journal import PassJournal


class StateTest(unittest.TestCase):
    def test_every_type_comes_back(self):
        value = {"a": [1, -2 ** 70, 2.5, float("inf"), None, True, "ä"], 3: (b"\0x", bytearray(b"y")), (1, "k"): {},
                 "empty": torch.empty(0, 2), "scalar": torch.tensor(3.0)}
        back = state.unpack(state.pack(value))
        self.assertEqual(back["a"], value["a"])
        self.assertEqual(back[3], (b"\0x", b"y"))
        self.assertEqual(back[(1, "k")], {})
        self.assertEqual(back["empty"].shape, (0, 2))
        self.assertEqual(back["scalar"].shape, ())
        self.assertEqual(back["scalar"].item(), 3.0)

    def test_every_dtype_comes_back_with_its_bits(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
                      torch.uint8, torch.bool, torch.complex64):
            tensor = (torch.randn(3, 5) * 10).to(dtype).t()  # not contiguous
            back = state.unpack(state.pack([tensor]))[0]
            self.assertEqual(back.dtype, dtype)
            self.assertTrue(torch.equal(back, tensor), dtype)
        array = numpy.arange(6, dtype=numpy.uint16).reshape(2, 3).T
        numpy.testing.assert_array_equal(state.unpack(state.pack(array)), array)

    def test_nan_keeps_being_nan(self):
        back = state.unpack(state.pack([float("nan"), torch.tensor([float("nan"), 1])]))
        self.assertNotEqual(back[0], back[0])
        self.assertTrue(torch.isnan(back[1][0]))

    def test_names_what_cannot_be_saved(self):
        with self.assertRaisesRegex(InvalidArgument, r"state\['groups'\]\[1\] is of type function"):
            state.pack({"groups": [1, lambda: 0]})

    def test_arrays_that_would_come_back_as_others_are_named(self):
        fields = numpy.zeros(2, dtype=[("price", "f4"), ("count", "i8")])
        for value in (fields, fields[0], fields.view(numpy.recarray)):
            with self.assertRaisesRegex(InvalidArgument, r"state\['table'\] is a NumPy array with the fields price, count"):
                state.pack({"table": value})
        with self.assertRaisesRegex(InvalidArgument, r"state\[0\] is a masked NumPy array"):
            state.pack([numpy.ma.masked_array([1.0, 2.0], [True, False])])

    def test_check_rejects_what_pack_cannot_write(self):
        ring = {"a": [1]}
        ring["a"].append(ring)
        deep = []
        for _ in range(100000):
            deep = [deep]
        for value, text in ((ring, r"state\['a'\]\[1\] is a dict that contains itself"), (deep, "state contains itself, or is nested too deeply"),
                            ({"w": torch.empty(2, device="meta")}, r"state\['w'\] is a tensor on the device meta")):
            for reject in (state.check, state.pack):
                with self.assertRaisesRegex(InvalidArgument, text):
                    reject(value)
        shared = [1]
        self.assertEqual(state.unpack(state.pack([shared, shared, (shared,)])), [[1], [1], ([1],)])

    def test_damage_is_noticed_and_runs_no_code(self):
        data = state.pack({"t": torch.randn(100), "n": 7})
        for broken in (b"", b"not a state at all", bytes(data[:-1]), data[:20], b"ATLSTAT1" + b"\xff" * 8):
            with self.assertRaises(DataLoss):
                state.unpack(broken)
        generator = random.Random(1)
        for _ in range(300):  # damage in the header is either an error or another value, never a crash
            copy = bytearray(data)
            copy[generator.randrange(16, 120)] = generator.randrange(256)
            try:
                state.unpack(copy)
            except DataLoss:
                pass

    def test_optimizers_state_continues_with_the_same_bits(self):
        def train(model, optimizer, steps):
            for _ in range(steps):
                optimizer.zero_grad()
                model(torch.ones(2, 4)).square().sum().backward()
                optimizer.step()

        for kind in (torch.optim.AdamW, torch.optim.Adagrad, lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9)):
            torch.manual_seed(3)
            one, two = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
            first = kind(one.parameters(), lr=0.1)
            train(one, first, 3)
            second = kind(two.parameters(), lr=0.1)
            second.load_state_dict(state.unpack(state.pack(first.state_dict())))
            two.load_state_dict(one.state_dict())
            train(one, first, 3)
            train(two, second, 3)
            self.assertTrue(torch.equal(one.weight, two.weight), kind)

    def test_random_states_come_back(self):
        random.gauss(0, 1)  # leaves a second value behind
        kept = state.pack(random_state.capture())
        drawn = [random.random(), random.gauss(0, 1), numpy.random.rand(), torch.rand(1).item()]
        random_state.restore(state.unpack(kept))
        self.assertEqual([random.random(), random.gauss(0, 1), numpy.random.rand(), torch.rand(1).item()], drawn)

    @unittest.skipUnless(hasattr(numpy.random, "set_bit_generator"), "set_bit_generator is newer")
    def test_the_state_of_every_bit_generator_of_numpy_comes_back(self):
        self.addCleanup(numpy.random.set_bit_generator, numpy.random.get_bit_generator())
        kept = {}
        for kind in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"):
            numpy.random.set_bit_generator(getattr(numpy.random, kind)(3))
            numpy.random.randn()  # leaves a second value behind
            kept[kind] = state.pack(random_state.capture())
            drawn = [numpy.random.randn(), numpy.random.rand(), int(numpy.random.randint(1 << 30))]
            numpy.random.set_bit_generator(getattr(numpy.random, kind)(4))
            random_state.restore(state.unpack(kept[kind]))
            self.assertEqual([numpy.random.randn(), numpy.random.rand(), int(numpy.random.randint(1 << 30))], drawn, kind)
        self.assertIsInstance(state.unpack(kept["MT19937"])["numpy"], list)  # as older releases read it
        for other in ("MT19937", "PCG64"):
            drawn = numpy.random.SFC64(5).random_raw()
            numpy.random.set_bit_generator(numpy.random.SFC64(5))
            with self.assertWarnsRegex(UserWarning, f"numpy.random is that of {other}, and the program has set SFC64"):
                random_state.restore(state.unpack(kept[other]))
            self.assertEqual(numpy.random.get_bit_generator().random_raw(), drawn)


class OrderTest(unittest.TestCase):
    def test_golden_table_of_data_order(self):
        order = SampleOrder(10, 1337)
        self.assertEqual([order.at(g) for g in range(15)], [4, 2, 6, 8, 3, 5, 1, 7, 9, 0, 1, 4, 0, 3, 6])
        self.assertEqual([SampleOrder(1000, 1337).at(g) for g in range(1000, 1005)], [541, 847, 832, 706, 249])
        sampler = iter(PartitionSampler(1000, 1337, 2, 4, 0))
        self.assertEqual([next(sampler) for _ in range(6)], [235, 552, 492, 472, 840, 266])
        self.assertEqual([SampleOrder(240000, 42).at(g) for g in range(3)], [180332, 129449, 201766])
        self.assertEqual(SampleOrder(1000000007, 2 ** 64 - 1).at(10 ** 12), 776794892)

    def test_parts_cover_everything_once(self):
        found = []
        for part in range(3):
            sampler = iter(PartitionSampler(12, 7, part, 3, 0))
            found += [next(sampler) for _ in range(4)]
        self.assertEqual(sorted(found), list(range(12)))


class BatchTest(unittest.TestCase):
    def test_counts_without_a_word_of_the_user(self):
        ids = torch.zeros(4, 16, dtype=torch.long)
        self.assertEqual(batch.count({"input_ids": ids, "x": torch.zeros(9)}), (4, 64))
        self.assertEqual(batch.count((torch.zeros(5, 3), torch.zeros(5))), (5, 5))
        self.assertEqual(batch.count([[torch.zeros(6)], 1]), (6, 6))
        self.assertEqual(batch.count({"a": {"b": numpy.zeros((7, 2))}}), (7, 7))
        self.assertEqual(batch.count(["a", "b"]), (2, 2))
        self.assertEqual(batch.count(3), (1, 1))
        image, label = torch.zeros(3, 8, 8), torch.tensor(1)
        self.assertEqual(batch.count([image] * 16), (16, 16))
        self.assertEqual(batch.count([(image, label)] * 16), (16, 16))
        self.assertEqual(batch.count(([image] * 16, [{"boxes": torch.zeros(4, 4)}] * 16)), (16, 16))
        self.assertEqual(batch.count([torch.zeros(size) for size in range(1, 17)]), (16, 16))
        self.assertEqual(batch.count([torch.zeros(5, 7)] * 3), (5, 5))  # token ids, a mask and labels
        self.assertEqual(batch.count({"input_ids": ids}, context=16), (4, 64))
        self.assertEqual(batch.count(torch.zeros(5, 128), context=128), (5, 640))
        self.assertEqual(batch.count(["a", "b"], context=3), (2, 6))

    def test_the_size_of_a_loader_says_what_a_list_is(self):
        image = torch.zeros(3, 8, 8)

        def counts(size, *of):
            counter = batch.BatchCounter(torch.utils.data.DataLoader([0] * 9, batch_size=size, collate_fn=list))
            return [counter.count(one)[0] for one in of]

        self.assertEqual(counts(4, [image] * 4, [image] * 2, [image]), [4, 2, 1])
        self.assertEqual(counts(4, [(image, 1)] * 4, [(image, 1)]), [4, 1])
        self.assertEqual(counts(4, ([image] * 4, [1] * 4), ([image], [1])), [4, 1])
        self.assertEqual(counts(2, [torch.zeros(2, 3), torch.zeros(2)], [torch.zeros(1, 3), torch.zeros(1)]), [2, 1])
        text = [torch.zeros(4), torch.zeros(31), torch.zeros(4)], [torch.zeros(2), torch.zeros(9), torch.zeros(2)]  # labels, words, offsets
        self.assertEqual(counts(2, [image] * 2, [torch.zeros(3, 8, 8)]), [2, 1])
        self.assertEqual(counts(3, [image] * 3, [image] * 2, [image] * 3), [3, 2, 3])
        self.assertEqual(counts(4, *text), [4, 2])
        with self.assertWarnsRegex(UserWarning, r"a list of 2 tensors with the first dimensions 31, 4, and is counted as 31 samples.*samples=len"):
            self.assertEqual(batch.count([torch.zeros(31), torch.zeros(4)]), (31, 31))


def numbers(size=10, shuffle=True, batch_size=3, **more):
    return torch.utils.data.DataLoader(torch.arange(size), batch_size=batch_size, shuffle=shuffle, **more)


def take(position, count):
    """The next batches, with a step on each."""
    taken = []
    for _ in range(count):
        taken.append(position.next().tolist())
        position.stepped()
    return taken


class Wrapped:
    """As tqdm wraps what it iterates over."""

    def __init__(self, iterable):
        self.iterable = iterable

    def __iter__(self):
        yield from self.iterable


class Prefetching(Wrapped):
    """A wrapper with a name of its own for what it reads."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        yield from self.loader


class OwnOrder:
    """Shuffles by a generator of its own, which only its state has."""

    def __init__(self):
        self.source, self.left = random.Random(3), []

    def __iter__(self):
        self.left = self.left or self.source.sample(range(9), 9)
        while self.left:
            yield torch.tensor([self.left.pop()])

    def state_dict(self):
        version, words, gauss = self.source.getstate()
        return {"source": [version, list(words), gauss], "left": list(self.left)}

    def load_state_dict(self, kept):
        version, words, gauss = kept["source"]
        self.source.setstate((version, tuple(words), gauss))
        self.left = list(kept["left"])


class PositionTest(unittest.TestCase):
    def test_a_function_that_counts_no_samples_in_a_batch(self):
        self.assertEqual(batch.BatchCounter(samples=len).count([1, 2, 3]), (3, 3))
        for value in ([torch.zeros(3, 4)], {"input_ids": torch.zeros(3, 4)}):
            with self.assertRaisesRegex(InvalidArgument, f"counted 0 samples in a batch, a {type(value).__name__}: .*at least one"):
                batch.BatchCounter(samples=lambda _: 0).count(value)

    def test_restarts_the_loader_at_its_end(self):
        position = DataPosition()
        position.attach(numbers(shuffle=False))
        self.assertEqual(take(position, 5), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9], [0, 1, 2]])
        self.assertEqual(position.samples, 13)

    def test_goes_back_and_forth(self):
        position = DataPosition()
        position.attach(numbers(shuffle=True))
        seen = take(position, 9)  # into the third pass
        for batches in (8, 6, 7, 2, 0, 1):
            position.seek(sum(len(b) for b in seen[:batches]))
            self.assertEqual(take(position, 1), [seen[batches]], batches)

    def test_another_process_finds_the_place_in_a_shuffled_loader(self):
        torch.manual_seed(5)
        position = DataPosition()
        position.attach(numbers(shuffle=True))
        take(position, 6)
        kept = state.pack([position.state(), random_state.capture()])
        coming = take(position, 5)
        torch.manual_seed(99)  # another process
        later = DataPosition()
        saved, generators = state.unpack(kept)
        later.load(saved)
        random_state.restore(generators)
        later.attach(numbers(shuffle=True))
        self.assertEqual(take(later, 5), coming)

    def test_a_loader_with_a_generator_of_its_own(self):
        def make():
            return numbers(shuffle=True, generator=torch.Generator().manual_seed(4))

        position = DataPosition()
        position.attach(make())
        seen = take(position, 6)
        kept = state.unpack(state.pack(position.state()))
        coming = take(position, 8)  # over the ends of two passes
        later = DataPosition()
        later.load(kept)
        later.attach(make())
        self.assertEqual(take(later, 8), coming)
        later.seek(sum(len(b) for b in seen[:4]))
        self.assertEqual(take(later, 2), seen[4:6])

    def test_finding_the_place_leaves_the_generators_alone(self):
        torch.manual_seed(5)
        position = DataPosition()
        position.attach(numbers(shuffle=True))
        take(position, 6)
        saved = state.unpack(state.pack([position.state(), random_state.capture()]))
        drawn = torch.rand(1).item()
        later = DataPosition()
        later.load(saved[0])
        random_state.restore(saved[1])
        later.attach(numbers(shuffle=True))
        later.next()
        self.assertEqual(torch.rand(1).item(), drawn)

    def test_a_batch_without_a_step_comes_again(self):
        for taken in range(7):
            with self.subTest(taken=taken):
                position = DataPosition()
                position.attach(numbers(shuffle=True))
                take(position, taken)
                kept = state.unpack(state.pack([position.state(), random_state.capture()]))
                coming = [position.next().tolist() for _ in range(2)]
                without_steps = state.unpack(state.pack(position.state()))
                self.assertEqual(without_steps["samples"], kept[0]["samples"])
                later = DataPosition()
                later.load(without_steps)
                random_state.restore(kept[1])
                later.attach(numbers(shuffle=True))
                self.assertEqual(take(later, 2), coming)

    def test_a_pass_that_began_after_the_newest_state(self):
        """The state of a round is lost, and its push counts: the position comes from the engine."""
        def own():
            return numbers(shuffle=True, generator=torch.Generator().manual_seed(4))

        for make in (lambda: numbers(shuffle=True), own, lambda: Wrapped(own()), lambda: Prefetching(own())):
            for passes in (1, 2, 3):
                with self.subTest(passes=passes), tempfile.TemporaryDirectory() as folder:
                    torch.manual_seed(5)
                    position = DataPosition(journal=PassJournal(folder))
                    position.attach(make())
                    take(position, 3)
                    kept = state.unpack(state.pack([position.state(), random_state.capture()]))
                    for _ in range(4 * passes):
                        take(position, 1)
                        torch.rand(3)  # what the training draws
                    samples, coming = position.samples, take(position, 8)[:1]
                    later = DataPosition(journal=PassJournal(folder))
                    later.load(kept[0])
                    random_state.restore(kept[1])
                    torch.rand(7)
                    later.attach(make())
                    later.seek(samples)
                    self.assertEqual(take(later, 1), coming)

    def test_a_loader_whose_state_has_its_order(self):
        """Its place is found from the beginning of the pass, where no state was kept at the place itself."""
        for taken, ahead in ((4, 1), (9, 1), (13, 3), (17, 2)):
            with self.subTest(taken=taken, ahead=ahead), tempfile.TemporaryDirectory() as folder:
                position = DataPosition(journal=PassJournal(folder))
                position.attach(OwnOrder())
                before = state.unpack(state.pack(position.state()))
                take(position, taken)
                coming = [position.next().tolist() for _ in range(ahead)]
                kept = state.unpack(state.pack(position.state()))
                later = DataPosition()
                later.load(kept)
                later.attach(OwnOrder())
                self.assertEqual(take(later, ahead), coming)
                lost = DataPosition(journal=PassJournal(folder))
                lost.load(before)
                lost.attach(OwnOrder())
                lost.seek(taken)
                self.assertEqual(take(lost, ahead), coming)

    def test_a_pass_before_that_of_the_state(self):
        with tempfile.TemporaryDirectory() as folder:
            position = DataPosition(journal=PassJournal(folder))
            position.attach(numbers(shuffle=True))
            seen = take(position, 14)
            kept = state.unpack(state.pack(position.state()))
            torch.manual_seed(99)
            for batches in (6, 1, 9):
                later = DataPosition(journal=PassJournal(folder))
                later.load(kept)
                later.attach(numbers(shuffle=True))
                later.seek(sum(len(b) for b in seen[:batches]))
                self.assertEqual(take(later, 1), [seen[batches]], batches)

    def test_a_wrapper_for_each_pass(self):
        loader, position, seen = numbers(shuffle=True), DataPosition(), []
        for _ in range(3):
            position.attach(Wrapped(loader))
            seen += take(position, 4)
        self.assertEqual([sorted(sum(seen[first:first + 4], [])) for first in (0, 4, 8)], [list(range(10))] * 3)
        self.assertEqual(position.samples, 30)

    def test_the_pass_after_one_that_only_the_journal_knows_has_another_order(self):
        with tempfile.TemporaryDirectory() as folder:
            def make():
                return numbers(shuffle=True, generator=torch.Generator().manual_seed(4))

            position = DataPosition(journal=PassJournal(folder))
            position.attach(make())
            take(position, 3)
            kept = state.unpack(state.pack(position.state()))
            seen = take(position, 9)
            later = DataPosition(journal=PassJournal(folder))
            later.load(kept)
            later.attach(make())
            later.seek(20)
            self.assertEqual(take(later, 4), seen[5:9])

    def test_batches_that_do_not_begin_at_the_place(self):
        position = DataPosition()
        position.attach(numbers(shuffle=False))
        take(position, 1)
        kept = state.unpack(state.pack(position.state()))
        later = DataPosition()
        later.load(kept)
        later.attach(numbers(shuffle=False, batch_size=2))
        with self.assertWarnsRegex(UserWarning, "1 samples of this pass are left out: the worker was at sample 3"):
            self.assertEqual(take(later, 1), [[4, 5]])
        self.assertEqual(later.samples, 6)

    def test_a_damaged_journal_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            journal = PassJournal(folder)
            position = DataPosition(journal=journal)
            position.attach(numbers(shuffle=True))
            take(position, 6)
            self.assertEqual([one.number for one in journal.read(0, 1)], [0, 1])
            self.assertEqual(journal.read(0, 2), [])
            file = pathlib.Path(folder, "passes-0")
            whole = file.read_bytes()
            for damaged in (b"", whole[:-1], b"x" * 100, whole.replace(b'"number"', b'"nimber"').replace(b"passes", b"Passes")):
                file.write_bytes(damaged)
                self.assertEqual(journal.read(0, 1), [])

    def test_worker_processes_that_outlive_a_pass(self):
        def make():
            return numbers(shuffle=True, num_workers=1, persistent_workers=True, **generator())

        for generator in (dict, lambda: {"generator": torch.Generator().manual_seed(4)}):
            for steps in (2, 6, 9):
                with self.subTest(steps=steps):
                    torch.manual_seed(5)
                    position = DataPosition()
                    position.attach(make())
                    seen = take(position, steps)
                    kept = state.unpack(state.pack([position.state(), random_state.capture()]))
                    coming = take(position, 7)
                    torch.manual_seed(99)  # another process
                    later = DataPosition()
                    later.load(kept[0])
                    random_state.restore(kept[1])
                    later.attach(make())
                    self.assertEqual(take(later, 7), coming)
                    # In the same process: back to the first pass, which has started the worker processes.
                    position.seek(0)
                    self.assertEqual(take(position, min(steps, 4)), seen[:4])

    def test_a_loader_with_a_state_is_not_read_again(self):
        class Counting:
            def __init__(self):
                self.at, self.read = 0, 0

            def __iter__(self):
                while self.at < 10:
                    self.at += 1
                    self.read += 1
                    yield torch.tensor([self.at])
                self.at = 0

            def state_dict(self):
                return {"at": self.at}

            def load_state_dict(self, kept):
                self.at = kept["at"]

        position = DataPosition()
        position.attach(Counting())
        take(position, 13)
        kept = state.unpack(state.pack(position.state()))
        coming = take(position, 9)
        loader, later = Counting(), DataPosition()
        later.load(kept)
        later.attach(loader)
        self.assertEqual(take(later, 9), coming)
        self.assertEqual(loader.read, 9)

    def test_a_function_is_told_the_place(self):
        asked = []

        def loader(partition, partitions, start):
            asked.append((partition, partitions, start))
            return (torch.tensor([k * partitions + partition]) for k in range(start, start + 4))

        position = DataPosition(rank=1, ranks=2)
        position.set_partition(1, 3)
        position.attach(loader)
        take(position, 6)
        position.seek(2)
        take(position, 1)
        self.assertEqual(asked, [(4, 6, 0), (4, 6, 4), (4, 6, 2)])

    def test_a_dataloader_over_shared_data_reads_its_part_and_is_given_back(self):
        loader = numbers(size=12, batch_size=2)
        before = loader.batch_sampler.sampler
        position = DataPosition()
        position.seed = 7
        position.set_partition(1, 3)
        position.seek(2)
        position.attach(loader)
        expected = iter(PartitionSampler(12, 7, 1, 3, 2))
        self.assertEqual(take(position, 3), [[next(expected), next(expected)] for _ in range(3)])
        self.assertEqual(position.samples, 8)
        position.release()
        self.assertIs(loader.batch_sampler.sampler, before)

    def test_a_loader_without_parts_is_rejected_for_shared_data(self):
        position = DataPosition()
        position.set_partition(1, 3)
        position.attach([torch.zeros(1)])
        with self.assertRaisesRegex(Exception, "reads part 1 of 3, and this loader has no parts: it is a list. Use .*data.mode: local"):
            position.next()

    def test_a_single_part_keeps_the_order_in_which_an_earlier_release_began(self):
        """Another order within a pass would skip samples and repeat others."""
        configuration = {"data": {"mode": "DATA_MODE_SHARED"}}
        begun = DataPosition()  # without a configuration it reads as earlier releases did
        loader = numbers(size=24, batch_size=2, shuffle=True)
        begun.attach(loader)
        taken = take(begun, 5)
        kept = begun.state()
        self.assertNotIn("order", kept)
        for _ in range(2):  # also in the life after the next
            later = DataPosition()
            later.configuration = configuration
            later.load(kept)
            later.attach(numbers(size=24, batch_size=2, shuffle=True))
            taken += take(later, 3)
            kept = later.state()
        self.assertEqual(len({sample for batch in taken for sample in batch}), 22)
        fresh = DataPosition()
        fresh.configuration = configuration
        fresh.attach(loader)
        self.assertEqual(fresh.next().tolist(), [SampleOrder(24, 0).at(position) for position in (0, 1)])
        self.assertEqual(fresh.state()["order"], "run")

    def following(self, loader, partition=1, partitions=3):
        position = DataPosition()
        position.seed = 7
        position.set_partition(partition, partitions)
        self.assertTrue(position.follow_run(loader))
        return position

    def test_a_loader_that_the_loop_iterates_over_follows_every_move(self):
        for more in ({}, {"num_workers": 2}, {"num_workers": 1, "persistent_workers": True, "prefetch_factor": 4}):
            with self.subTest(**more):
                loader = numbers(size=24, batch_size=2, **more)
                before = loader.batch_sampler.sampler
                position = self.following(loader)
                self.assertEqual(len(loader), 12)
                taken = []
                for batch in loader:
                    place = len(taken)
                    self.assertEqual(position.samples, 2 * (place - 5) + 3 if place >= 5 else 2 * place + 2)
                    taken.append(batch.tolist())
                    if place == 4:
                        position.set_partition(2, 3)
                        position.seek(1)
                first, second = iter(PartitionSampler(24, 7, 1, 3, 0)), iter(PartitionSampler(24, 7, 2, 3, 1))
                self.assertEqual(taken, [[next(part), next(part)] for part in 5 * [first] + 7 * [second]])
                self.assertEqual([batch.tolist() for _, batch in zip(range(2), loader)],  # the next pass goes on there
                                 [[next(second), next(second)] for _ in range(2)])
                position.release()
                self.assertIs(type(loader), torch.utils.data.DataLoader)
                self.assertIs(loader.batch_sampler.sampler, before)
                self.assertEqual(sorted(sum((batch.tolist() for batch in loader), [])), list(range(24)))

    def test_a_followed_loader_counts_by_itself(self):
        loader = numbers(size=24, batch_size=2)
        position = self.following(loader)
        batches = iter(loader)
        next(batches)
        position.count(2)  # what a callback says
        self.assertEqual(position.samples, 2)
        position.release()
        position.count(2)
        self.assertEqual(position.samples, 4)

    def test_a_loader_can_be_followed_again(self):
        loader = numbers(size=24, batch_size=2)
        position = self.following(loader)
        next(iter(loader))
        self.assertTrue(position.follow_run(loader))
        next(iter(loader))
        self.assertEqual(position.samples, 4)

    def test_a_sized_dataset_without_indices_is_no_shared_data(self):
        class Stream(torch.utils.data.IterableDataset):
            def __len__(self):
                return 10

            def __iter__(self):
                return iter(range(10))

        loader = torch.utils.data.DataLoader(Stream(), batch_size=2)
        position = DataPosition()
        position.set_partition(1, 3)
        self.assertFalse(position.follow_run(loader))
        position.attach(loader)
        with self.assertRaisesRegex(FailedPrecondition, "it is a DataLoader over a Stream"):
            position.next()

    def test_a_batch_sampler_of_another_kind_warns(self):
        class Pairs(torch.utils.data.BatchSampler):
            def __iter__(self):
                samples = iter(self.sampler)
                for first in samples:
                    yield [first, next(samples)]

        data = torch.arange(24)
        loader = torch.utils.data.DataLoader(data, batch_sampler=Pairs(range(24), 99, False))
        with self.assertWarnsRegex(UserWarning, "the batch sampler is a Pairs"):
            position = self.following(loader)
        part = iter(PartitionSampler(24, 7, 1, 3, 0))
        self.assertEqual(next(iter(loader)).tolist(), [next(part), next(part)])
        self.assertEqual(position.samples, 2)

    def test_ends_and_empty_loaders(self):
        position = DataPosition()
        position.attach(torch.zeros(1) for _ in range(2))
        take(position, 2)
        with self.assertRaises(LoaderIsOver):
            position.next()
        position = DataPosition()
        position.attach([])
        with self.assertRaisesRegex(InvalidArgument, "the loader is empty"):
            position.next()
        with self.assertRaisesRegex(InvalidArgument, "needs an iterable.*not a int"):
            DataPosition().attach(3)

    def test_an_iterator_that_cannot_go_back_warns(self):
        position = DataPosition()
        position.attach(torch.tensor([i]) for i in range(9))
        take(position, 4)
        position.seek(1)
        with self.assertWarnsRegex(UserWarning, "cannot go to sample 1"):
            self.assertEqual(position.next().item(), 4)
        self.assertEqual(position.samples, 2)


if __name__ == "__main__":
    unittest.main()
