/* fixed_values FILE CYCLE NAME=VALUE...: a worker of two tensors whose step writes the values of FILE
 * (float32), whatever the parameters are. fixed_worker.py is the same in Python, and explains CYCLE. Options
 * NAME=VALUE are those of atl_open. Exit code: the worker's, 99 when the library fails. C99. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/library/caller_program.h"

enum { kFirst = 7, kRows = 13, kColumns = 77, kAll = kFirst + kRows * kColumns };
enum { kTensors = 2, kMaxOptions = 16, kPerStep = 3, kPauseMs = 100 };

static float parameters[kAll];
static float wanted[kAll];
static float* const values[kTensors] = {parameters, parameters + kFirst};
static const size_t starts[kTensors + 1] = {0, kFirst, kAll};
static long cycle;
static long steps;
static long answers;

static void step(void) {
  for (int t = 0; t < kTensors; ++t) {
    const size_t bytes = (starts[t + 1] - starts[t]) * sizeof(float);
    if (steps > 0 && memcmp(values[t], wanted + starts[t], bytes) != 0) ++answers;
    memcpy(values[t], wanted + starts[t], bytes);
  }
  if (cycle > 0 && answers < steps * kTensors / cycle) pause_ms(kPauseMs);
  ++steps;
}

static void on_event(atl_client* client, const atl_event* event, atl_answer_fields* answer) {
  (void)client;
  if (event->kind == ATL_EVENT_STEP) {
    step();
    answer->samples += kPerStep;
    answer->loss = 1;
    answer->tokens = kPerStep;
  } else if (event->kind == ATL_EVENT_EVALUATE) {
    answer->outcome = ATL_DECLINED;
  }
}

int main(int argc, char** argv) {
  static const int64_t first[] = {kFirst};
  static const int64_t second[] = {kRows, kColumns};
  const atl_tensor tensors[kTensors] = {
      {.size = sizeof(atl_tensor), .name = "first", .rank = 1, .shape = first},
      {.size = sizeof(atl_tensor), .name = "second", .rank = 2, .shape = second}};
  const struct caller caller = {tensors, kTensors, values, on_event};
  atl_option options[kMaxOptions];
  size_t count = 0;
  FILE* file = argc > 2 && argc - 3 <= kMaxOptions ? fopen(argv[1], "rb") : NULL;
  if (file == NULL || fread(wanted, sizeof(float), kAll, file) != kAll) die("the values");
  fclose(file);
  cycle = atol(argv[2]);
  for (int i = 3; i < argc; ++i) {
    options[count].value = value_of(argv[i]);
    options[count++].name = argv[i];
  }
  return run_caller(&caller, options, count);
}
