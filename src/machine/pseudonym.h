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

/* For journals: salted by this machine's id where it can be read, since runs of one machine are compared by
 * them, else at random. Owner: caller, pseudonyms_free. NULL: out of memory or of random bits. */
struct pseudonyms *pseudonyms_new(void);
/* For one recording: salted at random, and nobody keeps the salt. Two recordings of one machine cannot be
 * told to be of one, and no list of serials can be tried. Owner and NULL as above. */
struct pseudonyms *pseudonyms_new_once(void);
/* The same with a salt of the caller's: for tests. */
struct pseudonyms *pseudonyms_new_salted(const char *salt);
void pseudonyms_free(struct pseudonyms *p);
/* Takes note of the names under telling keys ("serial", "hostname", "uuid", ..) anywhere in the tree. */
void pseudonyms_learn(struct pseudonyms *p, const json_t *tree);
/* Replaces, in every string and key of the tree: learnt names wherever they stand, and UUIDs, MAC, IPv4 and
 * GUID addresses by their form. In place; the number of strings changed. */
size_t pseudonyms_apply(struct pseudonyms *p, json_t *tree);
/* KIND-12345678 for reports, by a salt that one run's journal keeps (so that its reports have the same bytes
 * everywhere); NULL: journals that were written before there was one, by the value alone. */
enum { PSEUDONYM_SALT = 33 };
void pseudonym_make(char out[32], const char *kind, const char *salt, const char *value);
/* One of ours: "host-12345678" and its like, a UUID of eight digits and zeros with "GPU-" or "MIG-" before it
 * or not, an address of the documentation network. It stands for a name already and is left as it is. */
bool pseudonym_is(const char *text, size_t size);
#endif
