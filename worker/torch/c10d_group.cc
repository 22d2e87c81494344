// RankGroup and RankStore on c10d. Compiled where LibTorch has Gloo or NCCL, and the headers are there
// (cmake/AtollRanks.cmake); elsewhere no_rank_group.cc takes its place.
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/torch/device.h"
#include "worker/torch/libtorch.h"
#include "worker/torch/rank_backend.h"
#include "worker/torch/rank_collectives.h"
#include "worker/torch/torch_features.h"
#include "worker/torch/torch_status.h"

namespace atl {
namespace {

#if ATOLL_TORCH_2
using Backend = c10d::Backend;
#else
using Backend = c10d::ProcessGroup;
#endif
using OnBroken = std::function<void(const absl::Status&)>;

std::chrono::milliseconds Milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

using Store = c10::intrusive_ptr<c10d::Store>;

/// For a store whose destructor may wait without end.
void KeepForProcess(Store store) {
  static auto* const kept = new std::vector<Store>;
  kept->push_back(std::move(store));
}

/// Ends the connection to a TCPStore. LibTorch 1.13 has a thread that watches it: it spins once the other
/// side has closed the connection, until the store is destroyed. When the connection was reset, it stands
/// still and the destructor waits for it (run_rank.cc, TorchThreadGuard), so another thread has that wait.
void EndConnection(Store store) {
  constexpr std::chrono::milliseconds kUsually(100);
  struct Ending {
    Store store;
    std::promise<void> done;
  };
  const auto ending = std::make_shared<Ending>();
  ending->store = std::move(store);
  const std::future<void> done = ending->done.get_future();
  try {
    std::thread([ending] {
      ending->store.reset();
      ending->done.set_value();
    }).detach();
    done.wait_for(kUsually);
  } catch (const std::system_error&) {
    KeepForProcess(ending->store);
  }
}

class C10dStore final : public RankStore {
 public:
  C10dStore(Store store, bool connects) : store_(std::move(store)), connects_(connects) {}
  ~C10dStore() override {
    if (connects_) EndConnection(std::move(store_));
  }
  C10dStore(const C10dStore&) = delete;
  C10dStore& operator=(const C10dStore&) = delete;

  const Store& store() const { return store_; }

  absl::Status Set(const std::string& key, const std::string& value) override {
    return Catch(key, [&] {
      store_->set(key, std::vector<uint8_t>(value.begin(), value.end()));
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::string> Get(const std::string& key, Duration timeout) override {
    return Catch(key, [&]() -> absl::StatusOr<std::string> {
      store_->wait({key}, Milliseconds(timeout));
      const std::vector<uint8_t> value = store_->get(key);
      return std::string(value.begin(), value.end());
    });
  }

  absl::Status Ping(Duration timeout) override {
    // Of no key: the store answers at once. LibTorch 1.13 has no bound for its other questions.
    return Catch("an answer", [&] {
      store_->wait({}, Milliseconds(timeout));
      return absl::OkStatus();
    });
  }

 private:
  template <typename Body>
  static auto Catch(const std::string& key, Body&& body) -> decltype(body()) {
    try {
      return body();
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      if (text.find("imeout") != std::string::npos) return absl::DeadlineExceededError(key);
      return absl::UnavailableError(text);
    } catch (const std::exception& error) {
      const std::string text = error.what();
      if (text.find("imeout") != std::string::npos) return absl::DeadlineExceededError(key);
      return absl::UnavailableError(text);
    }
  }

  Store store_;
  const bool connects_;
};

/// A process group keeps its store. Gloo uses it only while the ranks connect.
class LentStore final : public c10d::PrefixStore {
 public:
  using PrefixStore::PrefixStore;
  void TakeBack() { store_ = c10::make_intrusive<c10d::HashStore>(); }
};

/// Work of a process group, which tells `on_broken` of its failure before it throws.
template <typename Work>
class C10dPending final : public PendingCollective {
 public:
  C10dPending(Work work, const OnBroken* on_broken, std::vector<torch::Tensor> tensors)
      : work_(std::move(work)), on_broken_(on_broken), tensors_(std::move(tensors)) {}

  void Wait() override {
    try {
      work_->wait();
    } catch (const std::exception& error) {
      if (*on_broken_) (*on_broken_)(absl::InternalError(error.what()));
      throw;
    }
  }

 private:
  const Work work_;
  const OnBroken* const on_broken_;
  const std::vector<torch::Tensor> tensors_;
};

/// A collective on a copy, on a device, of memory of the host.
class PendingThroughDevice final : public PendingCollective {
 public:
  PendingThroughDevice(std::unique_ptr<PendingCollective> pending, torch::Tensor copy, torch::Tensor host)
      : pending_(std::move(pending)), copy_(std::move(copy)), host_(std::move(host)) {}

  void Wait() override {
    pending_->Wait();
    host_.copy_(copy_);
  }

 private:
  const std::unique_ptr<PendingCollective> pending_;
  const torch::Tensor copy_;
  const torch::Tensor host_;
};

class C10dCollectives final : public RankCollectives {
 public:
  /// One of the groups may be null: without `device` all tensors are on the host, without `host` its tensors
  /// travel as copies on `place`.
  C10dCollectives(c10::intrusive_ptr<Backend> host, c10::intrusive_ptr<Backend> device,
                  const torch::Device& place, OnBroken on_broken)
      : host_(std::move(host)), device_(std::move(device)), place_(place), on_broken_(std::move(on_broken)) {}

  int rank() const override { return (host_ ? host_ : device_)->getRank(); }
  int size() const override { return (host_ ? host_ : device_)->getSize(); }

  std::unique_ptr<PendingCollective> StartReduce(torch::Tensor tensor, int root) override {
    c10d::ReduceOptions options;
    options.rootRank = root;
    return Begin(tensor, [&](Backend& group, auto& tensors) { return group.reduce(tensors, options); });
  }
  std::unique_ptr<PendingCollective> StartBroadcast(torch::Tensor tensor, int root) override {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return Begin(
        tensor, [&](Backend& group, auto& tensors) { return group.broadcast(tensors, options); },
        root == rank() ? Use::kReads : Use::kWrites);
  }
  std::unique_ptr<PendingCollective> StartSend(torch::Tensor tensor, int to) override {
    return Begin(
        tensor, [&](Backend& group, auto& tensors) { return group.send(tensors, to, 0); }, Use::kReads);
  }
  std::unique_ptr<PendingCollective> StartReceive(torch::Tensor tensor, int from) override {
    return Begin(tensor, [&](Backend& group, auto& tensors) { return group.recv(tensors, from, 0); });
  }
  void Sum(std::span<double> values) override {
    const torch::Tensor tensor =
        torch::from_blob(values.data(), {static_cast<int64_t>(values.size())}, torch::kFloat64);
    Begin(tensor, [](Backend& group, auto& tensors) { return group.allreduce(tensors); })->Wait();
  }

 private:
  /// What a collective does with this rank's tensor. Memory that is only read may be constant.
  enum class Use : uint8_t { kReads, kWrites };

  template <typename Call>
  std::unique_ptr<PendingCollective> Begin(const torch::Tensor& tensor, const Call& call,
                                           Use use = Use::kWrites) {
    if (tensor.device().is_cpu() && !host_) {
      const torch::Tensor copy = tensor.to(place_);
      auto pending = Begin(copy, call, use);
      if (use == Use::kReads) return pending;  // it keeps the copy
      return std::make_unique<PendingThroughDevice>(std::move(pending), copy, tensor);
    }
    std::vector<torch::Tensor> tensors = {tensor};
    try {
      auto work = call(tensor.device().is_cpu() ? *host_ : *device_, tensors);
      return std::make_unique<C10dPending<decltype(work)>>(std::move(work), &on_broken_, std::move(tensors));
    } catch (const std::exception& error) {
      if (on_broken_) on_broken_(absl::InternalError(error.what()));
      throw;
    }
  }

  const c10::intrusive_ptr<Backend> host_;
  const c10::intrusive_ptr<Backend> device_;
  const torch::Device place_;
  const OnBroken on_broken_;
};

/// Null in a program that was built without Gloo.
c10::intrusive_ptr<Backend> GlooGroup(const Store& store, const RankGroupOptions& options) {
#ifdef USE_C10D_GLOO
  auto gloo = c10d::ProcessGroupGloo::Options::create(Milliseconds(options.timeout));
  gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(options.address));
  gloo->threads = 2;
  const auto lent = c10::make_intrusive<LentStore>("gloo", store);
  auto group = c10::make_intrusive<c10d::ProcessGroupGloo>(lent, static_cast<int>(options.rank),
                                                           static_cast<int>(options.size), std::move(gloo));
  lent->TakeBack();
  return group;
#else
  (void)store;
  (void)options;
  return nullptr;
#endif
}

absl::StatusOr<c10::intrusive_ptr<Backend>> NcclGroup(const Store& store, const RankGroupOptions& options) {
#ifdef USE_C10D_NCCL
  KeepForProcess(store);  // NCCL connects two ranks when they first exchange something
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = Milliseconds(options.timeout);
  return c10::intrusive_ptr<Backend>(c10::make_intrusive<c10d::ProcessGroupNCCL>(
      c10::make_intrusive<c10d::PrefixStore>("nccl", store), static_cast<int>(options.rank),
      static_cast<int>(options.size), std::move(nccl)));
#else
  (void)store;
  return absl::UnimplementedError(
      absl::StrFormat("ranks on %s need NCCL, and this program was built without it: its LibTorch or NCCL's "
                      "headers lack it; use --device cpu, or build with a LibTorch for CUDA",
                      options.device));
#endif
}

/// Newer PyTorches serve the store with libuv by default, also where they were built without it, as Debian
/// 13's is: then both sides raise. Their plain server speaks the same protocol.
template <typename Options>
bool UsePlainServer(Options& options) {
  if constexpr (requires { options.useLibUV; }) return std::exchange(options.useLibUV, false);
  return false;
}

c10::intrusive_ptr<c10d::TCPStore> OpenTcpStore(const std::string& host, c10d::TCPStoreOptions options) {
  try {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  } catch (const c10::Error& error) {
    if (!absl::StrContains(error.what(), "libuv") || !UsePlainServer(options)) throw;
  }
  return c10::make_intrusive<c10d::TCPStore>(host, options);
}

}  // namespace

absl::Status CheckRankSupport() { return absl::OkStatus(); }

absl::StatusOr<std::shared_ptr<RankStore>> OpenRankStore(const RankStoreOptions& options) {
  if (!options.file.empty()) {
    return CatchTorch(options.file, [&]() -> absl::StatusOr<std::shared_ptr<RankStore>> {
      constexpr int kNobodyRemovesIt = -1;
      auto file = c10::make_intrusive<c10d::FileStore>(options.file, kNobodyRemovesIt);
      file->setTimeout(Milliseconds(options.timeout));  // also waits for a file that is gone
      return std::make_shared<C10dStore>(
          c10::make_intrusive<c10d::PrefixStore>(options.prefix, std::move(file)), /*connects=*/false);
    });
  }
  const std::string place = absl::StrCat(options.host, ":", options.port);
  try {
    c10d::TCPStoreOptions store;
    store.port = options.port;
    store.isServer = options.hosts_store;
    store.waitWorkers = false;
    store.timeout = Milliseconds(options.timeout);
    const auto tcp = OpenTcpStore(options.host, store);
    // The thread that serves waits without end for the rest of what a connection has begun to send.
    if (options.hosts_store) KeepForProcess(tcp);
    return std::make_shared<C10dStore>(c10::make_intrusive<c10d::PrefixStore>(options.prefix, tcp),
                                       /*connects=*/!options.hosts_store);
  } catch (...) {
    const absl::Status why = StatusFromTorchException(place, "");
    const bool in_use = absl::StrContains(why.message(), "in use");
    if (!options.hosts_store || !in_use) return absl::UnavailableError(why.message());
    return absl::AlreadyExistsError(
        absl::StrFormat("rank 0 cannot host the store of its island at %s: %s. Another process uses the "
                        "port: end it, or give all ranks another one (MASTER_PORT, or --island HOST:PORT)",
                        place, std::string(why.message())));
  }
}

absl::StatusOr<std::unique_ptr<RankGroup>> ConnectRanks(const std::shared_ptr<RankStore>& store,
                                                        const RankGroupOptions& options) {
  const auto& c10d_store = static_cast<const C10dStore&>(*store).store();
  return CatchTorch("connecting the ranks", [&]() -> absl::StatusOr<std::unique_ptr<RankGroup>> {
    ATOLL_ASSIGN_OR_RETURN(const torch::Device device, ParseDevice(options.device));
    c10::intrusive_ptr<Backend> on_device;
    if (!device.is_cpu()) {
      ATOLL_ASSIGN_OR_RETURN(on_device, NcclGroup(c10d_store, options));
    }
    c10::intrusive_ptr<Backend> on_host = GlooGroup(c10d_store, options);
    if (!on_host && !on_device) {
      return absl::UnimplementedError(
          "ranks on the CPU need Gloo, and this program was built without its headers; use --device cuda, or "
          "build "
          "with -DATOLL_GLOO_INCLUDE=DIR (docs/reference/islands.md)");
    }
    return std::make_unique<RankGroup>(
        options.rank, options.size,
        std::make_unique<C10dCollectives>(std::move(on_host), std::move(on_device), device,
                                          options.on_broken));
  });
}

}  // namespace atl
