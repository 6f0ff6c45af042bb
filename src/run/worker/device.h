/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a case: CPUs of its node, or GPUs with their streams, which stay open from case to case. */
#ifndef RUN_WORKER_DEVICE_H
#define RUN_WORKER_DEVICE_H
#include "run/worker/measure.h"
#include "run/meter/meter.h"

enum { DEVICE_CPUS = 1024 };

/* Fills target, team, machine, seed, device, streams, peer, cpus and threads of *b. `cpus` has room for
 * DEVICE_CPUS; *b keeps a pointer to it. `team`: this rank's, on this thread; NULL: one rank. */
enum status device_open(struct measure *w, const struct bench_case *c, struct team *team, struct bench *b,
			unsigned *cpus, struct error *err);
/* Whether the case's engine uses GPUs that the worker must open. */
bool device_wanted(const struct bench_case *c);
/* Closes all streams and devices, when the worker ends. */
void device_close(struct measure *w);
/* Makes the meter for this engine on this target: a GPU meter if the engine has streams. */
enum status device_meter(struct meter **m, const struct bench_case *c, const struct meter_spec *spec,
			 struct error *err);
/* Writes the word with which CUDA_VISIBLE_DEVICES names the GPU of this index among those in `list` (NULL:
 * all GPUs). False: there is no such GPU, or the word does not fit. */
bool device_listed(char *out, size_t size, const char *list, int index);
#endif
