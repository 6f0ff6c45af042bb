/* SPDX-License-Identifier: Apache-2.0 */
/* Loads modules: parts of the program that need libraries which some machines do not have. */
#ifndef REPORT_FILES_MODULE_H
#define REPORT_FILES_MODULE_H
#include "core/error.h"

/* Opens lib<name>.so from one of the folders of core/process/module.h and finds `symbol`. The module stays
 * open. UNAVAILABLE with cause LIBRARY_MISSING: the error has the loader's message, or the folders searched.
 */
enum status module_open(const void **symbol_out, const char *name, const char *symbol, struct error *err);
#endif
