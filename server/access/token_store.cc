#include "server/access/token_store.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/status.h"
#include "core/membership.h"

namespace atl {
namespace {

constexpr char kFileName[] = "tokens.json";
constexpr char kAdminFileName[] = "admin.token";
constexpr unsigned kOwnerOnly = 0600;
constexpr size_t kIdBytes = 4;
constexpr size_t kSecretBytes = 32;
constexpr size_t kMaxTokens = 2000;
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMinTokenBytes = 16;  // of those that somebody else has made

absl::Status CheckRequest(const TokenRequest& request) {
  if (request.lifetime && *request.lifetime <= Duration::zero()) {
    return absl::InvalidArgumentError("expiry: must be in the future");
  }
  if (request.role == Role::kWorker) {
    return request.name.empty() ? absl::OkStatus() : ValidateWorkerName(request.name);
  }
  if (request.name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("name: %s's token needs a name, which the audit log records with each action",
                        request.role == Role::kAdmin ? "an admin" : "an observer"));
  }
  const bool printable = std::all_of(request.name.begin(), request.name.end(),
                                     [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (printable && request.name.size() <= kMaxNameBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("name: at most %d printable characters without blanks", kMaxNameBytes));
}

absl::Status MakePrivateFolder(const std::string& folder) {
  ATOLL_RETURN_IF_ERROR(CreateDirs(folder));
  std::error_code error;
  std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  if (!error) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrFormat("cannot make %s private (%s)", folder, error.message()));
}

/// A pipe is read once: what is no file is none that a store has written.
absl::Status CheckTokenFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is not a regular file, so the run's tokens cannot be read: replace it by a backup; "
                      "without a backup, remove it and create every token again",
                      path));
}

bool Usable(const TokenRecord& token, int64_t now_unix_ns) {
  return token.revoked_unix_ns == 0 && (token.expires_unix_ns == 0 || now_unix_ns < token.expires_unix_ns);
}

}  // namespace

std::string MakeTokenText(const std::string& id) {
  return absl::StrFormat("atoll_%s_%s", id, ToHex(RandomBytes(kSecretBytes)));
}

std::string TokenStore::FileIn(const std::string& folder) { return JoinPath(folder, kFileName); }

absl::StatusOr<std::unique_ptr<TokenStore>> TokenStore::Open(const std::string& folder, const Clock* clock) {
  ATOLL_RETURN_IF_ERROR(MakePrivateFolder(folder));
  const std::string path = FileIn(folder);
  std::vector<TokenRecord> kept;
  if (FileExists(path)) {
    ATOLL_RETURN_IF_ERROR(CheckTokenFile(path));
    ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    auto decoded = DecodeTokens(text);
    if (!decoded.ok()) {
      return absl::DataLossError(
          absl::StrFormat("%s %s; replace it by a backup, or remove it and create every token again", path,
                          std::string(decoded.status().message())));
    }
    kept = *std::move(decoded);
  }
  return std::unique_ptr<TokenStore>(new TokenStore(folder, clock, std::move(kept)));
}

TokenStore::TokenStore(std::string folder, const Clock* clock, std::vector<TokenRecord> kept)
    : folder_(std::move(folder)), clock_(clock), kept_(std::move(kept)) {}

int64_t TokenStore::WallNs() const { return clock_->WallNow().time_since_epoch().count(); }

std::vector<TokenRecord> TokenStore::Kept() const {
  MutexLock lock(&mutex_);
  return kept_;
}

absl::Status TokenStore::Keep(std::vector<TokenRecord> kept) {
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder_, kFileName), EncodeTokens(kept), kOwnerOnly));
  MutexLock lock(&mutex_);
  kept_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status TokenStore::Add(const TokenRecord& token) {
  std::vector<TokenRecord> kept = Kept();
  if (kept.size() >= kMaxTokens) {
    // Those that are good for nothing any more make room.
    std::erase_if(kept, [now = WallNs()](const TokenRecord& old) { return !Usable(old, now); });
  }
  if (kept.size() >= kMaxTokens) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("there are already %d tokens, which is the maximum; revoke some", kept.size()));
  }
  kept.push_back(token);
  return Keep(std::move(kept));
}

absl::StatusOr<NewToken> TokenStore::Prepare(const TokenRequest& request) const {
  ATOLL_RETURN_IF_ERROR(CheckRequest(request));
  const std::vector<TokenRecord> kept = Kept();
  NewToken made;
  do {
    made.record.id = ToHex(RandomBytes(kIdBytes));
  } while (std::any_of(kept.begin(), kept.end(),
                       [&](const TokenRecord& token) { return token.id == made.record.id; }));
  made.text = MakeTokenText(made.record.id);
  made.record.role = request.role;
  made.record.name = request.name;
  made.record.sha256 = Sha256Hex(made.text);
  made.record.created_unix_ns = WallNs();
  if (request.lifetime) made.record.expires_unix_ns = WallNs() + request.lifetime->count();
  made.record.created_by = request.created_by;
  return made;
}

absl::StatusOr<NewToken> TokenStore::Create(const TokenRequest& request) {
  MutexLock writing(&write_mutex_);
  ATOLL_ASSIGN_OR_RETURN(NewToken made, Prepare(request));
  ATOLL_RETURN_IF_ERROR(Add(made.record));
  return made;
}

absl::StatusOr<std::string> TokenStore::EnsureAdmin() {
  MutexLock writing(&write_mutex_);
  const int64_t now = WallNs();
  for (const TokenRecord& token : Kept()) {
    if (token.role == Role::kAdmin && Usable(token, now)) return std::string();
  }
  ATOLL_ASSIGN_OR_RETURN(
      const NewToken made,
      Prepare({.role = Role::kAdmin, .name = "admin", .lifetime = std::nullopt, .created_by = "start"}));
  // The file first: a token that is kept and that nobody was told would be in the way of the next attempt.
  const std::string path = JoinPath(folder_, kAdminFileName);
  ATOLL_RETURN_IF_ERROR(WriteFileAtomically(path, made.text + "\n", kOwnerOnly));
  ATOLL_RETURN_IF_ERROR(Add(made.record));
  return path;
}

absl::StatusOr<TokenRecord> TokenStore::Revoke(const std::string& id) {
  MutexLock writing(&write_mutex_);
  std::vector<TokenRecord> kept = Kept();
  const auto found =
      std::find_if(kept.begin(), kept.end(), [&](const TokenRecord& token) { return token.id == id; });
  if (found == kept.end()) {
    MutexLock lock(&mutex_);
    if (!given_.contains(id)) {
      return absl::NotFoundError(
          absl::StrFormat("token '%s' does not exist; 'atollctl tokens list' shows all tokens", id));
    }
    return absl::FailedPreconditionError(absl::StrFormat(
        "token '%s' comes from a file of the coordinator's command line; change that file instead", id));
  }
  if (found->revoked_unix_ns != 0) {
    return absl::FailedPreconditionError(absl::StrFormat("token '%s' is already revoked", id));
  }
  found->revoked_unix_ns = WallNs();
  const TokenRecord revoked = *found;
  ATOLL_RETURN_IF_ERROR(Keep(std::move(kept)));
  return revoked;
}

std::vector<TokenRecord> TokenStore::List() const {
  MutexLock lock(&mutex_);
  std::vector<TokenRecord> all = kept_;
  for (const auto& [label, token] : given_) all.push_back(token);
  return all;
}

absl::Status TokenStore::Give(const std::string& label, Role role, const std::string& name,
                              std::string_view text) {
  if (text.size() < kMinTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: a token of %d characters can be guessed; use at least %d (openssl rand -hex 32)",
                        label, text.size(), kMinTokenBytes));
  }
  MutexLock lock(&mutex_);
  given_[label] =
      TokenRecord{.id = label, .role = role, .name = name, .sha256 = Sha256Hex(text), .created_by = "start"};
  return absl::OkStatus();
}

absl::StatusOr<TokenRecord> TokenStore::Find(std::string_view text) const {
  const std::string digest = Sha256Hex(text);
  const int64_t now = WallNs();
  std::optional<TokenRecord> found;
  {
    MutexLock lock(&mutex_);
    // All of them, whichever it is: how long it takes tells nothing.
    for (const TokenRecord& token : kept_) {
      if (ConstantTimeEqual(token.sha256, digest)) found = token;
    }
    for (const auto& [label, token] : given_) {
      if (ConstantTimeEqual(token.sha256, digest)) found = token;
    }
  }
  if (!found) {
    return absl::UnauthenticatedError(
        "this run does not know the token; check that it is complete and belongs to this run, or ask the "
        "run's operator for a new one");
  }
  if (found->revoked_unix_ns != 0) {
    return absl::UnauthenticatedError(
        absl::StrFormat("token %s was revoked; ask the run's operator for a new one", found->id));
  }
  if (!Usable(*found, now)) {
    return absl::UnauthenticatedError(
        absl::StrFormat("token %s has expired; ask the run's operator for a new one", found->id));
  }
  return *found;
}

}  // namespace atl
