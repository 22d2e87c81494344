#ifndef ATOLL_TESTS_CLIENT_LIBRARY_CALLER_H_
#define ATOLL_TESTS_CLIENT_LIBRARY_CALLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "atoll/client.h"
#include "core/manifest.h"

namespace atl {

/// How the worker left, or why the library failed.
struct CallerEnd {
  atl_code failed = ATL_OK;  // of atl_next or atl_answer
  std::string message = {};
  uint32_t reason = 0;
  atl_code code = ATL_OK;
  int exit_code = -1;
  std::string text = {};
};

/// A training loop over the C interface: all values move towards 1. Not thread-safe.
class Caller {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;

  explicit Caller(const Manifest& manifest);
  ~Caller() { Close(); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  /// The library's code; error() has the message.
  atl_code Open(const Options& options);
  void Close();
  atl_code Next(double timeout_seconds, atl_event& event);
  /// Does what the event says, and answers.
  atl_code Answer(const atl_event& event);
  /// Until END, or until the library fails. `between` is called after each answer.
  CallerEnd RunToEnd(const std::function<void()>& between = {});

  atl_client* client() { return client_; }
  const atl_error& error() const { return error_; }
  int seen(atl_event_kind kind) const { return seen_.count(kind) > 0 ? seen_.at(kind) : 0; }
  uint64_t steps() const { return steps_; }
  const std::vector<std::vector<float>>& values() const { return values_; }
  const std::string& loaded() const { return loaded_; }

  /// Changes the answer to an event before it is given.
  std::function<void(const atl_event& event, atl_answer_fields& answer)> amend;
  std::string state = "state";  // that SAVE hands over

 private:
  double Step(double learning_rate);
  void Do(const atl_event& event, atl_answer_fields& answer);

  const Manifest manifest_;
  atl_client* client_ = nullptr;
  atl_error error_ = {};
  std::vector<std::vector<float>> values_;
  std::map<atl_event_kind, int> seen_;
  uint64_t steps_ = 0;
  uint64_t samples_ = 0;
  std::string loaded_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_LIBRARY_CALLER_H_
