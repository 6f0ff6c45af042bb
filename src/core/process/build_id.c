/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include "core/file/file.h"
#include "core/process/process.h"
#include "core/text/text.h"

static size_t aligned(size_t size)
{
	return (size + 3) & ~(size_t)3;
}

/* Formats the build id note in a segment that the loader has mapped as hex digits. */
static bool take_note(char out[PROCESS_BUILD], const char *at, size_t size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		const char *name = at + sizeof(*note);
		size_t step = sizeof(*note) + aligned(note->n_namesz) + aligned(note->n_descsz);
		const unsigned char *id = (const unsigned char *)name + aligned(note->n_namesz);

		if (step > size)
			return false;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4) &&
		    note->n_descsz >= PROCESS_BUILD / 2) {
			for (unsigned i = 0; i < PROCESS_BUILD / 2; i++)
				snprintf(out + 2 * i, 3, "%02x", id[i]);
			return true;
		}
		at += step;
		size -= step;
	}
	return false;
}

/* Callback for dl_iterate_phdr; the first object is the program itself. */
static int of_program(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_NOTE &&
		    take_note(out, (const char *)(uintptr_t)(info->dlpi_addr + h->p_vaddr), h->p_memsz))
			return 1;
	}
	return -1;
}

void process_build(char out[PROCESS_BUILD])
{
	char hex[65] = "";

	if (dl_iterate_phdr(of_program, out) > 0)
		return;
	if (file_sha256_of(hex, "/proc/self/exe", NULL))
		hex[0] = '\0';
	text_copy(out, PROCESS_BUILD, hex);
}
