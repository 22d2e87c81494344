#include "protos/config/check_codecs.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/codec.h"
#include "protos/config/field_value.h"
#include "protos/config/schema.h"

namespace atl {
namespace {

class Codecs {
 public:
  explicit Codecs(const v1::RunConfig& config) : config_(config) {}

  std::vector<ConfigProblem> Run() {
    // The core's kinds have the numbers of the protobuf ones (protos/config/run_options.cc).
    const Codec* push = FindCodec(static_cast<CodecKind>(config_.codec().push()));
    if (push != nullptr && push->sparse() != nullptr) Sparse();
    ErrorFeedback();
    Pull();
    return std::move(problems_);
  }

 private:
  void Add(const std::string& path, const std::string& text) { problems_.push_back({path, text, 0}); }

  std::string PushName() const {
    return Quoted(Spelling(v1::Codec_descriptor()->FindValueByNumber(config_.codec().push())));
  }

  void Sparse() {
    const v1::MergeMethod method = config_.merge().method();
    const std::string name = Quoted(Spelling(v1::MergeMethod_descriptor()->FindValueByNumber(method)));
    if (method == v1::MERGE_METHOD_TRIMMED_MEAN || method == v1::MERGE_METHOD_MEDIAN ||
        method == v1::MERGE_METHOD_CENTERED_CLIP) {
      Add("merge.method", absl::StrCat(name, " would count the values that ", PushName(),
                                       " omits (most of them) as zeros; use mean or rda"));
    } else if (method != v1::MERGE_METHOD_MEAN &&
               config_.merge().sparse_average() == v1::SPARSE_AVERAGE_PRESENT) {
      Add("merge.sparse_average", absl::StrCat("'present' works only with merge.method mean; ", name,
                                               " weights whole tensors: allowed: all"));
    }
    if (!config_.codec().error_feedback()) {
      Add("codec.error_feedback", absl::StrCat(PushName(), " omits most of every push; without error ",
                                               "feedback that part would be lost: allowed: true"));
    }
    if (HasMomentum() && !config_.codec().allow_momentum_with_topk()) {
      Add("codec.push", absl::StrCat(PushName(), " with outer momentum repeats each sparse step for many ",
                                     "rounds; use outer.optimizer sgd (SparseLoCo: learning_rate 1), or set ",
                                     "codec.allow_momentum_with_topk: true"));
    }
  }

  bool HasMomentum() const {
    const v1::OuterSection& outer = config_.outer();
    switch (outer.optimizer()) {
      case v1::OUTER_OPTIMIZER_NESTEROV:
      case v1::OUTER_OPTIMIZER_DELAYED_NESTEROV:
        return outer.momentum() > 0;
      case v1::OUTER_OPTIMIZER_ADAM:
        return true;
      default:
        return false;
    }
  }

  void ErrorFeedback() {
    const v1::CodecSection& codec = config_.codec();
    if (codec.error_feedback() && codec.error_feedback_form() == v1::ERROR_FEEDBACK_FORM_MOVING_AVERAGE &&
        codec.error_feedback_beta() == 1) {
      Add("codec.error_feedback_beta",
          "1 with codec.error_feedback_form moving_average ignores every encoding error; LoCo uses 0.8");
    }
  }

  void Pull() {
    const v1::CodecSection& codec = config_.codec();
    if (codec.pull_delta() == v1::PULL_DELTA_NONE || codec.pull() == v1::CODEC_FP32) return;
    Add("codec.pull",
        absl::StrCat(Quoted(Spelling(v1::Codec_descriptor()->FindValueByNumber(codec.pull()))),
                     " cannot be combined with codec.pull_delta: full pulls and differences must give the ",
                     "same bits, and only float32 does: allowed: fp32"));
  }

  const v1::RunConfig& config_;
  std::vector<ConfigProblem> problems_;
};

}  // namespace

std::vector<ConfigProblem> CheckCodecs(const v1::RunConfig& config) { return Codecs(config).Run(); }

}  // namespace atl
