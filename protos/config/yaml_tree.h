#ifndef ATOLL_PROTOS_CONFIG_YAML_TREE_H_
#define ATOLL_PROTOS_CONFIG_YAML_TREE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

struct YamlEntry;

/// A YAML document as written. Keeps lines, duplicate keys, and the difference between 5 and "5".
struct YamlNode {
  enum class Kind { kNull, kScalar, kMap, kSequence };
  Kind kind = Kind::kNull;
  int line = 0;        // from 1
  std::string scalar;  // kScalar
  bool quoted = false;
  std::vector<YamlEntry> entries;  // kMap, in the file's order
  std::vector<YamlNode> items;     // kSequence
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlNode value;
};

inline constexpr size_t kMaxYamlBytes = size_t{1} << 20;
inline constexpr size_t kMaxYamlDepth = 16;

/// Parses one document. Returns InvalidArgument, "source:line: problem", for bad syntax, more than one
/// document, keys that are not words, and text above the limits above. Also rejects anchors, aliases and
/// tags: a configuration needs none, and aliases can make a small file huge.
absl::StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view source_name);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_YAML_TREE_H_
