/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: turns raw readings into the facts tree of docs/explanation/design/machine.md. One function per
 * part of the tree; each one adds its keys. */
#ifndef MACHINE_FACTS_FACTS_H
#define MACHINE_FACTS_FACTS_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "machine/source/source.h"

struct facts {
	struct source *source;
	json_t *tree;		 /* the result so far */
	enum layer up_to;	 /* deepest layer requested */
	const char *const *libs; /* libraries requested; NULL: all if up_to is SOFTWARE, else none */
};

/* Builds the whole tree. The caller decrefs it. NULL: out of memory. */
json_t *facts_read(struct source *s, const struct machine_scope *scope);

void facts_system(struct facts *f);   /* system: kernel, OS, virtualization, container, limits, environment */
void facts_cpu(struct facts *f);      /* cpu */
void facts_memory(struct facts *f);   /* memory */
void facts_gpus(struct facts *f);     /* gpus, driver */
void facts_ports(struct facts *f);    /* ports */
void facts_storage(struct facts *f);  /* storage */
void facts_log(struct facts *f);      /* kernel_log */
void facts_software(struct facts *f); /* software */
bool facts_want_software(const struct facts *f);

/* Adds an entry to the list of facts that could not be read: what, why, and the cause. */
void facts_unreadable(struct facts *f, const char *what, enum cause cause, const char *why);
/* CAUSE_PERMISSION for "permission denied" and the like, else CAUSE_UNSUPPORTED. */
enum cause facts_cause_of(const char *why);

/* Sets a key unless the value is missing. Takes ownership of `value`. */
void facts_set(json_t *map, const char *key, json_t *value);
void facts_set_text(json_t *map, const char *key, const char *text);
void facts_set_number(json_t *map, const char *key, double value); /* stored as an integer if it is one */
/* Parses a plain decimal or 0x number, with only blanks after it. If it returns false, *out is unchanged. */
bool facts_number(const char *text, double *out);
/* Copies the trimmed value of "name<sep> value" from a text of several lines. */
bool facts_line(const char *text, const char *name, char sep, char *out, size_t size);
/* Number of CPUs in a list such as "0-3,8"; 0 if it is malformed. */
unsigned facts_cpulist_count(const char *list);

/* Path of our cgroup for a v1 controller; for "", the v2 path. false: none. */
bool facts_cgroup(struct facts *f, const char *controller, char *out, size_t size);

/* Whether a vendor's layer gave no answer; then with the reason and its cause. `gpus` must already be merged:
 * if a library fails while CUDA lists the GPUs, the library itself is broken, and no driver or GPU is
 * missing. */
bool facts_layer_failed(const struct facts *f, enum layer layer, const json_t *raw, const json_t *gpus,
			enum cause *cause, char *why, size_t size);
/* GPUs found on the PCI bus only: [{"pci", "pci_device", ...}] in PCI order. The caller decrefs it. */
json_t *facts_pci_gpus(struct facts *f);
/* Adds a fact of a GPU. A value that no device can have is not stored. Instead, `unreadable` gets the name of
 * the vendor's function and the value, with FACTS_IMPOSSIBLE at the end. If `function` is NULL,
 * core/math/plausible_range.h names the function. */
#define FACTS_IMPOSSIBLE "which is impossible"
void facts_gpu_set(json_t *gpu, const char *fact, double value, const char *function);
/* Adds the facts and texts from one GPU's NVML answers to `gpu`. */
void facts_gpu_nvml(json_t *gpu, const json_t *raw);
/* Adds the facts of one link from its raw answers: whether it is up, what it leads to, its counters. Returns
 * false if NVML has no answer about it. */
bool facts_nvlink(json_t *row, const json_t *raw);
/* Sets `granted` of each GPU from CUDA_VISIBLE_DEVICES and the device nodes. */
void facts_granted(struct facts *f, json_t *gpus);
#endif
