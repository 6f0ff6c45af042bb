/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that run a command on many machines through another system, with a reason above each setting. No side
 * effects.
 */
#ifndef DEPLOY_GENERATE_GENERATE_H
#define DEPLOY_GENERATE_GENERATE_H
#include "core/input/opt.h"
#include "core/text/text.h"

/* name, meaning */
/* clang-format off */
#define GENERATE_KINDS(X) \
	X(SLURM_ARRAY, "slurm-array", "an array job of Slurm, one task for each node") \
	X(JOB, "kubernetes-job", "a Job of Kubernetes, one pod on each node, once") \
	X(DAEMONSET, "kubernetes-daemonset", "a DaemonSet of Kubernetes: each GPU node, also new ones") \
	X(HPA, "kubernetes-hpa", "a HorizontalPodAutoscaler for assay serve, by its queue") \
	X(SERVICEMONITOR, "kubernetes-servicemonitor", "a ServiceMonitor of Prometheus for assay serve") \
	X(CONTAINERFILE, "containerfile", "the recipe of an image with the bundle")
/* clang-format on */
#define X(id, name, text) GENERATE_##id,
enum generate_kind { GENERATE_KINDS(X) GENERATE_KIND_COUNT };
#undef X

/* All members are borrowed. */
struct generate_plan {
	enum generate_kind kind;
	struct opt_words words; /* assay's arguments */
	const char *program;	/* absolute path of assay, for Slurm */
	unsigned nodes, gpus, port;
	const char *image, *space, *name;
	const char *time, *partition, *account; /* NULL: not given */
	const char *waiting,
		*cache_use; /* metrics of the server: queued sequences, share of the KV cache in use */
	const char *arch;   /* as uname -m prints it */
};

/* BAD_INPUT names the option: a name that Kubernetes refuses, an image that is missing or malformed, an
 * autoscaler of one pod. */
enum status generate_check(const struct generate_plan *p, struct error *err);
/* Appends the file of a checked plan. */
void generate_write(struct text *t, const struct generate_plan *p);

/* Parts, for generate_write. */
void generate_slurm_array(struct text *t, const struct generate_plan *p);
void generate_job(struct text *t, const struct generate_plan *p);
void generate_daemonset(struct text *t, const struct generate_plan *p);
void generate_hpa(struct text *t, const struct generate_plan *p);
void generate_servicemonitor(struct text *t, const struct generate_plan *p);
void generate_containerfile(struct text *t, const struct generate_plan *p);
/* Appends `reason` as comment lines of `indent` blanks, one for each line. */
void generate_reason(struct text *t, unsigned indent, const char *reason);
/* Appends a text in double quotes, as JSON and YAML read it. */
void generate_quoted(struct text *t, const char *word);
#endif
