#ifndef ATOLL_PROTOS_CONFIG_YAML_READER_H_
#define ATOLL_PROTOS_CONFIG_YAML_READER_H_

#include <map>
#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "protos/config/problem.h"
#include "protos/config/yaml_tree.h"

namespace atl {

/// The result of reading a message from YAML, with the line of each field.
struct YamlReading {
  std::vector<ConfigProblem> problems;   // all of them, not only the first
  std::vector<ConfigProblem> old_words;  // accepted in this release, rejected by the next
  std::map<std::string, int> lines;      // by path
};

/// Fills `message` from the tree by the rules of its schema. Absent fields get their defaults.
YamlReading ReadMessage(const YamlNode& root, google::protobuf::Message* message);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_YAML_READER_H_
