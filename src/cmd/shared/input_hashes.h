/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of the files in a run directory that judge its run: the expectations (JUDGE_EXPECTATIONS_FILE)
 * and the site file (JUDGE_SITE_FILE). The journal's first line holds their SHA-256, so a missing or
 * changed file is detected. */
#ifndef CMD_SHARED_INPUT_HASHES_H
#define CMD_SHARED_INPUT_HASHES_H
#include "journal/record/record.h"

/* {"expectations.txt":"hex", "site.yaml":"hex"} for the files that exist in `dir`. The caller calls
 * json_decref. */
enum status input_hashes_read(json_t **out, const char *dir, struct error *err);
/* Checks that file `name` of the record's directory is the one with which the run began; otherwise
 * BAD_INPUT. Old journals without checksums accept any file. */
enum status input_hashes_check(const struct record *r, const char *name, struct error *err);
#endif
