#include "server/access/token_file.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/json_integer.h"
#include "common/status.h"

namespace atl {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr size_t kDigestDigits = 64;

absl::StatusOr<TokenRecord> DecodeToken(const json& object) {
  TokenRecord token;
  token.id = object.value("id", std::string());
  token.name = object.value("name", std::string());
  token.sha256 = object.value("sha256", std::string());
  token.created_unix_ns = JsonInteger<int64_t>(object, "created_unix_ns", 0);
  token.expires_unix_ns = JsonInteger<int64_t>(object, "expires_unix_ns", 0);
  token.revoked_unix_ns = JsonInteger<int64_t>(object, "revoked_unix_ns", 0);
  token.created_by = object.value("created_by", std::string());
  const std::optional<Role> role = ParseRole(object.value("role", std::string()));
  if (!role) return absl::DataLossError(absl::StrFormat("token '%s' has an unknown role", token.id));
  if (token.id.empty() || token.sha256.size() != kDigestDigits || !FromHex(token.sha256)) {
    return absl::DataLossError(absl::StrFormat("token '%s' has no SHA-256", token.id));
  }
  token.role = *role;
  return token;
}

absl::StatusOr<std::vector<TokenRecord>> Decode(const json& file) {
  if (JsonInteger(file, "format", 0) != kFormat) {
    return absl::DataLossError(absl::StrFormat("does not have format %d", kFormat));
  }
  std::vector<TokenRecord> tokens;
  for (const json& object : file.at("tokens")) {
    ATOLL_ASSIGN_OR_RETURN(TokenRecord token, DecodeToken(object));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

std::string EncodeTokens(const std::vector<TokenRecord>& tokens) {
  json list = json::array();
  for (const TokenRecord& token : tokens) {
    list.push_back({{"id", token.id},
                    {"role", std::string(RoleName(token.role))},
                    {"name", token.name},
                    {"sha256", token.sha256},
                    {"created_unix_ns", token.created_unix_ns},
                    {"expires_unix_ns", token.expires_unix_ns},
                    {"revoked_unix_ns", token.revoked_unix_ns},
                    {"created_by", token.created_by}});
  }
  // Names come from people: what is not UTF-8 is replaced, not thrown at us.
  return json{{"format", kFormat}, {"tokens", list}}.dump(2, ' ', false, json::error_handler_t::replace) +
         "\n";
}

absl::StatusOr<std::vector<TokenRecord>> DecodeTokens(std::string_view text) {
  try {
    return Decode(json::parse(text));
  } catch (const std::exception& error) {
    return absl::DataLossError(
        absl::StrFormat("is damaged: it is not the JSON that was written (%s)", error.what()));
  }
}

}  // namespace atl
