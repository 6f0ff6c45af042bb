/* SPDX-License-Identifier: Apache-2.0 */
/* Stable pseudonyms for names of machines and persons: serials, UUIDs, host and user names, MAC, IP and GUID
 * addresses, command lines. A pseudonym is a salted hash. So equal texts get equal pseudonyms, and nobody
 * without the salt can find the text by trying all serials. */
#ifndef MACHINE_PSEUDONYM_H
#define MACHINE_PSEUDONYM_H
#include <jansson.h>
#include <stdbool.h>

struct pseudonyms; /* the salt, and the names found so far */

/* For journals, whose runs of one machine are compared by their pseudonyms. The salt comes from the machine's
 * id if it can be read, else it is random. Release with pseudonyms_free. NULL: out of memory or of random
 * bits. */
struct pseudonyms *pseudonyms_new(void);
/* For one recording. The salt is random and is not saved. So nobody can tell whether two recordings are of
 * one machine, or find serials by trying. Release and NULL as above. */
struct pseudonyms *pseudonyms_new_once(void);
/* With the caller's salt, for tests. */
struct pseudonyms *pseudonyms_new_salted(const char *salt);
void pseudonyms_free(struct pseudonyms *p);
/* Collects names in the tree: strings under keys such as "serial", "hostname" or "uuid". */
void pseudonyms_learn(struct pseudonyms *p, const json_t *tree);
/* Replaces names in every string and key of the tree, in place: collected names wherever they occur, and
 * UUIDs, MAC, IPv4 and GUID addresses by their form. Returns the number of strings changed. */
size_t pseudonyms_apply(struct pseudonyms *p, json_t *tree);
/* Writes a pseudonym KIND-12345678 for reports. The salt is saved in the run's journal, so its reports have
 * the same bytes everywhere. NULL: for journals without a salt (of older versions); the hash is then of the
 * value only. */
enum { PSEUDONYM_SALT = 33 };
void pseudonym_make(char out[32], const char *kind, const char *salt, const char *value);
/* Whether the text is a pseudonym: "host-12345678" and the like, a UUID of eight digits and zeros, with or
 * without "GPU-" or "MIG-" before it, or an address of the documentation network. Such texts are not replaced
 * again. */
bool pseudonym_is(const char *text, size_t size);
#endif
