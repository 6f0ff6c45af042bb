/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/profile/tracks.h"
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/socket.h>

enum { TERM_MS = 1000, KILL_MS = 1000, LAST_NS = 1000000000 };

void profile_tracks_start(struct profile_tracks *t, const struct machine *m, uint64_t every_ns,
			  const struct log *log)
{
	unsigned count = machine_gpu_count(m), used = 3;
	const char **argv = calloc((size_t)count + 4, sizeof(*argv));
	const struct process_spec start = {.argv = argv, .channel = true, .cpu_numa = -1};
	struct error err = {0};
	char every[32];

	snprintf(every, sizeof(every), "%" PRIu64, every_ns);
	if (!argv)
		return;
	argv[1] = "__tracks";
	argv[2] = every;
	for (unsigned i = 0; i < count; i++)
		if (machine_gpu(m, i)->granted)
			argv[used++] = machine_gpu(m, i)->pci;
	if (used == 3)
		log_warn(log, LOG_TOPIC_RUN, "no sampled hardware counters: no GPU is accessible");
	else if (process_start(&t->process, &start, &err))
		log_warn(log, LOG_TOPIC_RUN, "no sampled hardware counters: %s", err.text);
	else
		t->on = fcntl(t->process.channel, F_SETFL, fcntl(t->process.channel, F_GETFL) | O_NONBLOCK) >=
			0;
	free(argv);
}

static void end(struct profile_tracks *t)
{
	process_stop(&t->process, TERM_MS, KILL_MS);
	process_release(&t->process);
	lines_release(&t->in);
	t->on = false;
}

void profile_tracks_receive(struct profile_tracks *t, struct job *j)
{
	if (t->on && lines_read(&t->in, t->process.channel, job_take_line, j) != LINES_MORE)
		end(t);
}

void profile_tracks_stop(struct profile_tracks *t, struct job *j)
{
	uint64_t until_ns = clock_now_ns(clock_monotonic()) + LAST_NS;

	if (t->on)
		shutdown(t->process.channel, SHUT_WR); /* the helper sends its last lines and ends */
	while (t->on && clock_now_ns(clock_monotonic()) < until_ns) {
		struct pollfd in = {.fd = t->process.channel, .events = POLLIN};

		poll(&in, 1, 50);
		profile_tracks_receive(t, j);
	}
	if (t->on)
		end(t);
}
