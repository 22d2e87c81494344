#include "core/offences.h"

#include <cmath>

#include "core/merge_comparison.h"
#include "gtest/gtest.h"
#include "tests/core/merge_fixture.h"
#include "tests/core/merge_reference.h"

namespace atl {
namespace {

const std::vector<WorkerName> kNames = {"a", "b", "c", "d"};

MergeFindings Nothing(size_t n) {
  return {.guard = std::vector<double>(n, 1.0), .clip = std::vector<double>(n, 1.0)};
}

uint8_t Bits(std::initializer_list<Offence> offences) {
  uint8_t bits = 0;
  for (const Offence offence : offences) bits |= static_cast<uint8_t>(offence);
  return bits;
}

TEST(AuditRound, FindsTheLargeOneByRecordedNormsAlone) {
  const std::vector<double> norms = {1, 1.2, 0.9, 30};
  const auto audits = AuditRound({.norm = 10}, kNames, norms, Nothing(4));
  ASSERT_EQ(audits.size(), 1u) << "what was not measured and is no offence is not kept";
  EXPECT_EQ(audits[0].worker, "d");
  EXPECT_EQ(audits[0].offences, Bits({Offence::kNorm}));
  EXPECT_NEAR(audits[0].norm, 30 / 1.1, 1e-12);
  EXPECT_FALSE(audits[0].measured);
}

TEST(AuditRound, JudgesDistanceAndDirectionWhereTheyAreMeasured) {
  MergeFindings findings = Nothing(4);
  findings.cosines = {0.9, 0.8, 0.7, -0.6};
  findings.distances = {1, 1, 1.1, 2.9};
  const std::vector<double> norms = {1, 1, 1, 1};
  auto audits = AuditRound({.distance = 3, .cosine = -0.2}, kNames, norms, findings);
  ASSERT_EQ(audits.size(), 4u);
  EXPECT_EQ(audits[3].offences, Bits({Offence::kDirection}));
  EXPECT_NEAR(audits[3].distance, 2.9 / 1.05, 1e-12);
  EXPECT_EQ(Evidence(audits[3]), "cosine -0.60 with the merge");
  audits = AuditRound({.distance = 2.5, .cosine = -0.2}, kNames, norms, findings);
  EXPECT_EQ(audits[3].offences, Bits({Offence::kDirection, Offence::kDistance}));
  EXPECT_EQ(OffenceNames(audits[3].offences), "distance, direction");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(audits[i].offences, 0);
}

TEST(AuditRound, OfTwoNobodyCanTellWhoIsWrong) {
  MergeFindings findings = Nothing(2);
  findings.cosines = {1, -1};
  findings.distances = {1, 1000};
  const std::vector<WorkerName> names = {"a", "b"};
  const std::vector<double> norms = {1, 1000};
  for (const ContributionAudit& audit : AuditRound({}, names, norms, findings)) EXPECT_EQ(audit.offences, 0);
}

TEST(OffenceRecord, LooksAtTheLastRoundsAndCountsForever) {
  OffenceRecord record;
  const ContributionAudit bad{.worker = "a", .offences = Bits({Offence::kNorm, Offence::kDirection})};
  const ContributionAudit good{.worker = "a"};
  for (int i = 0; i < 3; ++i) record.Note(bad, 4);
  EXPECT_EQ(record.recent(), 3u);
  for (int i = 0; i < 3; ++i) record.Note(good, 4);
  EXPECT_EQ(record.recent(), 1u);
  EXPECT_EQ(record.rounds(), 4u);
  record.Note(good, 4);
  EXPECT_EQ(record.recent(), 0u);
  EXPECT_EQ(record.kinds(), 0);
  EXPECT_EQ(record.total(Offence::kNorm), 3u);
  EXPECT_EQ(record.total(Offence::kDistance), 0u);
  record.Note(bad, 4);
  record.Forgive();
  EXPECT_EQ(record.recent(), 0u);
  EXPECT_TRUE(record.any());
}

TEST(MergeComparison, IsTheCosineAndDistanceOfThePlainVectors) {
  const FragmentLayout layout = LayoutOf({5000, 300, 9000});
  std::vector<std::vector<float>> deltas;
  for (uint64_t w = 0; w < 5; ++w) deltas.push_back(RandomDelta(layout, w, 1e-3f * static_cast<float>(w)));
  const MergeRound round(layout, deltas, {1, 2, 3, 4, 5}, {CodecKind::kFp32, CodecKind::kBf16});
  const MergeOptions options{.method = MergeMethod::kMedian, .norm_guard = true};
  MergePlanner planner(options, round.inputs, round.layout);
  const std::vector<float> merged = Merged(round, options);
  const auto compare = [&](uint64_t piece_size) {
    MergeComparison comparison(planner.plan(), (layout.elements + piece_size - 1) / piece_size);
    for (uint64_t first = 0; first < layout.elements; first += kChunkAlignment) {
      const uint64_t n = std::min<uint64_t>(kChunkAlignment, layout.elements - first);
      comparison.Add(first / piece_size, first, std::span(merged).subspan(first, n));
    }
    return comparison.Finish();
  };
  const MergeComparison::Result result = compare(2 * kChunkAlignment);
  const Vector m(merged.begin(), merged.end());
  const std::vector<std::vector<float>> decoded = round.decoded();
  for (size_t i = 0; i < decoded.size(); ++i) {
    Vector away(m.size());
    double dot = 0;
    for (size_t k = 0; k < m.size(); ++k) {
      away[k] = decoded[i][k] - m[k];
      dot += decoded[i][k] * m[k];
    }
    const Vector x(decoded[i].begin(), decoded[i].end());
    EXPECT_NEAR(result.distances[i], NormOf(away), 1e-9 * NormOf(m)) << i;
    EXPECT_NEAR(result.cosines[i], NormOf(x) > 0 ? dot / NormOf(x) / NormOf(m) : 0, 1e-9) << i;
  }
}

}  // namespace
}  // namespace atl
