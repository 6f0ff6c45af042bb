/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a run directory that judge its run: the set (JUDGE_EXPECTATIONS_FILE) and what was stated
 * (JUDGE_SITE_FILE). The journal's first line has their SHA-256, so that none goes or changes without a word.
 */
#ifndef CMD_SHARED_INPUT_HASHES_H
#define CMD_SHARED_INPUT_HASHES_H
#include "journal/record/record.h"

/* {"expectations.txt":"hex", "site.yaml":"hex"}, of those that are in `dir`. Owner: caller, json_decref. */
enum status input_hashes_read(json_t **out, const char *dir, struct error *err);
/* The file `name` of the record's directory is what the run was begun with; BAD_INPUT where it is not. A
 * journal from before there were such sums takes any. */
enum status input_hashes_check(const struct record *r, const char *name, struct error *err);
#endif
