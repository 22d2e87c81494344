#include "worker/sync/metered_connection.h"

namespace atoll {

template <typename Call>
auto MeteredConnection::Exchange(Call call) -> decltype(call()) {
  const MonoTime begin = context_.clock->Now();
  auto result = call();
  context_.board->Spend(TimeUse::kExchange, context_.clock->Now() - begin);
  return result;
}

absl::StatusOr<JoinInfo> MeteredConnection::Join(const JoinParameters& parameters) {
  return Exchange([&] { return inner_->Join(parameters); });
}

absl::StatusOr<HeartbeatOrders> MeteredConnection::Heartbeat(const MemberRef& member,
                                                             const HeartbeatNews& news) {
  // Beside the training, not instead of it: no time of the worker's is spent.
  const MonoTime begin = context_.clock->Now();
  auto orders = inner_->Heartbeat(member, news);
  context_.observer->OnHeartbeat(orders.ok(), context_.clock->Now() - begin);
  return orders;
}

absl::Status MeteredConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                               std::span<const SeedFragment> fragments) {
  return Exchange([&] { return inner_->SeedParameters(member, manifest, fragments); });
}

absl::StatusOr<PulledVersion> MeteredConnection::Pull(const MemberRef& member, const PullWish& wish,
                                                      std::span<std::byte> payload) {
  auto pulled = inner_->Pull(member, wish, payload);
  if (!pulled.ok()) return pulled;
  context_.board->Spend(TimeUse::kWait, pulled->waited);
  context_.board->Spend(TimeUse::kExchange, pulled->transfer);
  context_.observer->OnWaited(pulled->waited);
  if (pulled->kind == PullKind::kParameters) {
    context_.observer->OnPulled(wish.fragment, pulled->version, pulled->wire_bytes, pulled->waited,
                                pulled->transfer);
  }
  return pulled;
}

absl::StatusOr<PushReceipt> MeteredConnection::Push(const MemberRef& member, const PushOffer& offer,
                                                    std::span<const std::byte> payload, uint64_t from) {
  return Exchange([&] { return inner_->Push(member, offer, payload, from); });
}

absl::StatusOr<PushStatus> MeteredConnection::GetPushStatus(const MemberRef& member, const PushKey& key) {
  return Exchange([&] { return inner_->GetPushStatus(member, key); });
}

absl::Status MeteredConnection::Leave(const MemberRef& member, const std::string& reason) {
  return Exchange([&] { return inner_->Leave(member, reason); });
}

absl::StatusOr<ShownConfirmations> MeteredConnection::GetConfirmations(const MemberRef& member,
                                                                       const ConfirmationsWish& wish) {
  return inner_->GetConfirmations(member, wish);
}

void MeteredConnection::CancelPulls() { inner_->CancelPulls(); }

void MeteredConnection::EndPulls() { inner_->EndPulls(); }

void MeteredConnection::CancelPushes() { inner_->CancelPushes(); }

}  // namespace atoll
