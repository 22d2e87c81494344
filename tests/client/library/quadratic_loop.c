/* quadratic_loop TENSORS LOG NAME=VALUE...: trains a quadratic over the C interface until the worker leaves.
 *
 * TENSORS: a file with one tensor a line: name flags rank dimensions... The loss is half the mean squared distance to a
 * point; the step follows its gradient. Options NAME=VALUE are those of atl_open, but for step-ms: how long a step takes,
 * and fork-s: how long a forked child, which inherits everything, sleeps.
 * Prints a line for each thing that happens. Exit code: that of the worker, 99 when the library fails. C99. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/client/library/caller_program.h"

enum { kMaxTensors = 256, kMaxOptions = 32, kTokensPerStep = 32, kSamplesPerStep = 2 };

struct model {
  atl_tensor tensors[kMaxTensors];
  char names[kMaxTensors][128];
  int64_t shapes[kMaxTensors][8];
  float* values[kMaxTensors];
  uint64_t elements[kMaxTensors];
  size_t count;
};

static struct model model;
static uint64_t steps;
static long step_ms;
static unsigned fork_s;

static void read_tensors(const char* path) {
  FILE* file = fopen(path, "r");
  unsigned flags = 0;
  unsigned rank = 0;
  if (file == NULL) die(path);
  while (model.count < kMaxTensors &&
         fscanf(file, "%127s %u %u", model.names[model.count], &flags, &rank) == 3 && rank <= 8) {
    const size_t i = model.count++;
    uint64_t elements = 1;
    for (unsigned d = 0; d < rank; ++d) {
      long size = 0;
      if (fscanf(file, "%ld", &size) != 1) die("a dimension");
      model.shapes[i][d] = size;
      elements *= (uint64_t)size;
    }
    model.tensors[i].size = sizeof(atl_tensor);
    model.tensors[i].rank = rank;
    model.tensors[i].name = model.names[i];
    model.tensors[i].shape = model.shapes[i];
    model.tensors[i].flags = flags;
    model.elements[i] = elements;
    model.values[i] = calloc(elements, sizeof(float));
    if (model.values[i] == NULL) die("memory");
  }
  fclose(file);
}

/* Half the mean squared distance to 1, and a step down its gradient. */
static double step(double learning_rate) {
  double loss = 0;
  uint64_t all = 0;
  for (size_t i = 0; i < model.count; ++i) {
    for (uint64_t k = 0; k < model.elements[i]; ++k) {
      const float distance = model.values[i][k] - 1.0f;
      loss += 0.5 * (double)distance * (double)distance;
      model.values[i][k] -= (float)(100 * learning_rate) * distance;
    }
    all += model.elements[i];
  }
  return loss / (double)all;
}

static void fork_once(void) {
  if (fork_s > 0 && fork() == 0) {
    sleep(fork_s);
    _exit(0);
  }
  fork_s = 0;
}

static void on_event(atl_client* client, const atl_event* event, atl_answer_fields* answer) {
  answer->tokens = kTokensPerStep;
  switch (event->kind) {
    case ATL_EVENT_JOINED:
      fork_once();
      printf("joined %zu bytes\n", strlen(atl_run_json(client)));
      break;
    case ATL_EVENT_STEP:
      pause_ms(step_ms);
      answer->loss = step(event->learning_rate);
      answer->samples += kSamplesPerStep;
      ++steps;
      printf("step %llu loss %.9g\n", (unsigned long long)steps, answer->loss);
      break;
    case ATL_EVENT_SAVE:
      answer->state = &steps;
      answer->state_bytes = sizeof(steps);
      answer->state_kind = "quadratic";
      answer->optimizer_steps = steps;
      break;
    case ATL_EVENT_LOAD:
      memcpy(&steps, event->state, sizeof(steps));
      break;
    case ATL_EVENT_EVALUATE:
      answer->loss = step(0);
      printf("evaluated %.9g\n", answer->loss);
      break;
    default:
      break;
  }
}

int main(int argc, char** argv) {
  atl_option options[kMaxOptions];
  size_t count = 0;
  if (argc < 3 || argc > kMaxOptions) return 99;
  setvbuf(stdout, NULL, _IOLBF, 0);
  read_tensors(argv[1]);
  options[count].name = "log-file";
  options[count++].value = argv[2];
  for (int i = 3; i < argc; ++i) {
    const char* value = value_of(argv[i]);
    if (strcmp(argv[i], "step-ms") == 0) {
      step_ms = atol(value);
    } else if (strcmp(argv[i], "fork-s") == 0) {
      fork_s = (unsigned)atol(value);
    } else {
      options[count].name = argv[i];
      options[count++].value = value;
    }
  }
  const struct caller caller = {model.tensors, model.count, model.values, on_event};
  const int exit_code = run_caller(&caller, options, count);
  for (size_t i = 0; i < model.count; ++i) free(model.values[i]);
  return exit_code;
}
