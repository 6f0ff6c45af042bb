/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a kubelet's list of pods, with three texts for each device, or a refusal. */
#include "fuzz.h"

#include "watch/pods/pods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	json_t *pods, *pod;
	const char *id;
	const enum status st = pods_read(&pods, data, size, &err);

	FUZZ_CHECK(st == err.status && !st == (pods != NULL));
	if (st == STATUS_UNAVAILABLE)
		fuzz_skip_without("protobuf-c", &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	json_object_foreach(pods, id, pod)
		FUZZ_CHECK(*id && json_array_size(pod) == 3 && json_is_string(json_array_get(pod, 2)));
	json_decref(pods);
	return 0;
}
