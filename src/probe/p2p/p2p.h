/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `p2p`: what GPU gpu[0] of a pair (the sender) gets to gpu[1] (the receiver).
 *
 *   to         `size` bytes one way; link_bytes counts them once
 *   both       the same in both directions at once, `size` each; link_bytes counts both
 *   all, out, in (option pattern, target node): several GPUs at once
 *   latency    P2P_HOPS dependent reads of the sender's memory by one thread on the receiver
 *
 * Engines: `driver` (copy engines, issued by the sender), `store` (a kernel on the sender writes the
 * receiver's memory), `load` (a kernel on the receiver reads the sender's). One thread drives both devices:
 * the engine's own (`seat`) is current between calls. Without access between the two `driver` goes through
 * the host, the others are unsupported.
 */
#ifndef PROBE_P2P_P2P_H
#define PROBE_P2P_P2P_H
#include "gpu/device/gpu.h"
#include "run/probe.h"

enum p2p_direction { P2P_TO, P2P_BOTH, P2P_LATENCY };
/* PAIR on target pair. On target node each GPU is a rank: ALL, each sends to every other one; OUT, the first
 * to all others; IN, all others to the last. `size` bytes to each; link_bytes: what goes through one GPU's
 * links one way. */
enum p2p_pattern { P2P_PAIR, P2P_ALL, P2P_OUT, P2P_IN };
enum p2p_way { P2P_DRIVER, P2P_STORE, P2P_LOAD };
enum { P2P_HOPS = 1000, P2P_PLACES = 1024, P2P_STEP = 389 };
/* 4 vectors a thread: 2 MB in flight on 132 SMs; 1 us at 450 GB/s is 0.45 */
enum { P2P_PER_SM = 4, P2P_THREADS = 256 };

struct p2p_opts {
	uint64_t size;
	uint32_t direction, pattern, search;
};

/* name, unit, kind, better, help */
#define P2P_FIELDS(X)                                                                                        \
	X(copy_bytes, "B", U64, 0, "bytes of one copy")                                                      \
	X(peer_access, "", U64, 0, "1: the driver lets the two reach each other's memory")                   \
	X(path, "", TEXT, 0, "NVn: n NVLinks; PIX .. SYS: PCIe; host: through host memory; peer: not told")  \
	X(nvlinks, "", U64, 0, "NVLinks that are up between the two")                                        \
	X(nvlinks_denied, "", U64, -1, "NVLinks that are up between two that get no access to each other")   \
	X(nvlinks_most, "", U64, 0, "NVLinks that could lead from one to the other, up or not")              \
	X(nvlink_rate_raw, "B/s", F64, 0, "raw rate of one link, one way")                                   \
	X(native_atomics, "", U64, 0, "1: atomics reach the other's memory as one transaction")              \
	X(performance_rank, "", U64, 0, "the driver's rank of the way, 0 best")                              \
	X(way, "", TEXT, 0, "who moves the data: the copy engine, or the kernel and its shape")
#define X(name, ...) P2P_FIELD_##name,
enum p2p_field { P2P_FIELDS(X) P2P_FIELD_COUNT };
#undef X
extern const struct field p2p_fields[];

/* One GPU of the pair. */
struct p2p_side {
	struct gpu_device *device;
	struct gpu_stream *stream;
	unsigned index;		   /* machine_gpu */
	struct gpu_kernel *kernel; /* of its loads or stores; NULL: it has none to do */
	gpu_ptr out, in;	   /* what it sends, what it receives */
	gpu_ptr expected, record;  /* what should have come, what the comparison found */
};

struct p2p_node; /* all_gpus.c */

struct p2p_state {
	struct p2p_node *node; /* target node: all of it; the rest does not count */
	struct p2p_opts opts;
	enum p2p_way way;
	unsigned blocks, threads; /* of the kernel, as selected */
	char variant[48];
	struct p2p_side side[2]; /* sender, receiver */
	unsigned own;		 /* the side whose stream is timed */
	uint64_t seed, bytes;
	struct gpu_event *fork, *join; /* both: the other's stream begins and ends with the own */
	gpu_ptr chain, at;	       /* latency: on the sender, on the receiver */
	uint64_t iterations;
	bool ready;
};

/* The stream of words that GPU `from` sends to GPU `to`: none arrives as another's. */
static inline uint32_t p2p_stream(unsigned from, unsigned to)
{
	return 48 + 16 * (from % 16) + to % 16;
}

static inline uint32_t p2p_words(const struct p2p_side *from, const struct p2p_side *to)
{
	return p2p_stream(from->index, to->index);
}

/* Which of the two sides has to send, and to receive. */
static inline bool p2p_sends(const struct p2p_state *s, unsigned side)
{
	return s->opts.direction == P2P_BOTH || (s->opts.direction == P2P_TO && side == 0);
}

/* The side is current on this thread from now on. */
enum status p2p_stand(const struct p2p_state *s, unsigned side, struct error *err);
enum status p2p_enqueue(struct p2p_state *s, struct error *err);
/* Both streams are waited for; the own side is current afterwards. */
enum status p2p_wait(struct p2p_state *s, struct error *err);
/* Target node; `b` lives as long. All ranks call the same in the same order. Owner: caller, p2p_node_release,
 * which takes what a failed prepare left. */
enum status p2p_node_prepare(struct p2p_node **n, const struct bench *b, const struct p2p_opts *o,
			     enum p2p_way way, struct error *err);
enum status p2p_node_enqueue(struct p2p_node *n, struct error *err);
enum status p2p_node_verify(struct p2p_node *n, struct wrong *wrong, struct error *err);
void p2p_node_release(struct p2p_node **n);

enum status p2p_verify(void *state, struct wrong *wrong, struct error *err);

extern const struct engine p2p_driver_engine, p2p_store_engine, p2p_load_engine;
#endif
