#ifndef ATOLL_CLIENT_LIBRARY_CLIENT_H_
#define ATOLL_CLIENT_LIBRARY_CLIENT_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "atoll/client.h"
#include "client/ipc/messages.h"
#include "client/ipc/status_page.h"
#include "client/library/engine_process.h"
#include "client/library/failure.h"

namespace atl::library {

/// One worker as atoll/client.h describes it; the functions there are these.
class Client {
 public:
  static Result Open(std::vector<ipc::Option> options, std::vector<ipc::Tensor> tensors,
                     std::unique_ptr<Client>& client);
  ~Client() { Close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// In the process that opened it: stops the worker, and ends the engine by force after 5 s. From any
  /// thread; a Next that waits then fails. May be called again.
  void Close();
  Result Next(double timeout_seconds, atl_event& event);
  Result Answer(const atl_answer_fields& answer);
  Result Drain() { return Order("atl_drain", drain_); }
  Result Stop() { return Order("atl_stop", stop_); }
  Result Status(std::string& json);
  const char* run_json() const { return run_json_.c_str(); }

 private:
  /// Whether the caller asked the engine for something.
  enum class Asked : uint8_t { kNo, kYes, kSent };

  Client(std::unique_ptr<EngineProcess> engine, const std::vector<ipc::Tensor>& tensors);
  /// ATL_FAILED_PRECONDITION in a forked child.
  Result CheckProcess(const char* call) const;
  Result Order(const char* call, std::atomic<Asked>& order);
  /// Sends what is asked and not sent yet. Does not wait.
  void SendOrders();
  /// Checks what the engine says, and makes the caller's event of it.
  Result Take(ipc::Event event);
  Result TakePieces();
  Result CheckAnswer(const atl_answer_fields& answer) const;

  const pid_t process_;
  const std::unique_ptr<EngineProcess> engine_;
  std::vector<uint64_t> elements_;  // of each tensor
  const ipc::StatusPage page_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> ended_{false};
  std::atomic<Asked> drain_{Asked::kNo};
  std::atomic<Asked> stop_{Asked::kNo};
  bool unanswered_ = false;
  Result undelivered_;  // why an answer did not reach the engine
  ipc::Event current_;
  std::vector<atl_piece> pieces_;
  atl_event event_ = {};
  std::string run_json_;
  std::mutex status_mutex_;
  std::string last_status_ = "{}";
};

}  // namespace atl::library

#endif  // ATOLL_CLIENT_LIBRARY_CLIENT_H_
