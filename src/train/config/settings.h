/* SPDX-License-Identifier: Apache-2.0 */
/* The settings themselves, and what must hold among them. */
#ifndef TRAIN_CONFIG_SETTINGS_H
#define TRAIN_CONFIG_SETTINGS_H
#include "train/config/config.h"

/* The row's index; the table's count where there is none of that name. */
size_t config_row(const struct opt_table *t, const char *name);
/* NULL: there is none of that name. */
const struct config_section *config_section(const char *name);
/* Where a setting stands in the files that were read; NULL: nowhere. */
const struct tree *config_given(const struct config *c, const char *section, const char *name);
/* The same; where it does not stand, its section, else the whole file. */
const struct tree *config_place(const struct config *c, const char *section, const char *name);

/* What must hold among settings (train/config/check.c): messages lead with file and line. */
enum status config_check(const struct config *c, struct error *err);
/* After it: settings that say the same say it both, and what is without effect is noted. */
void config_settle(struct config *c);
#endif
