#ifndef ATOLL_PROTOS_CONFIG_DEFAULTS_H_
#define ATOLL_PROTOS_CONFIG_DEFAULTS_H_

#include "google/protobuf/message.h"

namespace atl {

/// Sets every field that has a default in run.proto to it, in sections below too.
void FillWithDefaults(google::protobuf::Message* message);

/// Fills in what a message can tell to be absent: sections that are not required, choices left unspecified,
/// and numbers that are 0 where 0 is not allowed. What an older coordinator does not know thereby gets the
/// rule's absent_value, what that release did, or else its default. Where 0 is allowed it may be meant: a
/// field added to a section that there is already must take 0 for its default then.
void FillAbsent(google::protobuf::Message* message);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_DEFAULTS_H_
