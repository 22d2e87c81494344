#include "core/hf/tensor_match.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "core/foreign_name.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

constexpr size_t kPiece = 4096;  // values that are looked at together

std::string Text(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status Wrong(std::string_view file, std::string_view tensor, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: tensor '%s' %s", std::string(file), ForeignName(tensor), what));
}

absl::Status Wrong(const FoundTensor& found, const std::string& what) {
  return Wrong(found.file, found.entry->name, what);
}

class Matcher {
 public:
  Matcher(const HfLayout& layout, std::string_view source) : layout_(layout), source_(source) {
    for (const HfTensor& tensor : layout.tensors) Add(tensor.name);
    for (const HfTensor& tensor : layout.zeros) Add(tensor.name);
    for (const std::string& name : layout.ignored) Add(name);
    if (!layout.tied) return;
    tied_ = layout.tensors[layout.tied->tensor];
    tied_.name = layout.tied->name;
    Add(tied_.name);
  }

  absl::Status Locate(std::span<const FoundTensor> all) {
    for (const FoundTensor& found : all) {
      const auto name = full_names_.find(found.entry->name);
      if (name == full_names_.end()) {
        extra_.push_back(found);
        continue;
      }
      FoundTensor& earlier = spots_.at(name->second);
      if (earlier.entry != nullptr) {
        return Wrong(found, absl::StrFormat("is in %s too, as '%s'; keep one of them",
                                            std::string(earlier.file), earlier.entry->name));
      }
      earlier = found;
    }
    return absl::OkStatus();
  }

  absl::Status CheckNothingMissing() const {
    for (const HfTensor& tensor : layout_.tensors) {
      if (spots_.at(tensor.name).entry == nullptr) return Missing(tensor);
    }
    return absl::OkStatus();
  }

  absl::Status CheckNothingExtra() const {
    if (extra_.empty()) return absl::OkStatus();
    std::vector<std::string> names;
    for (const auto& [name, full] : full_names_) names.push_back(name);
    return Wrong(extra_.front(), absl::StrCat("is not in the model of the configuration",
                                              NearName(extra_.front().entry->name, names)));
  }

  absl::StatusOr<MatchedTensor> Matched(const HfTensor& tensor) const {
    const FoundTensor& found = spots_.at(tensor.name);
    const std::vector<int64_t>& shape = found.entry->shape;
    if (shape != tensor.shape) {
      const bool swapped = std::ranges::equal(shape, std::vector(tensor.shape.rbegin(), tensor.shape.rend()));
      return Wrong(found,
                   absl::StrFormat("has shape %s; the model of the configuration has %s%s", Text(shape),
                                   Text(tensor.shape), swapped ? ", which is its transpose" : ""));
    }
    const auto dtype = FileDtypeOf(found.entry->dtype);
    if (dtype) return MatchedTensor{found, *dtype};
    return Wrong(found,
                 absl::StrFormat("is of type %s; F32, F16 and BF16 can be imported", found.entry->dtype));
  }

  absl::StatusOr<std::optional<MatchedTensor>> MatchedIfFound(const HfTensor& tensor) const {
    if (spots_.at(tensor.name).entry == nullptr) return std::optional<MatchedTensor>();
    ATOLL_ASSIGN_OR_RETURN(const MatchedTensor matched, Matched(tensor));
    return std::optional(matched);
  }

  const HfTensor& tied() const { return tied_; }

 private:
  void Add(const std::string& name) {
    spots_[name] = {};
    full_names_[name] = name;
    const std::string& prefix = layout_.prefix;
    if (!prefix.empty() && name.starts_with(prefix)) full_names_[name.substr(prefix.size())] = name;
  }

  absl::Status Missing(const HfTensor& tensor) const {
    std::vector<std::string> names;
    for (const FoundTensor& extra : extra_) names.push_back(extra.entry->name);
    const std::string near = NearName(tensor.name, names);
    return Wrong(source_, tensor.name,
                 absl::StrFormat("is missing; the model of the configuration has it, in shape %s%s",
                                 Text(tensor.shape), near));
  }

  const HfLayout& layout_;
  const std::string_view source_;
  HfTensor tied_;
  std::map<std::string, std::string> full_names_;  // of each name that a file may have
  std::map<std::string, FoundTensor> spots_;       // by full name; no entry: in no file
  std::vector<FoundTensor> extra_;
};

/// Calls `look` with the values of a tensor, piece by piece, and the position of the first of them. Stops at
/// an error.
template <typename Look>
absl::Status ForEachPiece(const MatchedTensor& tensor, Look look) {
  const std::span<const std::byte> bytes = tensor.found.entry->bytes;
  const size_t size = BytesPerValue(tensor.dtype);
  const size_t count = bytes.size() / size;
  float piece[kPiece];
  for (size_t begin = 0; begin < count; begin += kPiece) {
    const std::span<float> values(piece, std::min(kPiece, count - begin));
    WidenValues(bytes.subspan(begin * size, values.size() * size), tensor.dtype, values);
    ATOLL_RETURN_IF_ERROR(look(std::span<const float>(values), begin));
  }
  return absl::OkStatus();
}

absl::Status CheckFinite(const MatchedTensor& tensor) {
  return ForEachPiece(tensor, [&](std::span<const float> values, size_t begin) {
    const auto bad = FirstNonFinite(values);
    if (!bad) return absl::OkStatus();
    return Wrong(tensor.found, absl::StrFormat("has a value that is not finite, at %d", begin + *bad));
  });
}

absl::Status CheckZero(const MatchedTensor& tensor) {
  return ForEachPiece(tensor, [&](std::span<const float> values, size_t begin) {
    const auto other = std::ranges::find_if(values, [](float value) { return !(value == 0); });
    if (other == values.end()) return absl::OkStatus();
    return Wrong(tensor.found,
                 absl::StrFormat("is %g at %d; the model of the configuration does not have this tensor, so "
                                 "all of it must be zero",
                                 *other, begin + static_cast<size_t>(other - values.begin())));
  });
}

absl::Status CheckEqual(const MatchedTensor& head, const MatchedTensor& embedding) {
  const size_t size = BytesPerValue(embedding.dtype);
  return ForEachPiece(head, [&](std::span<const float> values, size_t begin) {
    float piece[kPiece];
    const std::span<float> expected(piece, values.size());
    WidenValues(embedding.found.entry->bytes.subspan(begin * size, values.size() * size), embedding.dtype,
                expected);
    const auto [other, place] = std::ranges::mismatch(values, expected);
    if (other == values.end()) return absl::OkStatus();
    return Wrong(head.found,
                 absl::StrFormat("is %g at %d, and '%s' is %g there; the model of the configuration has one "
                                 "tensor for both (tied embeddings)",
                                 *other, begin + static_cast<size_t>(other - values.begin()),
                                 embedding.found.entry->name, *place));
  });
}

}  // namespace

absl::StatusOr<TensorMatch> MatchTensors(const HfLayout& layout, std::span<const FoundTensor> found,
                                         std::string_view source, ExtraTensors extra) {
  Matcher matcher(layout, source);
  ATOLL_RETURN_IF_ERROR(matcher.Locate(found));
  ATOLL_RETURN_IF_ERROR(matcher.CheckNothingMissing());
  if (extra == ExtraTensors::kReject) ATOLL_RETURN_IF_ERROR(matcher.CheckNothingExtra());
  TensorMatch match;
  for (const HfTensor& tensor : layout.tensors) {
    ATOLL_ASSIGN_OR_RETURN(match.tensors.emplace_back(), matcher.Matched(tensor));
  }
  for (const HfTensor& tensor : layout.zeros) {
    ATOLL_ASSIGN_OR_RETURN(match.zeros.emplace_back(), matcher.MatchedIfFound(tensor));
  }
  if (layout.tied) {
    ATOLL_ASSIGN_OR_RETURN(match.tied_head, matcher.MatchedIfFound(matcher.tied()));
  }
  return match;
}

absl::Status CheckValues(const HfLayout& layout, const TensorMatch& match) {
  for (const MatchedTensor& tensor : match.tensors) ATOLL_RETURN_IF_ERROR(CheckFinite(tensor));
  for (const auto& tensor : match.zeros) {
    if (tensor) ATOLL_RETURN_IF_ERROR(CheckZero(*tensor));
  }
  if (!match.tied_head) return absl::OkStatus();
  return CheckEqual(*match.tied_head, match.tensors[layout.tied->tensor]);
}

void ReadValues(const HfLayout& layout, const TensorMatch& match, size_t index, std::span<float> values) {
  const MatchedTensor& matched = match.tensors[index];
  const std::span<const std::byte> bytes = matched.found.entry->bytes;
  if (!layout.tensors[index].transposed) return WidenValues(bytes, matched.dtype, values);
  std::vector<float> in_file(values.size());
  WidenValues(bytes, matched.dtype, in_file);
  const std::vector<int64_t>& shape = layout.tensors[index].shape;
  Transpose(in_file, static_cast<uint64_t>(shape.front()), static_cast<uint64_t>(shape.back()), values);
}

}  // namespace atl
