#include "protos/wire/manifest.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace atl {

v1::Manifest ManifestToProto(const Manifest& manifest) {
  v1::Manifest proto;
  for (const TensorSpec& tensor : manifest.tensors) {
    v1::TensorSpec* out = proto.add_tensors();
    out->set_name(tensor.name);
    out->mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    out->set_embedding(tensor.embedding);
    out->set_averaged(tensor.averaged);
  }
  proto.set_base_fingerprint(manifest.base_fingerprint);
  return proto;
}

absl::StatusOr<Manifest> ManifestFromProto(const v1::Manifest& proto) {
  if (static_cast<size_t>(proto.tensors_size()) > kMaxTensors) {
    return absl::InvalidArgumentError(absl::StrCat("manifest has ", proto.tensors_size(),
                                                   " tensors; at most ", kMaxTensors, " are allowed"));
  }
  Manifest manifest;
  manifest.tensors.reserve(static_cast<size_t>(proto.tensors_size()));
  for (const v1::TensorSpec& tensor : proto.tensors()) {
    manifest.tensors.push_back({.name = tensor.name(),
                                .shape = {tensor.shape().begin(), tensor.shape().end()},
                                .embedding = tensor.embedding(),
                                .averaged = tensor.averaged()});
  }
  manifest.base_fingerprint = proto.base_fingerprint();
  ATOLL_RETURN_IF_ERROR(ValidateManifest(manifest));
  return manifest;
}

v1::ContentHash ContentHashToProto(const ContentHash& hash) {
  v1::ContentHash proto;
  proto.set_low(hash.low);
  proto.set_high(hash.high);
  return proto;
}

ContentHash ContentHashFromProto(const v1::ContentHash& proto) { return {proto.low(), proto.high()}; }

}  // namespace atl
