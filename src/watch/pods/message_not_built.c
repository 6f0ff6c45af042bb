/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces message.c in a build without protobuf-c. */
#include "watch/pods/pods.h"

enum status pods_message_read(json_t *pods, const uint8_t *message, size_t size, struct error *err)
{
	(void)pods, (void)message, (void)size;
	return error_set(err, STATUS_UNAVAILABLE, "this assay was built without protobuf-c (-Dpods)");
}
