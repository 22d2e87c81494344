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
#include <time.h>
#include <unistd.h>

#include "atoll/client.h"

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
static atl_error failure;
static uint64_t samples;
static uint64_t steps;

static void die(const char* what) {
  printf("failed: %s: %d %s\n", what, (int)failure.code, failure.message);
  exit(99);
}

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

static void copy(const atl_event* event) {
  for (uint64_t p = 0; p < event->piece_count; ++p) {
    const atl_piece* piece = &event->pieces[p];
    if (event->kind == ATL_EVENT_READ) {
      memcpy(piece->values, model.values[piece->tensor], piece->elements * sizeof(float));
    } else {
      memcpy(model.values[piece->tensor], piece->values, piece->elements * sizeof(float));
    }
  }
}

static void pause_ms(long milliseconds) {
  struct timespec time;
  time.tv_sec = milliseconds / 1000;
  time.tv_nsec = milliseconds % 1000 * 1000000;
  nanosleep(&time, NULL);
}

static void answer(atl_client* client, const atl_event* event, long step_ms) {
  atl_answer_fields fields;
  memset(&fields, 0, sizeof(fields));
  fields.size = sizeof(fields);
  fields.tokens = kTokensPerStep;
  switch (event->kind) {
    case ATL_EVENT_JOINED:
      printf("joined %zu bytes\n", strlen(atl_run_json(client)));
      break;
    case ATL_EVENT_READ:
    case ATL_EVENT_WRITE:
      copy(event);
      break;
    case ATL_EVENT_STEP:
      pause_ms(step_ms);
      fields.loss = step(event->learning_rate);
      samples += kSamplesPerStep;
      ++steps;
      printf("step %llu loss %.9g\n", (unsigned long long)steps, fields.loss);
      break;
    case ATL_EVENT_PARTITION:
      samples = 0;
      break;
    case ATL_EVENT_SEEK:
      samples = event->samples;
      break;
    case ATL_EVENT_SAVE:
      fields.state = &steps;
      fields.state_bytes = sizeof(steps);
      fields.state_kind = "quadratic";
      fields.optimizer_steps = steps;
      break;
    case ATL_EVENT_LOAD:
      memcpy(&steps, event->state, sizeof(steps));
      break;
    case ATL_EVENT_EVALUATE:
      fields.loss = step(0);
      printf("evaluated %.9g\n", fields.loss);
      break;
    default:
      break;
  }
  fields.samples = samples;
  if (atl_answer(client, &fields, &failure) != ATL_OK) die("atl_answer");
}

int main(int argc, char** argv) {
  atl_option options[kMaxOptions];
  size_t option_count = 0;
  long step_ms = 0;
  long fork_s = 0;
  atl_client* client = NULL;
  atl_event event;
  int exit_code = 99;
  if (argc < 3 || argc > kMaxOptions) return 99;
  setvbuf(stdout, NULL, _IOLBF, 0);
  read_tensors(argv[1]);
  options[option_count].name = "log-file";
  options[option_count++].value = argv[2];
  for (int i = 3; i < argc; ++i) {
    char* value = strchr(argv[i], '=');
    if (value == NULL) die(argv[i]);
    *value++ = '\0';
    if (strcmp(argv[i], "step-ms") == 0) {
      step_ms = atol(value);
      continue;
    }
    if (strcmp(argv[i], "fork-s") == 0) {
      fork_s = atol(value);
      continue;
    }
    options[option_count].name = argv[i];
    options[option_count++].value = value;
  }
  if (atl_open(options, option_count, model.tensors, model.count, &client, &failure) != ATL_OK) die("atl_open");
  if (fork_s > 0 && fork() == 0) {
    sleep((unsigned)fork_s);
    _exit(0);
  }
  do {
    memset(&event, 0, sizeof(event));
    event.size = sizeof(event);
    if (atl_next(client, -1, &event, &failure) != ATL_OK) die("atl_next");
    if (event.kind != ATL_EVENT_END) answer(client, &event, step_ms);
  } while (event.kind != ATL_EVENT_END);
  printf("end %u code %d: %s\n", (unsigned)event.end_reason, (int)event.end_code, event.text);
  exit_code = (int)event.exit_code;
  atl_close(client);
  for (size_t i = 0; i < model.count; ++i) free(model.values[i]);
  return exit_code;
}
