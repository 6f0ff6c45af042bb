/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a journal that was compressed after its run: JOURNAL_COMPRESSED, made by `zstd journal.jsonl`. It
 * reads like the journal itself and is never written. Reading stops where the file is cut off or damaged.
 */
#ifndef JOURNAL_FILE_COMPRESSED_H
#define JOURNAL_FILE_COMPRESSED_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "journal/journal.h"

#define JOURNAL_COMPRESSED JOURNAL_FILE ".zst"

struct compressed_journal;

/* Begins to read at the position of `fd`, which the caller keeps open and closes. NO_RESOURCE: no memory.
 * Owner: caller, compressed_journal_close. */
enum status compressed_journal_open(struct compressed_journal **p, int fd, struct error *err);
/* Reads the next bytes of the journal, at most `room`. *got 0: the end, or the place where the file is cut
 * off or damaged. */
enum status compressed_journal_read(struct compressed_journal *p, void *to, size_t room, size_t *got,
				    struct error *err);
/* Reads and discards the rest. *bytes: its size, plus one if the file is cut off or damaged. */
enum status compressed_journal_rest(struct compressed_journal *p, uint64_t *bytes, struct error *err);
void compressed_journal_close(struct compressed_journal **p);
#endif
