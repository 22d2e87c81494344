#include "tests/client/library/processes.h"

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "common/file.h"

namespace atl {

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  const std::string tasks = "/proc/" + std::to_string(parent) + "/task";
  for (const std::string& task : ListDir(tasks).value_or(std::vector<std::string>())) {
    std::ifstream file(std::string(tasks).append("/").append(task).append("/children"));
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

std::string NameOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

bool Runs(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::stringstream text;
  text << file.rdbuf();
  const size_t name = text.str().rfind(") ");
  return name != std::string::npos && text.str()[name + 2] != 'Z';
}

bool Await(const std::function<bool()>& so) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!so()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace atl
