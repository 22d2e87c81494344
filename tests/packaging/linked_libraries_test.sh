#!/usr/bin/env bash
# linked_libraries_test.sh BIN_DIR PROGRAM...: the programs link no LibTorch, directly or through another library.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
bin=$1
shift
failed=0
for program in "$@"; do
  libraries=$(ldd "$bin/$program")
  if grep -E 'libtorch|libc10|libcuda' <<<"$libraries"; then
    echo "$program links LibTorch or CUDA; only atoll-worker and atoll-model may"
    failed=1
  fi
  grep -q 'libc\.so' <<<"$libraries" || { echo "$program: ldd shows no libraries at all"; failed=1; }
done
exit "$failed"
