// The functions of atoll/client.h: arguments are checked and copied, exceptions end here.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "atoll/client.h"
#include "atoll/version.h"
#include "client/ipc/messages.h"
#include "client/library/client.h"
#include "client/library/failure.h"
#include "client/library/open_clients.h"
#include "client/library/snapshot.h"

struct atl_snapshot {
  std::unique_ptr<atl::library::Snapshot> snapshot;
};

namespace atl::library {
namespace {

atl_code Report(const Result& result, atl_error* error) {
  if (!result.ok() && error != nullptr) {
    error->code = result.code;
    const size_t bytes = std::min(result.message.size(), sizeof(error->message) - 1);
    std::memcpy(error->message, result.message.data(), bytes);
    error->message[bytes] = '\0';
  }
  return result.code;
}

/// Runs `call`, which returns a Result.
template <typename Call>
atl_code Guard(atl_error* error, Call call) {
  try {
    return Report(call(), error);
  } catch (const std::bad_alloc&) {
    return Report({ATL_RESOURCE_EXHAUSTED, "no memory"}, error);
  } catch (const std::exception& exception) {
    return Report({ATL_UNKNOWN, exception.what()}, error);
  }
}

Result IsNull(const char* what) { return Failure(ATL_INVALID_ARGUMENT, Text("%s is null", what)); }

/// Runs `call`, which gets the client and returns a Result.
template <typename Call>
atl_code Use(const atl_client* handle, atl_error* error, Call call) {
  return Guard(error, [&]() -> Result {
    if (handle == nullptr) return IsNull("client");
    const std::shared_ptr<Client> client = FindOpen(handle);
    if (client == nullptr)
      return Failure(ATL_FAILED_PRECONDITION, "this client is closed: open a new one with atl_open");
    return call(*client);
  });
}

Result CopyOptions(const atl_option* options, size_t count, std::vector<ipc::Option>& copied) {
  if (options == nullptr && count > 0) return IsNull("options");
  for (size_t i = 0; i < count; ++i) {
    if (options[i].name == nullptr)
      return Failure(ATL_INVALID_ARGUMENT, Text("option number %zu has no name", i));
    if (options[i].value == nullptr)
      return Failure(ATL_INVALID_ARGUMENT, Text("option '%s' has no value", options[i].name));
    copied.push_back({options[i].name, options[i].value});
  }
  return {};
}

Result CopyTensor(const atl_tensor& tensor, size_t index, ipc::Tensor& copied) {
  if (tensor.size < sizeof(atl_tensor))
    return Failure(ATL_INVALID_ARGUMENT,
                   Text("tensor number %zu: set its size to sizeof(atl_tensor)", index));
  if (tensor.name == nullptr)
    return Failure(ATL_INVALID_ARGUMENT, Text("tensor number %zu has no name", index));
  copied.name = tensor.name;
  copied.flags = tensor.flags;
  if (copied.name.size() > ipc::kMaxName) {
    return Failure(ATL_INVALID_ARGUMENT,
                   Text("tensor number %zu: its name has %zu bytes, at most %u are allowed", index,
                        copied.name.size(), ipc::kMaxName));
  }
  if (tensor.rank > ipc::kMaxRank || (tensor.rank > 0 && tensor.shape == nullptr)) {
    return Failure(
        ATL_INVALID_ARGUMENT,
        Text("tensor '%s': it has %u dimensions, at most %u are allowed, and a shape must be given",
             tensor.name, tensor.rank, ipc::kMaxRank));
  }
  for (uint32_t d = 0; d < tensor.rank; ++d) copied.shape.push_back(tensor.shape[d]);
  return {};
}

/// Structs are `stride` bytes apart: a newer caller's are larger than ours.
Result CopyTensors(const atl_tensor* tensors, size_t count, std::vector<ipc::Tensor>& copied) {
  if (tensors == nullptr && count > 0) return IsNull("tensors");
  if (count > ipc::kMaxTensors) {
    return Failure(ATL_INVALID_ARGUMENT,
                   Text("the model has %zu tensors, at most %u are allowed", count, ipc::kMaxTensors));
  }
  const size_t stride = count > 0 ? std::max<size_t>(tensors[0].size, sizeof(atl_tensor)) : 0;
  for (size_t i = 0; i < count; ++i) {
    const auto* const place = reinterpret_cast<const char*>(tensors) + i * stride;
    ipc::Tensor tensor;
    Result one = CopyTensor(*reinterpret_cast<const atl_tensor*>(place), i, tensor);
    if (!one.ok()) return one;
    copied.push_back(std::move(tensor));
  }
  return {};
}

Result Open(const atl_option* options, size_t option_count, const atl_tensor* tensors, size_t tensor_count,
            atl_client** client) {
  if (client == nullptr) return IsNull("client");
  *client = nullptr;
  std::vector<ipc::Option> given;
  std::vector<ipc::Tensor> model;
  Result copied = CopyOptions(options, option_count, given);
  if (copied.ok()) copied = CopyTensors(tensors, tensor_count, model);
  if (!copied.ok()) return copied;
  std::unique_ptr<Client> opened;
  Result result = Client::Open(std::move(given), std::move(model), opened);
  if (result.ok()) *client = AddOpen(std::move(opened));
  return result;
}

Result OpenSnapshot(const atl_option* options, size_t option_count, atl_snapshot** snapshot) {
  if (snapshot == nullptr) return IsNull("snapshot");
  *snapshot = nullptr;
  std::vector<ipc::Option> given;
  Result copied = CopyOptions(options, option_count, given);
  if (!copied.ok()) return copied;
  auto opened = std::make_unique<atl_snapshot>();
  Result result = Snapshot::Open(std::move(given), opened->snapshot);
  if (result.ok()) *snapshot = opened.release();
  return result;
}

Result Pull(const atl_option* options, size_t option_count, atl_snapshot** snapshot) {
  Result result = OpenSnapshot(options, option_count, snapshot);
  if (!result.ok()) return result;
  std::unique_ptr<atl_snapshot> opened(std::exchange(*snapshot, nullptr));
  result = opened->snapshot->Wait(-1);
  if (result.ok()) *snapshot = opened.release();
  return result;
}

Result Answer(Client& client, const atl_answer_fields* answer) {
  if (answer == nullptr) return IsNull("answer");
  if (answer->size < offsetof(atl_answer_fields, message))
    return Failure(ATL_INVALID_ARGUMENT, "atl_answer: set answer->size to sizeof(atl_answer_fields) first");
  atl_answer_fields known = {};
  std::memcpy(&known, answer, std::min<size_t>(answer->size, sizeof(known)));
  return client.Answer(known);
}

Result Status(Client& client, char** json) {
  if (json == nullptr) return IsNull("json");
  *json = nullptr;
  std::string text;
  Result result = client.Status(text);
  if (!result.ok()) return result;
  *json = static_cast<char*>(std::malloc(text.size() + 1));
  if (*json == nullptr) return Failure(ATL_RESOURCE_EXHAUSTED, "no memory");
  std::memcpy(*json, text.c_str(), text.size() + 1);
  return result;
}

Result TensorOf(const atl_snapshot* snapshot, size_t index, atl_tensor* tensor, const float** values,
                uint64_t* elements) {
  if (snapshot == nullptr) return IsNull("snapshot");
  const ipc::Snapshot& facts = snapshot->snapshot->facts();
  if (index >= facts.tensors.size()) {
    return Failure(ATL_OUT_OF_RANGE,
                   Text("there is no tensor number %zu; the run has %zu", index, facts.tensors.size()));
  }
  const ipc::Tensor& one = facts.tensors[index];
  if (tensor != nullptr) {
    *tensor = {.size = sizeof(atl_tensor),
               .rank = static_cast<uint32_t>(one.shape.size()),
               .name = one.name.c_str(),
               .shape = one.shape.data(),
               .flags = one.flags,
               .reserved = 0};
  }
  if (values != nullptr) *values = snapshot->snapshot->values(index).data();
  if (elements != nullptr) *elements = snapshot->snapshot->values(index).size();
  return {};
}

}  // namespace
}  // namespace atl::library

using atl::library::Client;
using atl::library::FindOpen;
using atl::library::Guard;
using atl::library::IsNull;
using atl::library::RemoveOpen;
using atl::library::Result;
using atl::library::Use;

extern "C" {

uint32_t atl_api_version(void) { return ATOLL_API_VERSION; }
const char* atl_version(void) { return atl::kVersion.data(); }

atl_code atl_open(const atl_option* options, size_t option_count, const atl_tensor* tensors,
                  size_t tensor_count, atl_client** client, atl_error* error) {
  return Guard(error,
               [&] { return atl::library::Open(options, option_count, tensors, tensor_count, client); });
}

atl_code atl_next(atl_client* client, double timeout_seconds, atl_event* event, atl_error* error) {
  return Use(client, error, [&](Client& open) {
    return event == nullptr ? IsNull("event") : open.Next(timeout_seconds, *event);
  });
}

atl_code atl_answer(atl_client* client, const atl_answer_fields* answer, atl_error* error) {
  return Use(client, error, [&](Client& open) { return atl::library::Answer(open, answer); });
}

const char* atl_run_json(atl_client* client) {
  const char* json = "";
  Guard(nullptr, [&]() -> Result {
    const std::shared_ptr<Client> open = FindOpen(client);
    if (open != nullptr) json = open->run_json();
    return {};
  });
  return json;
}

atl_code atl_status(atl_client* client, char** json, atl_error* error) {
  return Use(client, error, [&](Client& open) { return atl::library::Status(open, json); });
}

void atl_free(void* memory) { std::free(memory); }

atl_code atl_drain(atl_client* client, atl_error* error) {
  return Use(client, error, [](Client& open) { return open.Drain(); });
}

atl_code atl_stop(atl_client* client, atl_error* error) {
  return Use(client, error, [](Client& open) { return open.Stop(); });
}

void atl_close(atl_client* client) {
  Guard(nullptr, [&]() -> Result {
    const std::shared_ptr<Client> removed = RemoveOpen(client);
    if (removed != nullptr) removed->Close();
    return {};
  });
}

atl_code atl_pull(const atl_option* options, size_t option_count, atl_snapshot** snapshot, atl_error* error) {
  return Guard(error, [&] { return atl::library::Pull(options, option_count, snapshot); });
}

atl_code atl_snapshot_open(const atl_option* options, size_t option_count, atl_snapshot** snapshot,
                           atl_error* error) {
  return Guard(error, [&] { return atl::library::OpenSnapshot(options, option_count, snapshot); });
}

atl_code atl_snapshot_wait(atl_snapshot* snapshot, double timeout_seconds, atl_error* error) {
  return Guard(error, [&] {
    return snapshot == nullptr ? IsNull("snapshot") : snapshot->snapshot->Wait(timeout_seconds);
  });
}

uint64_t atl_snapshot_version(const atl_snapshot* snapshot) {
  return snapshot == nullptr ? 0 : snapshot->snapshot->facts().version;
}

size_t atl_snapshot_tensor_count(const atl_snapshot* snapshot) {
  return snapshot == nullptr ? 0 : snapshot->snapshot->facts().tensors.size();
}

const char* atl_snapshot_run_json(const atl_snapshot* snapshot) {
  return snapshot == nullptr ? "" : snapshot->snapshot->facts().run_json.c_str();
}

atl_code atl_snapshot_tensor(const atl_snapshot* snapshot, size_t index, atl_tensor* tensor,
                             const float** values, uint64_t* elements, atl_error* error) {
  return Guard(error, [&] { return atl::library::TensorOf(snapshot, index, tensor, values, elements); });
}

void atl_snapshot_close(atl_snapshot* snapshot) { delete snapshot; }

}  // extern "C"
