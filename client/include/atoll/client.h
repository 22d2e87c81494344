/* Atoll's client library: turns a training loop in any language into a worker of an Atoll run.
 *
 * The library starts one process per worker, `atoll-engine`. The engine does all the work of a worker: it
 * joins, pulls, encodes, pushes, retries, recovers after a crash and sends heartbeats. Your process keeps the
 * model, the inner optimizer and the data. The engine asks for what it needs by events: your loop calls
 * atl_next(), does what the event says, and calls atl_answer(). The rules of a run live in the engine only,
 * so they are the rules of atoll-worker.
 *
 * Your process loads no gRPC, no Abseil and no protobuf: this library depends on the C library alone. A fork
 * of your process is harmless, because the library has no threads.
 *
 * Lifetime: atl_open -> (atl_next, atl_answer)* until ATL_EVENT_END -> atl_close.
 *
 * Threads: a client belongs to one thread at a time. atl_status, atl_drain and atl_stop may be called from
 * any thread, also while another thread waits in atl_next. None is safe in a signal handler. Two clients are
 * independent.
 *
 * atl_close must be the last call. A call with a closed client, also one that begins while another thread
 * closes it, is ATL_FAILED_PRECONDITION. An atl_next that waits meanwhile returns the same. What events and
 * atl_run_json point to ends with the client: close it only when no thread reads that.
 *
 * Memory: pointers in an event stay valid until its atl_answer. Strings are UTF-8 and end with a zero byte.
 * Tensors are float32 in this machine's byte order, row-major, without gaps.
 *
 * Errors: every call returns an atl_code and, when it is not ATL_OK, writes a message to `error` (which may
 * be null). The message says what failed, on what, why, and what to do. No exception leaves the library.
 *
 * Versions: functions and fields are only added. Every struct that may grow begins with its size in bytes;
 * set it with sizeof, and the library reads no more than that.
 */
#ifndef ATOLL_CLIENT_H_
#define ATOLL_CLIENT_H_

/* NOLINTBEGIN: this is C, with the names of a C interface. */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATOLL_API_VERSION 2

#if defined(__GNUC__)
#define ATOLL_API __attribute__((visibility("default")))
#else
#define ATOLL_API
#endif

/* The codes have the numbers and meanings of gRPC's status codes. */
typedef int32_t atl_code;
enum {
  ATL_OK = 0,
  ATL_CANCELLED = 1, /* the caller asked for it: atl_stop */
  ATL_UNKNOWN = 2,
  ATL_INVALID_ARGUMENT = 3,  /* an option, a tensor or an answer is wrong; the message names it */
  ATL_DEADLINE_EXCEEDED = 4, /* atl_next: no event within the timeout */
  ATL_NOT_FOUND = 5,         /* a file, the engine, or a version that is not published */
  ATL_ALREADY_EXISTS = 6,    /* the worker's name or state directory is in use */
  ATL_PERMISSION_DENIED = 7,
  ATL_RESOURCE_EXHAUSTED = 8,
  ATL_FAILED_PRECONDITION =
      9, /* the call does not fit what happened before, or the run refuses this worker */
  ATL_ABORTED = 10,
  ATL_OUT_OF_RANGE = 11,
  ATL_UNIMPLEMENTED = 12,
  ATL_INTERNAL = 13,    /* the engine ended unexpectedly */
  ATL_UNAVAILABLE = 14, /* no coordinator answers */
  ATL_DATA_LOSS = 15,
  ATL_UNAUTHENTICATED = 16 /* wrong token or certificate */
};

/* Written by a call that fails; `message` is cut when it is longer. */
typedef struct atl_error {
  atl_code code;
  char message[2044];
} atl_error;

/* One worker; opaque. */
typedef struct atl_client atl_client;

/* An option, by name. coordinator and state-dir are required.
 *
 * Names of atoll-worker's options without the dashes in front; `atoll-worker --help` explains them:
 *
 *   - coordinator, state-dir, name, role (trainer, evaluator), expect-run
 *   - wait-forever (true, false), drain-seconds, pull-streams, peer-keys
 *   - stop-on-any-difference (true, false), metrics-listen, ready-file
 *   - log-format (human, json), log-level
 *   - token-file, tls-ca, tls-cert, tls-key, insecure-token
 *
 * Names of the library's own options:
 *
 *   - engine: path of atoll-engine. Default: $ATOLL_ENGINE, then beside this library
 *   - log-file: file that the engine's log lines are appended to. Default: standard error
 *   - device: words for `atollctl workers describe`, such as "cuda:0". Default: cpu
 *   - device-name: such as "NVIDIA H100"
 *   - threads: number of threads that the caller computes with; only shown
 *   - base-fingerprint: hash of frozen parameters that are not exchanged; all workers of a run must agree
 *   - data-fingerprint: hash of the caller's data; all workers of a run with shared data must agree
 */
typedef struct atl_option {
  const char* name;
  const char* value;
} atl_option;

/* One tensor of the caller's model. The order of the tensors is theirs in the run. */
typedef struct atl_tensor {
  uint32_t size;        /* sizeof(atl_tensor) */
  uint32_t rank;        /* number of dimensions, at most 8; 0: a scalar */
  const char* name;     /* unique, 1 to 512 bytes of printable ASCII without spaces; not "__metadata__" */
  const int64_t* shape; /* `rank` positive numbers */
  uint32_t flags;       /* ATL_TENSOR_* */
  uint32_t reserved;    /* 0 */
} atl_tensor;
enum {
  ATL_TENSOR_EMBEDDING = 1, /* a lookup table, which some merges average plainly */
  ATL_TENSOR_AVERAGED = 2   /* no parameter, such as the running statistics of a BatchNorm: a version has the
                               mean of the workers' values. Not together with EMBEDDING. An engine that does
                               not know a flag refuses it */
};

typedef uint32_t atl_event_kind;
enum {
  ATL_EVENT_JOINED = 1,    /* the run is known: atl_run_json. Answer ATL_DONE, or ATL_FAILED to leave */
  ATL_EVENT_READ = 2,      /* copy the caller's tensors to where `pieces` say */
  ATL_EVENT_WRITE = 3,     /* copy from there into the caller's tensors; the optimizer keeps its state */
  ATL_EVENT_STEP = 4,      /* run one inner optimizer step at `learning_rate` on the next samples */
  ATL_EVENT_PARTITION = 5, /* from now on read part `partition` of `partitions` of the data, from its first
                              sample. Only with shared data */
  ATL_EVENT_SEEK = 6,      /* continue in the data after `samples` samples of that part */
  ATL_EVENT_SAVE = 7,      /* hand over everything that the next steps depend on besides the parameters */
  ATL_EVENT_LOAD = 8, /* take up `state` (`state_bytes` bytes) from an earlier SAVE, the place in the data
                         too. With shared data PARTITION and SEEK follow, which replace that place */
  ATL_EVENT_EVALUATE =
      9, /* mean loss of the parameters as they are now, on at most `max_batches` held-out batches */
  ATL_EVENT_END = 10 /* the worker has left: `end_code` and `text` say why. No answer; call atl_close */
};

/* Where one tensor lies in `values`. */
typedef struct atl_piece {
  uint32_t tensor; /* index into the tensors of atl_open */
  uint32_t reserved;
  uint64_t elements; /* of the whole tensor */
  float* values;     /* READ: write here. WRITE: read here */
} atl_piece;

typedef struct atl_event {
  uint32_t size; /* sizeof(atl_event), set by the caller of atl_next */
  atl_event_kind kind;
  const atl_piece* pieces; /* READ, WRITE */
  uint64_t piece_count;
  double learning_rate; /* STEP */
  uint64_t version;     /* STEP, EVALUATE: the published version that the parameters come from */
  uint64_t local_step;  /* STEP: steps since that version, this one not counted */
  uint32_t partition;   /* PARTITION */
  uint32_t partitions;
  uint64_t samples;  /* SEEK */
  const void* state; /* LOAD */
  uint64_t state_bytes;
  uint32_t max_batches; /* EVALUATE */
  int32_t exit_code;    /* END: what atoll-worker would exit with (0: a clean end) */
  atl_code end_code;    /* END */
  uint32_t end_reason;  /* END: ATL_END_* */
  const char* text;     /* END: a sentence for the user; never null */
} atl_event;

enum {
  ATL_END_FINISHED = 1, /* the run is finished */
  ATL_END_DRAINED = 2,  /* drained, by command or by atl_drain; the last push counted */
  ATL_END_STOPPED = 3,  /* stopped by command or by atl_stop */
  ATL_END_RESTART = 4,  /* told to restart: open a new client with the same options */
  ATL_END_FAILED = 5    /* end_code and text say why */
};

typedef uint32_t atl_outcome;
enum {
  ATL_DONE = 0,
  ATL_NOT_FINITE = 1, /* STEP: the loss or the gradient is not finite. EVALUATE: the loss is not */
  ATL_DECLINED = 2,   /* STEP: the caller has no more steps to give (its data is over); the worker drains.
                         EVALUATE: it has no held-out data; the version gets no loss from this worker */
  ATL_FAILED = 3      /* the caller cannot do it: `message` says why. The worker leaves without a push */
};

typedef struct atl_answer_fields {
  uint32_t size; /* sizeof(atl_answer_fields) */
  atl_outcome outcome;
  const char* message;      /* ATL_FAILED, ATL_NOT_FINITE: why; may be null. Cut after 16 KiB */
  double loss;              /* STEP, EVALUATE: mean per token (or per sample); NaN: not known */
  double gradient_norm;     /* STEP: before clipping; NaN: not known */
  double data_seconds;      /* STEP: of the step's time, what reading its batches took */
  uint64_t tokens;          /* STEP, EVALUATE: tokens (or samples) used; at least 1. Merge weights need it */
  uint64_t samples;         /* STEP: samples of the part that are consumed now, this step's included */
  uint64_t optimizer_steps; /* SAVE: steps of the inner optimizer over all lives */
  const void* state;        /* SAVE: opaque bytes, at most 1 TiB; copied before the call returns */
  uint64_t state_bytes;
  const char* state_kind; /* SAVE, LOAD's refusal: names the optimizer and its size, in at most 64 KiB; a
                             state of another kind is refused */
} atl_answer_fields;

/* ATOLL_API_VERSION of the library, and its version as text ("0.2.0"). */
ATOLL_API uint32_t atl_api_version(void);
ATOLL_API const char* atl_version(void);

/* Starts the engine for one worker. Returns when the engine has checked the options and the tensors and holds
 * the state directory; joining happens in atl_next. On success `*client` must be closed. */
ATOLL_API atl_code atl_open(const atl_option* options, size_t option_count, const atl_tensor* tensors,
                            size_t tensor_count, atl_client** client, atl_error* error);

/* Waits for the next event. `timeout_seconds` < 0: no limit. ATL_DEADLINE_EXCEEDED: no event yet, call again
 * (a loop with a short timeout lets an interpreter handle signals). Calling it before the last event is
 * answered is ATL_FAILED_PRECONDITION. */
ATOLL_API atl_code atl_next(atl_client* client, double timeout_seconds, atl_event* event, atl_error* error);

/* Answers the event that atl_next returned last. */
ATOLL_API atl_code atl_answer(atl_client* client, const atl_answer_fields* answer, atl_error* error);

/* The run as it was joined, as JSON: run name and id, worker's name, configuration, tensors. Valid from
 * ATL_EVENT_JOINED until atl_close or the next ATL_EVENT_JOINED; empty before. */
ATOLL_API const char* atl_run_json(atl_client* client);

/* The worker's live status as JSON: phase, waiting_for, version, local_step, step, loss, tokens_per_second,
 * utilisation, pushed and pulled bytes, last end. The caller frees it with atl_free. Never waits. */
ATOLL_API atl_code atl_status(atl_client* client, char** json, atl_error* error);
ATOLL_API void atl_free(void* memory);

/* Leave after the steps done so far are pushed, within drain-seconds. Returns at once; the events go on until
 * END. Asking again changes nothing. */
ATOLL_API atl_code atl_drain(atl_client* client, atl_error* error);

/* Leave without a push. Returns at once; END follows. */
ATOLL_API atl_code atl_stop(atl_client* client, atl_error* error);

/* Ends the engine when it still runs (as atl_stop, then by force after 5 s) and frees the client. Null and
 * a client that is closed already are allowed. In a forked child it frees only the child's copy: the parent's
 * worker goes on. */
ATOLL_API void atl_close(atl_client* client);

/* A published version of a run's parameters, read without joining. */
typedef struct atl_snapshot atl_snapshot;

/* Pulls the newest version (options: coordinator, token-file, tls-*, expect-run, engine, log-*). Waits until
 * it is there or cannot be had: at most a minute for a coordinator that does not answer, or a run without a
 * published version (wait-forever: without end). */
ATOLL_API atl_code atl_pull(const atl_option* options, size_t option_count, atl_snapshot** snapshot,
                            atl_error* error);
/* The same in two calls, for programs that must handle signals meanwhile (since version 2 of the interface).
 * On success of the first, `*snapshot` must be closed; closing it gives the pull up. */
ATOLL_API atl_code atl_snapshot_open(const atl_option* options, size_t option_count, atl_snapshot** snapshot,
                                     atl_error* error);
/* `timeout_seconds` < 0: no limit. ATL_DEADLINE_EXCEEDED: not there yet, call again. */
ATOLL_API atl_code atl_snapshot_wait(atl_snapshot* snapshot, double timeout_seconds, atl_error* error);
/* Of a snapshot that is there, until atl_snapshot_close. */
ATOLL_API uint64_t atl_snapshot_version(const atl_snapshot* snapshot);
ATOLL_API size_t atl_snapshot_tensor_count(const atl_snapshot* snapshot);
ATOLL_API const char* atl_snapshot_run_json(const atl_snapshot* snapshot);
ATOLL_API atl_code atl_snapshot_tensor(const atl_snapshot* snapshot, size_t index, atl_tensor* tensor,
                                       const float** values, uint64_t* elements, atl_error* error);
ATOLL_API void atl_snapshot_close(atl_snapshot* snapshot);

#ifdef __cplusplus
}
#endif

/* NOLINTEND */

#endif /* ATOLL_CLIENT_H_ */
