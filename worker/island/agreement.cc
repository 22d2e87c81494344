#include "worker/island/agreement.h"

#include <array>

#include "absl/strings/str_format.h"
#include "client/ipc/encoding.h"

namespace atl {
namespace {

// Of the frames and calls between ranks. The programs' versions must be equal besides, so that it only
// changes the message.
constexpr uint32_t kProtocol = 1;

/// Something that must be equal.
struct Fact {
  const char* what;
  std::string first;
  std::string other;
  const char* remedy;
};

}  // namespace

std::string EncodeRankFacts(const RankFacts& facts) {
  ipc::Encoder out;
  out.Number(kProtocol);
  out.Number(facts.rank);
  out.Number(facts.size);
  out.Text(facts.host);
  out.Number(facts.process);
  out.Text(facts.version);
  out.Text(facts.torch);
  out.Text(facts.device);
  out.Text(facts.dataset);
  out.Text(facts.name);
  return out.Take();
}

absl::StatusOr<RankFacts> DecodeRankFacts(std::string_view bytes) {
  ipc::Decoder in(bytes);
  RankFacts facts;
  const auto protocol = in.Number<uint32_t>();
  if (protocol != kProtocol) {
    return absl::InvalidArgumentError(
        absl::StrFormat("it speaks version %d of the protocol between ranks, and rank 0 version %d; run the "
                        "same atoll-worker on "
                        "all hosts",
                        protocol, kProtocol));
  }
  facts.rank = in.Number<uint32_t>();
  facts.size = in.Number<uint32_t>();
  facts.host = in.Text();
  facts.process = in.Number<uint64_t>();
  facts.version = in.Text();
  facts.torch = in.Text();
  facts.device = in.Text();
  facts.dataset = in.Text();
  facts.name = in.Text();
  if (!in.Finished()) return absl::InvalidArgumentError("what it says of itself is too short or too long");
  return facts;
}

absl::Status CheckAgreement(const RankFacts& first, const RankFacts& other) {
  // Only rank 0 needs the name.
  const bool named = !first.name.empty() && !other.name.empty();
  const std::array<Fact, 6> facts = {{
      {"the world size", absl::StrFormat("%d", first.size), absl::StrFormat("%d", other.size),
       "give all ranks the same --world-size (WORLD_SIZE)"},
      {"the program's version", first.version, other.version, "run the same atoll-worker on all hosts"},
      {"LibTorch's version", first.torch, other.torch, "run the same atoll-worker on all hosts"},
      {"the kind of device", first.device, other.device, "give all ranks the same --device"},
      {"the data's fingerprint", first.dataset, other.dataset,
       "give all ranks the same token files with --data, for example a copy made by rsync"},
      {"the worker's name", first.name, named ? other.name : first.name,
       "one of them is of another island: give each island an address of its own, and its ranks one --name"},
  }};
  for (const Fact& fact : facts) {
    if (fact.first == fact.other) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("the ranks disagree about %s: rank 0 (%s) has %s, and rank %d (%s) has %s; %s",
                        fact.what, first.host, fact.first, other.rank, other.host, fact.other, fact.remedy));
  }
  if (other.rank > 0 && other.rank < first.size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("rank %d (%s, process %d) is none of the ranks 1 to %d that rank 0 waits for",
                      other.rank, other.host, other.process, first.size - 1));
}

absl::Status CheckSameModel(const std::string& first_manifest, uint32_t rank, const std::string& manifest) {
  if (manifest == first_manifest) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the ranks disagree about the model: rank 0 has built manifest %s, and rank %d has %s; run the same "
      "atoll-worker with the same model files on all hosts",
      first_manifest, rank, manifest));
}

}  // namespace atl
