/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side of both sessions: what the chip counts, and in how many passes. */
#ifndef COUNTER_INTERNAL_H
#define COUNTER_INTERNAL_H
#include "counter/counter.h"
#include "vendor/cupti.h"

enum { COUNTER_CHOSEN_MAX = 32 };

struct counter_host {
	struct cupti cu;
	bool initialized;
	const char *device_name; /* lent, for messages */
	int device;		 /* CUDA's number of it */
	int type;		 /* CUPTI_PROFILER_TYPE_* */
	char chip[32];
	void *host;
	uint8_t *availability;
	char name[COUNTER_CHOSEN_MAX][96]; /* CUPTI's, that the chip knows */
	const char *metric[COUNTER_CHOSEN_MAX];
	unsigned row[COUNTER_CHOSEN_MAX]; /* of our table */
	size_t count;
	uint8_t *image, *data; /* the configuration; what was counted */
	size_t image_size, data_size;
	unsigned passes;
};

/* Opens library and host side for a session of this type (CUPTI_PROFILER_TYPE_*). Zeroed before;
 * counter_host_close accepts any half-built one. */
enum status counter_host_open(struct counter_host *h, const struct gpu_device *d, int type,
			      struct error *err);
void counter_host_close(struct counter_host *h);
/* Takes the first of the metrics (a|b) that the chip knows; none: left out. */
void counter_host_choose(struct counter_host *h, unsigned row, const char *metrics);
/* The configuration image of what was chosen, and its passes; what this device cannot count is left out.
 * UNSUPPORTED: nothing was. */
enum status counter_host_configure(struct counter_host *h, struct error *err);
/* Values of one range or sample, in the order chosen. */
enum status counter_host_values(struct counter_host *h, size_t index, double *values, struct error *err);

/* cu->NAME of the members, as a status that names the call. */
#define CUPTI_CALL(cu, err, name, params) cupti_check((cu), (cu)->name(params), #name, (err))
#endif
