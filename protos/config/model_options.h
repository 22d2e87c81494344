#ifndef ATOLL_PROTOS_CONFIG_MODEL_OPTIONS_H_
#define ATOLL_PROTOS_CONFIG_MODEL_OPTIONS_H_

#include "atoll/v1/run.pb.h"
#include "core/model_options.h"

namespace atl {

/// `model` of a configuration, as the core has it. Checks nothing.
ModelOptions ModelOptionsOf(const v1::ModelSection& model);

/// The section of this model, with every field.
v1::ModelSection ModelSectionOf(const ModelOptions& model);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_MODEL_OPTIONS_H_
