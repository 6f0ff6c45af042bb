/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling of counters by time: cupti_profiler.c. */
#include "cupti_counter.h"

int cuptiPmSamplingEnable(struct cupti_pm_enable *p)
{
	STAGED(cuptiPmSamplingEnable);
	return fake_hold((int)p->device, &p->sampler);
}

int cuptiPmSamplingDisable(struct cupti_pm_disable *p)
{
	STAGED(cuptiPmSamplingDisable);
	return fake_let_go(p->sampler);
}

int cuptiPmSamplingSetConfig(struct cupti_pm_config *p)
{
	struct session *s = p->sampler;

	STAGED(cuptiPmSamplingSetConfig);
	s->interval_ns = (double)p->interval;
	if (p->trigger == CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL)
		s->interval_ns /= 1.7; /* of a system clock of 1.7 GHz */
	if (!(s->interval_ns > 0) || !p->buffer_size)
		return CUPTI_ERROR_INVALID_PARAMETER;
	return fake_use(s, p->image, p->image_size, NULL) || s->image->passes > 1 ? CUPTI_ERROR_NOT_SUPPORTED
										  : CUPTI_SUCCESS;
}

int cuptiPmSamplingGetCounterDataSize(struct cupti_pm_data_size *p)
{
	STAGED(cuptiPmSamplingGetCounterDataSize);
	p->data_size = sizeof(struct data);
	return p->samples && p->samples <= SAMPLES_MAX ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

int cuptiPmSamplingCounterDataImageInitialize(struct cupti_pm_data *p)
{
	STAGED(cuptiPmSamplingCounterDataImageInitialize);
	return fake_empty(p->data, p->data_size);
}

int cuptiPmSamplingStart(struct cupti_pm_start *p)
{
	struct session *s = p->sampler;

	STAGED(cuptiPmSamplingStart);
	if (s->started || !s->image)
		return CUPTI_ERROR_INVALID_OPERATION;
	s->started = true;
	s->begin_ns = fake_now_ns(s->device);
	return CUPTI_SUCCESS;
}

int cuptiPmSamplingStop(struct cupti_pm_stop *p)
{
	struct session *s = p->sampler;

	STAGED(cuptiPmSamplingStop);
	if (!s->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	s->started = false;
	s->range_ns = fake_now_ns(s->device);
	return CUPTI_SUCCESS;
}

/* As many whole intervals as have passed since the last look. */
int cuptiPmSamplingDecodeData(struct cupti_pm_decode *p)
{
	struct session *s = p->sampler;
	struct data *d = (struct data *)(void *)p->data;
	double until = s->started ? fake_now_ns(s->device) : s->range_ns;

	STAGED(cuptiPmSamplingDecodeData);
	if (d->magic != MAGIC)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (d->count = 0; d->count < SAMPLES_MAX && s->begin_ns + s->interval_ns <= until; d->count++) {
		d->begin_ns[d->count] = s->begin_ns;
		d->end_ns[d->count] = s->begin_ns += s->interval_ns;
	}
	p->overflow = fake_staged("lost") != NULL;
	return CUPTI_SUCCESS;
}

int cuptiPmSamplingGetCounterDataInfo(struct cupti_pm_info *p)
{
	const struct data *d = (const void *)p->data;

	STAGED(cuptiPmSamplingGetCounterDataInfo);
	p->room = SAMPLES_MAX;
	p->begun = p->complete = d->count;
	return CUPTI_SUCCESS;
}

int cuptiPmSamplingCounterDataGetSampleInfo(struct cupti_pm_sample *p)
{
	const struct data *d = (const void *)p->data;

	STAGED(cuptiPmSamplingCounterDataGetSampleInfo);
	if (p->sample >= d->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->begin_ns = (uint64_t)d->begin_ns[p->sample];
	p->end_ns = (uint64_t)d->end_ns[p->sample];
	return CUPTI_SUCCESS;
}
