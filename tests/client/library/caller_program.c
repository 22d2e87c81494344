#define _POSIX_C_SOURCE 200809L
#include "tests/client/library/caller_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static atl_error failure;

void die(const char* what) {
  printf("failed: %s: %d %s\n", what, (int)failure.code, failure.message);
  exit(99);
}

char* value_of(char* word) {
  char* value = strchr(word, '=');
  if (value == NULL) die(word);
  *value = '\0';
  return value + 1;
}

void pause_ms(long milliseconds) {
  struct timespec time;
  time.tv_sec = milliseconds / 1000;
  time.tv_nsec = milliseconds % 1000 * 1000000;
  nanosleep(&time, NULL);
}

static void copy_values(const struct caller* caller, const atl_event* event) {
  for (uint64_t p = 0; p < event->piece_count; ++p) {
    const atl_piece* piece = &event->pieces[p];
    float* own = caller->values[piece->tensor];
    if (event->kind == ATL_EVENT_READ) {
      memcpy(piece->values, own, piece->elements * sizeof(float));
    } else {
      memcpy(own, piece->values, piece->elements * sizeof(float));
    }
  }
}

static void answer(const struct caller* caller, atl_client* client, const atl_event* event,
                   uint64_t* samples) {
  atl_answer_fields fields;
  memset(&fields, 0, sizeof(fields));
  fields.size = sizeof(fields);
  switch (event->kind) {
    case ATL_EVENT_READ:
    case ATL_EVENT_WRITE:
      copy_values(caller, event);
      break;
    case ATL_EVENT_PARTITION:
      *samples = 0;
      break;
    case ATL_EVENT_SEEK:
      *samples = event->samples;
      break;
    default:
      break;
  }
  fields.samples = *samples;
  caller->on_event(client, event, &fields);
  *samples = fields.samples;
  if (atl_answer(client, &fields, &failure) != ATL_OK) die("atl_answer");
}

int run_caller(const struct caller* caller, const atl_option* options, size_t option_count) {
  atl_client* client = NULL;
  atl_event event;
  uint64_t samples = 0;
  int exit_code = 0;
  if (atl_open(options, option_count, caller->tensors, caller->tensor_count, &client, &failure) != ATL_OK) {
    die("atl_open");
  }
  do {
    memset(&event, 0, sizeof(event));
    event.size = sizeof(event);
    if (atl_next(client, -1, &event, &failure) != ATL_OK) die("atl_next");
    if (event.kind != ATL_EVENT_END) answer(caller, client, &event, &samples);
  } while (event.kind != ATL_EVENT_END);
  printf("end %u code %d: %s\n", (unsigned)event.end_reason, (int)event.end_code, event.text);
  exit_code = (int)event.exit_code;
  atl_close(client);
  return exit_code;
}
