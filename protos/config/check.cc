#include "protos/config/check.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/model_shape.h"
#include "protos/config/check_codecs.h"
#include "protos/config/check_evaluation.h"
#include "protos/config/check_rounds.h"
#include "protos/config/check_sync.h"
#include "protos/config/check_trust.h"
#include "protos/config/field_value.h"
#include "protos/config/model_options.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr size_t kMaxNameBytes = 63;

bool IsName(const std::string& name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  if (!absl::ascii_isalnum(static_cast<unsigned char>(name[0]))) return false;
  for (const char c : name) {
    const bool allowed =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
    if (!allowed) return false;
  }
  return true;
}

std::string Child(const std::string& path, const std::string& name) {
  return path.empty() ? name : absl::StrCat(path, ".", name);
}

void CheckMessage(const Message& message, const std::string& path, std::vector<ConfigProblem>* problems) {
  const auto* descriptor = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->real_oneof_decl_count(); ++i) {
    const auto* oneof = descriptor->oneof_decl(i);
    if (!reflection->HasOneof(message, oneof))
      problems->push_back({path, "has no kind; give exactly one", 0});
  }
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const std::string child = Child(path, field->name());
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      const std::string complaint = CheckValue(field, message);
      if (!complaint.empty()) problems->push_back({child, complaint, 0});
    } else if (reflection->HasField(message, field)) {
      CheckMessage(reflection->GetMessage(message, field), child, problems);
    } else if (field->real_containing_oneof() == nullptr) {
      problems->push_back({child, "is missing", 0});
    }
  }
}

void CheckName(const std::string& path, const std::string& name, std::vector<ConfigProblem>* problems) {
  if (IsName(name)) return;
  problems->push_back({path,
                       absl::StrCat(Quoted(name), " is not a valid name; allowed: up to ", kMaxNameBytes,
                                    " letters, digits, '-', '_' and '.', the first a letter or a digit"),
                       0});
}

class Together {
 public:
  explicit Together(const v1::RunConfig& config) : config_(config) {}

  std::vector<ConfigProblem> Run() {
    Model();
    Workers();
    Steps();
    Codecs();
    return std::move(problems_);
  }

 private:
  void Add(const std::string& path, const std::string& text) { problems_.push_back({path, text, 0}); }

  void Model() {
    const auto shape = ShapeOf(ModelOptionsOf(config_.model()));
    const std::optional<ModelProblem> problem = shape->FindProblem();
    if (problem) Add(absl::StrCat(shape->section(), ".", problem->setting), problem->text);
    IsolatedDocuments();
    if (!config_.model().has_torchscript()) return;
    constexpr char kAsItsFile[] = "a model.torchscript computes as its file says";
    if (config_.inner().precision() == v1::PRECISION_BF16) {
      Add("inner.precision", absl::StrCat("bf16: ", kAsItsFile, "; leave it fp32"));
    }
    if (config_.inner().recompute_activations()) {
      Add("inner.recompute_activations", absl::StrCat("true: ", kAsItsFile, "; leave it false"));
    }
  }

  void IsolatedDocuments() {
    if (!config_.data().isolate_documents()) return;
    if (config_.model().has_torchscript()) {
      Add("data.isolate_documents",
          "true: a model.torchscript gets tokens and targets only, and cannot be told where documents end; "
          "leave it false");
    }
    if (config_.model().has_external()) {
      Add("data.isolate_documents",
          "true: an external model decides in its own program what a token sees; leave it false, and let the "
          "program use atoll.TokenDataset(..., isolate_documents=True)");
    }
  }

  void Workers() {
    const uint32_t workers = config_.run().workers();
    const uint32_t most = config_.limits().max_workers();
    const uint32_t partitions = config_.data().partitions();
    const bool shared = config_.data().mode() == v1::DATA_MODE_SHARED;
    if (workers > most) {
      Add("run.workers", absl::StrCat(workers, " is above limits.max_workers, which is ", most));
    }
    // Islands: run.workers counts their ranks, and each of them reads one partition.
    const uint32_t start = config_.round().start_workers();
    const bool fewer_start = start != 0 && start < workers;
    const uint32_t readers = fewer_start ? start : workers;
    if (shared && partitions != 0 && partitions < readers) {
      Add("data.partitions",
          absl::StrCat(partitions, " is below ", fewer_start ? "round.start_workers" : "run.workers",
                       ", which is ", readers, ": each worker needs one; 0 chooses enough"));
    }
    if (config_.round().start_workers() > most) {
      Add("round.start_workers",
          absl::StrCat(config_.round().start_workers(), " is above limits.max_workers, which is ", most));
    }
    if (config_.round().minimum() > workers) {
      Add("round.minimum", absl::StrCat(config_.round().minimum(), " is above run.workers, which is ",
                                        workers, ": no round would ever close"));
    }
  }

  void Steps() {
    const v1::InnerSection& inner = config_.inner();
    const uint64_t total = uint64_t{config_.run().rounds()} * inner.steps();
    // The coordinator may have changed the rounds of a started run, and the warmup of an extended run is
    // over.
    const bool by_file = config_.run().extended_at_step() == 0 && config_.run().file_rounds() == 0;
    if (inner.warmup_steps() > total && by_file) {
      Add("inner.warmup_steps", absl::StrCat(inner.warmup_steps(), " is above the run's total of ", total,
                                             " inner steps (run.rounds x inner.steps)"));
    }
    // In floating point, which cannot overflow here. The sum is stored in 64 bits later.
    const double tokens = static_cast<double>(total) * inner.batch() * inner.accumulation() *
                          ModelOptionsOf(config_.model()).context() * config_.run().workers();
    if (tokens > 9e18) {
      Add("run.rounds",
          absl::StrCat("the run would take ", NumberText(tokens),
                       " tokens, above the limit of 9e18; lower run.rounds, inner.steps or inner.batch"));
    }
    const auto planned = static_cast<double>(config_.run().planned_tokens());
    const double round = tokens / config_.run().rounds();
    if (planned > 0 && (planned > tokens * (1 + 1e-12) || planned <= (tokens - round) * (1 - 1e-12))) {
      Add("run.planned_tokens", absl::StrCat(NumberText(planned), " tokens do not fit ",
                                             config_.run().rounds(), " rounds; remove the field"));
    }
  }

  void Codecs() {
    const v1::Codec pull = config_.codec().pull();
    if (pull != v1::CODEC_FP32 && pull != v1::CODEC_BF16) {
      const auto* value = v1::Codec_descriptor()->FindValueByNumber(pull);
      Add("codec.pull", absl::StrCat(Quoted(Spelling(value)),
                                     " cannot carry published parameters; allowed: one of fp32, bf16"));
    }
  }

  const v1::RunConfig& config_;
  std::vector<ConfigProblem> problems_;
};

}  // namespace

std::vector<ConfigProblem> CheckFields(const v1::RunConfig& config) {
  std::vector<ConfigProblem> problems;
  CheckMessage(config, "", &problems);
  return problems;
}

std::vector<ConfigProblem> CheckNames(const v1::RunConfig& config) {
  std::vector<ConfigProblem> problems;
  CheckName("run.name", config.run().name(), &problems);
  CheckName("data.tokenizer", config.data().tokenizer(), &problems);
  return problems;
}

std::vector<ConfigProblem> CheckTogether(const v1::RunConfig& config) {
  std::vector<ConfigProblem> problems = CheckNames(config);
  for (ConfigProblem& problem : Together(config).Run()) problems.push_back(std::move(problem));
  for (ConfigProblem& problem : CheckRounds(config)) problems.push_back(std::move(problem));
  for (ConfigProblem& problem : CheckCodecs(config)) problems.push_back(std::move(problem));
  for (ConfigProblem& problem : CheckSync(config)) problems.push_back(std::move(problem));
  for (ConfigProblem& problem : CheckEvaluation(config)) problems.push_back(std::move(problem));
  for (ConfigProblem& problem : CheckTrust(config)) problems.push_back(std::move(problem));
  return problems;
}

}  // namespace atl
