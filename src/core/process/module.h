/* SPDX-License-Identifier: Apache-2.0 */
/* Where the program's own modules lie: lib<name>.so, each built where its library is. */
#ifndef CORE_PROCESS_MODULE_H
#define CORE_PROCESS_MODULE_H
#include <stdbool.h>
#include <stddef.h>

enum { MODULE_FOLDERS = 7, MODULE_FOLDER_TEXT = 2100 };

/*
 * The folders to look in, in this order: ASSAY_MODULE_DIR, lib/ beside the program (the bundle), ../lib/assay
 * (an installation), report/, team/ and profile/ beside it (the build folder), the folder it was configured
 * to be installed to. False: no absolute path; nothing is loaded from the working directory.
 */
bool module_folder(char out[MODULE_FOLDER_TEXT], unsigned index);
#endif
