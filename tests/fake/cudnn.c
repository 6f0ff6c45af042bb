/* SPDX-License-Identifier: Apache-2.0 */
/* The fake cuDNN's functions: descriptors, engines, plans. */
#include "cudnn_fake.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define X(need, ret, field, symbol, params) ret symbol params;
CUDNN_FUNCTIONS(X)
#undef X

struct cudnnContext {
	int executions;
	cudaStream_t stream;
};

struct execution {
	const struct descriptor *graph, *pack;
	int number;
};

static char why_last[128];

int fake_staged(const char *word)
{
	const char *text = getenv("FAKE_CUDNN");
	size_t length = strlen(word);

	for (const char *at = text ? strstr(text, word) : NULL; at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == ',') && at[length] == '=')
			return (int)strtol(at + length + 1, NULL, 10);
	return 0;
}

cudnnStatus_t fake_fail(cudnnStatus_t code, const char *why)
{
	snprintf(why_last, sizeof(why_last), "%s", why);
	return code;
}

static cudnnStatus_t staged(const char *word)
{
	int code = fake_staged(word);

	return code ? fake_fail((cudnnStatus_t)code, "staged") : CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
	int version = fake_staged("version");

	return version ? (size_t)version : 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t code)
{
	return code == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
	       : code == CUDNN_STATUS_BAD_PARAM	  ? "CUDNN_STATUS_BAD_PARAM"
						  : "CUDNN_STATUS_OTHER";
}

void cudnnGetLastErrorString(char *text, size_t size)
{
	snprintf(text, size, "%s", why_last);
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	cudnnStatus_t code = staged("cudnnCreate");

	if (code)
		return code;
	*handle = calloc(1, sizeof(**handle));
	return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	free(handle);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	handle->stream = stream;
	return staged("cudnnSetStream");
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
	cudnnStatus_t code = staged("cudnnBackendCreateDescriptor");
	struct descriptor *d = code ? NULL : calloc(1, sizeof(*d));

	if (!d)
		return code ? code : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	d->type = type;
	d->references = 1;
	*out = d;
	return CUDNN_STATUS_SUCCESS;
}

/* What a descriptor was given stays as long as it does. */
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
	struct descriptor *d = desc;

	if (--d->references)
		return CUDNN_STATUS_SUCCESS;
	for (unsigned i = 0; i < d->attribute_count; i++) {
		const struct attribute *a = &d->attributes[i];

		for (int64_t n = 0; a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && n < a->count; n++)
			cudnnBackendDestroyDescriptor(((struct descriptor **)a->data)[n]);
		free(a->data);
	}
	free(d);
	return CUDNN_STATUS_SUCCESS;
}

const struct attribute *fake_attribute(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
	for (unsigned i = 0; d && i < d->attribute_count; i++)
		if (d->attributes[i].name == name)
			return &d->attributes[i];
	return NULL;
}

struct descriptor *fake_part(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
	const struct attribute *a = fake_attribute(d, name);

	return a ? *(struct descriptor **)a->data : NULL;
}

int64_t fake_int(const struct descriptor *d, cudnnBackendAttributeName_t name, int64_t fallback)
{
	const struct attribute *a = fake_attribute(d, name);

	return a ? *(int64_t *)a->data : fallback;
}

unsigned fake_word(const struct descriptor *d, cudnnBackendAttributeName_t name)
{
	const struct attribute *a = fake_attribute(d, name);

	return a ? *(unsigned *)a->data : 0;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN:
		return sizeof(bool);
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return 8;
	default:
		return 4;
	}
}

static cudnnStatus_t keep(struct descriptor *d, cudnnBackendAttributeName_t name,
			  cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	size_t bytes = (size_t)count * size_of(type);
	struct attribute *a = &d->attributes[d->attribute_count];

	if (d->attribute_count == ATTRIBUTES_MAX || fake_attribute(d, name))
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "set twice, or too many");
	*a = (struct attribute){name, type, count, malloc(bytes ? bytes : 1)};
	if (!a->data)
		return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	memcpy(a->data, values, bytes);
	for (int64_t n = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && n < count; n++)
		((struct descriptor **)a->data)[n]->references++;
	d->attribute_count++;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	struct descriptor *d = desc;
	cudnnStatus_t code = staged("set");

	if (!code && d->final)
		code = fake_fail(CUDNN_STATUS_BAD_PARAM, "set after it was finalised");
	if (!code)
		code = fake_may_set(d, name, type, count);
	return code ? code : keep(d, name, type, count, values);
}

/* What can be staged of finalising, by type. */
static cudnnStatus_t staged_finalize(const struct descriptor *d)
{
	switch (d->type) {
	case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
		return staged("graph");
	case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
		return staged("plan");
	case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
		return staged("fused");
	case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
		return staged("pack");
	default:
		return CUDNN_STATUS_SUCCESS;
	}
}

/* Engine 2 is no graph's; knob 24 at 2 is no plan's. */
static cudnnStatus_t check_engine(const struct descriptor *d)
{
	const struct attribute *choices;

	if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && fake_int(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0) == 2)
		return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "not this engine's graph");
	if (d->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
		return CUDNN_STATUS_SUCCESS;
	choices = fake_attribute(fake_part(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG),
				 CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
	for (int64_t i = 0; choices && i < choices->count; i++) {
		const struct descriptor *choice = ((struct descriptor **)choices->data)[i];

		if (fake_word(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) == 24 &&
		    fake_int(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0) == 2)
			return fake_fail(CUDNN_STATUS_NOT_SUPPORTED, "not with knob 24 at 2");
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc)
{
	struct descriptor *d = desc;
	cudnnStatus_t code = staged_finalize(d);

	if (!code)
		code = fake_may_finalize(d);
	if (!code)
		code = check_engine(d);
	d->final = !code;
	return code;
}

/* One of the heuristics' answers: engine `index` with knob 24 at `value`. */
static cudnnStatus_t give_config(struct descriptor *config, struct descriptor *graph, int64_t index,
				 int64_t value)
{
	cudnnBackendDescriptor_t engine = NULL, choice = NULL;
	unsigned type = 24;

	if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) ||
	    cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &choice))
		return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	keep(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
	keep(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
	keep(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
	keep(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
	keep(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
	keep(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &choice);
	((struct descriptor *)engine)->final = ((struct descriptor *)choice)->final = config->final = true;
	cudnnBackendDestroyDescriptor(engine);
	cudnnBackendDestroyDescriptor(choice);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_results(const struct descriptor *heuristics, int64_t room, int64_t *count,
				  struct descriptor **configs)
{
	struct descriptor *graph = fake_part(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	cudnnStatus_t code = CUDNN_STATUS_SUCCESS;

	*count = 2;
	if (!room)
		return code;
	if (fake_staged("nothing"))
		*count = 0;
	for (int64_t i = 0; !code && i < *count && i < room; i++)
		code = give_config(configs[i], graph, 1 - i, i ? 1 : 3);
	if (*count > room)
		*count = room;
	return code;
}

/* What was handed out is copied into a descriptor that the caller made. */
static cudnnStatus_t give_copy(const struct descriptor *from, struct descriptor *to)
{
	if (!from || to->type != from->type || to->attribute_count)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "not a descriptor to be filled");
	for (unsigned i = 0; i < from->attribute_count; i++) {
		const struct attribute *a = &from->attributes[i];

		keep(to, a->name, a->type, a->count, a->data);
	}
	to->final = true;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_choices(const struct descriptor *config, int64_t room, int64_t *count,
				  struct descriptor **out)
{
	const struct attribute *choices = fake_attribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);

	*count = 0;
	for (int64_t i = 0; choices && i < choices->count && i < room; i++) {
		if (give_copy(((struct descriptor **)choices->data)[i], out[i]))
			return CUDNN_STATUS_BAD_PARAM;
		++*count;
	}
	return CUDNN_STATUS_SUCCESS;
}

/* Knob 24 from 1 to 3, knob 14 from 0 to 1, and knob 2, which nobody may turn. */
static cudnnStatus_t give_knobs(int64_t room, int64_t *count, struct descriptor **out)
{
	static const struct {
		unsigned type;
		int64_t least, most, step;
	} knobs[] = {{24, 1, 3, 1}, {14, 0, 1, 1}, {2, 5, 5, 1}};

	*count = 0;
	for (int64_t i = 0; i < 3 && i < room; i++, ++*count) {
		keep(out[i], CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knobs[i].type);
		keep(out[i], CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE, CUDNN_TYPE_INT64, 1, &knobs[i].least);
		keep(out[i], CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE, CUDNN_TYPE_INT64, 1, &knobs[i].most);
		keep(out[i], CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64, 1, &knobs[i].step);
	}
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_number(int64_t number, int64_t *count, void *out)
{
	memcpy(out, &number, sizeof(number));
	*count = 1;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_kept(const struct descriptor *d, cudnnBackendAttributeName_t name, int64_t *count,
			       void *out)
{
	const struct attribute *a = fake_attribute(d, name);

	if (!a)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "no such attribute");
	memcpy(out, a->data, size_of(a->type));
	*count = 1;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t desc, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
				       void *out)
{
	const struct descriptor *d = desc;
	int workspace = fake_staged("workspace");

	(void)type;
	/* What the caller made to read a part of a configuration is never finalised by it. */
	if (!d->final && !d->attribute_count)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "read before it was finalised");
	switch (name) {
	case CUDNN_ATTR_ENGINEHEUR_RESULTS:
		return give_results(d, room, count, out);
	case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
		return give_number(3, count, out);
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
		return give_number(workspace ? workspace : 1024, count, out);
	case CUDNN_ATTR_ENGINECFG_ENGINE:
		*count = 1;
		return give_copy(fake_part(d, name), *(struct descriptor **)out);
	case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
		return give_choices(d, room, count, out);
	case CUDNN_ATTR_ENGINE_KNOB_INFO:
		return give_knobs(room, count, out);
	default:
		return give_kept(d, name, count, out);
	}
}

static void run_later(int device, const void *args)
{
	const struct execution *e = args;

	(void)device;
	fake_run(e->graph, e->pack, e->number);
}

/* Whether a graph that is captured has it now. */
static bool kept(cudnnHandle_t handle, const struct execution *e)
{
	static bool (*keep_call)(void *stream, void (*call)(int device, const void *args), const void *args, size_t bytes);
	void *driver = keep_call ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (driver) {
		*(void **)&keep_call = dlsym(driver, "fake_keep_call");
		dlclose(driver); /* its user holds it */
	}
	return keep_call && keep_call(handle->stream, run_later, e, sizeof(*e));
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
				  cudnnBackendDescriptor_t pack)
{
	const struct descriptor *p = plan, *config, *engine;
	cudnnStatus_t code = staged("cudnnBackendExecute");
	int drop = fake_staged("drop");
	struct execution e;

	if (code)
		return code;
	handle->executions++;
	if (!p->final || !((const struct descriptor *)pack)->final)
		return fake_fail(CUDNN_STATUS_BAD_PARAM, "run before it was finalised");
	if (drop && handle->executions >= drop)
		return CUDNN_STATUS_SUCCESS;
	config = fake_part(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
	engine = fake_part(config, CUDNN_ATTR_ENGINECFG_ENGINE);
	e = (struct execution){fake_part(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH), pack, handle->executions};
	return kept(handle, &e) ? CUDNN_STATUS_SUCCESS : fake_run(e.graph, e.pack, e.number);
}
