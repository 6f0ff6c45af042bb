/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory modules from the firmware's table, which only root may read, or from udev's copy of it, which
 * everyone may read. */
#include <errno.h>
#include "core/file/file.h"
#include "machine/source/live.h"
#include "machine/source/source.h"

#define DMI_TABLE "/sys/firmware/dmi/tables/DMI"
#define UDEV_COPY "/run/udev/data/+dmi:id"

json_t *live_memory(void)
{
	struct error err = {0};
	char *data = NULL;
	size_t size = 0;
	json_t *list;
	int errnum;

	errno = 0;
	if (!file_read(&data, &size, DMI_TABLE, 1 << 20, &err)) {
		list = dmi_memory_parse((const unsigned char *)data, size);
		free(data);
		return list;
	}
	errnum = errno ? errno : EIO;
	if (file_read(&data, &size, UDEV_COPY, 1 << 20, &err))
		return live_refusal(DMI_TABLE, errnum);
	list = dmi_udev_parse(data);
	free(data);
	if (json_array_size(list))
		return list;
	json_decref(list);
	return live_refusal(DMI_TABLE, errnum);
}
