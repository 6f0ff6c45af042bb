/* SPDX-License-Identifier: Apache-2.0 */
/* The module `assay-archive`: writes and reads tar.zst with libarchive. Long names use pax headers. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>
#include "report/files/pack.h"

static int say(struct archive *a, const char *what, char *message, size_t size)
{
	const char *why = archive_error_string(a);

	snprintf(message, size, "%s: %s", what, why ? why : "no reason from libarchive");
	return -1;
}

/* Writes `left` bytes of a file or of `data`. -1 if the file became shorter than the size in its header. */
static int add_contents(struct archive *a, int fd, const char *data, size_t left)
{
	char block[8192];

	while (left) {
		size_t want = left < sizeof(block) ? left : sizeof(block);
		ssize_t got = fd >= 0 ? read(fd, block, want) : (ssize_t)want;

		if (got <= 0 || archive_write_data(a, fd >= 0 ? block : data, (size_t)got) != got)
			return -1;
		data = fd >= 0 ? data : data + got;
		left -= (size_t)got;
	}
	return 0;
}

static int add_file(struct archive *a, const char *folder, const struct pack_file *f, char *message,
		    size_t size)
{
	struct archive_entry *entry = archive_entry_new();
	int fd = f->path ? open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1, failed = 0;
	struct stat info = {.st_size = (off_t)f->size};
	char name[1024];

	if (!entry || (f->path && (fd < 0 || fstat(fd, &info)))) {
		snprintf(message, size, "%s: %s", f->name, strerror(errno));
		failed = -1;
		goto out;
	}
	snprintf(name, sizeof(name), "%s%s%s", folder, *folder ? "/" : "", f->name);
	/* No owner, no time, one mode: the same files give the same archive. */
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, info.st_size);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_mtime(entry, 0, 0);
	if (archive_write_header(a, entry) != ARCHIVE_OK ||
	    add_contents(a, fd, f->data, (size_t)info.st_size))
		failed = say(a, f->name, message, size);
out:
	if (fd >= 0)
		close(fd);
	archive_entry_free(entry);
	return failed;
}

static int write_archive(int fd, const char *folder, const struct pack_file *files, size_t count,
			 char *message, size_t size)
{
	struct archive *a = archive_write_new();
	int failed = 0;

	if (!a) {
		snprintf(message, size, "no memory");
		return -1;
	}
	if (archive_write_add_filter_zstd(a) != ARCHIVE_OK ||
	    archive_write_set_format_pax_restricted(a) != ARCHIVE_OK ||
	    archive_write_set_filter_option(a, "zstd", "compression-level", "12") != ARCHIVE_OK ||
	    archive_write_open_fd(a, fd) != ARCHIVE_OK)
		failed = say(a, "opening the archive", message, size);
	for (size_t i = 0; !failed && i < count; i++)
		failed = add_file(a, folder, &files[i], message, size);
	if (archive_write_close(a) != ARCHIVE_OK && !failed)
		failed = say(a, "writing the archive's end", message, size);
	archive_write_free(a);
	return failed;
}

static int read_archive(const char *in, size_t limit,
			int (*visit)(void *arg, const char *name, const void *data, size_t size), void *arg,
			char *message, size_t size)
{
	struct archive *a = archive_read_new();
	struct archive_entry *entry;
	int failed = 0, status;

	if (!a || archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
	    archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_open_filename(a, in, 65536) != ARCHIVE_OK) {
		failed = a ? say(a, "opening the archive", message, size) : -1;
		goto out;
	}
	while (!failed && (status = archive_read_next_header(a, &entry)) != ARCHIVE_EOF) {
		la_int64_t bytes = status == ARCHIVE_OK ? archive_entry_size(entry) : -1;
		const char *name = status == ARCHIVE_OK ? archive_entry_pathname(entry) : NULL;
		bool regular = bytes >= 0 && archive_entry_filetype(entry) == AE_IFREG &&
			       !archive_entry_hardlink(entry);
		char *data = bytes >= 0 && (size_t)bytes <= limit ? malloc((size_t)bytes + 1) : NULL;

		if (!data || (regular && archive_read_data(a, data, (size_t)bytes) != bytes))
			failed = say(a, "reading the archive", message, size);
		else
			failed = visit(arg, name ? name : "", regular ? data : NULL, (size_t)bytes);
		free(data);
	}
out:
	archive_read_free(a);
	return failed;
}

extern const struct pack_module assay_archive_1;
__attribute__((visibility("default"))) const struct pack_module assay_archive_1 = {
	.version = PACK_VERSION,
	.size = sizeof(struct pack_module),
	.write = write_archive,
	.read = read_archive,
};
