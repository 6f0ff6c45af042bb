/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `p2p`: copies between GPU gpu[0] of a pair (the sender) and gpu[1] (the receiver).
 *
 *   to         `size` bytes in one direction; link_bytes counts them once
 *   both       both directions at once, `size` bytes each; link_bytes counts both
 *   all, out, in (option pattern, target node): several GPUs at once
 *   latency    P2P_HOPS dependent reads of the sender's memory by one thread on the receiver
 *
 * Engines: `driver` uses copy engines, issued by the sender. With `store`, a kernel on the sender writes the
 * receiver's memory. With `load`, a kernel on the receiver reads the sender's memory. One thread drives both
 * devices; the device of the timed side (`own`) is current between calls. If the GPUs cannot access each
 * other's memory, `driver` copies through host memory and the other engines are unsupported.
 */
#ifndef PROBE_P2P_P2P_H
#define PROBE_P2P_P2P_H
#include "gpu/device/gpu.h"
#include "run/probe.h"

enum p2p_direction { P2P_TO, P2P_BOTH, P2P_LATENCY };
/* PAIR is for target pair. On target node each GPU is a rank. ALL: each GPU sends to every other. OUT: the
 * first sends to all others. IN: all others send to the last. Each transfer has `size` bytes; link_bytes
 * counts the bytes through one GPU's links in one direction. */
enum p2p_pattern { P2P_PAIR, P2P_ALL, P2P_OUT, P2P_IN };
enum p2p_way { P2P_DRIVER, P2P_STORE, P2P_LOAD };
enum { P2P_HOPS = 1000, P2P_PLACES = 1024, P2P_STEP = 389 };
/* 4 vectors per thread put 2 MB in flight on 132 SMs; 1 us at 450 GB/s needs 0.45 MB */
enum { P2P_PER_SM = 4, P2P_THREADS = 256 };

struct p2p_opts {
	uint64_t size;
	uint32_t direction, pattern, search;
};

/* name, unit, kind, better, help */
#define P2P_FIELDS(X)                                                                                        \
	X(copy_bytes, "B", U64, 0, "bytes of one copy")                                                      \
	X(peer_access, "", U64, 0, "1: the driver lets each GPU access the other's memory")                  \
	X(path, "", TEXT, 0,                                                                                 \
	  "NVn: n NVLinks; PIX .. SYS: PCIe; host: through host memory; peer: direct, link type not known")  \
	X(nvlinks, "", U64, 0, "NVLinks that are up between the two")                                        \
	X(nvlinks_denied, "", U64, -1, "NVLinks that are up between two GPUs without access to each other")  \
	X(nvlinks_most, "", U64, 0, "NVLinks that could connect the two, up or down")                        \
	X(nvlink_rate_raw, "B/s", F64, 0, "raw rate of one link, one way")                                   \
	X(native_atomics, "", U64, 0,                                                                        \
	  "1: the link supports native atomic operations on the other GPU's memory")                         \
	X(performance_rank, "", U64, 0, "the driver's performance rank of the path, 0 is best")              \
	X(way, "", TEXT, 0, "what moves the data: the copy engine, or the kernel with its launch shape")
#define X(name, ...) P2P_FIELD_##name,
enum p2p_field { P2P_FIELDS(X) P2P_FIELD_COUNT };
#undef X
extern const struct field p2p_fields[];

/* One GPU of the pair. */
struct p2p_side {
	struct gpu_device *device;
	struct gpu_stream *stream;
	unsigned index;		   /* index for machine_gpu */
	struct gpu_kernel *kernel; /* of its loads or stores; NULL: this side launches none */
	gpu_ptr out, in;	   /* sent data, received data */
	gpu_ptr expected, record;  /* expected data, result of the comparison */
};

struct p2p_node; /* defined in all_gpus.c */

struct p2p_state {
	struct p2p_node *node; /* target node: holds everything, and the members below are unused */
	struct p2p_opts opts;
	enum p2p_way way;
	unsigned blocks, threads; /* of the kernel, as the search selected */
	char variant[48];
	struct p2p_side side[2]; /* sender, receiver */
	unsigned own;		 /* the side whose stream is timed */
	uint64_t seed, bytes;
	/* direction both: the other side's stream starts and ends with the own side's */
	struct gpu_event *fork, *join;
	gpu_ptr chain, at; /* latency: chain on the sender, position on the receiver */
	uint64_t iterations;
	bool ready;
};

/* Generator stream of the words from GPU `from` to GPU `to`. Streams differ for each ordered pair, so data of
 * another pair is detected. */
static inline uint32_t p2p_stream(unsigned from, unsigned to)
{
	return 48 + 16 * (from % 16) + to % 16;
}

static inline uint32_t p2p_words(const struct p2p_side *from, const struct p2p_side *to)
{
	return p2p_stream(from->index, to->index);
}

/* True if the side sends data for the case's direction. */
static inline bool p2p_sends(const struct p2p_state *s, unsigned side)
{
	return s->opts.direction == P2P_BOTH || (s->opts.direction == P2P_TO && side == 0);
}

/* Makes the side's device current on this thread. */
enum status p2p_make_current(const struct p2p_state *s, unsigned side, struct error *err);
enum status p2p_enqueue(struct p2p_state *s, struct error *err);
/* Waits for both streams; the own side is current afterwards. */
enum status p2p_wait(struct p2p_state *s, struct error *err);
/* Functions of target node. The bench must outlive the node. All ranks call the same functions in the same
 * order. Owner: caller, p2p_node_release, also after a failed prepare. */
enum status p2p_node_prepare(struct p2p_node **n, const struct bench *b, const struct p2p_opts *o,
			     enum p2p_way way, struct error *err);
enum status p2p_node_enqueue(struct p2p_node *n, struct error *err);
enum status p2p_node_verify(struct p2p_node *n, struct wrong *wrong, struct error *err);
void p2p_node_release(struct p2p_node **n);

enum status p2p_verify(void *state, struct wrong *wrong, struct error *err);

extern const struct engine p2p_driver_engine, p2p_store_engine, p2p_load_engine;
#endif
