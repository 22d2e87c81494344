#ifndef ATOLL_PROTOS_CONFIG_DEFAULTS_H_
#define ATOLL_PROTOS_CONFIG_DEFAULTS_H_

#include "google/protobuf/message.h"

namespace atl {

/// Sets every field that has a default in run.proto to its default, recursively.
void FillWithDefaults(google::protobuf::Message* message);

/// Fills in fields that are recognisably absent: optional sections, unspecified choices, and numbers that are
/// 0 where 0 is not allowed. A field that an older coordinator does not know gets the rule's absent_value
/// (the behaviour of that release), or else its default. Where 0 is allowed, 0 counts as set, so a field that
/// is added to an existing section must have the default 0.
void FillAbsent(google::protobuf::Message* message);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_DEFAULTS_H_
