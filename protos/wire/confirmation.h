#ifndef ATOLL_PROTOS_WIRE_CONFIRMATION_H_
#define ATOLL_PROTOS_WIRE_CONFIRMATION_H_

#include "atoll/v1/coordinator.pb.h"
#include "atoll/v1/types.pb.h"
#include "core/confirmation.h"
#include "core/protocol/confirmation_page.h"
#include "core/protocol/member_ref.h"

namespace atl {

/// Nothing in what comes back was checked.
v1::Confirmation ConfirmationToProto(const Confirmation& confirmation);
Confirmation ConfirmationFromProto(const v1::Confirmation& message);

v1::SignedConfirmation SignedConfirmationToProto(const SignedConfirmation& one);
SignedConfirmation SignedConfirmationFromProto(const v1::SignedConfirmation& message);

v1::GetConfirmationsRequest ConfirmationQueryToProto(const MemberRef& member, const ConfirmationQuery& query);
/// The caller is not read.
ConfirmationQuery ConfirmationQueryFromProto(const v1::GetConfirmationsRequest& request);

v1::ConfirmationPage ConfirmationPageToProto(const ConfirmationPage& page);
ConfirmationPage ConfirmationPageFromProto(const v1::ConfirmationPage& message);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_CONFIRMATION_H_
