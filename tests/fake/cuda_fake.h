/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake driver's parts share. Several ranks' threads may call: what they share has locks or is
 * atomic. */
#ifndef TESTS_FAKE_CUDA_FAKE_H
#define TESTS_FAKE_CUDA_FAKE_H
#include "ref.h"
#include "stage.h"
#include "vendor/cuda.h"

/* Every function is exported under the driver's own name and type: the table's rows are the prototypes. */
#define X(need, ret, field, symbol, params) ret symbol params;
CUDA_FUNCTIONS(X)
#undef X

#define STAGED(symbol)                                                                                       \
	do {                                                                                                 \
		int staged_code = stage_code(#symbol);                                                       \
		if (staged_code)                                                                             \
			return (CUresult)staged_code;                                                        \
	} while (0)

enum { ARGS_MAX = 2048, DEVICES = 16 };

struct CUkern_st {
	char entry[64];
	const struct ref_row *row; /* its reference; NULL: stamp, spin */
};
struct CUevent_st {
	int device;
	struct CUstream_st *captured; /* it was recorded on a stream that captures */
	double at_ns;
	bool asked;		  /* since it was recorded */
	struct CUstream_st *late; /* whose queue has it */
	size_t place;		  /* there: behind so many operations */
	uint64_t recorded;	  /* serial of the stream that recorded it last; 0: none */
};
struct operation {
	int device;		  /* whose time it takes */
	int source, destination;  /* devices of a peer copy; the same: none */
	bool again;		  /* the same peer copy as the one before it in its graph */
	struct CUevent_st *event; /* that is recorded; NULL: none */
	struct CUstream_st *of;	  /* late, and waited for up to its `place`-th operation; NULL: none */
	size_t place;
	void (*call)(int device, const void *args); /* a library's above this one; NULL: none */
	bool word;				    /* `value` is written to `to` */
	const struct CUkern_st *kernel;		    /* NULL: a copy or fill of `bytes` */
	struct ref_grid grid;
	unsigned char args[ARGS_MAX];
	void *to;
	const void *from; /* NULL: fill with `value` */
	size_t bytes;
	unsigned value;
};
struct CUstream_st {
	int device;
	struct CUstream_st *leader; /* the capture of another stream that this one joined */
	bool capturing;
	struct CUgraph_st *graph;
	bool late;		 /* FAKE_CUDA=late=1, and not the device's first */
	uint64_t serial;	 /* of the streams that were ever made, from 1 */
	struct operation *queue; /* what is not done yet, from `done` to `queued` */
	size_t done, queued, room;
};
struct CUgraph_st {
	struct operation *operation;
	size_t count;
};
struct CUgraphExec_st {
	struct CUgraph_st graph;
};

/* cuda_stream.c */
/* What a late stream has up to its `place`-th operation is done now. */
void fake_catch_up(CUstream s, size_t place);
CUresult fake_put_off(CUstream s, const struct operation *o);

/* cuda.c */
/* The device whose context is current in this thread; 0 where none is. */
int fake_current(void);
/* The stream's device; NULL, the default stream: the current one. */
int fake_device_of_stream(CUstream s);
/* A context is its device's number and 1. */
int fake_device_of_context(CUcontext c);
/* Time of a device: it goes on by what its streams do, and is never waited for. */
double fake_now(int device);
void fake_pass(int device, double ns);
/* Where `device` is not there yet, it is: it waited for what ended then. */
void fake_wait_until(int device, double ns);
uint64_t fake_total_bytes(void);
/* Adds to the memory of a device that is in use, or takes away. For other libraries. (cuda_memory.c) */
void fake_occupy(int device, int64_t bytes);
/* What is on the device's streams never ends, or does again: events are not ready, and who waits for it
 * sleeps. */
void fake_stick(int device, bool stuck);
bool fake_stuck(int device);
void fake_await(int device);

/* cuda_memory.c */
/* Whose memory an address is; -1: none's. */
int fake_device_of(const void *p);

/* cuda_peer.c */
void fake_copy_peer(const struct operation *o);
/* A kernel that reads or writes another GPU's memory waits for the link. */
void fake_wait_for_link(const struct operation *o);

/* cuda_launch.c */
CUresult fake_enqueue(CUstream s, const struct operation *o);
void fake_run(const struct operation *o);
/* While `s` captures, a library's call is kept with its arguments and made when the graph runs. False: it
 * does not. */
bool fake_keep_call(CUstream s, void (*call)(int device, const void *args), const void *args, size_t bytes);

/* cuda_stream.c */
void fake_record(CUevent e);
/* The stream whose capture takes what is put on `s`; NULL: it is done at once. */
CUstream fake_capture_of(CUstream s);
#endif
