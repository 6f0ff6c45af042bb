/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: raw readings to the facts tree of docs/explanation/design/machine.md. One function a part; each
 * adds its keys. */
#ifndef MACHINE_FACTS_FACTS_H
#define MACHINE_FACTS_FACTS_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "machine/source/source.h"

struct facts {
	struct source *source;
	json_t *tree;	  /* the result, growing */
	enum layer up_to; /* deepest layer asked for */
	const char *const
		*libs; /* libraries asked for; NULL: all of them when up_to is SOFTWARE, else none */
};

/* The whole tree. Owner: caller. NULL: out of memory. */
json_t *facts_read(struct source *s, const struct machine_scope *scope);

void facts_system(struct facts *f);   /* system: kernel, OS, virtualisation, container, limits, environment */
void facts_cpu(struct facts *f);      /* cpu */
void facts_memory(struct facts *f);   /* memory */
void facts_gpus(struct facts *f);     /* gpus, driver */
void facts_ports(struct facts *f);    /* ports */
void facts_storage(struct facts *f);  /* storage */
void facts_log(struct facts *f);      /* kernel_log */
void facts_software(struct facts *f); /* software */
bool facts_want_software(const struct facts *f);

/* "could not look": what, why, cause. */
void facts_unreadable(struct facts *f, const char *what, enum cause cause, const char *why);
/* CAUSE_PERMISSION for "permission denied" and its like, else UNSUPPORTED. */
enum cause facts_cause_of(const char *why);

/* Sets a key unless the value is missing; takes `value`. */
void facts_set(json_t *map, const char *key, json_t *value);
void facts_set_text(json_t *map, const char *key, const char *text);
void facts_set_number(json_t *map, const char *key, double value); /* an integer where it is one */
/* A plain decimal or 0x number with nothing behind it but blanks; false: *out untouched. */
bool facts_number(const char *text, double *out);
/* The value of "name<sep> value" in a text of lines, copied and trimmed. */
bool facts_line(const char *text, const char *name, char sep, char *out, size_t size);
/* CPUs in "0-3,8"; 0 where it is no list. */
unsigned facts_cpulist_count(const char *list);

/* Our cgroup's path for a v1 controller, or with "" the v2 path; false: none. */
bool facts_cgroup(struct facts *f, const char *controller, char *out, size_t size);

/* A vendor's layer gave nothing: why, and whose fault that is. False: it answered. `gpus` are merged already:
 * a library that fails while CUDA lists the GPUs is broken itself, and no driver or GPU is missing. */
bool facts_layer_failed(const struct facts *f, enum layer layer, const json_t *raw, const json_t *gpus,
			enum cause *cause, char *why, size_t size);
/* GPUs by the PCI bus alone: [{"pci", "pci_device", ...}] in PCI order. Owner: caller. */
json_t *facts_pci_gpus(struct facts *f);
/* A fact of a GPU. A value that no device can have is not taken: `unreadable` then names the vendor's
 * function and the value, and ends in FACTS_IMPOSSIBLE. `function` NULL: that of core/math/plausible_range.h.
 */
#define FACTS_IMPOSSIBLE "which is impossible"
void facts_gpu_set(json_t *gpu, const char *fact, double value, const char *function);
/* What one GPU's NVML answers say, as facts and texts into `gpu`. */
void facts_gpu_nvml(json_t *gpu, const json_t *raw);
/* One link by its raw answers: whether it is up, what it leads to, its counters. False: NVML says nothing of
 * it. */
bool facts_nvlink(json_t *row, const json_t *raw);
/* `granted` of each GPU by CUDA_VISIBLE_DEVICES and the device nodes. */
void facts_granted(struct facts *f, json_t *gpus);
#endif
