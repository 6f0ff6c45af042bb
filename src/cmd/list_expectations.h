/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CMD_LIST_EXPECTATIONS_H
#define CMD_LIST_EXPECTATIONS_H
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include "core/error.h"
#include "core/log.h"

/* Builds one row per case of the suite: what would judge it on this machine. With `numbers`, rows hold
 * numbers and units, otherwise only texts. The caller calls json_decref on *rows. */
enum status list_expectations(json_t **rows, bool numbers, const char *suite, const char *machine,
			      const char *expectations, const volatile sig_atomic_t *stop,
			      const struct log *log, struct error *err);
#endif
