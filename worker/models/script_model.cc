#include "worker/models/script_model.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/mapped_file.h"
#include "common/status.h"
#include "worker/torch/torch_status.h"

namespace atl {
namespace {

constexpr char kForward[] = "forward(tokens, targets) -> loss";

/// Parameters that are trained, each once.
std::vector<std::pair<std::string, torch::Tensor>> Trained(const torch::jit::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> found;
  std::unordered_map<const void*, size_t> seen;
  for (const auto& parameter : module.named_parameters(/*recurse=*/true)) {
    const bool first = seen.emplace(parameter.value.unsafeGetTensorImpl(), found.size()).second;
    if (first && parameter.value.requires_grad()) found.emplace_back(parameter.name, parameter.value);
  }
  return found;
}

absl::Status CheckForward(const torch::jit::Module& module) {
  const auto method = module.find_method("forward");
  // The module itself is the first argument.
  if (method && method->function().getSchema().arguments().size() == 3) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it has no method ", kForward));
}

absl::StatusOr<Manifest> ManifestOfModule(const torch::jit::Module& module) {
  ATOLL_RETURN_IF_ERROR(CheckForward(module));
  Manifest manifest;
  for (const auto& [name, values] : Trained(module)) {
    if (values.scalar_type() != torch::kFloat32) {
      return absl::InvalidArgumentError(
          absl::StrFormat("parameter '%s' is of type %s; export the module with float32 parameters", name,
                          std::string(c10::toString(values.scalar_type()))));
    }
    manifest.tensors.push_back({.name = name, .shape = values.sizes().vec()});
  }
  if (!manifest.tensors.empty()) return manifest;
  return absl::InvalidArgumentError(
      "it has no parameter that needs a gradient; export the module before torch.jit.freeze");
}

absl::Status About(const std::string& path, const absl::Status& status) {
  return {status.code(), absl::StrFormat("TorchScript file %s: %s", path, std::string(status.message()))};
}

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  // What LibTorch says of a file that it cannot read has several lines.
  try {
    return ManifestOfModule(torch::jit::load(path, torch::kCPU));
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot be read: ", text.substr(0, text.find('\n')),
        "; write it with torch.jit.script(module).save(FILE), in a PyTorch that is not newer than "
        "this LibTorch"));
  }
}

}  // namespace

absl::StatusOr<Manifest> ManifestOfScript(const std::string& path) {
  const auto file = MappedFile::Open(path, AccessPattern::kSequential);
  if (!file.ok()) return About(path, file.status());
  auto manifest = ReadManifest(path);
  if (!manifest.ok()) return About(path, manifest.status());
  const auto bytes = file->bytes();
  manifest->base_fingerprint = Sha256Hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const absl::Status valid = ValidateManifest(*manifest);
  if (!valid.ok()) return About(path, valid);
  return manifest;
}

ScriptModel::ScriptModel(const std::string& path, FlatParameters& parameters)
    : path_(path), module_(torch::jit::load(path, parameters.device())) {
  const torch::NoGradGuard no_grad;
  std::unordered_map<const void*, torch::Tensor> views;
  const auto trained = Trained(module_);
  TORCH_CHECK(trained.size() == parameters.manifest().tensors.size(), path, " has changed");
  for (size_t i = 0; i < trained.size(); ++i) {
    parameters.view(i).detach().copy_(trained[i].second);
    views.emplace(trained[i].second.unsafeGetTensorImpl(), parameters.view(i));
  }
  for (const auto& part : module_.modules()) {
    torch::jit::Module owner = part;
    for (const auto& parameter : part.named_parameters(/*recurse=*/false)) {
      const auto view = views.find(parameter.value.unsafeGetTensorImpl());
      if (view != views.end()) owner.setattr(parameter.name, view->second);
    }
  }
}

torch::Tensor ScriptModel::Logits(const torch::Tensor& /*tokens*/, ModelMode /*mode*/) const {
  TORCH_CHECK(false, path_, ": a TorchScript model returns a loss, and no text can be drawn from it");
  return {};
}

torch::Tensor ScriptModel::NextLogits(const torch::Tensor& tokens, KeyValueCache& /*cache*/) const {
  return Logits(tokens, ModelMode::kEvaluation);
}

torch::Tensor ScriptModel::Loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                                ModelMode mode) const {
  const bool training = mode == ModelMode::kTraining;
  if (module_.is_training() != training) module_.train(training);
  const torch::IValue loss = module_.forward({tokens, targets});
  TORCH_CHECK(loss.isTensor() && loss.toTensor().numel() == 1, path_,
              ": forward has to return a loss, one value");
  return loss.toTensor().to(torch::kFloat32).reshape({});
}

}  // namespace atl
