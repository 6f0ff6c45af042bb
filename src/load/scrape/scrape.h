/* SPDX-License-Identifier: Apache-2.0 */
/* The readings of a server's metrics as JSON, for a line of the journal. */
#ifndef LOAD_SCRAPE_SCRAPE_H
#define LOAD_SCRAPE_SCRAPE_H
#include <jansson.h>
#include <stddef.h>

/*
 * {"server": "vllm", "running": 3, ..}: a number for each word of LOAD_READINGS that the server reports.
 * NULL: the text is no metrics, or those of no known server, or memory is out. Owner: caller, json_decref.
 */
json_t *scrape_read(const char *text, size_t size);
#endif
