/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs this process may use: CUDA_VISIBLE_DEVICES with the driver's rules, and the device nodes that
 * can be opened. */
#include <ctype.h>
#include "core/text/text.h"
#include "machine/facts/facts.h"

/* The driver's order is by PCI address, like CUDA's default order on machines with one GPU model. */
static json_t *by_index(json_t *gpus, unsigned long index)
{
	json_t *gpu;
	size_t i;

	json_array_foreach(gpus, i, gpu)
	{
		const json_t *nvml = json_object_get(gpu, "nvml_index");

		if (nvml && (unsigned long)json_integer_value(nvml) == index)
			return gpu;
	}
	return NULL;
}

/* Finds a GPU by "GPU-" and the first characters of its UUID, as many as make it unique. */
static json_t *by_uuid(json_t *gpus, const char *word)
{
	json_t *gpu, *found = NULL;
	size_t i;

	json_array_foreach(gpus, i, gpu)
	{
		const char *uuid = json_string_value(json_object_get(gpu, "uuid"));

		if (!uuid || strncmp(uuid, word, strlen(word)))
			continue;
		if (found)
			return NULL;
		found = gpu;
	}
	return found;
}

/* GPUs listed before the first invalid word are visible, those after it are not. */
static void grant_listed(json_t *gpus, const char *list)
{
	while (*list) {
		char word[64], *end;
		size_t n = strcspn(list, ",");
		json_t *gpu = NULL;

		snprintf(word, sizeof(word), "%.*s", (int)n, list + strspn(list, " "));
		word[strcspn(word, " ,")] = 0;
		if (isdigit((unsigned char)word[0])) {
			unsigned long index = strtoul(word, &end, 10);

			gpu = *end ? NULL : by_index(gpus, index);
		} else if (!strncmp(word, "GPU-", 4)) {
			gpu = by_uuid(gpus, word);
		}
		if (!gpu)
			return;
		json_object_set_new(gpu, "granted", json_true());
		list += n + (list[n] == ',');
	}
}

/* A GPU is not granted if its device node is missing (as in containers) or cannot be opened. */
static void check_nodes(struct facts *f, json_t *gpus)
{
	const json_t *nodes = source_value(f->source, "device_nodes"), *node;
	json_t *gpu;
	size_t i, j;

	json_array_foreach(gpus, i, gpu)
	{
		const json_t *minor = json_object_get(gpu, "minor");
		bool found = false, open = false;
		char path[32];

		if (!minor || !json_is_true(json_object_get(gpu, "granted")))
			continue;
		snprintf(path, sizeof(path), "/dev/nvidia%d", (int)json_integer_value(minor));
		json_array_foreach((json_t *)nodes, j, node)
		{
			const char *has = json_string_value(json_object_get(node, "path"));

			if (has && !strcmp(has, path)) {
				found = true;
				open = json_is_true(json_object_get(node, "open"));
			}
		}
		if (json_array_size(nodes) && (!found || !open)) {
			json_object_set_new(gpu, "granted", json_false());
			json_object_set_new(gpu, "not_granted_because",
					    json_string(found ? "its device node cannot be opened"
							      : "its device node is missing"));
		}
	}
}

void facts_granted(struct facts *f, json_t *gpus)
{
	const json_t *environment = source_value(f->source, "environment");
	const char *visible = json_string_value(json_object_get(environment, "CUDA_VISIBLE_DEVICES"));
	bool cuda = source_raw_layer(f->source, LAYER_CUDA) && f->up_to >= LAYER_CUDA &&
		    json_array_size(json_object_get(source_layer(f->source, LAYER_CUDA), "gpus"));
	json_t *gpu;
	size_t i;

	json_array_foreach(gpus, i, gpu)
	{
		const char *status = json_string_value(json_object_get(gpu, "status"));
		bool answers = status && !strcmp(status, "ok");
		bool granted = cuda ? json_object_get(gpu, "cuda_index") != NULL : !visible && answers;

		json_object_set_new(gpu, "granted", json_boolean(granted));
	}
	if (!cuda && visible)
		grant_listed(gpus, visible);
	json_array_foreach(gpus, i, gpu)
	{
		if (visible && !json_is_true(json_object_get(gpu, "granted")))
			json_object_set_new(gpu, "not_granted_because", json_string("CUDA_VISIBLE_DEVICES"));
	}
	check_nodes(f, gpus);
}
