/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake CUPTI's counters share: ranges and samples. */
#ifndef TESTS_FAKE_CUPTI_COUNTER_H
#define TESTS_FAKE_CUPTI_COUNTER_H
#include "vendor/cupti.h"

#define X(need, name, symbol, real, members) int symbol(struct cupti_##name *p);
CUPTI_FUNCTIONS(X)
#undef X

enum { MAGIC = 0x636f756e, SAMPLES_MAX = 4096 };

struct image { /* what a configuration is */
	uint32_t magic, passes;
};

struct data { /* counted: of a range, or of each sample */
	uint32_t magic, count;
	double begin_ns[SAMPLES_MAX], end_ns[SAMPLES_MAX];
};

struct session {
	int device;
	const struct image *image;
	struct data *data;
	bool started, pushed, kernels; /* kernels: each is a range, and replayed until all is counted */
	uint32_t pass, ranges;
	double start_ns, begin_ns, range_ns, interval_ns;
};

#define STAGED(symbol)                                                                                       \
	do {                                                                                                 \
		if (fake_staged(#symbol))                                                                    \
			return (int)strtol(fake_staged(#symbol), NULL, 10);                                  \
		if (p->size != offsetof(__typeof__(*p), end))                                                \
			return CUPTI_ERROR_INVALID_PARAMETER;                                                \
	} while (0)

/* The text behind `word=` in FAKE_CUPTI; NULL: not staged. */
const char *fake_staged(const char *word);
/* The fake driver's own time of the device; 0 where it is not loaded. */
double fake_now_ns(int device);
/* One client holds the counters: a new session, or why not. */
int fake_hold(int device, void **out);
int fake_let_go(void *session);
/* A data image of nothing; the session's configuration and where it counts to. */
int fake_empty(uint8_t *data, size_t size);
int fake_use(struct session *s, const uint8_t *image, size_t image_size, uint8_t *data);
int fake_availability(uint8_t *image, size_t *size);
/* A kernel ran for so long. */
void fake_count_kernel(double ns);
/* The process or its context goes: not while a call is under way. */
void fake_ends_under_us(void);
#endif
