#!/usr/bin/env python3
"""The include test can fail: each seeded violation is found, and what the arrows allow is not."""
import unittest

from include_arrows import check_file


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
            ("worker/sync/outer_sync.cc", "worker/torch/trainer.h"),
            ("worker/sync/outer_sync.cc", "worker/client/stub.h"),
            ("worker/client/stub.cc", "worker/torch/trainer.h"),
            ("worker/sync/outer_sync.cc", "worker/cuda/encode.h"),
            ("cli/main.cc", "server/coordinator.h"),
            ("server/main.cc", "worker/sync/replica.h"),
            ("cli/atollctl_main.cc", "worker/data/dataset.h"),
            ("cli/data_main.cc", "worker/client/stub.h"),
            ("tests/core/merge_test.cc", "storage/run_store.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assertNotEqual(self.violations(path, header), [])

    def test_foreign_headers_stay_in_their_folder(self):
        for path, header in [
            ("server/coordinator.cc", "rocksdb/db.h"),
            ("core/codec.cc", "torch/torch.h"),
            ("worker/sync/outer_sync.cc", "ATen/ATen.h"),
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
            ("worker/sync/outer_sync.cc", "#include <condition_variable>"),
            ("worker/client/range_pull.h", "#include <thread>"),
            ("server/publish/version_writer.cc", "const auto now = std::chrono::steady_clock::now();"),
            ("worker/sync/session.cc", "std::this_thread::sleep_for(pause);"),
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
            ("server/coordinator.cc", "storage/run_store.h"),
            ("server/rpc/service.cc", "grpcpp/grpcpp.h"),
            ("server/rpc/service.cc", "atoll/v1/coordinator.grpc.pb.h"),
            ("server/main.cc", "server/rpc/service.h"),
            ("worker/torch/trainer.cc", "torch/torch.h"),
            ("worker/torch/trainer.cc", "worker/sync/replica.h"),
            ("worker/client/stub.cc", "worker/sync/connection.h"),
            ("worker/main.cc", "worker/torch/trainer.h"),
            ("cli/atollctl_main.cc", "atoll/version.h"),
            ("cli/data_main.cc", "worker/data/dataset.h"),
            ("tests/storage/shard_test.cc", "rocksdb/db.h"),
            ("tests/integration/run_test.cc", "server/coordinator.h"),
        ]:
            with self.subTest(path=path, header=header):
                self.assertEqual(self.violations(path, header), [])


if __name__ == "__main__":
    unittest.main()
