/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal that was compressed when its run was over: JOURNAL_PACKED, made by `zstd journal.jsonl`. It is
 * read as the journal itself is, and never written. Reading stops where the file is cut or damaged.
 */
#ifndef JOURNAL_PACKED_H
#define JOURNAL_PACKED_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "journal/journal.h"

#define JOURNAL_PACKED JOURNAL_FILE ".zst"

struct packed;

/* Reads from `fd` on, which stays the caller's and open. NO_RESOURCE: no memory. Owner: caller, packed_close.
 */
enum status packed_open(struct packed **p, int fd, struct error *err);
/* The next bytes of the journal, at most `room`. *got 0: its end, or the place where it is cut or damaged. */
enum status packed_read(struct packed *p, void *to, size_t room, size_t *got, struct error *err);
/* Reads what is left and throws it away. *bytes: how many there were; one more where the file is cut or
 * damaged. */
enum status packed_rest(struct packed *p, uint64_t *bytes, struct error *err);
void packed_close(struct packed **p);
#endif
