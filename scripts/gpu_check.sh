#!/usr/bin/env bash
# Builds Atoll against a LibTorch with CUDA, then checks and measures it on this machine's GPU. See --help.
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

stages=(build unit kernels sanitizer codecs runs python steps)
usage() {
  cat <<'HELP'
Usage: scripts/gpu_check.sh [options]

Checks Atoll on a machine with a GPU, CUDA's compiler and a Python with PyTorch for CUDA; it needs no network. It takes about 8 minutes on 16
cores and an H100. A stage that fails is reported, and the next ones still run.

  build   configure against the LibTorch of python3, and build the programs and the tests that compute on a GPU
  unit    run these tests: each model, the inner step, the optimizer and saved states on the GPU against the processor
  kernels run the kernels that encode pushes and add deltas, and compare their bits with the codecs of the processor
  sanitizer  run the smallest of these comparisons under compute-sanitizer, where CUDA has it: memory, races, barriers, initialisation
  codecs  measure the speed of these kernels beside a copy within the GPU's memory
  runs    train with atoll-worker on the GPU: every kind of model, two workers and a kill -9, texts of atoll-model
  python  train with the Python package on the GPU, together with atoll-worker: plain, bf16, fp16, compiled, DDP, FSDP2
  steps   measure the step of GPT-2 124M beside PyTorch's, eager and compiled (bench/step/gpt2_step.py)

  --stages LIST   run only these, for example unit,steps; without build, the build of an earlier call is used
  --out DIR       write the logs and report.md, in Markdown, into DIR (default: build/gpu-check)
  --deps DIR      source DIR/setup.sh first, which brings the C++ dependencies of a machine without a package manager
  --batches LIST  batches of the stage steps (default: 8,32)
  --jobs N        compile N files at a time (default: the number of cores, fewer if memory is short)
  --compile-only  on a machine without a GPU: install PyTorch and CUDA's compiler from the Python registry into a virtual environment
                  (8 GB), run the stage build against it, and say what needs a GPU
  --venv DIR      that environment (default: atoll/gpu in $XDG_CACHE_HOME, else ~/.cache)
  -h, --help      this text

Exit codes: 0 every stage passed, 1 a stage failed, 2 wrong usage.
HELP
}

say() { echo "gpu_check: $*"; }
die() { echo "gpu_check: $2" >&2; exit "$1"; }

out=build/gpu-check deps='' jobs='' batches=8,32 compile_only=no venv=${XDG_CACHE_HOME:-${HOME:-/var/tmp}/.cache}/atoll/gpu
while [ $# -gt 0 ]; do
  case "$1" in
    --stages|--out|--deps|--jobs|--venv|--batches)
      [ $# -ge 2 ] || die 2 "$1 needs a value"
      case "$1" in
        --stages) IFS=, read -ra stages <<<"$2" ;; --out) out=$2 ;; --deps) deps=$2 ;; --jobs) jobs=$2 ;; --venv) venv=$2 ;;
        --batches) batches=$2 ;;
      esac
      shift ;;
    --compile-only) compile_only=yes ;;
    -h|--help) usage; exit 0 ;;
    *) usage >&2; die 2 "unknown option '$1'" ;;
  esac
  shift
done
for stage in "${stages[@]}"; do
  [[ $stage =~ ^(build|unit|kernels|sanitizer|codecs|runs|python|steps)$ ]] || die 2 "unknown stage '$stage'"
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
build=build/cuda
began=$SECONDS failed=() results=()
unit_tests=(worker_torch_device_test worker_models_device_test worker_torch_model_test worker_torch_hardware_test worker_torch_replica_test
  worker_torch_resume_test worker_models_test)
programs=(atoll-coordinator atoll-worker atoll-model atollctl atoll-data atoll-engine atoll_client atoll-step-speed
  worker_cuda_device_kernels_test atoll-kernel-speed)

install_cuda_wheels() {  # of the versions that are measured, and the compiler of the same CUDA
  local cuda python=$venv/bin/python
  if ! "$python" -c 'import torch' 2>/dev/null || [ ! -d "$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13/nvvm)" ]; then
    say "installing PyTorch with CUDA into $venv: a download of about 3 GB"
    [ -x "$python" ] || python3 -m venv "$venv"
    "$python" -m pip install --quiet --no-cache-dir --disable-pip-version-check torch==2.14.1 numpy 'nvidia-cuda-nvcc==13.0.*' \
      'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-cccl==13.0.*'
  fi
  # The wheels have no folder in the layout of a toolkit: no lib64, no names without a version, no driver to link with.
  cuda=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13)
  mkdir -p "$venv/cuda/lib64/stubs"
  cp -r "$cuda/bin" "$venv/cuda/"
  ln -sfn "$cuda/include" "$venv/cuda/include"
  ln -sfn "$cuda/nvvm" "$venv/cuda/nvvm"
  local file name
  for file in "$cuda"/lib/*; do
    name=${file##*/}
    ln -sf "$file" "$venv/cuda/lib64/$name"
    [[ $name != *.so.* ]] || ln -sf "$file" "$venv/cuda/lib64/${name%%.so.*}.so"
  done
  echo 'void cuInit(void) {}' | gcc -shared -x c - -o "$venv/cuda/lib64/stubs/libcuda.so" -Wl,-soname,libcuda.so.1
  export PATH=$venv/bin:$venv/cuda/bin:$PATH CUDACXX=$venv/cuda/bin/nvcc TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST:-9.0}
  configure=(-DCUDA_TOOLKIT_ROOT_DIR="$venv/cuda" -DCUDAToolkit_ROOT="$venv/cuda")
}

# What the linked worker must have: LibTorch's CUDA, our kernels, and c10d's group over NCCL.
check_linked_worker() {
  local worker=$build/bin/atoll-worker needed defined wanted symbol lacks
  needed=$(readelf -d "$worker" | grep -oE '\[lib(torch|c10|cud|nccl)[^]]*' | tr -d '[' | sort | paste -sd' ')
  defined=$(nm -C --defined-only "$worker")
  wanted=$(nm -C --undefined-only "$worker")
  lacks=$(ldd "$worker" | grep 'not found' | grep -v 'libcuda.so.1' || true)
  for symbol in atl::QueuePush atl::QueueAdd atl::CreateCudaQueue; do
    grep -q " [Tt] $symbol(" <<<"$defined" || { echo "atoll-worker has no $symbol"; return 1; }
  done
  for symbol in c10d::ProcessGroupNCCL::ProcessGroupNCCL at::cuda::CUDAGraph::replay; do
    grep -q " U $symbol(" <<<"$wanted" || { echo "atoll-worker does not use $symbol"; return 1; }
  done
  [[ $needed == *libtorch_cuda.so* ]] || { echo "atoll-worker is not linked with libtorch_cuda.so, only with $needed"; return 1; }
  [ -z "$lacks" ] || { echo "atoll-worker lacks libraries: $lacks"; return 1; }
  echo "atoll-worker is linked with $needed"
}

stage_build() {
  share_compiler_cache "$PWD"
  local log=$out/build.log
  : >"$log"
  cmake --preset cuda -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')" "${configure[@]}" >>"$log" 2>&1 ||
    { tail -n 30 "$log"; return 1; }
  run_with_progress build "$log" cmake --build "$build" --parallel "${jobs:-$(compile_jobs)}" --target "${programs[@]}" "${unit_tests[@]}" -- -k 0 ||
    { grep -nE -A8 'error:|Error|FAILED' "$log" | head -n 60; return 1; }
  check_linked_worker
}

stage_unit() {
  local program status bad=0
  for program in "${unit_tests[@]}"; do
    status=0
    timeout 150 "$build/tests/$program" >"$out/unit-$program.log" 2>&1 || status=$?
    echo "$program: exit code $status: $(grep -cE '^\[       OK' "$out/unit-$program.log" || true) passed," \
      "$(grep -cE '^\[  SKIPPED \].*ms\)' "$out/unit-$program.log" || true) skipped"
    if [ "$status" -ne 0 ]; then
      bad=1
      grep -E -B12 '^\[  FAILED  \].*ms\)' "$out/unit-$program.log" || tail -n 30 "$out/unit-$program.log"
    fi
  done
  cat "$out"/unit-*.log >"$out/unit-tests.log"
  rm -f "$out"/unit-worker*.log
  return $bad
}

stage_kernels() {
  timeout 150 "$build/tests/worker_cuda_device_kernels_test" >"$out/kernels-test.log" 2>&1 || { tail -n 40 "$out/kernels-test.log"; return 1; }
  if grep -q '^\[  SKIPPED \]' "$out/kernels-test.log"; then echo "no GPU: the tests were skipped"; return 1; fi
  tail -n 1 "$out/kernels-test.log"
}
stage_sanitizer() {
  local sanitizer tool bad=0
  sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null) ||
    { echo "compute-sanitizer is not installed: not checked"; return 0; }
  for tool in memcheck racecheck synccheck initcheck; do
    if timeout 60 "$sanitizer" --tool "$tool" --error-exitcode 9 "$build/tests/worker_cuda_device_kernels_test" --gtest_filter='*Small*' \
      >"$out/sanitizer-$tool.log" 2>&1; then
      echo "$tool: $(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$out/sanitizer-$tool.log" | tail -n 1 | sed 's/^=* *//')"
    else
      bad=1
      echo "$tool: exit code $?"
      tail -n 30 "$out/sanitizer-$tool.log"
    fi
  done
  return $bad
}
stage_codecs() { timeout 120 "$build/bin/atoll-kernel-speed" >"$out/codecs.md" && cat "$out/codecs.md"; }

python_tests() {  # CLASS
  timeout 200 python3 -B tests/python/run_tests.py --need torch --bin "$build/bin" --library "$build/lib/libatoll_client.so" "test_cuda.$1"
}
stage_runs() { python_tests NativeTest; }
stage_python() { python_tests PythonTest; }

stage_steps() {
  timeout 300 python3 -B bench/step/gpt2_step.py --bin "$build/bin" --batches "$batches" --json "$out/steps.json" --markdown "$out/steps.md" \
    --trace "$out/kernels.txt"
}

# `set -e` has no effect within a condition, so a stage is a subshell beside none.
run_stage() {  # NAME
  local start=$SECONDS status
  say "stage $1"
  set +e
  trap - ERR
  (set -Ee; trap 'report_failure "$?" "$BASH_COMMAND"' ERR; "stage_$1") 2>&1 | tee "$out/$1.txt"
  status=${PIPESTATUS[0]}
  trap 'report_failure "$?" "$BASH_COMMAND"' ERR
  set -e
  results+=("$1 $((SECONDS - start)) $([ "$status" -eq 0 ] && echo passed || echo FAILED)")
  if [ "$status" -ne 0 ]; then failed+=("$1"); fi
  say "stage $1 $([ "$status" -eq 0 ] && echo passed || echo FAILED) after $((SECONDS - start)) s"
}

report() {
  local line
  echo "Checked by \`scripts/gpu_check.sh\` on $(date -u +%F), on $(nproc) cores, $(. /etc/os-release && echo "$PRETTY_NAME"), $(g++ --version | head -n 1)."
  printf '\n| stage | seconds | result |\n|---|---|---|\n'
  for line in "${results[@]}"; do echo "| ${line// / | } |"; done
  if [ -f "$out/unit.txt" ]; then printf '\n'; sed -n 's/^\(worker_[a-z_]*\): exit code [0-9]*: \(.*\)$/- `\1`: \2/p' "$out/unit.txt"; fi
  if [ -f "$out/sanitizer.txt" ]; then printf '\n'; sed 's/^/- compute-sanitizer, /' "$out/sanitizer.txt"; fi
  if [ -s "$out/codecs.md" ]; then printf '\n'; cat "$out/codecs.md"; fi
  if [ -f "$out/steps.md" ]; then printf '\n'; cat "$out/steps.md"; fi
}

configure=()
if [ "$compile_only" = yes ]; then
  install_cuda_wheels
  stages=(build)
else
  if [ -n "$deps" ]; then source "$deps/setup.sh"; fi
  command -v nvidia-smi >/dev/null || die 1 "nvidia-smi is missing: this machine has no GPU. --compile-only builds without one"
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  python3 -c 'import torch; print("PyTorch", torch.__version__); assert torch.cuda.is_available(), "torch.cuda is not available"'
fi

# torch.compile takes a minute for each batch, on one core and little of the GPU. Its result is kept.
warming=''
if [[ " ${stages[*]} " == *" steps "* ]]; then
  export TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$out/inductor}
  nice -n 5 python3 -B bench/step/gpt2_step.py --warm --batches "$batches" >"$out/warm.txt" 2>&1 &
  warming=$!
fi
for stage in "${stages[@]}"; do
  if [ "$stage" != build ] && [ ! -x "$build/bin/atoll-worker" ]; then
    results+=("$stage 0 not-run")
    failed+=("$stage")
    continue
  fi
  if [ "$stage" = steps ]; then wait "$warming" || say "torch.compile failed beforehand: $out/warm.txt"; fi
  run_stage "$stage"
done
report >"$out/report.md"
cat "$out/report.md"
if [ "$compile_only" = yes ]; then say "these stages need a GPU: unit, kernels, sanitizer, codecs, runs, python, steps"; fi
say "$((SECONDS - began)) s; the report and the logs are in $out"
[ ${#failed[@]} -eq 0 ] || die 1 "failed: ${failed[*]}"
