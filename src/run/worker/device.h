/* SPDX-License-Identifier: Apache-2.0 */
/* What a case works on: CPUs of its node, or the GPUs with their streams, kept open from case to case. */
#ifndef RUN_WORKER_DEVICE_H
#define RUN_WORKER_DEVICE_H
#include "run/worker/measure.h"
#include "run/meter/meter.h"

enum { DEVICE_CPUS = 1024 };

/* Fills target, team, machine, seed, device, streams, peer, cpus, threads of *b. `cpus` has room for
 * DEVICE_CPUS and is lent to it. `team`: this rank's, on this thread; NULL: one rank. */
enum status device_open(struct measure *w, const struct bench_case *c, struct team *team, struct bench *b,
			unsigned *cpus, struct error *err);
/* Its engine works on a GPU that the worker opens, or on two. */
bool device_wanted(const struct bench_case *c);
/* Streams and devices, if any: at the worker's end. */
void device_close(struct measure *w);
/* The meter for this engine on this target: the GPU's where the engine has streams. */
enum status device_meter(struct meter **m, const struct bench_case *c, const struct meter_spec *spec,
			 struct error *err);
/* The word by which CUDA_VISIBLE_DEVICES names the GPU of this index among those that `list` lists (NULL:
 * all). False: there is none, or it does not fit. */
bool device_listed(char *out, size_t size, const char *list, int index);
#endif
