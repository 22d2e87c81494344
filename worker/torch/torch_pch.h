// Precompiled: LibTorch's headers take most of a minute to parse.
#ifndef ATOLL_WORKER_TORCH_TORCH_PCH_H_
#define ATOLL_WORKER_TORCH_TORCH_PCH_H_

#include <torch/torch.h>

#endif  // ATOLL_WORKER_TORCH_TORCH_PCH_H_
