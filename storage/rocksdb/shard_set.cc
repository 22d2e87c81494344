#include "storage/rocksdb/shard_set.h"

#include <algorithm>
#include <latch>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/file.h"
#include "common/status.h"
#include "common/thread_check.h"
#include "core/fragment_plan.h"
#include "storage/describe.h"

namespace atl {
namespace {

/// The chunks of one shard, over all vectors, in key order.
std::vector<ChunkValue> ValuesOf(ShardId shard, const std::vector<Chunk>& chunks,
                                 const FragmentTensorsView& tensors) {
  std::vector<ChunkValue> values;
  for (size_t vector = 0; vector <= tensors.state.size(); ++vector) {
    const std::span<const float> all = vector == 0 ? tensors.parameters : tensors.state[vector - 1];
    for (const Chunk& chunk : chunks) {
      if (chunk.shard != shard) continue;
      values.push_back({.vector = static_cast<uint8_t>(vector),
                        .chunk = chunk.index,
                        .values = all.subspan(chunk.begin, chunk.end - chunk.begin)});
    }
  }
  return values;
}

absl::Status ReadChunks(const ShardDb& db, FragmentId fragment, Version version,
                        const std::vector<ChunkTarget>& targets) {
  for (const ChunkTarget& target : targets) ATOLL_RETURN_IF_ERROR(db.Read(fragment, version, target));
  return absl::OkStatus();
}

std::vector<ChunkTarget> TargetsOf(ShardId shard, const std::vector<Chunk>& chunks,
                                   const FragmentTensorsTarget& tensors) {
  std::vector<ChunkTarget> targets;
  for (size_t vector = 0; vector <= tensors.state.size(); ++vector) {
    const std::span<float> all = vector == 0 ? tensors.parameters : tensors.state[vector - 1];
    for (const Chunk& chunk : chunks) {
      if (chunk.shard != shard) continue;
      targets.push_back({.vector = static_cast<uint8_t>(vector),
                         .chunk = chunk.index,
                         .values = all.subspan(chunk.begin, chunk.end - chunk.begin)});
    }
  }
  return targets;
}

/// The parts of one shard's chunks that lie in the range.
std::vector<ChunkTarget> PartsOf(ShardId shard, const std::vector<Chunk>& chunks, const VectorPosition& from,
                                 std::span<float> values) {
  std::vector<ChunkTarget> parts;
  for (const Chunk& chunk : chunks) {
    const uint64_t begin = std::max(chunk.begin, from.first);
    const uint64_t end = std::min(chunk.end, from.first + values.size());
    if (chunk.shard != shard || begin >= end) continue;
    parts.push_back({.vector = static_cast<uint8_t>(from.vector),
                     .chunk = chunk.index,
                     .values = values.subspan(begin - from.first, end - begin),
                     .first = begin - chunk.begin,
                     .of = chunk.end - chunk.begin});
  }
  return parts;
}

/// Drops all versions of the fragment that the entry does not name.
absl::Status DropGaps(ShardDb& db, const StoredEntry& stored) {
  Version next(0);
  for (const Version kept : stored.versions) {
    ATOLL_RETURN_IF_ERROR(db.Drop(stored.fragment, next, kept));
    next = Next(kept);
  }
  return db.Drop(stored.fragment, next, std::nullopt);
}

/// A restore opens the shards of a checkpoint while the run is served: without a thread it is refused.
absl::StatusOr<std::unique_ptr<TaskQueue>> StartWriter(const std::string& shard) {
  try {
    return std::make_unique<TaskQueue>("shard-" + shard, ThreadPriority::kBackground);
  } catch (const std::system_error& error) {
    return NoThread(error);
  }
}

}  // namespace

std::string ShardSet::FolderName(uint32_t shard) { return absl::StrFormat("%02d", shard); }

absl::StatusOr<std::unique_ptr<ShardSet>> ShardSet::Open(const Options& options) {
  const bool writing = options.access != DbAccess::kReadOnly;
  const FileCaching caching = writing ? ProbeFileCaching(options.staging) : FileCaching::kCached;
  std::vector<Shard> shards;
  for (uint32_t i = 0; i < options.shards; ++i) {
    const std::string name = FolderName(i);
    const std::string path = JoinPath(options.folder, name);
    if (options.access == DbAccess::kCreate) ATOLL_RETURN_IF_ERROR(CreateDirs(path));
    ATOLL_ASSIGN_OR_RETURN(
        std::unique_ptr<ShardDb> db,
        ShardDb::Open({.path = path,
                       .staging = options.staging,
                       .unique_prefix = absl::StrFormat("%s-%s", options.unique_prefix, name),
                       .caching = caching,
                       .access = options.access}));
    ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<TaskQueue> writer, StartWriter(name));
    shards.push_back({.db = std::move(db), .writer = std::move(writer)});
  }
  return std::unique_ptr<ShardSet>(new ShardSet(options, std::move(shards)));
}

std::vector<Chunk> ShardSet::ChunksOf(FragmentId fragment, uint64_t elements) const {
  const FragmentLayout layout{.id = fragment, .slots = {}, .elements = elements};
  return MapChunks(layout, static_cast<uint32_t>(shards_.size()), chunk_elements_);
}

absl::Status ShardSet::OnAll(const std::function<absl::Status(ShardId, ShardDb&)>& work) {
  std::vector<absl::Status> results(shards_.size());
  std::latch done(static_cast<std::ptrdiff_t>(shards_.size()));
  for (size_t i = 0; i < shards_.size(); ++i) {
    const bool posted = shards_[i].writer->Post([&, i] {
      results[i] = work(ShardId(static_cast<uint32_t>(i)), *shards_[i].db);
      done.count_down();
    });
    if (posted) continue;
    results[i] = absl::CancelledError("the store is closing");
    done.count_down();
  }
  done.wait();
  for (const absl::Status& result : results) ATOLL_RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

absl::Status ShardSet::Store(FragmentId fragment, Version version, const FragmentTensorsView& tensors) {
  const std::vector<Chunk> chunks = ChunksOf(fragment, tensors.parameters.size());
  return OnAll([&](ShardId shard, ShardDb& db) {
    return db.Ingest(fragment, version, ValuesOf(shard, chunks, tensors));
  });
}

absl::Status ShardSet::Read(const StoredEntry& stored, Version version, const FragmentTensorsTarget& target) {
  const std::vector<Chunk> chunks = ChunksOf(stored.fragment, stored.elements);
  return OnAll([&](ShardId shard, ShardDb& db) {
    return ReadChunks(db, stored.fragment, version, TargetsOf(shard, chunks, target));
  });
}

absl::Status ShardSet::ReadRange(const StoredEntry& stored, Version version, const VectorPosition& from,
                                 std::span<float> values) {
  const std::vector<Chunk> chunks = ChunksOf(stored.fragment, stored.elements);
  return OnAll([&](ShardId shard, ShardDb& db) {
    return ReadChunks(db, stored.fragment, version, PartsOf(shard, chunks, from, values));
  });
}

absl::Status ShardSet::CopyTo(const std::string& folder) {
  ATOLL_RETURN_IF_ERROR(CreateDirs(folder));
  return OnAll(
      [&](ShardId shard, ShardDb& db) { return db.CopyTo(JoinPath(folder, FolderName(shard.value()))); });
}

absl::Status ShardSet::Drop(FragmentId fragment, const std::vector<Version>& versions) {
  return OnAll([&](ShardId, ShardDb& db) -> absl::Status {
    for (const Version version : versions) {
      ATOLL_RETURN_IF_ERROR(db.Drop(fragment, version, Next(version)));
    }
    return absl::OkStatus();
  });
}

absl::Status ShardSet::DropAllBut(const std::vector<StoredEntry>& all) {
  return OnAll([&](ShardId, ShardDb& db) -> absl::Status {
    for (const StoredEntry& stored : all) ATOLL_RETURN_IF_ERROR(DropGaps(db, stored));
    return db.DropFragmentsFrom(FragmentId(static_cast<uint32_t>(all.size())));
  });
}

std::vector<ShardSet::Found> ShardSet::Versions() const {
  std::vector<Found> found;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    for (const auto& [fragment, version] : shards_[i].db->Versions()) {
      found.push_back({.shard = i, .fragment = fragment, .version = version});
    }
  }
  return found;
}

absl::Status ShardSet::CheckComplete(const StoredEntry& stored) {
  std::vector<uint64_t> expected(shards_.size());
  for (const Chunk& chunk : ChunksOf(stored.fragment, stored.elements)) {
    expected[chunk.shard.value()] += 1 + stored.state_vectors;
  }
  return OnAll([&](ShardId shard, ShardDb& db) -> absl::Status {
    const Version newest = stored.versions.back();
    ATOLL_ASSIGN_OR_RETURN(const uint64_t found, db.CountValues(stored.fragment, newest));
    if (found == expected[shard.value()]) return absl::OkStatus();
    return absl::DataLossError(absl::StrFormat("shard %s: %s has %d of %d chunks", FolderName(shard.value()),
                                               Describe(stored.fragment, newest), found,
                                               expected[shard.value()]));
  });
}

}  // namespace atl
