#include "storage/meta_keys.h"

#include "storage/big_endian.h"

namespace atl::meta_keys {
namespace {

template <size_t Bytes>
std::string Numbered(std::string_view prefix, uint64_t number) {
  std::string key(prefix);
  AppendBigEndian<Bytes>(key, number);
  return key;
}

std::string Versioned(std::string_view prefix, FragmentId fragment, Version version) {
  std::string key = Numbered<4>(prefix, fragment.value());
  AppendBigEndian<8>(key, version.value());
  return key;
}

}  // namespace

std::string Event(uint64_t sequence) { return Numbered<8>(kEvents, sequence); }
std::string Round(FragmentId fragment, Version version) { return Versioned(kRounds, fragment, version); }

std::string ConfirmationsOf(FragmentId fragment, Version version) {
  return Versioned(kConfirmations, fragment, version);
}

std::string KeyOf(const RunIdentity&) { return std::string(kIdentity); }
std::string KeyOf(const Manifest&) { return std::string(kManifest); }
std::string KeyOf(const ConfigEntry& record) { return Numbered<8>(kConfigs, record.version); }
std::string Worker(const WorkerName& name) { return std::string(kWorkers) + name; }
std::string KeyOf(const WorkerEntry& record) { return Worker(record.name); }
std::string KeyOf(const PartitionEntry& record) { return Numbered<4>(kPartitions, record.partition); }
std::string KeyOf(const HeadEntry& record) { return Numbered<4>(kHeads, record.fragment.value()); }
std::string KeyOf(const StoredEntry& record) { return Numbered<4>(kStored, record.fragment.value()); }
std::string KeyOf(const RoundRecord& record) { return Round(record.fragment, record.version); }
std::string KeyOf(const Contribution& record) { return KeyOf(record.key); }
std::string KeyOf(const EvaluationEntry& record) {
  return Versioned(kEvaluations, record.fragment, record.version);
}
std::string KeyOf(const EventEntry& record) { return Event(record.sequence); }
std::string KeyOf(const ConfirmationEntry& record) {
  return ConfirmationsOf(record.fragment, record.version) + record.worker;
}
std::string KeyOf(const ControlEntry&) { return std::string(kControl); }

std::string KeyOf(const ContributionKey& key) {
  std::string out = Numbered<8>(kContributions, key.epoch.value());
  AppendBigEndian<4>(out, key.fragment.value());
  AppendBigEndian<8>(out, key.base.value());
  out += key.worker;
  out += '/';
  AppendBigEndian<4>(out, key.sequence);
  return out;
}

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  end.back() = static_cast<char>(static_cast<uint8_t>(end.back()) + 1);
  return end;
}

}  // namespace atl::meta_keys
