#ifndef ATOLL_PROTOS_CONFIG_GPT_OPTIONS_H_
#define ATOLL_PROTOS_CONFIG_GPT_OPTIONS_H_

#include "atoll/v1/run.pb.h"
#include "core/run_options.h"

namespace atl {

/// `model.gpt` of a configuration, as the core has it. Checks nothing.
GptOptions GptOptionsOf(const v1::GptModel& gpt);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_GPT_OPTIONS_H_
