/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the folders of the program's own plug-in modules, lib<name>.so. A module is built only if its
 * library is available. */
#ifndef CORE_PROCESS_MODULE_H
#define CORE_PROCESS_MODULE_H
#include <stdbool.h>
#include <stddef.h>
#include "core/error.h"

struct text;

enum { MODULE_FOLDERS = 10, MODULE_FOLDER_TEXT = 2100 };

/* The folders to search, in this order: ASSAY_MODULE_DIR; lib/ next to the program (the bundle);
 * ../lib/assay (an installation); report/, team/, profile/, serve/, load/ and watch/ next to it (the build
 * folder); the configured installation folder. False if the entry is not an absolute path: nothing is loaded
 * from the working directory. */
bool module_folder(char out[MODULE_FOLDER_TEXT], unsigned index);

/* Adds these folders to a message. The program's own folder is written once, followed by the names of the
 * folders next to it: ten whole paths can be longer than a message. */
void module_folders_tell(struct text *out);

/* Opens lib<name>.so from one of these folders and finds `symbol`. The module stays open. UNAVAILABLE with
 * cause LIBRARY_MISSING: the error has the loader's message, or the folders searched. */
enum status module_open(const void **symbol_out, const char *name, const char *symbol, struct error *err);
#endif
