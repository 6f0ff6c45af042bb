/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where raw readings come from: the live system, or a recording of one. The live source keeps what it was
 * asked for, so a recording holds exactly what the parser read, refusals included, and replay takes the same
 * path through the parser.
 */
#ifndef MACHINE_SOURCE_SOURCE_H
#define MACHINE_SOURCE_SOURCE_H
#include <jansson.h>
#include <stdbool.h>
#include "core/error.h"
#include <signal.h>
#include "core/log.h"
#include "machine/machine.h"

struct source;

/* Owner: caller, source_close. `log` is lent and may be NULL. */
enum status source_live(struct source **s, const struct log *log, struct error *err);
/* Helpers end and no more are asked once *stop is not 0. Lent; NULL: never. */
void source_heed(struct source *s, const volatile sig_atomic_t *stop);
/* Fills *err with CANCELLED where that has happened. */
bool source_stopped(const struct source *s, struct error *err);
enum status source_open(struct source **s, const char *dir, struct error *err);
/* A recording as one tree, {"recording": .., "host": .., "nvml": .., "cuda": .., "software": ..}; copied. */
enum status source_from_json(struct source **s, const json_t *recording, struct error *err);
/* Changes that tree: {"/nvml/gpus/0/calls/pcie_width": [0, 8], ..}, each a JSON pointer and what stands there
 * from now on; null takes it away. A pointer into nothing is refused. */
enum status source_derive(json_t *recording, const json_t *changes, struct error *err);
void source_close(struct source *s);
bool source_is_live(const struct source *s);
const char *source_label(const struct source *s);

/* All lent until source_close; NULL where it cannot be read: source_why then says why ("permission denied").
 */
const char *source_text(struct source *s, const char *path);   /* a file, without its last newline */
const json_t *source_list(struct source *s, const char *path); /* a folder's names, sorted */
const json_t *source_value(struct source *s, const char *key); /* what is not a file: live.c's table */
const char *source_why(struct source *s, const char *what);    /* path or key that was asked for last */
/* One vendor layer's raw JSON (docs/explanation/design/machine.md). Live: asks a helper within its limit.
 * NULL: source_why of the layer's name ("nvml", "cuda", "software"). */
const json_t *source_layer(struct source *s, enum layer layer);
/* Lets the helper of this layer begin now, beside what is read in between; source_layer waits for it. At most
 * one; nothing where the source is not live. */
void source_ahead(struct source *s, enum layer layer);
/* The software layer is asked for these libraries alone (names, NULL ends; lent); NULL: for all. */
void source_want_libs(struct source *s, const char *const *libs);
/* Why there is no answer of that layer; CAUSE_NONE where there is one or none was asked for. */
enum cause source_layer_cause(const struct source *s, enum layer layer);
const char *layer_name(enum layer layer);
/* How long its helper may take. ASSAY_FACTS_LIMIT_MS overrides the layer's own, for machines that need more
 * and tests that need less. */
unsigned source_limit_ms(enum layer layer);

/* printf path forms of the above. */
const char *source_textf(struct source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *source_linkf(struct source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Everything read so far, as the recording's files; lent. */
const json_t *source_raw_host(const struct source *s);
const json_t *source_raw_layer(const struct source *s, enum layer layer); /* NULL: not read */

/* Puts a value of ours among what was read, live alone: the recording then holds it. Takes `value`. */
void source_keep(struct source *s, const char *key, json_t *value);

/* The live readers of source_value; NULL for an unknown key. On refusal {"error": "..."}. Owner: caller. */
json_t *source_live_value(const char *key);
/* DMI type 17 records of a table: [{"locator","bytes","type","mts","mts_configured"}]. Owner: caller. */
json_t *dmi_memory_parse(const unsigned char *data, size_t size);
/* The same of udev's "E:MEMORY_DEVICE_0_SIZE=.." lines, which systemd's memory rules keep. Owner: caller. */
json_t *dmi_udev_parse(const char *text);
#endif
