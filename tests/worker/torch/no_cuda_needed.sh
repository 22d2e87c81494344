#!/usr/bin/env bash
# A program that was built against a LibTorch for the CPU starts on machines without CUDA: nothing that it loads is of CUDA.
#
# Usage: no_cuda_needed.sh PROGRAM...     Exit codes: 0 none needs CUDA, 1 one does, 2 wrong usage.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/lib.sh"
[ $# -ge 1 ] || { echo "usage: no_cuda_needed.sh PROGRAM..." >&2; exit 2; }

result=0
for program in "$@"; do
  all=$(ldd "$program" | awk '{print $1}')
  cuda=$(grep -E '^lib(cuda|cudart|cublas|cudnn|nccl|nvrtc|torch_cuda|c10_cuda)[.]' <<<"$all" | paste -sd' ' || true)
  echo "$program: $(wc -l <<<"$all") libraries, of CUDA: ${cuda:-none}"
  [ -z "$cuda" ] || result=1
done
exit $result
