/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the program that need libraries which not every machine has, loaded when they are asked for. */
#ifndef REPORT_FILES_MODULE_H
#define REPORT_FILES_MODULE_H
#include "core/error.h"

/* Opens lib<name>.so from one of the folders of core/process/module.h and finds `symbol`. Never closed.
 * UNAVAILABLE with cause LIBRARY_MISSING and the loader's words, or the folders where it is in none of them.
 */
enum status module_open(const void **symbol_out, const char *name, const char *symbol, struct error *err);
#endif
