/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/deadline.h"
#include "core/clock.h"

enum { STEP_NS = 20000000 };

static void *watch(void *arg)
{
	struct deadline *d = arg;

	while (!atomic_load(&d->over)) {
		if (*d->asked > d->stop)
			d->stop = *d->asked;
		if (clock_now_ns(clock_monotonic()) >= d->end_ns) {
			atomic_store(&d->late, true);
			d->stop = 2;
			break;
		}
		clock_sleep_ns(clock_monotonic(), STEP_NS);
	}
	return NULL;
}

enum status deadline_begin(struct deadline *d, const volatile sig_atomic_t *asked, unsigned ms,
			   struct error *err)
{
	d->asked = asked;
	d->stop = *asked;
	atomic_store(&d->late, false);
	atomic_store(&d->over, false);
	d->end_ns = clock_now_ns(clock_monotonic()) + ms * 1000000ull;
	if (pthread_create(&d->thread, NULL, watch, d))
		return error_set(err, STATUS_NO_RESOURCE, "cannot start a thread");
	return STATUS_OK;
}

bool deadline_end(struct deadline *d)
{
	atomic_store(&d->over, true);
	pthread_join(d->thread, NULL);
	return atomic_load(&d->late);
}
