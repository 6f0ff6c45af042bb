/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of both kinds of session: the metrics that the chip can count, and the number of passes. */
#ifndef COUNTER_INTERNAL_H
#define COUNTER_INTERNAL_H
#include "counter/counter.h"
#include "vendor/cupti.h"

enum { COUNTER_CHOSEN_MAX = 32 };

struct counter_host {
	struct cupti cu;
	bool initialized;
	const char *device_name; /* lent, for messages */
	int device;		 /* CUDA's device number */
	int type;		 /* CUPTI_PROFILER_TYPE_* */
	char chip[32];
	void *host;
	uint8_t *availability;
	char name[COUNTER_CHOSEN_MAX][96]; /* CUPTI's names of the metrics that the chip knows */
	const char *metric[COUNTER_CHOSEN_MAX];
	unsigned row[COUNTER_CHOSEN_MAX]; /* row in our table */
	size_t count;
	uint8_t *image, *data; /* image: the configuration; data: the counts */
	size_t image_size, data_size;
	unsigned passes;
};

/* Opens the library and the host side for a session of this type (CUPTI_PROFILER_TYPE_*). `h` must be zeroed.
 * counter_host_close accepts a partly built one. */
enum status counter_host_open(struct counter_host *h, const struct gpu_device *d, int type,
			      struct error *err);
void counter_host_close(struct counter_host *h);
/* Adds the first of the metrics (a|b) that the chip knows. If it knows none, adds nothing. */
void counter_host_choose(struct counter_host *h, unsigned row, const char *metrics);
/* Makes the configuration image of the added metrics, and computes its passes. Metrics that this device
 * cannot count are dropped. UNSUPPORTED: none is left. */
enum status counter_host_configure(struct counter_host *h, struct error *err);
/* Values of one range or sample, in the order of the added metrics. */
enum status counter_host_values(struct counter_host *h, size_t index, double *values, struct error *err);

/* Calls cu->NAME with the given members. Returns a status; the error names the call. */
#define CUPTI_CALL(cu, err, name, params) cupti_check((cu), (cu)->name(params), #name, (err))
#endif
