/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal that was compressed when its run was over: JOURNAL_COMPRESSED, made by `zstd journal.jsonl`. It
 * is read as the journal itself is, and never written. Reading stops where the file is cut or damaged.
 */
#ifndef JOURNAL_FILE_COMPRESSED_H
#define JOURNAL_FILE_COMPRESSED_H
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"
#include "journal/journal.h"

#define JOURNAL_COMPRESSED JOURNAL_FILE ".zst"

struct compressed_journal;

/* Reads from `fd` on, which stays the caller's and open. NO_RESOURCE: no memory. Owner: caller,
 * compressed_journal_close.
 */
enum status compressed_journal_open(struct compressed_journal **p, int fd, struct error *err);
/* The next bytes of the journal, at most `room`. *got 0: its end, or the place where it is cut or damaged. */
enum status compressed_journal_read(struct compressed_journal *p, void *to, size_t room, size_t *got,
				    struct error *err);
/* Reads what is left and throws it away. *bytes: how many there were; one more where the file is cut or
 * damaged. */
enum status compressed_journal_rest(struct compressed_journal *p, uint64_t *bytes, struct error *err);
void compressed_journal_close(struct compressed_journal **p);
#endif
