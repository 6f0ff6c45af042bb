/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all settings, and the checks between settings. */
#ifndef TRAIN_CONFIG_SETTINGS_H
#define TRAIN_CONFIG_SETTINGS_H
#include "train/config/config.h"

/* The index of the setting `name`, or the table's row count if there is no such setting. */
size_t config_row(const struct opt_table *t, const char *name);
/* NULL: there is no section of that name. */
const struct config_section *config_section(const char *name);
/* Where the configuration files give a setting; NULL: they do not. */
const struct tree *config_given(const struct config *c, const char *section, const char *name);
/* The same, but for a missing setting the place of its section, or else of the whole file. */
const struct tree *config_place(const struct config *c, const char *section, const char *name);

/* Checks settings against each other (train/config/check.c). Errors begin with file and line. */
enum status config_check(const struct config *c, struct error *err);
/* To be called after config_check: brings settings with the same meaning to the same value, and notes each
 * setting without effect in c->notes. */
void config_settle(struct config *c);
#endif
