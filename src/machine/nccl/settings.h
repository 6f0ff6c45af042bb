/* SPDX-License-Identifier: Apache-2.0 */
/* The values that NCCL would use for its variables. They come from the environment, then from NCCL_CONF_FILE
 * or ~/.nccl.conf, then from /etc/nccl.conf. The first source that sets a variable wins. */
#ifndef MACHINE_NCCL_SETTINGS_H
#define MACHINE_NCCL_SETTINGS_H
#include <jansson.h>
#include "core/error.h"
#include "core/text/text.h"

/* The configuration files that exist, in order of precedence: [{"path", "text"}, or {"path", "error"}].
 * `conf_file`: value of NCCL_CONF_FILE or NULL. `home` is shown as "~". `root` is put before every path (""
 * for our own). The caller decrefs it. */
json_t *nccl_files_read(const char *conf_file, const char *home, const char *root);
/* Turns the NCCL_* entries of the text "NAME=value\0NAME=value\0" into {name: value}. The caller decrefs it.
 */
json_t *nccl_environment(const char *block, size_t size);
/* Reads environment and files of another process of our user. The caller decrefs both. BAD_INPUT: the process
 * does not exist, or belongs to another user. */
enum status nccl_process_read(long pid, json_t **environment, json_t **files, struct error *err);

/* All settings: [{"name", "value", "from", "beaten_by"?}], those of the environment first and sorted, then
 * those of the files in their order. If a variable is set more than once, only the effective entry has no
 * "beaten_by". Of `environment` ({name: value}), only NCCL_* is used. Both arguments may be NULL. The caller
 * decrefs the result. */
json_t *nccl_settings(const json_t *environment, const json_t *files);
/* The effective value; NULL: not set. Lent. */
const char *nccl_setting(const json_t *settings, const char *name);
/* The value in the form that rules compare: upper case for words whose case NCCL ignores. */
void nccl_value_normal(const char *name, const char *value, char *out, size_t size);

/* Checks the interfaces in NCCL_SOCKET_IFNAME or the ports in NCCL_IB_HCA against the machine with these
 * facts. Appends the problems, such as "ib9 is missing, ib0 is down". Appends nothing for other variables,
 * and if the facts have no ports. */
void nccl_missing(struct text *out, const char *name, const char *value, const json_t *facts);
#endif
