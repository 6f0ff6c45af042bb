/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, aligns and stops the sampler process, from the supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include "telemetry/telemetry.h"

enum { TERM_MS = 500, KILL_MS = 1000, RESTARTS_MAX = 3 };
#define LIVED_NS 60000000000u /* a sampler that lived as long counts as well */

enum status sampler_start(struct process *p, const struct telemetry_spec *spec, struct error *err)
{
	const char **argv = calloc((size_t)spec->gpu_count + 4, sizeof(*argv));
	struct process_spec start = {.argv = argv, .channel = true, .cpu_numa = -1};
	enum status st;
	unsigned used = 1, i;

	if (!argv)
		return error_errno(err, ENOMEM, "cannot start the sampler");
	argv[used++] = "__sample";
	if (spec->host)
		argv[used++] = "host";
	for (i = 0; i < spec->gpu_count; i++)
		argv[used++] = spec->gpu_pci[i];
	st = process_start(p, &start, err);
	free(argv);
	if (!st && fcntl(p->channel, F_SETFL, fcntl(p->channel, F_GETFL) | O_NONBLOCK)) {
		st = error_errno(err, errno, "cannot read the sampler");
		sampler_stop(p);
	}
	return st;
}

void sampler_align(const struct process *p)
{
	if (p->channel >= 0 && send(p->channel, "w", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return; /* the sampler is gone, or its buffer already holds such requests */
}

void sampler_stop(struct process *p)
{
	process_stop(p, TERM_MS, KILL_MS);
	process_release(p);
}

bool sampler_died(struct sampler_life *life, uint64_t now_ns)
{
	if (now_ns - life->started_ns > LIVED_NS)
		life->deaths = 0;
	life->again_ns = life->deaths < RESTARTS_MAX ? now_ns + (1000000000ull << life->deaths) : 0;
	life->deaths++;
	return life->again_ns != 0;
}
