/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "core/text/text.h"
#include "watch/pods/pods.h"
#include "watch/pods/pods.pb-c.h"

/* NVIDIA's device plugin names GPUs and instances by UUID; "::N" follows where it shares them. GKE's has
 * "nvidia0". */
static bool is_gpu(const char *id)
{
	return !strncmp(id, "GPU-", 4) || !strncmp(id, "MIG-", 4) || !strncmp(id, "nvidia", 6);
}

/* NULL: no UTF-8, or no memory. */
static json_t *joined(const json_t *before, const char *text)
{
	struct text all = {0};
	json_t *out;

	if (json_is_string(before))
		text_addf(&all, "%s,", json_string_value(before));
	text_add(&all, text);
	out = json_string(text_str(&all));
	text_release(&all);
	return out;
}

static bool add(json_t *pods, const char *id, const Assay__Pods__Pod *p, const Assay__Pods__Container *c)
{
	char name[128];
	const json_t *before;

	if (!is_gpu(id) || strlen(id) >= sizeof(name))
		return true;
	snprintf(name, sizeof(name), "%.*s",
		 (int)(strstr(id, "::") ? strstr(id, "::") - id : (long)strlen(id)), id);
	before = json_object_get(pods, name);
	return !json_object_set_new(
		pods, name,
		json_pack("[o, o, o]", joined(json_array_get(before, 0), p->name ? p->name : ""),
			  joined(json_array_get(before, 1), p->namespace_ ? p->namespace_ : ""),
			  joined(json_array_get(before, 2), c->name ? c->name : "")));
}

static bool add_container(json_t *pods, const Assay__Pods__Pod *p, const Assay__Pods__Container *c)
{
	bool good = true;

	for (size_t i = 0; i < c->n_devices; i++)
		for (size_t k = 0; good && k < c->devices[i]->n_device_ids; k++)
			good = add(pods, c->devices[i]->device_ids[k], p, c);
	return good;
}

enum status pods_message_read(json_t *pods, const uint8_t *message, size_t size, struct error *err)
{
	Assay__Pods__ListResponse *all = assay__pods__list_response__unpack(NULL, size, message);
	bool good = true;

	if (!all)
		return error_set(err, STATUS_BAD_INPUT, "the kubelet's answer is not a list of pods");
	for (size_t i = 0; i < all->n_pod_resources; i++)
		for (size_t k = 0; good && k < all->pod_resources[i]->n_containers; k++)
			good = add_container(pods, all->pod_resources[i],
					     all->pod_resources[i]->containers[k]);
	assay__pods__list_response__free_unpacked(all, NULL);
	return good ? STATUS_OK
		    : error_set(err, STATUS_BAD_INPUT, "the kubelet's answer has a name that is not UTF-8");
}
