#ifndef ATOLL_TESTS_CLIENT_LIBRARY_CALLER_PROGRAM_H_
#define ATOLL_TESTS_CLIENT_LIBRARY_CALLER_PROGRAM_H_

/* What the C programs of the tests share: a worker whose tensors lie in its own memory. C99. */
#include <stddef.h>

#include "atoll/client.h"

struct caller {
  const atl_tensor* tensors;
  size_t tensor_count;
  float* const* values; /* of each tensor */
  /* Called at each event but the end, before it is answered. Values have been copied then, and `answer` has
   * the place in the data; a step adds its samples to answer->samples. */
  void (*on_event)(atl_client* client, const atl_event* event, atl_answer_fields* answer);
};

/* Prints what failed, with the library's last error, and ends the program with exit code 99. */
void die(const char* what);

/* Cuts NAME=VALUE after the name and returns the value. */
char* value_of(char* word);

void pause_ms(long milliseconds);

/* A worker from atl_open to atl_close. Returns its exit code. */
int run_caller(const struct caller* caller, const atl_option* options, size_t option_count);

#endif /* ATOLL_TESTS_CLIENT_LIBRARY_CALLER_PROGRAM_H_ */
