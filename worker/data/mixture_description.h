#ifndef ATOLL_WORKER_DATA_MIXTURE_DESCRIPTION_H_
#define ATOLL_WORKER_DATA_MIXTURE_DESCRIPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"

namespace atl {

/// One dataset of a mixture.
struct MixturePart {
  std::string folder;   // from the mixture's folder, or absolute
  uint32_t weight = 0;  // samples in each block of the order (core/mixture_order.h)
  uint64_t train_tokens = 0;
  uint64_t held_out_tokens = 0;
  std::string fingerprint;  // of the dataset
};

/// meta.json of a folder that is a mixture of other dataset folders.
struct MixtureDescription {
  std::string tokenizer;
  uint32_t vocabulary = 0;
  std::optional<TokenId> end_of_text;  // if all parts have the same
  std::vector<MixturePart> parts;
  std::string fingerprint;  // SHA-256, hex; see MixtureFingerprint
};

/// SHA-256 of "mixture tokenizer vocabulary\n" and one line "weight fingerprint\n" per part. The folders are
/// not in it, because machines have their data in different places.
std::string MixtureFingerprint(const MixtureDescription& mixture);

std::string MixtureToJson(const MixtureDescription& mixture);

/// nullopt if the text is no description of a mixture, and DescriptionFromJson decides about it.
/// InvalidArgument naming `path` and what is wrong with a mixture.
absl::StatusOr<std::optional<MixtureDescription>> MixtureFromJson(const std::string& path,
                                                                  const std::string& text);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_MIXTURE_DESCRIPTION_H_
