/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for streams: on a 2 MiB boundary, with huge pages advised and a guard page at each end. */
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include "core/file/file.h"
#include "probe/shared/cpu.h"

#define HUGE ((uint64_t)2 << 20)
#define GUARD ((uint64_t)64 << 10) /* a multiple of every page size in use on Linux */

static uint64_t mapped_bytes(uint64_t size)
{
	return (size + HUGE - 1) / HUGE * HUGE + 2 * HUGE;
}

/* The mapping consists of [slack][guard][data, rounded up to 2 MiB][guard]; the slack is unmapped again. */
enum status cpu_pages_alloc(void **out, uint64_t size, struct error *err)
{
	uint64_t whole = mapped_bytes(size), data = whole - 2 * HUGE, start, first;
	char *map = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*out = NULL;
	if (map == MAP_FAILED)
		return error_errno(err, errno, "cannot map %" PRIu64 " bytes of memory", size);
	first = ((uint64_t)(uintptr_t)map + GUARD + HUGE - 1) / HUGE * HUGE;
	start = first - (uint64_t)(uintptr_t)map;
	if (mprotect(map + start, data, PROT_READ | PROT_WRITE)) {
		int rc = errno;

		munmap(map, whole);
		return error_errno(err, rc, "cannot make %" PRIu64 " bytes of memory writable", size);
	}
	madvise(map + start, data, MADV_HUGEPAGE); /* only advice: kernels without huge pages ignore it */
	if (start > GUARD)
		munmap(map, start - GUARD);
	if (whole - start - data > GUARD)
		munmap(map + start + data + GUARD, whole - start - data - GUARD);
	*out = map + start;
	return STATUS_OK;
}

void cpu_pages_free(void **p, uint64_t size)
{
	if (*p)
		munmap((char *)*p - GUARD, mapped_bytes(size) - 2 * HUGE + 2 * GUARD);
	*p = NULL;
}

double cpu_pages_huge_share(const void *p, uint64_t size)
{
	uint64_t at = (uint64_t)(uintptr_t)p, low = 0, high = 0, kib, huge = 0;
	char *text = NULL, *line, *next;
	size_t length;
	bool told = false;

	if (file_read(&text, &length, "/proc/self/smaps", (size_t)64 << 20, NULL))
		return -1;
	for (line = text; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &low, &high) == 2)
			continue;
		if (low < at + size && high > at &&
		    sscanf(line, "AnonHugePages: %" SCNu64 " kB", &kib) == 1) {
			huge += kib << 10;
			told = true;
		}
	}
	free(text);
	if (!told)
		return -1;
	return huge > size ? 1 : (double)huge / (double)size;
}
