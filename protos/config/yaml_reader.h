#ifndef ATOLL_PROTOS_CONFIG_YAML_READER_H_
#define ATOLL_PROTOS_CONFIG_YAML_READER_H_

#include <map>
#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "protos/config/problem.h"
#include "protos/config/yaml_tree.h"

namespace atl {

/// A message read from YAML, and where each of its fields stood.
struct YamlReading {
  std::vector<ConfigProblem> problems;   // all of them, not only the first
  std::vector<ConfigProblem> old_words;  // right today, and refused by a later release
  std::map<std::string, int> lines;      // by path
};

/// Fills `message` from the tree by the rules in its schema; what is absent gets its default.
YamlReading ReadMessage(const YamlNode& root, google::protobuf::Message* message);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_YAML_READER_H_
