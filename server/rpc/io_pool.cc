#include "server/rpc/io_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/thread.h"

namespace atl {

IoPool::IoPool(const IoPoolOptions& options) : options_(options) {
  threads_.reserve(options_.threads);
  for (size_t i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this, i] { Run(i); });
  }
}

IoPool::~IoPool() { Stop(); }

bool IoPool::Post(std::function<void()> task) { return backlog_.Post(std::move(task), options_.max_queued); }

bool IoPool::PostAdmitted(std::function<void()> task) { return backlog_.Post(std::move(task)); }

void IoPool::Stop() {
  backlog_.Close();
  for (Thread& thread : threads_) {
    if (thread.joinable()) thread.Join();
  }
}

size_t IoPool::queued() const { return backlog_.size(); }

void IoPool::Run(size_t index) {
  SetThreadName(absl::StrCat(options_.name, "-", index));
  backlog_.Run();
}

}  // namespace atl
