/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an engine for a front end in another process: requests come in as frames, events go out as frames. */
#ifndef ENGINE_ENGINE_LOOP_H
#define ENGINE_ENGINE_LOOP_H
#include <signal.h>
#include "engine/engine.h"

struct engine_loop {
	struct engine *engine;
	int fd; /* connected stream socket to the front end; closed at the end */
	uint32_t epoch;
	/* A value other than 0: take no new request, finish what runs, then return. */
	const volatile sig_atomic_t *drain;
	/* Called at least once a second, and before a step that may take longer. The loop may be silent for
	 * expected_s, besides the usual second. May be NULL. */
	void (*alive)(void *arg, double expected_s);
	void *arg;
	/* Instead of engine_hold, for tests; else NULL. */
	uint64_t (*hold)(const struct engine *engine);
	double long_step_s; /* a step that is predicted to take this long is announced; 0: 0.5 */
};
/* Returns when a drain is complete or the front end has closed its socket. Otherwise an error: of the device,
 * or of a frame that breaks the protocol. */
enum status engine_loop(const struct engine_loop *loop, struct error *err);
#endif
