#include "server/launch/launch_command.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/file.h"

namespace atl {

std::vector<std::string> CommandLine(const LaunchCommand& command, const WorkerName& name, uint32_t number,
                                     const std::string& coordinator) {
  const std::string state_dir = JoinPath(command.state_root, name);
  std::vector<std::string> line = {command.program};
  const auto add = [&](const std::string& argument) {
    line.push_back(absl::StrReplaceAll(argument, {{"{name}", name},
                                                  {"{number}", absl::StrCat(number)},
                                                  {"{coordinator}", coordinator},
                                                  {"{state_dir}", state_dir}}));
  };
  for (const std::string& argument : command.arguments) add(argument);
  for (const std::string& argument : {std::string("--coordinator"), coordinator, std::string("--name"), name,
                                      std::string("--state-dir"), state_dir}) {
    line.push_back(argument);
  }
  for (const std::string& argument : command.credentials) add(argument);
  return line;
}

WorkerName NumberedName(std::string_view prefix, uint32_t number) {
  return std::string(prefix) + std::to_string(number);
}

std::optional<uint32_t> NumberOf(std::string_view prefix, std::string_view name) {
  uint32_t number = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  if (!absl::SimpleAtoi(std::string(name.substr(prefix.size())), &number)) return std::nullopt;
  // Also turns away "w007" and "w+7".
  if (NumberedName(prefix, number) != name) return std::nullopt;
  return number;
}

}  // namespace atl
