/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL would take for its variables: those of the environment, then those of NCCL_CONF_FILE or
 * ~/.nccl.conf, then those of /etc/nccl.conf; the first that names a variable wins.
 */
#ifndef MACHINE_NCCL_SETTINGS_H
#define MACHINE_NCCL_SETTINGS_H
#include <jansson.h>
#include "core/error.h"
#include "core/text/text.h"

/* The files that are there, the weightier first: [{"path", "text"}, or {"path", "error"}]. `conf_file`: the
 * value of NCCL_CONF_FILE or NULL; `home` is shown as "~"; `root` stands before every path ("" for ours).
 * Owner: caller. */
json_t *nccl_files_read(const char *conf_file, const char *home, const char *root);
/* NCCL_* of a text "NAME=value\0NAME=value\0" as {name: value}. Owner: caller. */
json_t *nccl_environment(const char *block, size_t size);
/* Both of another process of our user. BAD_INPUT: there is none, or it is not ours. Owner: caller. */
enum status nccl_process_read(long pid, json_t **environment, json_t **files, struct error *err);

/* [{"name", "value", "from", "beaten_by"?}], environment first and sorted, files as they stand; of a variable
 * that stands twice the one that counts has no "beaten_by". Of `environment` ({name: value}) NCCL_* alone.
 * Both may be NULL. Owner: caller. */
json_t *nccl_settings(const json_t *environment, const json_t *files);
/* The value that counts; NULL: not set. Lent. */
const char *nccl_setting(const json_t *settings, const char *name);
/* As rules compare it: upper case for words that NCCL reads in either. */
void nccl_value_normal(const char *name, const char *value, char *out, size_t size);

/* What is wrong with the interfaces of NCCL_SOCKET_IFNAME or the ports of NCCL_IB_HCA on the machine of these
 * facts: "ib9 is not here, ib0 is down". Nothing for other names, and where nobody can tell. */
void nccl_missing(struct text *out, const char *name, const char *value, const json_t *facts);
#endif
