/* SPDX-License-Identifier: Apache-2.0 */
/* The source of raw readings: the live system, or a recording of one. A live source saves every reading. So a
 * recording holds exactly what the parser read, including failed readings, and a replay takes the same path
 * through the parser. */
#ifndef MACHINE_SOURCE_SOURCE_H
#define MACHINE_SOURCE_SOURCE_H
#include <jansson.h>
#include <stdbool.h>
#include "core/error.h"
#include <signal.h>
#include "core/log.h"
#include "machine/machine.h"

struct source;

/* Opens the live system. Close with source_close. `log` is lent and may be NULL. */
enum status source_live(struct source **s, const struct log *log, struct error *err);
/* Once *stop is not 0, running helpers are ended and no more are started. Lent; NULL: never. */
void source_heed(struct source *s, const volatile sig_atomic_t *stop);
/* Whether that has happened; then *err is filled with CANCELLED. */
bool source_stopped(const struct source *s, struct error *err);
enum status source_open(struct source **s, const char *dir, struct error *err);
/* Opens a recording given as one tree, {"recording": .., "host": .., "nvml": .., "cuda": .., "software": ..}.
 * The tree is copied. */
enum status source_from_json(struct source **s, const json_t *recording, struct error *err);
/* Applies changes to that tree: {"/nvml/gpus/0/calls/pcie_width": [0, 8], ..}. Each key is a JSON pointer,
 * each value replaces the old one; null removes it. BAD_INPUT: a pointer leads nowhere. */
enum status source_derive(json_t *recording, const json_t *changes, struct error *err);
void source_close(struct source *s);
bool source_is_live(const struct source *s);
const char *source_label(const struct source *s);

/* All results are lent until source_close. NULL: it cannot be read, and source_why says why ("permission
 * denied"). */
const char *source_text(struct source *s, const char *path);   /* a file, without its last newline */
const json_t *source_list(struct source *s, const char *path); /* names in a folder, sorted */
const json_t *source_value(struct source *s,
			   const char *key); /* readings that are not files: see the table in live.c */
const char *source_why(struct source *s,
		       const char *what); /* `what`: the path or key that could not be read */
/* The raw JSON of one vendor layer (docs/explanation/design/machine.md). A live source runs a helper process
 * within the layer's time limit. NULL: see source_why with the layer's name ("nvml", "cuda", "software"). */
const json_t *source_layer(struct source *s, enum layer layer);
/* Starts the helper of this layer now, in parallel with other readings; source_layer waits for it. At most
 * one helper runs this way. Does nothing for recordings. */
void source_start_layer(struct source *s, enum layer layer);
/* Restricts the software layer to these libraries (names, ended by NULL; lent). NULL: all. */
void source_want_libs(struct source *s, const char *const *libs);
/* Why the layer has no answer. CAUSE_NONE: it has one, or it was not read. */
enum cause source_layer_cause(const struct source *s, enum layer layer);
const char *layer_name(enum layer layer);
/* Time limit of the layer's helper. ASSAY_FACTS_LIMIT_MS overrides it, for slow machines and for tests. */
unsigned source_limit_ms(enum layer layer);

/* The functions above with a printf format for the path. */
const char *source_textf(struct source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *source_linkf(struct source *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All readings so far, in the form of a recording's files; lent. */
const json_t *source_raw_host(const struct source *s);
const json_t *source_raw_layer(const struct source *s, enum layer layer); /* NULL: not read */

/* Adds a value to the readings of a live source, so that a recording contains it. Takes ownership of `value`.
 */
void source_record_value(struct source *s, const char *key, json_t *value);

/* The live readers behind source_value. NULL: unknown key. If the reading fails, {"error": "..."}. The caller
 * decrefs it. */
json_t *source_live_value(const char *key);
/* Memory modules from the DMI records of type 17: [{"locator","bytes","type","mts","mts_configured"}]. The
 * caller decrefs it. */
json_t *dmi_memory_parse(const unsigned char *data, size_t size);
/* The same from udev's lines "E:MEMORY_DEVICE_0_SIZE=..", which systemd's udev rules write. The caller
 * decrefs it. */
json_t *dmi_udev_parse(const char *text);
#endif
