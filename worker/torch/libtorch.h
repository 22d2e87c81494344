#ifndef ATOLL_WORKER_TORCH_LIBTORCH_H_
#define ATOLL_WORKER_TORCH_LIBTORCH_H_

// What we use of LibTorch: tensors, their functions, autograd. <torch/torch.h> also has modules, optimizers
// and data loaders; with them a precompiled header is 629 MB instead of 398 MB, and each file that uses it
// takes 1.6 s longer (LibTorch 1.13, g++ 12). What needs more, includes it.

#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#endif  // ATOLL_WORKER_TORCH_LIBTORCH_H_
