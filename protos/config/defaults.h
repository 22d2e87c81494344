#ifndef ATOLL_PROTOS_CONFIG_DEFAULTS_H_
#define ATOLL_PROTOS_CONFIG_DEFAULTS_H_

#include "google/protobuf/message.h"

namespace atoll {

/// Sets every field that has a default in run.proto to it, in sections below too.
void FillWithDefaults(google::protobuf::Message* message);

/// Fills in what a message can tell to be absent: sections that are not required, and choices left
/// unspecified. What an older coordinator does not know thereby gets its default. Numbers are left alone: 0
/// may be meant.
void FillAbsent(google::protobuf::Message* message);

}  // namespace atoll

#endif  // ATOLL_PROTOS_CONFIG_DEFAULTS_H_
