/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable pseudonyms for what names a machine or a person: serials, UUIDs, host and user names, MAC, IP and
 * GUID addresses, command lines. A pseudonym is a salted hash, so the same text gets the same one throughout,
 * and nobody without the salt can find the text by trying all serials.
 */
#ifndef MACHINE_PSEUDONYM_H
#define MACHINE_PSEUDONYM_H
#include <jansson.h>
#include <stdbool.h>

struct pseudonyms; /* the salt, and the names found so far */

/* Salted by this machine's id where it can be read (stable over recordings of one machine), else at random.
 * Owner: caller, pseudonyms_free. NULL: out of memory. */
struct pseudonyms *pseudonyms_new(void);
/* The same with a salt of the caller's: for tests. */
struct pseudonyms *pseudonyms_new_salted(const char *salt);
void pseudonyms_free(struct pseudonyms *p);
/* Takes note of the names under telling keys ("serial", "hostname", "uuid", ..) anywhere in the tree. */
void pseudonyms_learn(struct pseudonyms *p, const json_t *tree);
/* Replaces, in every string and key of the tree: learnt names wherever they stand, and UUIDs, MAC, IPv4 and
 * GUID addresses by their form. In place; the number of strings changed. */
size_t pseudonyms_apply(struct pseudonyms *p, json_t *tree);
/* One of ours: "host-12345678" and its like, a UUID of eight digits and zeros with "GPU-" or "MIG-" before it
 * or not, an address of the documentation network. It stands for a name already and is left as it is. */
bool pseudonym_is(const char *text, size_t size);
#endif
