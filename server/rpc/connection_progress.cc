#include "server/rpc/connection_progress.h"

#include <algorithm>
#include <utility>

namespace atl {

HeldMessage::HeldMessage(std::shared_ptr<ConnectionSigns> signs) : signs_(std::move(signs)) {
  if (signs_ == nullptr) return;
  ++signs_->held;
  signs_->moved = true;
}

HeldMessage::~HeldMessage() {
  if (signs_ == nullptr) return;
  // First: a reader in between sees one of the two.
  signs_->moved = true;
  --signs_->held;
}

ConnectionProgress::Signs ConnectionProgress::Open(const std::string& peer) {
  auto signs = std::make_shared<ConnectionSigns>();
  const MutexLock lock(&mutex_);
  if (signs_.size() >= clean_at_) {
    std::erase_if(signs_, [](const auto& entry) { return entry.second.expired(); });
    clean_at_ = std::max<size_t>(64, 2 * signs_.size());
  }
  signs_[peer] = signs;
  return signs;
}

ConnectionProgress::Signs ConnectionProgress::Find(const std::string& peer) {
  const MutexLock lock(&mutex_);
  const auto found = signs_.find(peer);
  return found == signs_.end() ? nullptr : found->second.lock();
}

}  // namespace atl
