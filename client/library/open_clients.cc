#include "client/library/open_clients.h"

#include <pthread.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace atl::library {
namespace {

using Clients = std::map<std::uintptr_t, std::shared_ptr<Client>>;

// Neither is ever destroyed: a thread may call the library while the process exits.
constinit std::mutex mutex;
constinit Clients* clients = nullptr;
constinit std::uintptr_t handles = 0;  // given so far

// A fork while another thread holds the mutex would leave it locked in the child permanently. No memory for
// the handlers leaves that risk, and nothing else.
[[maybe_unused]] const int kForkHandlers =
    ::pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });

std::uintptr_t NumberOf(const atl_client* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

}  // namespace

atl_client* AddOpen(std::shared_ptr<Client> client) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (clients == nullptr) clients = new Clients;
  const std::uintptr_t number = handles + 1;
  clients->emplace(number, std::move(client));
  handles = number;
  return reinterpret_cast<atl_client*>(number);  // NOLINT(performance-no-int-to-ptr): nobody reads there
}

std::shared_ptr<Client> FindOpen(const atl_client* handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (clients == nullptr) return nullptr;
  const auto found = clients->find(NumberOf(handle));
  return found == clients->end() ? nullptr : found->second;
}

std::shared_ptr<Client> RemoveOpen(const atl_client* handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (clients == nullptr) return nullptr;
  const auto found = clients->find(NumberOf(handle));
  if (found == clients->end()) return nullptr;
  std::shared_ptr<Client> removed = std::move(found->second);
  clients->erase(found);
  return removed;
}

}  // namespace atl::library
