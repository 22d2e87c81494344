#include "protos/wire/confirmation.h"

#include "protos/wire/manifest.h"
#include "protos/wire/run_state.h"

namespace atl {

v1::Confirmation ConfirmationToProto(const Confirmation& confirmation) {
  v1::Confirmation message;
  message.set_fragment(confirmation.fragment.value());
  message.set_version(confirmation.version.value());
  *message.mutable_published() = ContentHashToProto(confirmation.published);
  message.set_signature(confirmation.signature);
  return message;
}

Confirmation ConfirmationFromProto(const v1::Confirmation& message) {
  return {.fragment = FragmentId(message.fragment()),
          .version = Version(message.version()),
          .published = ContentHashFromProto(message.published()),
          .signature = message.signature()};
}

v1::SignedConfirmation SignedConfirmationToProto(const SignedConfirmation& one) {
  v1::SignedConfirmation message;
  message.set_worker(one.worker);
  message.set_public_key(one.public_key);
  message.set_epoch(one.epoch.value());
  *message.mutable_confirmation() = ConfirmationToProto(one.confirmation);
  return message;
}

SignedConfirmation SignedConfirmationFromProto(const v1::SignedConfirmation& message) {
  return {.worker = message.worker(),
          .public_key = message.public_key(),
          .epoch = Epoch(message.epoch()),
          .confirmation = ConfirmationFromProto(message.confirmation())};
}

v1::GetConfirmationsRequest ConfirmationQueryToProto(const MemberRef& member,
                                                     const ConfirmationQuery& query) {
  v1::GetConfirmationsRequest request;
  *request.mutable_worker() = MemberRefToProto(member);
  request.set_fragment(query.fragment.value());
  request.set_first_version(query.first.value());
  request.set_last_version(query.last.value());
  request.set_limit(query.limit);
  if (query.after.has_value()) {
    request.mutable_after()->set_version(query.after->version.value());
    request.mutable_after()->set_worker(query.after->worker);
  }
  return request;
}

ConfirmationQuery ConfirmationQueryFromProto(const v1::GetConfirmationsRequest& request) {
  ConfirmationQuery query{.fragment = FragmentId(request.fragment()),
                          .first = Version(request.first_version()),
                          .last = Version(request.last_version()),
                          .limit = request.limit()};
  if (request.has_after()) {
    query.after = {.version = Version(request.after().version()), .worker = request.after().worker()};
  }
  return query;
}

v1::ConfirmationPage ConfirmationPageToProto(const ConfirmationPage& page) {
  v1::ConfirmationPage message;
  message.set_run_id(page.run_id);
  for (const SignedConfirmation& one : page.confirmations) {
    *message.add_confirmations() = SignedConfirmationToProto(one);
  }
  if (page.next.has_value()) {
    message.mutable_next()->set_version(page.next->version.value());
    message.mutable_next()->set_worker(page.next->worker);
  }
  return message;
}

ConfirmationPage ConfirmationPageFromProto(const v1::ConfirmationPage& message) {
  ConfirmationPage page{.run_id = message.run_id()};
  for (const v1::SignedConfirmation& one : message.confirmations()) {
    page.confirmations.push_back(SignedConfirmationFromProto(one));
  }
  if (message.has_next()) {
    page.next = {.version = Version(message.next().version()), .worker = message.next().worker()};
  }
  return page;
}

}  // namespace atl
