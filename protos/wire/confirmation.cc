#include "protos/wire/confirmation.h"

#include "protos/wire/manifest.h"

namespace atl {

v1::SignedConfirmation SignedConfirmationToProto(const SignedConfirmation& one) {
  v1::SignedConfirmation message;
  message.set_worker(one.worker);
  message.set_public_key(one.public_key);
  message.set_epoch(one.epoch.value());
  v1::Confirmation* confirmation = message.mutable_confirmation();
  confirmation->set_fragment(one.confirmation.fragment.value());
  confirmation->set_version(one.confirmation.version.value());
  *confirmation->mutable_published() = ContentHashToProto(one.confirmation.published);
  confirmation->set_signature(one.confirmation.signature);
  return message;
}

SignedConfirmation SignedConfirmationFromProto(const v1::SignedConfirmation& message) {
  const v1::Confirmation& confirmation = message.confirmation();
  return {.worker = message.worker(),
          .public_key = message.public_key(),
          .epoch = Epoch(message.epoch()),
          .confirmation = {.fragment = FragmentId(confirmation.fragment()),
                           .version = Version(confirmation.version()),
                           .published = ContentHashFromProto(confirmation.published()),
                           .signature = confirmation.signature()}};
}

}  // namespace atl
