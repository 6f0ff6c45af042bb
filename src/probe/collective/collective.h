/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `collective`: collective operations between the ranks of a node or a team. Engine `nccl`: one rank
 * per GPU. Engine `mpi`: one rank per launched process, with host memory. As in nccl-tests, `size` is the
 * whole size of the larger side:
 *
 *   allreduce, broadcast, reduce, sendrecv   the array of every rank
 *   allgather                                the result of every rank
 *   reducescatter, alltoall                  the input of every rank
 *
 * If the size is divided by the number of ranks, the remainder is dropped. Bus bandwidth is size / time *
 * factor (docs/explanation/methods/collectives.md, "Bus bandwidth"). It is the core's link_rate, because
 * work.link_bytes is size * factor.
 */
#ifndef PROBE_COLLECTIVE_COLLECTIVE_H
#define PROBE_COLLECTIVE_COLLECTIVE_H
#include "gpu/device/gpu.h"
#include "probe/collective/expect.h"
#include "run/probe.h"
#include "team/libraries/nccl.h"
#include "team/libraries/nccl_hooks.h"

/* id, name, its bytes on a link (core/math/bus_bandwidth.h), whether it reduces, whether its size is divided
 * by the ranks */
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

/* Sizes of a case for a number of ranks, in elements of `type`. */
struct collective_shape {
	uint64_t count; /* count argument of NCCL's function */
	uint64_t send, receive;
	uint64_t bytes; /* of the larger side, after the remainder is dropped */
	double factor;
};
struct collective_shape collective_shape(const struct collective_opts *o, unsigned ranks);
const char *collective_op_name(enum collective_op op);
bool collective_reduces(enum collective_op op);
/* One rank of a case. */
struct collective_member {
	const struct collective_opts *opts;
	const struct collective_shape *shape;
	unsigned rank, size;
};

/* The calling rank of the team. opts and shape must outlive the result. */
static inline struct collective_member collective_member_of(const struct collective_opts *opts,
							    const struct collective_shape *shape,
							    const struct team *team)
{
	return (struct collective_member){opts, shape, team->rank, team->size};
}

/* A contiguous range of a rank's input or result that follows one rule: it comes from rank `from`, and for
 * rule MOVE it goes to rank `to`. */
struct collective_part {
	/* elements: offset in this rank's array, and index in the numbering of the rule */
	uint64_t offset, count, first;
	unsigned from, to;
};

/* exchange_rules.c: the ranges that a rank gives and the ranges that it receives; some ranks have none. */
enum collective_rule collective_rule_of(const struct collective_opts *o);
unsigned collective_parts_given(const struct collective_member *at);
struct collective_part collective_part_given(const struct collective_member *at, unsigned i);
unsigned collective_parts(const struct collective_member *at);
struct collective_part collective_part(const struct collective_member *at, unsigned i);
/* Element `at` of the part is wrong: writes place, found and expected value to *w. */
void collective_place_wrong(const struct collective_inputs *in, const struct collective_part *p, uint64_t at,
			    const void *element, struct wrong *w);
/* Adds the rank whose share is missing or added twice to w->place, if that explains the wrong elements.
 * kernel/test_data/collective.h defines `suspect`. */
void collective_blame(const struct collective_inputs *in, const unsigned long long *suspect, struct wrong *w);
/* `wrong` elements of the part are wrong and not yet counted in *w. If the operation moves data, this names
 * the sender, as long as no other sender's data is wrong. */
void collective_blame_sender(const struct collective_inputs *in, const struct collective_part *p,
			     uint64_t wrong, struct wrong *w);
enum status collective_mismatch(const struct collective_opts *o, const struct wrong *w, struct error *err);

enum operand_type collective_operand(const struct collective_opts *o);
ncclDataType_t collective_nccl_type(const struct collective_opts *o);
const char *collective_type_name(const struct collective_opts *o);
/* NCCL's word for the option's value; "" for auto. */
const char *collective_algorithm(uint32_t index);
const char *collective_protocol(uint32_t index);

/* name, unit, kind, better, help */
#define COLLECTIVE_FIELDS(X)                                                                                 \
	X(bus_factor, "", F64, 0, "bytes over the busiest link per byte of size")                            \
	X(algorithm, "", TEXT, 0,                                                                            \
	  "algorithm that NCCL reports: ring, tree, nvls; symmetric: a kernel on symmetric windows")         \
	X(protocol, "", TEXT, 0, "protocol that NCCL reports: ll, ll128, simple")                            \
	X(channels, "", U64, 0, "number of channels; each has one CTA")                                      \
	X(warps, "", U64, 0, "warps per CTA")                                                                \
	X(nvls, "", U64, 0, "1: the NVSwitch reduces (NVLS); 0: it does not")                                \
	X(told_by, "", TEXT, 0, "call for which NCCL reported algorithm and protocol")                       \
	X(best_algorithm, "", TEXT, 0, "algorithm of the fastest variant of the search")                     \
	X(best_protocol, "", TEXT, 0, "protocol of the fastest variant of the search")                       \
	X(best_channels, "", U64, 0, "number of channels of the fastest variant of the search")              \
	X(mpi_version, "", TEXT, 0, "version of the MPI library in use")                                     \
	X(nccl_version, "", TEXT, 0, "version of the NCCL library in use")                                   \
	X(calls, "", TEXT, 0, "library functions that one iteration calls")                                  \
	X(buffers_registered, "", U64, 0, "1: NCCL accepted the registration of both buffers")               \
	X(init_ms, "ms", F64, -1, "host time to create the communicator")                                    \
	X(first_ms, "ms", F64, -1, "host time of the first call, which creates the connections")             \
	X(oversubscribed, "", U64, 0, "1: this node has more ranks than CPUs, so ranks share CPUs")          \
	X(check_tolerance_ulp, "", U64, 0, "allowed error of an element, in units in the last place")
#define X(name, ...) COLLECTIVE_FIELD_##name,
enum collective_field { COLLECTIVE_FIELDS(X) COLLECTIVE_FIELD_COUNT };
#undef X
extern const struct field collective_fields[];

/* Both arrays of one rank. In place, one allocation contains both. */
struct collective_memory {
	enum collective_buffers kind;
	const struct team_comm *comm; /* communicator with which the arrays are registered */
	gpu_ptr base[2];	      /* send, receive; in place base[1] is 0 */
	uint64_t size[2];
	void *handle[2]; /* of the registration or the window */
	gpu_ptr send, receive;
};

/* One variant of the case, for the search. */
struct collective_way {
	struct team_comm_spec spec;
	enum collective_buffers buffers;
	struct team_comm *comm;
	struct collective_memory memory;
	struct nccl_choice told;
	double first_ms;
	bool made, filled, registered;
	char name[64];
};
enum { COLLECTIVE_WAYS = 12 };

/* First member of each engine's state. */
struct collective_own {
	enum status (*verify)(void *state, struct wrong *wrong, struct error *err);
	void (*finish)(const void *state, struct result *out); /* NULL: the engine has nothing to add */
};

struct collective_state { /* state of engine nccl */
	struct collective_own own;
	struct collective_opts opts;
	struct collective_shape shape;
	struct collective_inputs inputs;
	const struct bench *bench;
	struct team *team;
	const struct nccl *nccl;
	struct gpu_kernel *fill, *check;
	struct gpu_event *done;
	gpu_ptr found; /* struct operand_found per block, then the suspects */
	struct collective_way way[COLLECTIVE_WAYS], *now;
	unsigned ways;
	uint64_t iterations; /* calls since the result was poisoned */
};

/* buffers.c: all ranks call these together. */
enum status collective_memory_make(struct collective_state *s, struct collective_way *w, struct error *err);
void collective_memory_free(struct collective_state *s, struct collective_way *w);

/* search_variants.c */
void collective_ways(struct collective_state *s);

/* nccl.c */
/* Enqueues one call on the stream, by the selected variant. */
enum status collective_call(struct collective_state *s, struct error *err);
/* Waits for the stream. If a rank left the run, the wait fails and the communicator is aborted. */
enum status collective_wait(struct collective_state *s, struct error *err);
extern const struct engine collective_nccl_engine;

/* mpi.c */
extern const struct engine collective_mpi_engine;

/* verify.c */
/* Fills this rank's inputs and poisons its result. */
enum status collective_fill_inputs(struct collective_state *s, struct error *err);
enum status collective_verify(void *state, struct wrong *wrong, struct error *err);
#endif
