#ifndef ATOLL_CLIENT_LIBRARY_ENGINE_PROCESS_H_
#define ATOLL_CLIENT_LIBRARY_ENGINE_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/ipc/message_socket.h"
#include "client/ipc/messages.h"
#include "client/ipc/shared_memory.h"
#include "client/library/failure.h"

namespace atl::library {

/// A timeout of atoll/client.h. Negative and NaN: without end.
std::chrono::milliseconds TimeoutOf(double seconds);

/// One engine, a child of this process, and what is shared with it.
class EngineProcess {
 public:
  /// Starts the engine that the options name, or that ATOLL_ENGINE names, or that lies beside this library.
  /// It gets the standard streams of this process (its log goes to `log-file` when the options have one) and
  /// nothing else.
  ///   ATL_NOT_FOUND         no engine; the message lists where it was looked for
  ///   ATL_INVALID_ARGUMENT  log-file cannot be opened
  static Result Start(const std::vector<ipc::Option>& options, std::unique_ptr<EngineProcess>& engine);
  /// Ends it by force when it still runs. In a child of the process that started it, only lets go of this
  /// copy.
  ~EngineProcess();
  EngineProcess(const EngineProcess&) = delete;
  EngineProcess& operator=(const EngineProcess&) = delete;

  /// Sends the first message. ATL_INVALID_ARGUMENT: it is too large.
  Result Greet(const ipc::Hello& hello);
  /// As MessageSocket's.
  bool Send(ipc::MessageType type, const std::string& body, std::chrono::milliseconds timeout) {
    return socket_->Send(type, body, timeout);
  }
  /// Waits for a message at most `timeout` (negative: without end). ATL_DEADLINE_EXCEEDED: none came.
  /// ATL_INTERNAL: the engine has ended, or what it said cannot be understood.
  Result Receive(std::chrono::milliseconds timeout, ipc::MessageType& type, std::string& body);
  /// Waits until it has ended. False: it still runs.
  bool AwaitEnd(std::chrono::milliseconds timeout);
  /// Ends it by force when it still runs, and waits for that.
  void Kill();

  ipc::SharedMemory& values() { return values_; }
  ipc::SharedMemory& state() { return state_; }
  ipc::SharedMemory& status() { return status_; }

 private:
  EngineProcess(std::string path, std::string log_file);
  Result Spawn();
  /// Looks once. True from the first time on that it has ended.
  bool Ended();
  /// The process that ended, how, and where it wrote about it.
  std::string Obituary();

  const std::string path_;
  const std::string log_file_;  // empty: standard error
  const pid_t parent_;
  std::unique_ptr<ipc::MessageSocket> socket_;
  ipc::SharedMemory values_;
  ipc::SharedMemory state_;
  ipc::SharedMemory status_;
  bool heard_ = false;  // it has sent a message
  std::mutex mutex_;    // of what follows
  pid_t pid_ = -1;
  bool ended_ = false;
  std::string how_;  // it ended
};

}  // namespace atl::library

#endif  // ATOLL_CLIENT_LIBRARY_ENGINE_PROCESS_H_
