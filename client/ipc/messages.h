#ifndef ATOLL_CLIENT_IPC_MESSAGES_H_
#define ATOLL_CLIENT_IPC_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "atoll/client.h"

// What the library (in the caller's process) and the engine say to each other. The library starts the engine
// with these descriptors, and nothing else but the standard streams:
//
//   3  a stream socket: messages of message_socket.h
//   4  shared memory for values of parameters, as large as the largest fragment
//   5  shared memory for the caller's state (SAVE, LOAD)
//   6  shared memory for the live status (status_page.h)
//
// Order: Hello from the library; Ready or Refused from the engine. Then Events from the engine, each but the
// last answered by one Answer. Drain and Stop come from the library at any time. A Hello that asks for a
// snapshot is answered by Snapshot or Refused, and nothing follows. When either side closes the socket, the
// other ends. Kinds, outcomes and codes are those of atoll/client.h.

namespace atl::ipc {

/// Library and engine are installed together; another version is refused by the engine.
inline constexpr uint32_t kVersion = 1;

inline constexpr int kSocketDescriptor = 3;
inline constexpr int kValuesDescriptor = 4;
inline constexpr int kStateDescriptor = 5;
inline constexpr int kStatusDescriptor = 6;
inline constexpr int kFirstFreeDescriptor = 7;

enum class MessageType : uint32_t {
  kHello = 1,
  kReady = 2,
  kRefused = 3,
  kEvent = 4,
  kAnswer = 5,
  kDrain = 6,
  kStop = 7,
  kSnapshot = 8,
};

/// Tensors of a run, their names and dimensions: core/manifest.h has the same bounds.
inline constexpr uint32_t kMaxTensors = 65536;
inline constexpr uint32_t kMaxRank = 8;
inline constexpr uint32_t kMaxName = 512;

struct Option {
  std::string name = {};
  std::string value = {};
};

struct Tensor {
  std::string name = {};
  std::vector<int64_t> shape = {};
  uint32_t flags = 0;
};

/// Where one tensor lies in the values' memory. Units: float32 elements.
struct Piece {
  uint32_t tensor = 0;
  uint64_t offset = 0;
  uint64_t elements = 0;
};

struct Hello {
  uint32_t version = kVersion;
  uint8_t snapshot = 0;    // 1: atl_pull
  int64_t caller_pid = 0;  // the engine ends when this process is no longer its parent
  std::vector<Option> options = {};
  std::vector<Tensor> tensors = {};
};

struct Refused {
  int32_t code = 0;
  std::string message = {};
};

struct Event {
  uint64_t sequence = 0;
  uint32_t kind = 0;
  double learning_rate = 0;
  uint64_t version = 0;
  uint64_t local_step = 0;
  uint32_t partition = 0;
  uint32_t partitions = 0;
  uint64_t samples = 0;
  uint64_t state_bytes = 0;
  uint32_t max_batches = 0;
  int32_t exit_code = 0;
  int32_t end_code = 0;
  uint32_t end_reason = 0;
  std::string text = {};  // END: why. JOINED: the run as JSON
  std::vector<Piece> pieces = {};
};

struct Answer {
  uint64_t sequence = 0;  // of the event
  uint32_t outcome = 0;
  std::string message = {};
  double loss = 0;
  double gradient_norm = 0;
  double data_seconds = 0;
  uint64_t tokens = 0;
  uint64_t samples = 0;
  uint64_t optimizer_steps = 0;
  uint64_t state_bytes = 0;
  std::string state_kind = {};
};

struct Snapshot {
  uint64_t version = 0;
  std::string run_json = {};
  std::vector<Tensor> tensors = {};
  std::vector<Piece> pieces = {};  // one for each tensor, in their order
};

std::string Encode(const Hello& hello);
std::string Encode(const Refused& refused);
std::string Encode(const Event& event);
std::string Encode(const Answer& answer);
std::string Encode(const Snapshot& snapshot);

/// None when the bytes are not of such a message, or beyond the bounds above.
std::optional<Hello> DecodeHello(std::string_view bytes);
std::optional<Refused> DecodeRefused(std::string_view bytes);
std::optional<Event> DecodeEvent(std::string_view bytes);
std::optional<Answer> DecodeAnswer(std::string_view bytes);
std::optional<Snapshot> DecodeSnapshot(std::string_view bytes);

/// The version of a Hello of any version: its first field.
std::optional<uint32_t> VersionOfHello(std::string_view bytes);

}  // namespace atl::ipc

#endif  // ATOLL_CLIENT_IPC_MESSAGES_H_
