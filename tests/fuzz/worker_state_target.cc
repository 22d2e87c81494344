#include <stdlib.h>

#include <string>

#include "client/sync/identity.h"
#include "client/sync/state_file.h"
#include "client/sync/worker_checkpoint.h"
#include "common/crc32c.h"
#include "common/file.h"
#include "common/log.h"
#include "core/codec.h"
#include "core/membership.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

/// A folder of this process, gone when it ends.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/atoll-fuzz-XXXXXX";
    ATOLL_FUZZ_REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Folder() { static_cast<void>(RemoveAll(path_)); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void Write(const std::string& name, const std::string& contents) const {
    std::FILE* const file = std::fopen(JoinPath(path_, name).c_str(), "wb");
    ATOLL_FUZZ_REQUIRE(file != nullptr);
    ATOLL_FUZZ_REQUIRE(std::fwrite(contents.data(), 1, contents.size(), file) == contents.size());
    std::fclose(file);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

template <typename T>
std::string Bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string Text(const std::string& text) { return Bytes(static_cast<uint32_t>(text.size())) + text; }

/// A state file whose owner, checksum and mark are right.
std::string StateFile(StateFileKind kind, const std::string& fields) {
  std::string file = std::string(kStateMagic) + Bytes(static_cast<uint8_t>(kind));
  file += Text("run") + Text("w1") + Text("model") + fields;
  file += Bytes(Crc32c(std::string_view(file)));
  return file + Bytes(uint8_t{1}) + Bytes(uint8_t{0xfe});
}

}  // namespace

// kind:u8, 0: round, 1: push, more: the rest is the whole file; then its fields after the owner.
void FuzzWorkerState(FuzzInput in) {
  static const Folder folder;
  static const Logger log;  // writes nothing
  static const auto state = WorkerCheckpoint::Open(folder.path(), {"run", "w1", "model"}, log);
  ATOLL_FUZZ_REQUIRE(state.ok());
  const uint8_t kind = in.Byte();
  const std::string rest = in.RestText();
  folder.Write("round-000001", kind > 1 ? rest : StateFile(StateFileKind::kRound, rest));
  folder.Write("push-0", kind > 1 ? rest : StateFile(StateFileKind::kPush, rest));
  if (kind != 1) static_cast<void>((*state)->LoadRound());
  if (kind == 0) return;
  const auto push = (*state)->LoadPush(FragmentId(0));
  if (push.ok()) ATOLL_FUZZ_REQUIRE(FindCodec(push->header.codec) != nullptr);
}

// which:u8, even: the identity, odd: the signing key; then the file.
void FuzzIdentity(FuzzInput in) {
  static const Folder folder;
  static const auto directory = StateDirectory::Open(folder.path());
  ATOLL_FUZZ_REQUIRE(directory.ok());
  const bool key = in.Byte() % 2 == 1;
  folder.Write(key ? "key" : "identity", in.RestText());
  if (key) {
    static_cast<void>(directory->LoadOrCreateKey());
    return;
  }
  const auto identity = directory->LoadOrCreate("");
  if (identity.ok()) ATOLL_FUZZ_REQUIRE(ValidateWorkerName(identity->name).ok());
}

}  // namespace atl::fuzz
