/* SPDX-License-Identifier: Apache-2.0 */
/* A HorizontalPodAutoscaler and a ServiceMonitor for `assay serve`. */
#include "deploy/generate/generate.h"

static void set(struct text *t, unsigned indent, const char *reason, const char *text)
{
	generate_reason(t, indent, reason);
	text_addf(t, "%*s%s\n", (int)indent, "", text);
}

static void metadata(struct text *t, const struct generate_plan *p)
{
	generate_reason(t, 0, "from --name and --namespace");
	text_addf(t,
		  "metadata:\n"
		  "  name: %s\n"
		  "  namespace: %s\n"
		  "  labels:\n"
		  "    app.kubernetes.io/name: %s\n",
		  p->name, p->space, p->name);
}

/* A metric that each pod exports, with its mean over the pods as the target. */
static void pods_metric(struct text *t, const char *reason, const char *metric, const char *value)
{
	set(t, 2, reason, "- type: Pods");
	text_addf(t,
		  "    pods:\n"
		  "      metric:\n"
		  "        name: %s\n"
		  "      target:\n"
		  "        type: AverageValue\n"
		  "        averageValue: %s\n",
		  metric, value);
}

void generate_hpa(struct text *t, const struct generate_plan *p)
{
	generate_reason(
		t, 0,
		"Scales a Deployment of assay serve by the length of its queue. The metrics reach Kubernetes through an adapter\n"
		"(prometheus-adapter, KEDA) as metrics of pods. GPU utilization is no signal: it is near 100 % with one request\n"
		"and with a hundred");
	text_add(t, "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\n");
	metadata(t, p);
	text_add(t, "spec:\n");
	set(t, 2, "the Deployment to scale. One pod has one engine", "scaleTargetRef:");
	text_addf(t, "    apiVersion: apps/v1\n    kind: Deployment\n    name: %s\n", p->name);
	set(t, 2, "a model takes minutes to load, so one pod stays", "minReplicas: 1");
	generate_reason(t, 2, "from --nodes");
	text_addf(t, "  maxReplicas: %u\n", p->nodes);
	set(t, 2, "the metric that asks for the most pods counts", "metrics:");
	pods_metric(
		t,
		"requests that wait for the engine. A healthy queue is nearly empty: each of four waiting "
		"requests\n"
		"gets its first token late",
		p->waiting, "\"4\"");
	pods_metric(
		t,
		"share of the KV cache in use: near 1 the engine preempts sequences and computes them again. 800m is 0.8",
		p->cache_use, "800m");
	set(t, 2, "how fast the number of pods changes", "behavior:");
	text_add(t, "    scaleUp:\n");
	set(t, 6, "a queue grows in seconds, so do not wait", "stabilizationWindowSeconds: 0");
	set(t, 6,
	    "at most twice as many pods every two minutes, about the time in which one becomes ready; more would start while\n"
	    "the first are still loading",
	    "policies:");
	text_add(t,
		 "      - type: Percent\n        value: 100\n        periodSeconds: 120\n    scaleDown:\n");
	set(t, 6, "load comes in waves: ten quiet minutes before a pod goes",
	    "stabilizationWindowSeconds: 600");
	set(t, 6, "one at a time, because its requests must finish first", "policies:");
	text_add(t, "      - type: Pods\n        value: 1\n        periodSeconds: 300\n");
}

void generate_servicemonitor(struct text *t, const struct generate_plan *p)
{
	generate_reason(
		t, 0,
		"Lets Prometheus (its operator) read /metrics of assay serve. The Service gives the port a name, which the\n"
		"ServiceMonitor selects");
	text_add(t, "apiVersion: v1\nkind: Service\n");
	metadata(t, p);
	text_add(t, "spec:\n");
	set(t, 2, "no address of its own: each pod is read by itself", "clusterIP: None");
	set(t, 2, "the pods of assay serve", "selector:");
	text_addf(t, "    app.kubernetes.io/name: %s\n", p->name);
	set(t, 2, "a ServiceMonitor names a port by its name", "ports:");
	text_add(t, "  - name: http\n");
	generate_reason(t, 4, "from --port: the port of assay serve");
	text_addf(t, "    port: %u\n    targetPort: %u\n---\n", p->port, p->port);
	generate_reason(t, 0, "Prometheus reads each pod of the Service above");
	text_add(t, "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\n");
	metadata(t, p);
	text_add(t, "spec:\n");
	set(t, 2, "the Service above has this label", "selector:");
	text_addf(t,
		  "    matchLabels:\n"
		  "      app.kubernetes.io/name: %s\n",
		  p->name);
	set(t, 2, "only this namespace", "namespaceSelector:");
	text_addf(t, "    matchNames:\n    - %s\n", p->space);
	set(t, 2, "a guard against a mistake: assay serve has some hundred series", "sampleLimit: 2000");
	set(t, 2, "where and how often Prometheus reads", "endpoints:");
	text_add(t, "  - port: http\n    path: /metrics\n");
	set(t, 4, "the queue changes in seconds, and the autoscaler reads it every 15 s", "interval: 15s");
	set(t, 4, "the server answers in milliseconds; a slower answer is a fault", "scrapeTimeout: 5s");
}
