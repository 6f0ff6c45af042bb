/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN, libcudnn.so.9, that a CPU can run: with the fake driver, device memory is host memory, and a graph
 * is run operation by operation in single precision, each virtual tensor rounded to its type. Descriptors are
 * held against a table of what the real library wants of each. It has three engines: the heuristics give
 * engine 1 (knob 24 at 3), then 0 (knob 24 at 1); engine 2 is not for any graph, and knob 24 at 2 builds no
 * plan. FAKE_CUDNN stages what goes wrong, as words with commas: SYMBOL=CODE     this function returns CODE
 *   set=CODE graph=CODE plan=CODE fused=CODE pack=CODE   setting an attribute, finalising an operation graph,
 * a plan, the fused operation, the addresses: answer CODE version=N       (91900)             workspace=BYTES
 * of a plan (1024) nothing=1       the heuristics give nothing flip=N          from the N-th execution on,
 * one element of what comes first in memory is off by a tenth nan=N           the same, a NaN     drop=N
 * those executions do nothing
 */
#ifndef TESTS_FAKE_CUDNN_FAKE_H
#define TESTS_FAKE_CUDNN_FAKE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "vendor/cudnn.h"

enum { ATTRIBUTES_MAX = 12 };

struct attribute {
	cudnnBackendAttributeName_t name;
	cudnnBackendAttributeType_t type;
	int64_t count;
	void *data;
};

struct descriptor {
	cudnnBackendDescriptorType_t type;
	bool final;
	struct attribute attributes[ATTRIBUTES_MAX];
	unsigned attribute_count;
	unsigned references;
};

/* cudnn.c: the number behind `word=` in FAKE_CUDNN; 0: not staged. */
int fake_staged(const char *word);
/* What was set; NULL: it was not. */
const struct attribute *fake_attribute(const struct descriptor *d, cudnnBackendAttributeName_t name);
/* A descriptor that was set as an attribute; NULL: none. */
struct descriptor *fake_part(const struct descriptor *d, cudnnBackendAttributeName_t name);
int64_t fake_int(const struct descriptor *d, cudnnBackendAttributeName_t name, int64_t fallback);
unsigned fake_word(const struct descriptor *d, cudnnBackendAttributeName_t name);
/* Keeps why a call failed, and returns its code. */
cudnnStatus_t fake_fail(cudnnStatus_t code, const char *why);

/* cudnn_rules.c: whether this attribute, of this type and length, belongs to the descriptor. */
cudnnStatus_t fake_may_set(const struct descriptor *d, cudnnBackendAttributeName_t name,
			   cudnnBackendAttributeType_t type, int64_t count);
/* Whether it is complete, its parts are, and its shapes fit. */
cudnnStatus_t fake_may_finalize(const struct descriptor *d);
/* Tensors of an operation, inputs first; returns how many there are, the last of them written. */
enum { OPERANDS_MAX = 8 };
unsigned fake_operands(const struct descriptor *op, const struct descriptor **operands);
bool fake_is_virtual(const struct descriptor *tensor);
bool fake_is_by_value(const struct descriptor *tensor);

/* cudnn_run.c: runs the finished graph on the addresses of a pack; the handle's `execution`-th. */
cudnnStatus_t fake_run(const struct descriptor *graph, const struct descriptor *pack, int execution);
#endif
