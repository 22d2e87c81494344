#include "storage/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/crc32c.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/random.h"
#include "tests/paths.h"
#include "tests/storage/record_samples.h"

namespace atl {
namespace {

using testing::HasSubstr;

/// A record around `body` whose crc is right, as an attacker or a newer program would make it.
std::string Sealed(uint8_t format, RecordKind kind, const std::string& body) {
  std::string record{static_cast<char>(format), static_cast<char>(kind)};
  record += body;
  const uint32_t crc = Crc32c(std::string_view(record));
  for (int i = 0; i < 4; ++i) record.push_back(static_cast<char>(static_cast<uint8_t>(crc >> (8 * i))));
  return record;
}

std::string BodyOf(const std::string& record) { return record.substr(2, record.size() - 6); }

/// tests/golden/storage/<name>.hex: the record's bytes, lines of hexadecimal digits.
std::string Golden(const std::string& name) {
  const auto text = ReadFile(absl::StrCat(ATOLL_SOURCE_DIR, "/tests/golden/storage/", name, ".hex"));
  if (!text.ok()) return text.status().ToString();
  std::string digits;
  for (const char c : *text) {
    if (c != '\n') digits.push_back(c);
  }
  return FromHex(digits).value_or("");
}

TEST(RecordTest, BytesAreFrozen) {
  record_samples::ForEach([](const std::string& name, const auto& record) {
    EXPECT_EQ(absl::BytesToHexString(EncodeRecord(record)), absl::BytesToHexString(Golden(name))) << name;
  });
}

TEST(RecordTest, GoldenBytesDecodeToTheSamples) {
  record_samples::ForEach([](const std::string& name, const auto& record) {
    using T = std::decay_t<decltype(record)>;
    const auto decoded = DecodeRecord<T>(name, Golden(name));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(EncodeRecord(*decoded), EncodeRecord(record));
    if constexpr (std::equality_comparable<T>) {
      EXPECT_EQ(*decoded, record) << name;
    }
  });
}

TEST(RecordTest, AbsentPartitionAndStrangeFloatsRoundTrip) {
  WorkerEntry worker = record_samples::Worker();
  worker.partition = std::nullopt;
  EXPECT_EQ(*DecodeRecord<WorkerEntry>("k", EncodeRecord(worker)), worker);
  Contribution contribution = record_samples::SampleContribution();
  contribution.norm = std::bit_cast<double>(uint64_t{0x7ff8000000000123});  // a NaN with a payload
  contribution.mean_loss = -std::numeric_limits<double>::infinity();
  const auto decoded = DecodeRecord<Contribution>("k", EncodeRecord(contribution));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::bit_cast<uint64_t>(decoded->norm), 0x7ff8000000000123u);
  EXPECT_EQ(decoded->mean_loss, contribution.mean_loss);
}

TEST(RecordTest, EveryShorterRecordIsRejected) {
  record_samples::ForEach([](const std::string& name, const auto& record) {
    using T = std::decay_t<decltype(record)>;
    const std::string bytes = EncodeRecord(record);
    for (size_t size = 0; size < bytes.size(); ++size) {
      const auto cut = DecodeRecord<T>(name, bytes.substr(0, size));
      EXPECT_EQ(cut.status().code(), absl::StatusCode::kDataLoss) << name << " cut to " << size;
      EXPECT_THAT(cut.status().ToString(), HasSubstr(name));
    }
  });
}

TEST(RecordTest, EveryBitFlipIsSeen) {
  record_samples::ForEach([](const std::string& name, const auto& record) {
    using T = std::decay_t<decltype(record)>;
    std::string bytes = EncodeRecord(record);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_EQ(DecodeRecord<T>(name, bytes).status().code(), absl::StatusCode::kDataLoss)
          << name << " bit " << bit;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    }
  });
}

/// Where bodies ended before fields were added: such a record is a whole one.
size_t FormerSize(const std::string& name) {
  if (name == "manifest_averaged") return 54;
  return name == "round" ? 305 : name == "worker" ? 56 : name == "manifest_base" ? 35 : SIZE_MAX;
}

TEST(RecordTest, BodiesOfBeforeFieldsWereAddedHaveTheirDefaults) {
  const std::string round = BodyOf(EncodeRecord(record_samples::Round())).substr(0, FormerSize("round"));
  const auto old_round = DecodeRecord<RoundRecord>("r", Sealed(kRecordFormat, RecordKind::kRound, round));
  ASSERT_TRUE(old_round.ok()) << old_round.status();
  RoundRecord expected = record_samples::Round();
  expected.merge.clip_by_distance = false;
  expected.audits.clear();
  expected.noise_multiplier = 0;
  EXPECT_EQ(*old_round, expected);
  const std::string worker = BodyOf(EncodeRecord(record_samples::Worker())).substr(0, FormerSize("worker"));
  const auto old_worker = DecodeRecord<WorkerEntry>("w", Sealed(kRecordFormat, RecordKind::kWorker, worker));
  ASSERT_TRUE(old_worker.ok()) << old_worker.status();
  EXPECT_EQ(old_worker->forgiven_until, 0u);
  EXPECT_TRUE(old_worker->command_at_once);
  const std::string manifest =
      BodyOf(EncodeRecord(record_samples::ManifestWithBase())).substr(0, FormerSize("manifest_base"));
  const auto old_manifest =
      DecodeRecord<Manifest>("manifest", Sealed(kRecordFormat, RecordKind::kManifest, manifest));
  ASSERT_TRUE(old_manifest.ok()) << old_manifest.status();
  EXPECT_EQ(old_manifest->base_fingerprint, "");
  EXPECT_EQ(old_manifest->tensors, record_samples::ManifestWithBase().tensors);
}

TEST(RecordTest, CutBodiesWithAGoodCrcNameTheField) {
  record_samples::ForEach([](const std::string& name, const auto& record) {
    using T = std::decay_t<decltype(record)>;
    const std::string body = BodyOf(EncodeRecord(record));
    for (size_t size = 0; size < body.size(); ++size) {
      if (size == FormerSize(name)) continue;
      const auto cut = DecodeRecord<T>(name, Sealed(kRecordFormat, kRecordKindOf<T>, body.substr(0, size)));
      ASSERT_EQ(cut.status().code(), absl::StatusCode::kDataLoss) << name << " body cut to " << size;
      EXPECT_THAT(cut.status().ToString(), HasSubstr("field "));
    }
    const auto longer = DecodeRecord<T>(name, Sealed(kRecordFormat, kRecordKindOf<T>, body + "x"));
    // One more byte is the beginning of a field that this manifest and this evaluation do not have.
    const std::string excess = name == "manifest"     ? "field base_fingerprint"
                               : name == "evaluation" ? "field tasks"
                                                      : "1 bytes left over";
    EXPECT_THAT(longer.status().ToString(), HasSubstr(excess));
  });
}

TEST(RecordTest, RandomBodiesWithAGoodCrcNeverCrashAndNeverChangeOnTheWayBack) {
  SplitMixGenerator random(20240607);
  record_samples::ForEach([&random](const std::string& name, const auto& record) {
    using T = std::decay_t<decltype(record)>;
    const std::string original = BodyOf(EncodeRecord(record));
    int accepted = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string body = original;
      for (uint64_t flips = 1 + random.Below(6); flips > 0; --flips) {
        body[random.Below(body.size())] = static_cast<char>(random());
      }
      if (random.Below(4) == 0) body.resize(random.Below(body.size() + 1));
      const std::string sealed = Sealed(kRecordFormat, kRecordKindOf<T>, body);
      const auto decoded = DecodeRecord<T>(name, sealed);
      if (!decoded.ok()) {
        ASSERT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss);
        continue;
      }
      ++accepted;
      // A body that ends where fields were added comes back with them.
      const std::string again = BodyOf(EncodeRecord(*decoded));
      ASSERT_EQ(absl::BytesToHexString(again.substr(0, body.size())), absl::BytesToHexString(body)) << name;
      if (FormerSize(name) == SIZE_MAX) {
        ASSERT_EQ(again.size(), body.size()) << name;
      }
    }
    EXPECT_LT(accepted, 3000) << name;
  });
}

TEST(RecordTest, UnknownFormatAndKindAreNamed) {
  const std::string body = BodyOf(EncodeRecord(record_samples::Head()));
  EXPECT_THAT(DecodeRecord<HeadEntry>("head/2", Sealed(2, RecordKind::kHead, body)).status().ToString(),
              testing::AllOf(HasSubstr("head/2"), HasSubstr("field format has 2")));
  EXPECT_THAT(DecodeRecord<HeadEntry>("head/2", Sealed(1, RecordKind::kStored, body)).status().ToString(),
              HasSubstr("field kind has 7; 6 belongs here"));
}

TEST(RecordTest, ValuesThatNoFieldHasAreNamed) {
  std::string body = BodyOf(EncodeRecord(record_samples::Worker()));
  // departed; then come banned, the public key, the fingerprint, the command and what is forgiven
  body[body.size() - 27] = 2;
  EXPECT_THAT(DecodeRecord<WorkerEntry>("w", Sealed(1, RecordKind::kWorker, body)).status().ToString(),
              HasSubstr("field departed has neither 0 nor 1"));
  Contribution contribution = record_samples::SampleContribution();
  contribution.codec = CodecKind(200);
  EXPECT_THAT(DecodeRecord<Contribution>("c", EncodeRecord(contribution)).status().ToString(),
              HasSubstr("field codec has a value that this version does not know"));
}

TEST(RecordTest, ATensorOfAnUnknownKindIsNamed) {
  // The kind is the last byte of a manifest without a fingerprint.
  std::string body = BodyOf(EncodeRecord(record_samples::SampleManifest()));
  body.back() = 3;
  EXPECT_THAT(DecodeRecord<Manifest>("manifest", Sealed(1, RecordKind::kManifest, body)).status().ToString(),
              HasSubstr("field tensors.kind has a value that this version does not know"));
}

TEST(RecordTest, AHugeCountCostsNothing) {
  // A manifest that claims 2^32 - 1 tensors in four bytes.
  const std::string body(4, '\xff');
  EXPECT_THAT(DecodeRecord<Manifest>("manifest", Sealed(1, RecordKind::kManifest, body)).status().ToString(),
              HasSubstr("field tensors has fewer elements than its count"));
}

TEST(RecordTest, KeysAreEscapedInErrors) {
  EXPECT_THAT(DecodeRecord<HeadEntry>(std::string("head/\0\x01", 7), "").status().ToString(),
              HasSubstr("head/\\x00\\x01"));
}

}  // namespace
}  // namespace atl
