#include "client/sync/identity.h"

#include <limits.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "core/membership.h"

namespace atl {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr uint64_t kMaxIdentityFile = 4096;

absl::Status Damaged(const std::string& file, std::string_view what) {
  return absl::DataLossError(
      absl::StrFormat("%s is damaged: %s; remove it to join as a new worker, or restore it", file, what));
}

struct KeptIdentity {
  WorkerIdentity identity;
  bool claimed = true;
};

absl::StatusOr<KeptIdentity> ParseIdentity(const std::string& file, const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Damaged(file, "not a JSON object");
  const auto name = json.find("name");
  const auto secret = json.find("secret");
  if (name == json.end() || !name->is_string()) return Damaged(file, "no \"name\"");
  if (secret == json.end() || !secret->is_string()) return Damaged(file, "no \"secret\"");
  KeptIdentity kept;
  WorkerIdentity& identity = kept.identity;
  identity.name = name->get<std::string>();
  const std::optional<std::string> bytes = FromHex(secret->get<std::string>());
  if (!bytes.has_value() || bytes->size() != kSecretBytes) {
    return Damaged(file, "\"secret\" is not 64 hexadecimal digits");
  }
  identity.secret = *bytes;
  if (!ValidateWorkerName(identity.name).ok()) return Damaged(file, "\"name\" is not a worker's name");
  const auto joined = json.find("joined");
  kept.claimed = joined == json.end() || !joined->is_boolean() || joined->get<bool>();
  return kept;
}

absl::StatusOr<KeptIdentity> ReadIdentity(const std::string& file) {
  const absl::StatusOr<std::string> text = ReadFile(file, kMaxIdentityFile);
  if (absl::IsFailedPrecondition(text.status())) return Damaged(file, std::string(text.status().message()));
  ATOLL_RETURN_IF_ERROR(text.status());
  return ParseIdentity(file, *text);
}

absl::Status WriteIdentity(const std::string& file, const KeptIdentity& kept) {
  nlohmann::json json = {{"name", kept.identity.name}, {"secret", ToHex(kept.identity.secret)}};
  if (!kept.claimed) json["joined"] = false;
  return WriteFileAtomically(file, json.dump(2) + "\n", 0600);
}

}  // namespace

absl::StatusOr<StateDirectory> StateDirectory::Open(const std::string& path) {
  ATOLL_RETURN_IF_ERROR(CreateDirs(path));
  ATOLL_ASSIGN_OR_RETURN(FileLock lock, FileLock::Acquire(JoinPath(path, "LOCK")));
  return StateDirectory(path, std::move(lock));
}

std::string StateDirectory::IdentityFile() const { return JoinPath(path_, "identity"); }

absl::StatusOr<WorkerIdentity> StateDirectory::LoadOrCreate(std::string_view wanted_name) const {
  if (!wanted_name.empty()) ATOLL_RETURN_IF_ERROR(ValidateWorkerName(wanted_name));
  const std::string file = IdentityFile();
  if (FileExists(file)) {
    ATOLL_ASSIGN_OR_RETURN(const KeptIdentity kept, ReadIdentity(file));
    if (wanted_name.empty() || kept.identity.name == wanted_name) return kept.identity;
    if (kept.claimed) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "%s belongs to worker '%s', not to '%s'; use another --state-dir for another worker", path_,
          kept.identity.name, std::string(wanted_name)));
    }
  }
  const KeptIdentity made{
      .identity = {.name = wanted_name.empty() ? DefaultWorkerName() : WorkerName(wanted_name),
                   .secret = RandomBytes(kSecretBytes)},
      .claimed = false};
  ATOLL_RETURN_IF_ERROR(WriteIdentity(file, made));
  return made.identity;
}

absl::Status StateDirectory::Claim() const {
  const std::string file = IdentityFile();
  ATOLL_ASSIGN_OR_RETURN(KeptIdentity kept, ReadIdentity(file));
  if (kept.claimed) return absl::OkStatus();
  kept.claimed = true;
  return WriteIdentity(file, kept);
}

absl::StatusOr<SigningKey> StateDirectory::LoadOrCreateKey() const {
  const std::string file = JoinPath(path_, "key");
  if (FileExists(file)) {
    const absl::StatusOr<std::string> read = ReadFile(file, kMaxIdentityFile);
    if (absl::IsFailedPrecondition(read.status())) {  // a folder, a pipe, or too large
      return absl::DataLossError(
          absl::StrFormat("%s is damaged: %s; remove it, and the worker makes a new key", file,
                          std::string(read.status().message())));
    }
    ATOLL_RETURN_IF_ERROR(read.status());
    const std::string& text = *read;
    const std::optional<std::string> seed = FromHex(std::string(absl::StripAsciiWhitespace(text)));
    if (!seed.has_value() || seed->size() != kSigningSeedBytes) {
      return absl::DataLossError(absl::StrFormat(
          "%s is damaged: not 64 hexadecimal digits; remove it, and the worker makes a new key", file));
    }
    return SigningKey::FromSeed(*seed);
  }
  SigningKey key = SigningKey::Generate();
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(file, ToHex(key.seed()) + "\n", 0600));
  return key;
}

WorkerName MakeWorkerName(std::string_view text, size_t max_bytes) {
  WorkerName name;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool inner = plain || c == '.' || c == '-';
    if (name.size() == max_bytes) break;
    if (upper) {
      name += static_cast<char>(c - 'A' + 'a');
    } else if (!name.empty() || plain) {
      name += inner ? c : '-';
    }
  }
  return name.empty() ? WorkerName("worker").substr(0, max_bytes) : name;
}

WorkerName DefaultWorkerName() {
  char host[HOST_NAME_MAX + 1] = {};
  if (::gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return MakeWorkerName(host, kMaxWorkerName - 5) + "-" + ToHex(RandomBytes(2));
}

}  // namespace atl
