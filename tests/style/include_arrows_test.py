#!/usr/bin/env python3
"""The include test can fail: each seeded violation is found, and what the arrows allow is not."""
import pathlib
import tempfile
import unittest

from include_arrows import ALLOWED, check_file, cycle_of, missing_units


class IncludeArrowsTest(unittest.TestCase):
    def violations(self, path, header):
        return check_file(path, f'#include "{header}"\n')

    def test_back_edges_are_found(self):
        for path, header in [
            ("common/clock.cc", "core/merge.h"),
            ("core/merge.cc", "storage/run_store.h"),
            ("core/merge.cc", "atoll/v1/run.pb.h"),
            ("storage/shard.cc", "server/coordinator.h"),
            ("storage/shard.cc", "monitoring/metrics.h"),
            ("server/coordinator.cc", "server/rpc/push_reader.h"),
            ("server/coordinator.cc", "protos/convert.h"),
            ("client/sync/outer_sync.cc", "worker/torch/trainer.h"),
            ("client/sync/outer_sync.cc", "client/rpc/stub.h"),
            ("client/rpc/stub.cc", "worker/torch/trainer.h"),
            ("client/sync/outer_sync.cc", "worker/cuda/encode.h"),
            ("cli/main.cc", "server/coordinator.h"),
            ("server/main.cc", "client/sync/replica.h"),
            ("cli/atollctl_main.cc", "worker/data/dataset.h"),
            ("worker/data_main.cc", "client/rpc/stub.h"),
            ("tests/core/merge_test.cc", "storage/run_store.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assertNotEqual(self.violations(path, header), [])

    def test_back_edges_between_rooms_are_found(self):
        for path, header in [
            ("server/rounds/merge_engine.cc", "server/rounds/round_driver.h"),
            ("server/rounds/fragment_round.cc", "server/run/coordinator_state.h"),
            ("server/rounds/fragment_round.h", "server/members/member_registry.h"),
            ("server/members/member_registry.cc", "server/run/coordinator_state.h"),
            ("server/publish/published_versions.cc", "server/publish/version_writer.h"),
            ("server/publish/published_versions.cc", "server/rounds/fragment_state.h"),
            ("server/run/coordinator_state.cc", "server/coordinator_context.h"),
            ("server/run/effect_executor.cc", "server/admin/admin_impl.h"),
            ("server/run/effect_executor.cc", "server/ingest/push_upload.h"),
            ("server/events/event_log.cc", "server/run/coordinator_state.h"),
            ("server/opening/run_opening.cc", "server/coordinator_impl.h"),
            ("server/opening/run_opening.cc", "server/admin/restore.h"),
            ("server/ingest/push_upload.cc", "server/admin/admin_impl.h"),
            ("server/admin/admin_control.h", "server/admin/admin_impl.h"),
            ("server/views.h", "server/coordinator.h"),
            ("server/coordinator.h", "server/run/coordinator_state.h"),
            ("server/access/policies.cc", "server/coordinator.h"),
            ("server/launch/worker_slot.cc", "server/coordinator.h"),
            ("server/metrics/server_metrics.cc", "server/run/coordinator_state.h"),
            ("server/program/launch_flags.cc", "server/coordinator_impl.h"),
            ("server/rpc/push_stream.cc", "server/run/coordinator_state.h"),
            ("server/rpc/push_stream.cc", "server/web/api.h"),
            ("server/web/api.cc", "server/run/run_statistics.h"),
            ("client/sync/session.cc", "worker/data/dataset.h"),
            ("client/sync/session.cc", "worker/models/factory.h"),
            ("worker/torch/trainer.cc", "worker/models/factory.h"),
            ("worker/cuda/encode.cu", "worker/torch/trainer.h"),
            ("worker/torch/trainer.cc", "worker/island/ranks.h"),
            ("worker/torch/trainer.cc", "worker/app/run.h"),
            ("core/protocol/calls.h", "protos/wire/codec.h"),
            ("core/merge.h", "core/protocol/calls.h"),
            ("client/setup/parts.cc", "worker/torch/trainer.h"),
            ("client/rpc/stub.cc", "server/coordinator.h"),
            ("client/sync/session.cc", "client/rpc/stub.h"),
            ("client/metrics/monitoring.cc", "client/setup/parts.h"),
            ("client/library/client.cc", "client/engine/engine.h"),
            ("client/library/client.cc", "common/file.h"),
            ("client/library/client.cc", "absl/status/status.h"),
            ("client/ipc/channel.h", "absl/strings/str_cat.h"),
            ("client/engine/engine.cc", "client/library/client.h"),
            ("cli/pull.cc", "client/rpc/stub.h"),
            ("python/module.cc", "client/rpc/stub.h"),
            ("simulate/simulation.cc", "server/run/coordinator_state.h"),
            ("simulate/simulation.cc", "worker/torch/trainer.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assertNotEqual(self.violations(path, header), [])

    def test_rows_allow_no_cycle(self):
        self.assertEqual(cycle_of(ALLOWED), [])
        self.assertEqual(cycle_of({"a": ["b"], "b": ["c"], "c": ["b"]}), ["b", "c", "b"])

    def test_a_row_names_a_folder_or_a_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "server" / "run").mkdir(parents=True)
            (root / "server" / "views.h").write_text("")
            self.assertEqual(missing_units(root, {"server/run": [], "server/views": [], "server/gone": []}), ["server/gone"])

    def test_foreign_headers_stay_in_their_folder(self):
        for path, header in [
            ("server/coordinator.cc", "rocksdb/db.h"),
            ("core/codec.cc", "torch/torch.h"),
            ("client/sync/outer_sync.cc", "ATen/ATen.h"),
            ("server/main.cc", "torch/torch.h"),
            ("worker/torch/trainer.cc", "cuda_runtime.h"),
            ("storage/shard.cc", "atoll/v1/run.pb.h"),
            ("server/coordinator.cc", "grpcpp/grpcpp.h"),
            ("server/coordinator.cc", "prometheus/registry.h"),
            ("tests/server/coordinator_test.cc", "rocksdb/db.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assertNotEqual(self.violations(path, header), [])

    def test_core_is_pure(self):
        for header in ["thread", "mutex", "atomic", "absl/synchronization/mutex.h", "absl/time/clock.h",
                       "absl/log/log.h", "spdlog/spdlog.h", "unistd.h", "fstream"]:
            with self.subTest(header=header):
                self.assertNotEqual(check_file("core/round.cc", f"#include <{header}>\n"), [])
        self.assertNotEqual(check_file("core/round.cc", "auto t = std::chrono::steady_clock::now();\n"), [])
        self.assertNotEqual(check_file("core/round.cc", "auto t = absl::Now();\n"), [])

    def test_what_a_simulation_runs_waits_by_the_seam(self):
        for path, line in [
            ("server/rounds/round_driver.cc", "#include <thread>"),
            ("storage/memory_store.cc", "#include <mutex>"),
            ("client/sync/outer_sync.cc", "#include <condition_variable>"),
            ("client/rpc/range_pull.h", "#include <thread>"),
            ("server/publish/version_writer.cc", "const auto now = std::chrono::steady_clock::now();"),
            ("client/sync/session.cc", "std::this_thread::sleep_for(pause);"),
        ]:
            with self.subTest(path=path, line=line):
                self.assertNotEqual(check_file(path, line + "\n"), [])
                self.assertEqual(check_file("server/rpc/server.cc", line + "\n"), [])
        self.assertEqual(check_file("server/rounds/round_driver.cc", '#include "common/thread.h"\n'), [])

    def test_the_arrows_are_allowed(self):
        for path, header in [
            ("core/merge.cc", "common/ids.h"),
            ("core/merge.cc", "absl/status/status.h"),
            ("core/round.cc", "absl/time/time.h"),
            ("storage/shard.cc", "rocksdb/db.h"),
            ("server/coordinator_impl.cc", "storage/run_store.h"),
            ("server/rpc/service.cc", "grpcpp/grpcpp.h"),
            ("server/rpc/service.cc", "atoll/v1/coordinator.grpc.pb.h"),
            ("server/main.cc", "server/rpc/service.h"),
            ("server/rounds/round_driver.cc", "server/publish/version_writer.h"),
            ("server/run/coordinator_state.h", "server/rounds/fragment_round.h"),
            ("server/admin/admin_impl.cc", "server/rounds/round_driver.h"),
            ("server/coordinator_impl.cc", "server/ingest/push_upload.h"),
            ("server/rpc/push_stream.cc", "core/protocol/calls.h"),
            ("worker/models/factory.cc", "worker/torch/trainer.h"),
            ("worker/island/ranks.cc", "torch/torch.h"),
            ("python/module.cc", "atoll/client.h"),
            ("client/library/client.cc", "atoll/client.h"),
            ("client/library/client.cc", "sys/socket.h"),
            ("client/engine/engine.cc", "client/ipc/channel.h"),
            ("tests/server/rounds/late_contributions_test.cc", "server/admin/admin_control.h"),
            ("worker/torch/trainer.cc", "torch/torch.h"),
            ("worker/torch/trainer.cc", "client/sync/replica.h"),
            ("client/rpc/stub.cc", "client/sync/connection.h"),
            ("worker/main.cc", "worker/torch/trainer.h"),
            ("cli/atollctl_main.cc", "atoll/version.h"),
            ("worker/data_main.cc", "worker/data/dataset.h"),
            ("tests/storage/shard_test.cc", "rocksdb/db.h"),
            ("tests/integration/run_test.cc", "server/coordinator.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assertEqual(self.violations(path, header), [])


if __name__ == "__main__":
    unittest.main()
