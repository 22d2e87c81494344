/* fixed_values FILE NAME=VALUE...: a worker of two tensors whose step writes the values of FILE (float32), whatever the
 * parameters are. fixed_worker.py is the same in Python. Exit code: the worker's, 99 when the library fails. C99. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atoll/client.h"

enum { kFirst = 7, kRows = 13, kColumns = 77, kAll = kFirst + kRows * kColumns, kMaxOptions = 16, kPerStep = 3 };

static float parameters[kAll];
static float wanted[kAll];
static atl_error failure;

static void die(const char* what) {
  fprintf(stderr, "failed: %s: %d %s\n", what, (int)failure.code, failure.message);
  exit(99);
}

static void copy(const atl_event* event) {
  for (uint64_t p = 0; p < event->piece_count; ++p) {
    const atl_piece* piece = &event->pieces[p];
    float* own = piece->tensor == 0 ? parameters : parameters + kFirst;
    if (event->kind == ATL_EVENT_READ) {
      memcpy(piece->values, own, piece->elements * sizeof(float));
    } else {
      memcpy(own, piece->values, piece->elements * sizeof(float));
    }
  }
}

static void answer(atl_client* client, const atl_event* event) {
  static uint64_t samples;
  atl_answer_fields fields;
  memset(&fields, 0, sizeof(fields));
  fields.size = sizeof(fields);
  switch (event->kind) {
    case ATL_EVENT_READ:
    case ATL_EVENT_WRITE:
      copy(event);
      break;
    case ATL_EVENT_STEP:
      memcpy(parameters, wanted, sizeof(wanted));
      samples += kPerStep;
      fields.loss = 1;
      fields.tokens = kPerStep;
      break;
    case ATL_EVENT_PARTITION:
      samples = 0;
      break;
    case ATL_EVENT_SEEK:
      samples = event->samples;
      break;
    case ATL_EVENT_EVALUATE:
      fields.outcome = ATL_DECLINED;
      break;
    default:
      break;
  }
  fields.samples = samples;
  if (atl_answer(client, &fields, &failure) != ATL_OK) die("atl_answer");
}

int main(int argc, char** argv) {
  static const int64_t first[] = {kFirst};
  static const int64_t second[] = {kRows, kColumns};
  atl_tensor tensors[2];
  atl_option options[kMaxOptions];
  size_t count = 0;
  atl_client* client = NULL;
  atl_event event;
  FILE* file = argc > 1 && argc <= kMaxOptions ? fopen(argv[1], "rb") : NULL;
  if (file == NULL || fread(wanted, sizeof(float), kAll, file) != kAll) die("the values");
  fclose(file);
  memset(tensors, 0, sizeof(tensors));
  tensors[0].size = tensors[1].size = sizeof(atl_tensor);
  tensors[0].name = "first";
  tensors[0].rank = 1;
  tensors[0].shape = first;
  tensors[1].name = "second";
  tensors[1].rank = 2;
  tensors[1].shape = second;
  for (int i = 2; i < argc; ++i) {
    char* value = strchr(argv[i], '=');
    if (value == NULL) die(argv[i]);
    *value++ = '\0';
    options[count].name = argv[i];
    options[count++].value = value;
  }
  if (atl_open(options, count, tensors, 2, &client, &failure) != ATL_OK) die("atl_open");
  do {
    memset(&event, 0, sizeof(event));
    event.size = sizeof(event);
    if (atl_next(client, -1, &event, &failure) != ATL_OK) die("atl_next");
    if (event.kind != ATL_EVENT_END) answer(client, &event);
  } while (event.kind != ATL_EVENT_END);
  fprintf(stderr, "ended: %s\n", event.text);
  atl_close(client);
  return (int)event.exit_code;
}
