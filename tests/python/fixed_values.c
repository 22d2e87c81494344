/* fixed_values FILE NAME=VALUE...: a worker of two tensors whose step writes the values of FILE (float32),
 * whatever the parameters are. fixed_worker.py is the same in Python. Options NAME=VALUE are those of
 * atl_open. Exit code: the worker's, 99 when the library fails. C99. */
#include <stdio.h>
#include <string.h>

#include "tests/client/library/caller_program.h"

enum { kFirst = 7, kRows = 13, kColumns = 77, kAll = kFirst + kRows * kColumns };
enum { kTensors = 2, kMaxOptions = 16, kPerStep = 3 };

static float parameters[kAll];
static float wanted[kAll];
static float* const values[kTensors] = {parameters, parameters + kFirst};

static void on_event(atl_client* client, const atl_event* event, atl_answer_fields* answer) {
  (void)client;
  if (event->kind == ATL_EVENT_STEP) {
    memcpy(parameters, wanted, sizeof(wanted));
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
  FILE* file = argc > 1 && argc - 2 <= kMaxOptions ? fopen(argv[1], "rb") : NULL;
  if (file == NULL || fread(wanted, sizeof(float), kAll, file) != kAll) die("the values");
  fclose(file);
  for (int i = 2; i < argc; ++i) {
    options[count].value = value_of(argv[i]);
    options[count++].name = argv[i];
  }
  return run_caller(&caller, options, count);
}
