#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dashboards against Grafana's published schema, as its own library has it (PyPI: grafana-foundation-sdk). The library
reads a dashboard into typed objects and writes it again. A member that the schema does not have, or has under another
type, does not come back, and a missing one raises an error.
usage: grafana_dashboards.py ASSAY"""
import json
import subprocess
import sys

try:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard
except ImportError:
    print("grafana-foundation-sdk is not installed")
    sys.exit(77)


def differences(ours, theirs, place):
    """Members of ours that theirs lacks or has with another value."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            if key not in theirs:
                # a value of None and a missing member are the same to Grafana
                if value is not None:
                    yield f"{place}.{key}: the schema has no such member"
            else:
                yield from differences(value, theirs[key], f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            yield f"{place}: {len(ours)} items became {len(theirs)}"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            yield from differences(a, b, f"{place}[{i}]")
    elif ours != theirs or isinstance(ours, bool) != isinstance(theirs, bool):
        yield f"{place}: {ours!r} became {theirs!r}"


def check(dashboard):
    typed = Dashboard.from_json(json.loads(json.dumps(dashboard)))
    again = json.loads(json.dumps(typed, cls=JSONEncoder))
    return list(differences(dashboard, again, dashboard["uid"]))


def main():
    register_default_plugins()
    out = subprocess.run([sys.argv[1], "list", "metrics", "--as", "grafana"], check=True, stdout=subprocess.PIPE)
    dashboards = json.loads(out.stdout)
    wrong = [line for d in dashboards for line in check(d)]
    # The check itself finds a member that does not exist, and one of the wrong type.
    planted = json.loads(json.dumps(dashboards[0]))
    planted["panels"][0]["gridPosition"] = {}
    planted["panels"][0]["targets"][0]["legend"] = "x"
    if len(check(planted)) < 2:
        wrong.append("two planted members were not found")
    print("\n".join(wrong) or f"{len(dashboards)} dashboards agree with Grafana's schema")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
