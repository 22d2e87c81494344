#include "worker/models/script_model.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/digest.h"
#include "common/mapped_file.h"
#include "common/status.h"
#include "worker/models/script_tensors.h"

namespace atl {
namespace {

constexpr char kForward[] = "forward(tokens, targets) -> loss";

absl::Status CheckForward(const torch::jit::Module& module) {
  const auto method = module.find_method("forward");
  // The module itself is the first argument.
  if (method && method->function().getSchema().arguments().size() == 3) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it has no method ", kForward));
}

absl::StatusOr<Manifest> ManifestOfModule(const torch::jit::Module& module) {
  ATOLL_RETURN_IF_ERROR(CheckForward(module));
  Manifest manifest;
  for (const auto& [name, values] : TrainedTensors(module)) {
    if (values.scalar_type() != torch::kFloat32) {
      return absl::InvalidArgumentError(
          absl::StrFormat("parameter '%s' is of type %s; export the module with float32 parameters", name,
                          std::string(c10::toString(values.scalar_type()))));
    }
    manifest.tensors.push_back({.name = name, .shape = values.sizes().vec()});
  }
  ATOLL_RETURN_IF_ERROR(CheckTrainedMemory(module));
  if (!manifest.tensors.empty()) return manifest;
  return absl::InvalidArgumentError(
      "it has no parameter that needs a gradient; export the module before torch.jit.freeze");
}

absl::Status About(const std::string& path, const absl::Status& status) {
  return {status.code(), absl::StrFormat("TorchScript file %s: %s", path, std::string(status.message()))};
}

/// The first line with text: what LibTorch says of a file that it cannot read has several.
std::string FirstLine(std::string_view text) {
  text = text.substr(std::min(text.find_first_not_of(" \n"), text.size()));
  return std::string(text.substr(0, text.find('\n')));
}

/// The last line with text: before it, the interpreter quotes the module's code.
std::string LastLine(std::string_view text) {
  const size_t end = text.find_last_not_of(" \n");
  if (end == std::string_view::npos) return "";
  text = text.substr(0, end + 1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

absl::Status Unreadable(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("cannot be read: ", FirstLine(what),
                                                 "; write it with torch.jit.script(module).save(FILE), in a "
                                                 "PyTorch that is not newer than this LibTorch"));
}

absl::StatusOr<Manifest> ReadManifest(const std::string& path) {
  // Errors in the file's code and in its version are no c10::Error.
  try {
    return ManifestOfModule(torch::jit::load(path, torch::kCPU));
  } catch (const c10::Error& error) {
    return Unreadable(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return Unreadable(error.what());
  }
}

/// Moves the memory of a tensor into the flat vectors. The tensor stays the same object, so every place of
/// the module that holds it computes with them: an RNN, for one, computes with a list of its parameters.
void Bind(torch::Tensor tensor, FlatParameters& parameters, size_t index) {
  const torch::Tensor& view = parameters.view(index);
  {
    const torch::NoGradGuard no_grad;
    view.detach().copy_(tensor);
  }
  tensor.set_data(view);
  tensor.mutable_grad() = view.grad();
  // A script need not use all of its parameters.
  parameters.ExpectNoGradient(index);
  tensor.register_hook([&parameters, index](const torch::Tensor& gradient) {
    if (gradient.defined()) parameters.SawGradient(index);
  });
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
  const std::vector<ScriptTensor> trained = TrainedTensors(module_);
  TORCH_CHECK(trained.size() == parameters.manifest().tensors.size(), path, " has changed");
  for (size_t i = 0; i < trained.size(); ++i) Bind(trained[i].values, parameters, i);
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
  const torch::IValue loss = Forward(tokens, targets);
  TORCH_CHECK(loss.isTensor() && loss.toTensor().numel() == 1, path_,
              ": forward has to return a loss, one value");
  TORCH_CHECK(loss.toTensor().is_floating_point(), path_, ": forward returned a loss of type ",
              c10::toString(loss.toTensor().scalar_type()), "; it has to be floating-point");
  TORCH_CHECK(
      !training || loss.toTensor().requires_grad(), path_,
      ": forward returned a loss that no parameter can be trained with; it was detached, or computed under "
      "torch.no_grad()");
  return loss.toTensor().to(torch::kFloat32).reshape({});
}

torch::IValue ScriptModel::Forward(const torch::Tensor& tokens, const torch::Tensor& targets) const {
  std::string why;
  try {
    return module_.forward({tokens, targets});
  } catch (const c10::Error& error) {
    why = error.what_without_backtrace();
  } catch (const std::exception& error) {
    why = error.what();
  }
  // Without memory there is another remedy, and the caller knows the words.
  TORCH_CHECK(
      why.find("out of memory") == std::string::npos && why.find("can't allocate") == std::string::npos, why);
  const bool lookup = why.find("index out of range") != std::string::npos;
  TORCH_CHECK(
      false, path_, ": forward failed: ", LastLine(why),
      lookup ? "; model.torchscript.vocabulary names more tokens than the module's embedding has" : "");
}

torch::Tensor ScriptModel::LossOfDocuments(const torch::Tensor& /*tokens*/, const torch::Tensor& /*targets*/,
                                           const DocumentLayout& /*documents*/, ModelMode /*mode*/) const {
  TORCH_CHECK(false, path_, ": a TorchScript model cannot be told where documents end");
  return {};
}

}  // namespace atl
