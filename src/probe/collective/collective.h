/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `collective`: what the ranks of a node or a team get to each other. Engine `nccl`, a rank a GPU;
 * engine `mpi`, a rank a launched process with memory of the host. `size` is the whole of the larger side, as
 * nccl-tests has it:
 *
 *   allreduce, broadcast, reduce, sendrecv   every rank's array
 *   allgather                                what every rank has afterwards
 *   reducescatter, alltoall                  what every rank gives
 *
 * Where it is divided by the ranks, what is left over is dropped. Bus bandwidth is size / time * factor
 * (METHODS, "Collectives"): the core's link_rate, since work.link_bytes is size * factor.
 */
#ifndef PROBE_COLLECTIVE_COLLECTIVE_H
#define PROBE_COLLECTIVE_COLLECTIVE_H
#include "gpu/device/gpu.h"
#include "probe/collective/expect.h"
#include "run/probe.h"
#include "team/libraries/nccl.h"
#include "team/libraries/nccl_hooks.h"

/* id, name, its bytes on a link (core/math/bus_bandwidth.h), reduces, divided by ranks */
/* clang-format off */
#define COLLECTIVE_OPS(X)                                     \
	X(ALL_REDUCE, "allreduce", BUS_OTHERS_TWICE, 1, 0)    \
	X(ALL_GATHER, "allgather", BUS_OTHERS, 0, 1)          \
	X(REDUCE_SCATTER, "reducescatter", BUS_OTHERS, 1, 1)  \
	X(ALL_TO_ALL, "alltoall", BUS_OTHERS, 0, 1)           \
	X(BROADCAST, "broadcast", BUS_ALL, 0, 0)              \
	X(REDUCE, "reduce", BUS_ALL, 1, 0)                    \
	X(SEND_RECV, "sendrecv", BUS_ALL, 0, 0)
/* clang-format on */
#define X(id, ...) COLLECTIVE_##id,
enum collective_op { COLLECTIVE_OPS(X) COLLECTIVE_OP_COUNT };
#undef X

enum collective_place { COLLECTIVE_OUT, COLLECTIVE_IN };
enum collective_buffers { COLLECTIVE_PLAIN, COLLECTIVE_LIBRARY, COLLECTIVE_REGISTERED, COLLECTIVE_WINDOW };
enum collective_launch { COLLECTIVE_STREAM_LAUNCH, COLLECTIVE_GRAPH_LAUNCH };
enum collective_search { COLLECTIVE_FIRST, COLLECTIVE_TOP };

struct collective_opts {
	uint64_t size;
	uint32_t op, reduce, type, place, buffers, launch, root, algorithm, protocol, ctas, search;
};

/* What a case is at so many ranks. Elements of `type`. */
struct collective_shape {
	uint64_t count; /* that NCCL's function is called with */
	uint64_t send, receive;
	uint64_t bytes; /* of the larger side, as it is once divided */
	double factor;
};
struct collective_shape collective_shape(const struct collective_opts *o, unsigned ranks);
const char *collective_op_name(enum collective_op op);
bool collective_reduces(enum collective_op op);
/* A rank among those of a case. */
struct collective_member {
	const struct collective_opts *opts;
	const struct collective_shape *shape;
	unsigned rank, size;
};

/* A stretch of a rank's input or result with one law: what rank `from` gives, MOVE: to rank `to`. */
struct collective_part {
	uint64_t offset, count, first; /* elements: in this rank's array, and in the numbering */
	unsigned from, to;
};

/* exchange_rules.c: what a rank gives, and what it gets: none for some. */
enum collective_rule collective_rule_of(const struct collective_opts *o);
unsigned collective_gifts(const struct collective_member *at);
struct collective_part collective_gift(const struct collective_member *at, unsigned i);
unsigned collective_parts(const struct collective_member *at);
struct collective_part collective_part(const struct collective_member *at, unsigned i);
/* Element `at` of the part is wrong: place, found, expected into *w. */
void collective_place_wrong(const struct collective_inputs *in, const struct collective_part *p, uint64_t at,
			    const void *element, struct wrong *w);
/* Whose share is missing or there twice, where that explains what is wrong; `suspect` as
 * kernel/test_data/collective.h has it. */
void collective_blame(const struct collective_inputs *in, const unsigned long long *suspect, struct wrong *w);
/* So many elements of the part are wrong, which *w counts not yet: where data is moved, it is its sender's as
 * long as no other's is. */
void collective_blame_sender(const struct collective_inputs *in, const struct collective_part *p,
			     uint64_t wrong, struct wrong *w);
enum status collective_mismatch(const struct collective_opts *o, const struct wrong *w, struct error *err);

enum operand_type collective_operand(const struct collective_opts *o);
ncclDataType_t collective_nccl_type(const struct collective_opts *o);
const char *collective_type_name(const struct collective_opts *o);
/* NCCL's words for an option's; "" for auto. */
const char *collective_algorithm(uint32_t index);
const char *collective_protocol(uint32_t index);

/* name, unit, kind, better, help */
#define COLLECTIVE_FIELDS(X)                                                                                 \
	X(bus_factor, "", F64, 0, "bytes over the busiest link for a byte of size")                          \
	X(algorithm, "", TEXT, 0,                                                                            \
	  "what NCCL chose, as it tells itself: ring, tree, nvls; symmetric: a kernel on windows")           \
	X(protocol, "", TEXT, 0, "of it: ll, ll128, simple")                                                 \
	X(channels, "", U64, 0, "channels, a CTA each")                                                      \
	X(warps, "", U64, 0, "warps a CTA")                                                                  \
	X(nvls, "", U64, 0, "1: the switch reduces (NVLS); 0: it does not")                                  \
	X(told_by, "", TEXT, 0, "of which call algorithm and protocol are")                                  \
	X(best_algorithm, "", TEXT, 0, "as algorithm, of what the search found best")                        \
	X(best_protocol, "", TEXT, 0, "as protocol, of what the search found best")                          \
	X(best_channels, "", U64, 0, "as channels, of what the search found best")                           \
	X(mpi_version, "", TEXT, 0, "of the library that was used")                                          \
	X(nccl_version, "", TEXT, 0, "of the library that was used")                                         \
	X(calls, "", TEXT, 0, "the functions that one iteration calls")                                      \
	X(buffers_registered, "", U64, 0, "1: NCCL took the registration of both buffers")                   \
	X(init_ms, "ms", F64, -1, "making the communicator, host time")                                      \
	X(first_ms, "ms", F64, -1, "its first call, host time: connections are made in it")                  \
	X(oversubscribed, "", U64, 0, "1: the ranks of this node are more than its CPUs, and take turns")    \
	X(check_tolerance_ulp, "", U64, 0, "what an element may be off, in units in the last place")
#define X(name, ...) COLLECTIVE_FIELD_##name,
enum collective_field { COLLECTIVE_FIELDS(X) COLLECTIVE_FIELD_COUNT };
#undef X
extern const struct field collective_fields[];

/* Both arrays of one rank. In place one allocation holds both. */
struct collective_memory {
	enum collective_buffers kind;
	const struct team_comm *comm; /* that they are registered with */
	gpu_ptr base[2];	      /* send, receive; in place: base[1] is 0 */
	uint64_t size[2];
	void *handle[2]; /* of a registration, or a window */
	gpu_ptr send, receive;
};

/* One way to do the case: what a search chooses among. */
struct collective_way {
	struct team_comm_spec spec;
	enum collective_buffers buffers;
	struct team_comm *comm;
	struct collective_memory memory;
	struct nccl_told told;
	double first_ms;
	bool made, filled, registered;
	char name[64];
};
enum { COLLECTIVE_WAYS = 12 };

/* First member of each engine's state. */
struct collective_own {
	enum status (*verify)(void *state, struct wrong *wrong, struct error *err);
	void (*finish)(const void *state, struct result *out); /* NULL: it has nothing to add */
};

struct collective_state { /* of engine nccl */
	struct collective_own own;
	struct collective_opts opts;
	struct collective_shape shape;
	struct collective_inputs inputs;
	const struct bench *bench;
	struct team *team;
	const struct nccl *nccl;
	struct gpu_kernel *fill, *check;
	struct gpu_event *done;
	gpu_ptr found; /* struct operand_found a block, then suspects */
	struct collective_way way[COLLECTIVE_WAYS], *now;
	unsigned ways;
	uint64_t iterations; /* since the result was poisoned */
};

/* buffers.c: all ranks together. */
enum status collective_memory_make(struct collective_state *s, struct collective_way *w, struct error *err);
void collective_memory_free(struct collective_state *s, struct collective_way *w);

/* search_variants.c */
void collective_ways(struct collective_state *s);

/* nccl.c */
/* One call on the stream, by the way that is chosen. */
enum status collective_call(struct collective_state *s, struct error *err);
/* Until the stream is done; a rank that has left ends it, and the communicator with it. */
enum status collective_wait(struct collective_state *s, struct error *err);
extern const struct engine collective_nccl_engine;

/* mpi.c */
extern const struct engine collective_mpi_engine;

/* probe/attention/verify/verify.c */
/* Inputs of this rank, and a result that is none. */
enum status collective_fill_inputs(struct collective_state *s, struct error *err);
enum status collective_verify(void *state, struct wrong *wrong, struct error *err);
#endif
