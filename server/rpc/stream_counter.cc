#include "server/rpc/stream_counter.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "grpc/grpc.h"
#include "grpc/support/alloc.h"
#include "nlohmann/json.hpp"
#include "server/rpc/peer.h"

namespace atl {
namespace {

using nlohmann::json;

/// What gRPC answers, which is its to allocate; discarded when it has no answer.
json Parse(char* answer) {
  if (answer == nullptr) return json(json::value_t::discarded);
  json parsed = json::parse(answer, nullptr, false);
  gpr_free(answer);
  return parsed;
}

/// A member as channelz writes 64-bit numbers: in quotes, and left out when 0.
uint64_t NumberAt(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return 0;
  const auto& text = found->get_ref<const std::string&>();
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "127.0.0.1:50123" of "chttp2 ipv4:127.0.0.1:50123".
std::string PeerOf(const json& reference) {
  const std::string name = reference.value("name", "");
  const size_t space = name.find(' ');
  return PeerAddress(space == std::string::npos ? name : name.substr(space + 1));
}

/// Calls `each` with the entries of a list that is given out page by page.
void ForEach(const std::function<char*(intptr_t from)>& page, const char* list, const char* id_in,
             const char* id, const std::function<void(const json&, intptr_t)>& each) {
  for (intptr_t from = 0;;) {
    const json answer = Parse(page(from));
    if (!answer.is_object()) return;
    const auto found = answer.find(list);
    if (found == answer.end()) return;
    for (const json& entry : *found) {
      const json& reference = *id_in == '\0' ? entry : entry.at(id_in);
      const auto number = static_cast<intptr_t>(NumberAt(reference, id));
      from = std::max(from, number + 1);
      each(reference, number);
    }
    if (answer.value("end", false)) return;
  }
}

}  // namespace

std::vector<uint64_t> StreamCounter::Count(const std::vector<std::string>& peers) {
  const bool known = std::ranges::all_of(peers, [this](const auto& peer) { return sockets_.contains(peer); });
  if (!known) FindSockets();
  std::vector<uint64_t> counts;
  for (const std::string& peer : peers) counts.push_back(CountOne(peer));
  return counts;
}

uint64_t StreamCounter::CountOne(const std::string& peer) {
  const auto found = sockets_.find(peer);
  if (found == sockets_.end()) return 0;
  uint64_t open = 0;
  std::erase_if(found->second, [&](intptr_t number) {
    const json answer = Parse(grpc_channelz_get_socket(number));
    if (!answer.is_object() || !answer.contains("socket")) return true;  // it is gone
    const json& socket = answer.at("socket");
    const json::json_pointer port("/local/tcpip_address/port");
    if (socket.contains(port) && socket.at(port) != port_) return true;  // of another port
    const auto data = socket.find("data");
    if (data == socket.end()) return false;  // it has had none so far
    const uint64_t ended = NumberAt(*data, "streamsSucceeded") + NumberAt(*data, "streamsFailed");
    const uint64_t begun = NumberAt(*data, "streamsStarted");
    open += begun - std::min(begun, ended);
    return false;
  });
  if (found->second.empty()) sockets_.erase(found);
  return open;
}

void StreamCounter::FindSockets() {
  sockets_.clear();
  const auto add = [this](const json& reference, intptr_t number) {
    sockets_[PeerOf(reference)].push_back(number);
  };
  const auto of_server = [&add](const json& /*reference*/, intptr_t server) {
    ForEach([server](intptr_t from) { return grpc_channelz_get_server_sockets(server, from, 0); },
            "socketRef", "", "socketId", add);
  };
  ForEach(grpc_channelz_get_servers, "server", "ref", "serverId", of_server);
}

}  // namespace atl
