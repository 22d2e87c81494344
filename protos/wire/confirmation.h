#ifndef ATOLL_PROTOS_WIRE_CONFIRMATION_H_
#define ATOLL_PROTOS_WIRE_CONFIRMATION_H_

#include "atoll/v1/types.pb.h"
#include "core/confirmation.h"

namespace atl {

v1::SignedConfirmation SignedConfirmationToProto(const SignedConfirmation& one);
/// Nothing in it was checked.
SignedConfirmation SignedConfirmationFromProto(const v1::SignedConfirmation& message);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_CONFIRMATION_H_
