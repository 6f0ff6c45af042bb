/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum status mapped_open(void **data, uint64_t *size, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum status st = STATUS_OK;
	struct stat about;

	*data = NULL;
	*size = 0;
	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", path);
	if (fstat(fd, &about)) {
		st = error_errno(err, errno, "cannot read %s", path);
	} else if (!S_ISREG(about.st_mode)) {
		st = error_set(err, STATUS_BAD_INPUT, "cannot read %s: it is %s", path,
			       S_ISDIR(about.st_mode) ? "a folder, and a file belongs here"
						      : "no regular file");
	} else if (about.st_size > 0) {
		void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (map == MAP_FAILED) {
			st = error_errno(err, errno, "cannot map %s", path);
		} else {
			*data = map;
			*size = (uint64_t)about.st_size;
		}
	}
	close(fd);
	return st;
}

void mapped_close(void *data, uint64_t size)
{
	if (data)
		munmap(data, size);
}

void mapped_forget(void *data, uint64_t size)
{
	if (data)
		madvise(data, size, MADV_DONTNEED);
}
