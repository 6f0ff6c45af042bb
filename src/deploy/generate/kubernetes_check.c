/* SPDX-License-Identifier: Apache-2.0 */
/* A Job and a DaemonSet of Kubernetes that check nodes. */
#include "deploy/generate/generate.h"

/* A setting with its reason above it. */
static void set(struct text *t, unsigned indent, const char *reason, const char *text)
{
	generate_reason(t, indent, reason);
	text_addf(t, "%*s%s\n", (int)indent, "", text);
}

static void metadata(struct text *t, const struct generate_plan *p, const char *api, const char *kind)
{
	text_addf(t, "apiVersion: %s\nkind: %s\n", api, kind);
	generate_reason(t, 0, "from --name and --namespace");
	text_addf(t,
		  "metadata:\n"
		  "  name: %s\n"
		  "  namespace: %s\n"
		  "  labels:\n"
		  "    app.kubernetes.io/name: %s\n",
		  p->name, p->space, p->name);
}

static void args(struct text *t, unsigned indent, const struct generate_plan *p)
{
	for (size_t i = 0; i < p->words.count; i++) {
		text_addf(t, "%*s- ", (int)indent, "");
		generate_quoted(t, p->words.word[i]);
		text_add(t, "\n");
	}
}

/* Settings of the pod; `indent` blanks before its fields. */
static void pod_settings(struct text *t, unsigned indent)
{
	set(t, indent, "assay does not talk to the API server", "automountServiceAccountToken: false");
	set(t, indent, "variables of other services could reach NCCL and MPI", "enableServiceLinks: false");
	set(t, indent, "at TERM assay closes its journal; that takes seconds",
	    "terminationGracePeriodSeconds: 60");
	set(t, indent, "GPU nodes usually refuse pods without this", "tolerations:");
	text_addf(t,
		  "%*s- key: nvidia.com/gpu\n"
		  "%*s  operator: Exists\n"
		  "%*s  effect: NoSchedule\n",
		  (int)indent, "", (int)indent, "", (int)indent, "");
	set(t, indent, "assay needs no root. 65532 is the user of the image, and the group owns the volumes",
	    "securityContext:");
	text_addf(t,
		  "%*s  runAsNonRoot: true\n"
		  "%*s  runAsUser: 65532\n"
		  "%*s  runAsGroup: 65532\n"
		  "%*s  fsGroup: 65532\n"
		  "%*s  seccompProfile:\n"
		  "%*s    type: RuntimeDefault\n",
		  (int)indent, "", (int)indent, "", (int)indent, "", (int)indent, "", (int)indent, "",
		  (int)indent, "");
}

/* Settings of the container that checks. */
static void container_settings(struct text *t, unsigned indent, const struct generate_plan *p,
			       bool takes_gpus)
{
	set(t, indent, "run directories go below the working folder", "workingDir: /results");
	set(t, indent, "nothing in the image is written, and no rights are gained", "securityContext:");
	text_addf(t,
		  "%*s  allowPrivilegeEscalation: false\n"
		  "%*s  readOnlyRootFilesystem: true\n"
		  "%*s  capabilities:\n"
		  "%*s    drop:\n"
		  "%*s    - ALL\n",
		  (int)indent, "", (int)indent, "", (int)indent, "", (int)indent, "", (int)indent, "");
	if (takes_gpus)
		set(t, indent,
		    "all GPUs of the node, so that no other pod has one during a measurement. There is no limit for CPUs and "
		    "memory:\na CPU quota would slow the cases of the host, and they would be reported as untrusted",
		    "resources:");
	else
		set(t, indent,
		    "no limit for CPUs: a quota would slow the cases of the host, and they would be reported as untrusted",
		    "resources:");
	if (takes_gpus)
		text_addf(t, "%*s  limits:\n%*s    nvidia.com/gpu: %u\n", (int)indent, "", (int)indent, "",
			  p->gpus);
	text_addf(t, "%*s  requests:\n", (int)indent, "");
	set(t, indent + 4, "enough to start; the scheduler reserves it", "cpu: \"1\"");
	text_addf(t, "%*s    memory: 2Gi\n", (int)indent, "");
	text_addf(t,
		  "%*svolumeMounts:\n"
		  "%*s- name: results\n"
		  "%*s  mountPath: /results\n"
		  "%*s- name: shm\n"
		  "%*s  mountPath: /dev/shm\n"
		  "%*s- name: tmp\n"
		  "%*s  mountPath: /tmp\n",
		  (int)indent, "", (int)indent, "", (int)indent, "", (int)indent, "", (int)indent, "",
		  (int)indent, "", (int)indent, "");
}

static void volumes(struct text *t, unsigned indent, const char *results)
{
	set(t, indent, "the folders that the pod may write to", "volumes:");
	set(t, indent, results, "- name: results");
	text_addf(t, "%*s  emptyDir: {}\n", (int)indent, "");
	set(t, indent,
	    "NCCL keeps its buffers between processes here; the default of 64 MiB is too small for eight GPUs",
	    "- name: shm");
	text_addf(t, "%*s  emptyDir:\n%*s    medium: Memory\n", (int)indent, "", (int)indent, "");
	set(t, indent, "the file system of the image is read-only", "- name: tmp");
	text_addf(t, "%*s  emptyDir: {}\n", (int)indent, "");
}

void generate_job(struct text *t, const struct generate_plan *p)
{
	generate_reason(
		t, 0,
		"Checks each of the nodes once: kubectl apply -f FILE; then kubectl logs -l app.kubernetes.io/name=NAME\n"
		"shows the reports");
	metadata(t, p, "batch/v1", "Job");
	text_add(t, "spec:\n");
	set(t, 2, "each pod has a number, and each must succeed by itself", "completionMode: Indexed");
	generate_reason(t, 2, "one pod for each node, from --nodes");
	text_addf(t, "  completions: %u\n", p->nodes);
	generate_reason(t, 2, "all at once");
	text_addf(t, "  parallelism: %u\n", p->nodes);
	set(t, 2, "no second try: it would hide a fault that comes and goes", "backoffLimit: 0");
	set(t, 2, "a pod that cannot be placed, or that hangs, ends the job after an hour",
	    "activeDeadlineSeconds: 3600");
	set(t, 2, "the pods and their logs stay for a day", "ttlSecondsAfterFinished: 86400");
	generate_reason(t, 2, "the pod that checks a node");
	text_addf(
		t,
		"  template:\n    metadata:\n      labels:\n        app.kubernetes.io/name: %s\n    spec:\n",
		p->name);
	set(t, 6, "the exit code is the result: 0, 1 failed, 2 inconclusive", "restartPolicy: Never");
	pod_settings(t, 6);
	set(t, 6, "no two pods of this job on one node", "affinity:");
	text_addf(t,
		  "        podAntiAffinity:\n"
		  "          requiredDuringSchedulingIgnoredDuringExecution:\n"
		  "          - topologyKey: kubernetes.io/hostname\n"
		  "            labelSelector:\n"
		  "              matchLabels:\n"
		  "                app.kubernetes.io/name: %s\n",
		  p->name);
	set(t, 6, "one container, with the image from --image", "containers:");
	text_addf(t, "      - name: assay\n        image: %s\n", p->image);
	set(t, 8, "arguments of assay", "args:");
	args(t, 8, p);
	container_settings(t, 8, p, p->gpus);
	volumes(t, 6,
		"the report is in the pod's log. To keep the run directories too, put a claim that all nodes can write here:\n"
		"persistentVolumeClaim: {claimName: NAME}, and subPathExpr with the node's name at the mount");
}

void generate_daemonset(struct text *t, const struct generate_plan *p)
{
	generate_reason(
		t, 0,
		"Checks each GPU node once, also a node that joins later. A pod is ready if its node passed:\n"
		"kubectl get pods -o wide -l app.kubernetes.io/name=NAME shows which did");
	metadata(t, p, "apps/v1", "DaemonSet");
	text_add(t, "spec:\n");
	set(t, 2, "the DaemonSet owns the pods with this label", "selector:");
	text_addf(t,
		  "    matchLabels:\n"
		  "      app.kubernetes.io/name: %s\n",
		  p->name);
	set(t, 2, "a new version checks a tenth of the nodes at a time", "updateStrategy:");
	text_add(t, "    type: RollingUpdate\n    rollingUpdate:\n      maxUnavailable: 10%\n");
	generate_reason(t, 2, "the pod that checks a node");
	text_addf(
		t,
		"  template:\n    metadata:\n      labels:\n        app.kubernetes.io/name: %s\n    spec:\n",
		p->name);
	pod_settings(t, 6);
	if (p->gpus) {
		set(t, 6, "the label that NVIDIA's GPU operator gives to nodes with a GPU", "nodeSelector:");
		text_add(t, "        nvidia.com/gpu.present: \"true\"\n");
		set(t, 6, "the runtime of NVIDIA's container toolkit, which honours the variable below",
		    "runtimeClassName: nvidia");
	}
	set(t, 6,
	    "The check runs before the other container starts. Its exit code goes to a file, because an init container that fails\n"
	    "is started again without end, and a bad node would be under load for ever",
	    "initContainers:");
	text_addf(t,
		  "      - name: check\n"
		  "        image: %s\n"
		  "        command:\n"
		  "        - /bin/sh\n"
		  "        - -c\n"
		  "        - 'assay \"$@\"; echo $? > /results/exit'\n"
		  "        - assay\n",
		  p->image);
	set(t, 8, "arguments of assay", "args:");
	args(t, 8, p);
	if (p->gpus) {
		set(t, 8,
		    "The GPUs are seen without being requested: a request would hold them for as long as the pod lives. So other pods\n"
		    "may use them during the check. assay notices that, and reports those figures as untrusted",
		    "env:");
		text_add(t, "        - name: NVIDIA_VISIBLE_DEVICES\n          value: all\n");
	}
	container_settings(t, 8, p, false);
	set(t, 6, "keeps the result, and uses nothing", "containers:");
	text_addf(t,
		  "      - name: result\n"
		  "        image: %s\n"
		  "        command:\n"
		  "        - /bin/sh\n"
		  "        - -c\n"
		  "        - 'trap exit TERM; while :; do sleep 3600 & wait; done'\n",
		  p->image);
	set(t, 8, "ready: all requirements are met", "readinessProbe:");
	text_add(t, "          exec:\n"
		    "            command:\n"
		    "            - /bin/sh\n"
		    "            - -c\n"
		    "            - test \"$(cat /results/exit)\" = 0\n");
	set(t, 10, "the file does not change any more", "periodSeconds: 60");
	set(t, 8, "nothing in the image is written, and no rights are gained", "securityContext:");
	text_add(t, "          allowPrivilegeEscalation: false\n"
		    "          readOnlyRootFilesystem: true\n"
		    "          capabilities:\n"
		    "            drop:\n"
		    "            - ALL\n"
		    "        resources:\n"
		    "          limits:\n"
		    "            cpu: 50m\n"
		    "            memory: 32Mi\n"
		    "        volumeMounts:\n"
		    "        - name: results\n"
		    "          mountPath: /results\n"
		    "          readOnly: true\n");
	volumes(t, 6,
		"exit code and run directory, for as long as the pod lives: kubectl cp POD:/results DIR");
}
