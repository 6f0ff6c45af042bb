#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks files for Kubernetes: usage: kubernetes_files.py FILE...

Each document must be YAML without duplicate keys, with the fields below and no others, each of its type. Where python3 has
kubernetes-validate (tools/get-wheels kubernetes), it checks all documents of Kubernetes itself against the published schemas too, in its strict form.
ServiceMonitor belongs to prometheus-operator. Where python3 finds cloudcoil's models of its published definition (they come with the same wheels), they
check that document, strictly too.
"""
import ast
import os
import re
import sys

import yaml

DURATION = re.compile(r"^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$")
LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
QUANTITY = re.compile(r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")
PERCENT = re.compile(r"^[0-9]+%$")


class Loader(yaml.SafeLoader):
    """Refuses a key that stands twice."""


def no_duplicates(loader, node, deep=False):
    seen = set()
    for key, _ in node.value:
        name = loader.construct_object(key, deep=deep)
        if name in seen:
            raise ValueError(f"line {key.start_mark.line + 1}: key {name} stands twice")
        seen.add(name)
    return yaml.SafeLoader.construct_mapping(loader, node, deep)


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, no_duplicates)


def matches(pattern):
    return lambda v: isinstance(v, str) and bool(pattern.match(v))


def number(low, high):
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and low <= v <= high


def one_of(*values):
    return lambda v: v in values


def labels(v):
    return isinstance(v, dict) and v and all(isinstance(k, str) and isinstance(x, str) for k, x in v.items())


def text(v):
    return isinstance(v, str) and v != ""


def flag(v):
    return isinstance(v, bool)


def quantity(v):
    return (isinstance(v, int) and not isinstance(v, bool)) or matches(QUANTITY)(v)


def texts(v):
    return isinstance(v, list) and v and all(isinstance(x, str) for x in v)


# A form is a function, a list with one form (of each element), or a dict of forms. A name that ends in ? may be absent.
META = {"name": matches(LABEL), "namespace": matches(LABEL), "labels": labels}
CONTAINER = {
    "name": matches(LABEL), "image": text, "command?": texts, "args?": texts, "workingDir?": text,
    "env?": [{"name": text, "value": text}],
    "securityContext": {"allowPrivilegeEscalation": one_of(False), "readOnlyRootFilesystem": one_of(True),
                        "capabilities": {"drop": one_of(["ALL"])}},
    "resources": {"limits?": lambda v: isinstance(v, dict) and all(quantity(x) for x in v.values()),
                  "requests?": lambda v: isinstance(v, dict) and all(quantity(x) for x in v.values())},
    "volumeMounts": [{"name": matches(LABEL), "mountPath": text, "readOnly?": flag}],
    "readinessProbe?": {"exec": {"command": texts}, "periodSeconds": number(1, 3600)},
}
POD = {
    "restartPolicy?": one_of("Never"), "automountServiceAccountToken": one_of(False), "enableServiceLinks": flag,
    "terminationGracePeriodSeconds": number(1, 3600),
    "tolerations": [{"key": text, "operator": one_of("Exists", "Equal"), "effect": one_of("NoSchedule", "NoExecute")}],
    "securityContext": {"runAsNonRoot": one_of(True), "runAsUser": number(1, 2**31 - 1), "runAsGroup": number(1, 2**31 - 1),
                        "fsGroup": number(1, 2**31 - 1), "seccompProfile": {"type": one_of("RuntimeDefault")}},
    "affinity?": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": text, "labelSelector": {"matchLabels": labels}}]}},
    "nodeSelector?": labels, "runtimeClassName?": matches(LABEL),
    "initContainers?": [CONTAINER], "containers": [CONTAINER],
    "volumes": [{"name": matches(LABEL), "emptyDir": lambda v: v in ({}, {"medium": "Memory"})}],
}
TEMPLATE = {"metadata": {"labels": labels}, "spec": POD}
POLICY = {"type": one_of("Percent", "Pods"), "value": number(1, 1000), "periodSeconds": number(1, 1800)}
SCALING = {"stabilizationWindowSeconds": number(0, 3600), "policies": [POLICY]}
FORMS = {
    ("batch/v1", "Job"): {
        "completionMode": one_of("Indexed"), "completions": number(1, 65536), "parallelism": number(1, 65536),
        "backoffLimit": number(0, 100), "activeDeadlineSeconds": number(1, 10**7),
        "ttlSecondsAfterFinished": number(0, 10**7), "template": TEMPLATE},
    ("apps/v1", "DaemonSet"): {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": one_of("RollingUpdate"), "rollingUpdate": {"maxUnavailable": matches(PERCENT)}},
        "template": TEMPLATE},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {
        "scaleTargetRef": {"apiVersion": text, "kind": text, "name": matches(LABEL)},
        "minReplicas": number(1, 65536), "maxReplicas": number(1, 65536),
        "metrics": [{"type": one_of("Pods"), "pods": {"metric": {"name": text},
                     "target": {"type": one_of("AverageValue"), "averageValue": matches(QUANTITY)}}}],
        "behavior": {"scaleUp": SCALING, "scaleDown": SCALING}},
    ("v1", "Service"): {
        "clusterIP": one_of("None"), "selector": labels,
        "ports": [{"name": matches(LABEL), "port": number(1, 65535), "targetPort": number(1, 65535)}]},
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {
        "selector": {"matchLabels": labels}, "namespaceSelector": {"matchNames": texts}, "sampleLimit": number(1, 10**9),
        "endpoints": [{"port": text, "path": text, "interval": matches(DURATION), "scrapeTimeout": matches(DURATION)}]},
}


def walk(form, value, place, wrong):
    if callable(form):
        if not form(value):
            wrong.append(f"{place}: {value!r} is not allowed")
    elif isinstance(form, list):
        if not isinstance(value, list) or not value:
            wrong.append(f"{place} is no list with elements")
        else:
            for i, one in enumerate(value):
                walk(form[0], one, f"{place}[{i}]", wrong)
    elif not isinstance(value, dict):
        wrong.append(f"{place} has no fields")
    else:
        names = {name.rstrip("?"): (sub, name.endswith("?")) for name, sub in form.items()}
        wrong.extend(f"{place}.{name} is unknown" for name in value if name not in names)
        for name, (sub, optional) in names.items():
            if name in value:
                walk(sub, value[name], f"{place}.{name}", wrong)
            elif not optional:
                wrong.append(f"{place}.{name} is missing")


def agree(doc, wrong):
    """What a schema cannot say: names that must be equal."""
    kind, spec = doc["kind"], doc["spec"]
    if "template" in spec:
        own = spec["template"]["metadata"]["labels"]
        if kind == "DaemonSet" and spec["selector"]["matchLabels"] != own:
            wrong.append("the selector does not select the template")
        pod = spec["template"]["spec"]
        there = {v["name"] for v in pod["volumes"]}
        for container in pod["containers"] + pod.get("initContainers", []):
            wrong.extend(f"{container['name']}: no volume {m['name']}" for m in container["volumeMounts"] if m["name"] not in there)
    if kind == "HorizontalPodAutoscaler" and spec["minReplicas"] > spec["maxReplicas"]:
        wrong.append("minReplicas is above maxReplicas")


VERSIONS = ("1.27", "1.37")


def by_schemas(library, doc):
    """Errors of the published schemas, in their strict form."""
    found = []
    for version in VERSIONS:
        try:
            library.validate(doc, version, strict=True)
        except library.ValidationError as e:
            found.append(f"kubernetes-validate: {version}: {str(e).splitlines()[0]}")  # the rest is the schema
    return found


OPERATOR = "cloudcoil/models/prometheus_operator/v1.py"


def operator_fields(path, first):
    """The source of `first` and all classes that its fields name, without the builders that make up most of the file."""
    with open(path, encoding="utf-8") as f:
        parts = re.split(r"^(?=class )", f.read(), flags=re.M)
    classes = {re.match(r"class (\w+)", part).group(1): part for part in parts if part.startswith("class ")}
    wanted, found = [first], {}
    while wanted:
        name = wanted.pop()
        if name in found or name not in classes:
            continue
        node = ast.parse(classes[name]).body[0]
        node.body = [line for line in node.body if isinstance(line, ast.AnnAssign)]
        found[name] = ast.unparse(node)
        wanted += [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    return "\n".join(found.values())


def operator_model():
    """A checker of a ServiceMonitor's spec, or None if there are no models."""
    path = next((f"{p}/{OPERATOR}" for p in sys.path if os.path.exists(f"{p}/{OPERATOR}")), None)
    if not path:
        return None
    import typing

    import pydantic

    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid", strict=True)
    names = {**vars(typing), "Field": pydantic.Field, "RootModel": pydantic.RootModel, "BaseModel": Strict, "__name__": "operator"}
    exec("from __future__ import annotations\n" + operator_fields(path, "ServiceMonitorSpec"), names)
    for value in list(names.values()):
        if isinstance(value, type) and issubclass(value, pydantic.BaseModel) and value is not Strict and value is not pydantic.RootModel:
            value.model_rebuild(_types_namespace=names)
    return names["ServiceMonitorSpec"]


def by_operator(model, doc):
    import pydantic
    try:
        model.model_validate(doc["spec"])
    except pydantic.ValidationError as e:
        return [f"prometheus-operator: {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in e.errors()]
    return []


def main():
    operator = operator_model()
    try:
        import kubernetes_validate
    except ImportError:
        kubernetes_validate = None
        print("python3 has no kubernetes-validate: the published schemas are not looked at")
    bad = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as f:
            docs = list(yaml.load_all(f, Loader))
        for doc in docs:
            wrong = []
            form = FORMS.get((doc.get("apiVersion"), doc.get("kind")))
            if not form:
                wrong.append("the kind is unknown")
            else:
                walk({"apiVersion": text, "kind": text, "metadata": META, "spec": form}, doc, doc["kind"], wrong)
            if not wrong:
                agree(doc, wrong)
            if kubernetes_validate and doc.get("kind") != "ServiceMonitor":
                found = by_schemas(kubernetes_validate, doc)
                wrong.extend(found)
                if not found:
                    print(f"{path}: {doc['kind']} is valid in Kubernetes {' and '.join(VERSIONS)}, by kubernetes-validate")
            if operator and doc.get("kind") == "ServiceMonitor":
                found = by_operator(operator, doc)
                wrong.extend(found)
                if not found:
                    print(f"{path}: ServiceMonitor is valid by the definition of prometheus-operator")
            for line in wrong:
                print(f"{path}: {line}")
            bad += bool(wrong)
            print(f"{path}: {doc.get('kind')} {'is wrong' if wrong else 'is well'}")
    return 1 if bad else 0


sys.exit(main())
