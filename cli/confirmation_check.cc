#include "cli/confirmation_check.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/digest.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr uint64_t kLowHalf = 16;  // hexadecimal digits

std::optional<ContentHash> HashFromHex(const std::string& digits) {
  const std::optional<std::string> bytes = FromHex(digits);
  if (!bytes.has_value() || digits.size() != 2 * kLowHalf) return std::nullopt;
  ContentHash hash;
  for (size_t i = 0; i < bytes->size(); ++i) {
    uint64_t& half = i < bytes->size() / 2 ? hash.high : hash.low;
    half = half << 8 | static_cast<uint8_t>((*bytes)[i]);
  }
  return hash;
}

absl::StatusOr<SignedConfirmation> ParseOne(const nlohmann::json& entry) {
  const absl::Status wrong = absl::InvalidArgumentError("a confirmation is incomplete: " + entry.dump());
  const auto text = [&](const char* name) {
    const auto it = entry.find(name);
    return it != entry.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  const auto number = [&](const char* name) -> std::optional<uint64_t> {
    const auto it = entry.find(name);
    return it != entry.end() && it->is_number_unsigned() ? std::optional(it->get<uint64_t>()) : std::nullopt;
  };
  if (!entry.is_object()) return wrong;
  const auto key = FromHex(text("public_key"));
  const auto signature = FromHex(text("signature"));
  const auto published = HashFromHex(text("published"));
  const auto epoch = number("epoch");
  const auto fragment = number("fragment");
  const auto version = number("version");
  if (!key || !signature || !published || !epoch || !fragment || !version) return wrong;
  return SignedConfirmation{.worker = text("worker"),
                            .public_key = *key,
                            .epoch = Epoch(*epoch),
                            .confirmation = {.fragment = FragmentId(static_cast<uint32_t>(*fragment)),
                                             .version = Version(*version),
                                             .published = *published,
                                             .signature = *signature}};
}

/// The confirmations of one version.
struct Shown {
  std::map<std::string, std::set<WorkerName>> signers;  // by hash
  std::vector<std::string> uncounted;
};

std::string Name(const SignedConfirmation& one) {
  return absl::StrFormat("version %d of fragment %d", one.confirmation.version.value(),
                         one.confirmation.fragment.value());
}

}  // namespace

std::string ConfirmationFileToJson(const ConfirmationFile& file) {
  nlohmann::json list = nlohmann::json::array();
  for (const SignedConfirmation& one : file.confirmations) {
    list.push_back({{"worker", one.worker},
                    {"public_key", ToHex(one.public_key)},
                    {"epoch", one.epoch.value()},
                    {"fragment", one.confirmation.fragment.value()},
                    {"version", one.confirmation.version.value()},
                    {"published", ToHex(one.confirmation.published)},
                    {"signature", ToHex(one.confirmation.signature)}});
  }
  return nlohmann::json({{"run_id", file.run_id}, {"confirmations", std::move(list)}}).dump(1);
}

absl::StatusOr<ConfirmationFile> ParseConfirmationFile(const std::string& json) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const bool whole = parsed.is_object() && parsed.contains("run_id") && parsed["run_id"].is_string() &&
                     parsed.contains("confirmations") && parsed["confirmations"].is_array();
  if (!whole) return absl::InvalidArgumentError("not a file of `atollctl verify --confirmations --export`");
  ConfirmationFile file{.run_id = parsed["run_id"].get<std::string>()};
  for (const nlohmann::json& entry : parsed["confirmations"]) {
    ATOLL_ASSIGN_OR_RETURN(SignedConfirmation one, ParseOne(entry));
    file.confirmations.push_back(std::move(one));
  }
  return file;
}

absl::Status AddConfirmations(const ConfirmationFile& more, ConfirmationFile& file) {
  if (file.run_id.empty()) file.run_id = more.run_id;
  if (file.run_id != more.run_id) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "confirmations of run %s and of run %s cannot be compared", file.run_id, more.run_id));
  }
  file.confirmations.insert(file.confirmations.end(), more.confirmations.begin(), more.confirmations.end());
  return absl::OkStatus();
}

ConfirmationReport CheckConfirmations(const ConfirmationFile& file, const PeerKeys& pinned) {
  ConfirmationReport report;
  std::map<std::tuple<Epoch, FragmentId, Version>, Shown> versions;
  std::map<WorkerName, std::set<std::string>> keys;
  for (const SignedConfirmation& one : file.confirmations) {
    Shown& shown = versions[{one.epoch, one.confirmation.fragment, one.confirmation.version}];
    const ContentHash& hash = one.confirmation.published;
    const PeerFinding finding = JudgePeer(file.run_id, one.epoch, pinned, hash, one);
    if (finding == PeerFinding::kEqual) {
      shown.signers[ToHex(hash)].insert(one.worker);
      keys[one.worker].insert(one.public_key);
      ++report.good;
      continue;
    }
    shown.uncounted.push_back(absl::StrFormat("%s (%s)", one.worker, std::string(PeerFindingName(finding))));
    if (finding == PeerFinding::kForged) {
      report.problems.push_back(
          absl::StrFormat("the key of worker '%s' did not sign %s", one.worker, Name(one)));
    } else if (finding == PeerFinding::kOtherKey) {
      report.problems.push_back(absl::StrFormat(
          "%s is signed by another key of worker '%s' than the one in --peer-keys", Name(one), one.worker));
    }
  }
  for (const auto& [place, shown] : versions) {
    const auto& [epoch, fragment, version] = place;
    std::vector<std::string> hashes;
    for (const auto& [hash, workers] : shown.signers) {
      report.rows.push_back({absl::StrFormat("%d", fragment.value()), absl::StrFormat("%d", version.value()),
                             hash, absl::StrJoin(workers, ","),
                             hashes.empty() ? absl::StrJoin(shown.uncounted, ",") : std::string()});
      hashes.push_back(absl::StrFormat("%s by %s", hash, absl::StrJoin(workers, ",")));
    }
    if (hashes.empty()) {
      report.rows.push_back({absl::StrFormat("%d", fragment.value()), absl::StrFormat("%d", version.value()),
                             "", "", absl::StrJoin(shown.uncounted, ",")});
    }
    if (hashes.size() > 1) {
      report.problems.push_back(
          absl::StrFormat("workers signed %d different hashes of version %d of fragment %d: %s",
                          hashes.size(), version.value(), fragment.value(), absl::StrJoin(hashes, "; ")));
    }
  }
  for (const auto& [worker, used] : keys) {
    if (used.size() > 1) {
      report.problems.push_back(
          absl::StrFormat("worker '%s' appears with %d different keys", worker, used.size()));
    }
  }
  return report;
}

}  // namespace atl
