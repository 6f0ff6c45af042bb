#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on function calls by bfcl-eval's own checker (ast_checker, Python), beside assay's.
usage: answers.py make BFCL ROWS.jsonl OUT.jsonl [COUNT]   BFCL: the folder above bfcl_eval; ROWS: what `assay rows --format bfcl` made of its data.
                                            Right and wrong answers to COUNT of the rows, spread over all: {"row", "text", "exact"} a line
       answers.py check ASSAY ROWS.jsonl OUT.jsonl         exits 1 where assay's verdict is another
       answers.py cut ROWS.jsonl OUT.jsonl CASES.jsonl     for the suite: rows with their answers, {"tools", "ground_truth", "text", "exact"}
"""
import copy
import json
import random
import subprocess
import sys
import types


def checker(folder):
    """Its modules for Java, JavaScript and models' names are not needed, and need more than Python has."""
    sys.path.insert(0, folder)
    for name, parts in (("bfcl_eval.constants.model_config", {"MODEL_CONFIG_MAPPING": {"x": types.SimpleNamespace(underscore_to_dot=False)}}),
                        ("bfcl_eval.eval_checker.ast_eval.type_convertor.java_type_converter", {"java_type_converter": None}),
                        ("bfcl_eval.eval_checker.ast_eval.type_convertor.js_type_converter", {"js_type_converter": None})):
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(parts)
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
    return lambda functions, calls, truth: ast_checker(functions, calls, truth, Language.PYTHON, "parallel", "x")["valid"]


def functions_of(data):
    """Of each question by its text: the functions as bfcl-eval describes them."""
    out = {}
    for kind in ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple"):
        with open(f"{data}/BFCL_v4_{kind}.json") as f:
            for line in map(json.loads, f):
                out.setdefault(json.dumps([line["question"][0], sorted(x["name"] for x in line["function"])]), line["function"])
    return out


def chosen(value, pick):
    if isinstance(value, dict):
        made = {k: chosen(pick.choice(v) if isinstance(v, list) else v, pick) for k, v in value.items()
                if not (isinstance(v, list) and "" in v and pick.random() < 0.5)}
        return {k: v for k, v in made.items() if v != ""}
    return [chosen(v, pick) for v in value] if isinstance(value, list) else value


def answer(truth, pick):
    """One of those that are accepted."""
    calls = []
    for call in truth:
        (name, arguments), = call.items()
        made = {k: chosen(pick.choice(v), pick) for k, v in arguments.items() if v and not ("" in v and pick.random() < 0.5)}
        calls.append({"name": name, "arguments": {k: v for k, v in made.items() if v != ""}})
    return calls


def other(value, pick, within=False):
    """Another value, near: some are accepted all the same. Two things are left out in which assay is not that checker: there 1 is true
    within an object, and case is nothing beyond ASCII too."""
    if isinstance(value, bool):
        return pick.choice([not value, str(value)] + [int(value)] * (not within))
    if isinstance(value, (int, float)):
        return pick.choice([value + 1, float(value), str(value), -value, [value], bool(value)])
    if isinstance(value, str):
        return pick.choice([value.upper() if value.isascii() else value, value + ".", value.replace(" ", "_"), value + "x", "'" + value, [value], 5, value.replace(",", ""), ""])
    if isinstance(value, list):
        return pick.choice([value[::-1], value[1:], value + value[:1], [], "".join(map(str, value)), [other(v, pick, True) for v in value],
                            [float(v) if isinstance(v, int) else v for v in value]])
    if isinstance(value, dict) and value:
        key = pick.choice(list(value))
        return pick.choice([{k: v for k, v in value.items() if k != key}, {**value, key: other(value[key], pick, True)}, {**value, "more": 1}, {}])
    return pick.choice([None, 1, "x"])


def spoil(calls, pick):
    calls = copy.deepcopy(calls)
    call = pick.choice(calls)
    arguments = call["arguments"]
    what = pick.randrange(7)
    if what == 0:
        call["name"] += "_x"
    elif what == 1 and arguments:
        arguments.pop(pick.choice(list(arguments)))
    elif what == 2:
        arguments["more"] = 1
    elif what == 3:
        pick.shuffle(calls)
    elif what == 4 and len(calls) > 1:
        calls.remove(call)
    elif arguments:
        key = pick.choice(list(arguments))
        arguments[key] = other(arguments[key], pick)
    return calls


def text_of(calls):
    return "\n".join(f"<tool_call>\n{json.dumps(c)}\n</tool_call>" for c in calls)


def rows_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def make(folder, rows_path, out, count):
    check, functions, rows, pick = checker(folder), functions_of(folder + "/bfcl_eval/data"), rows_of(rows_path), random.Random(1)
    passed = made = 0
    with open(out, "w") as f:
        for i in range(0, len(rows), max(1, len(rows) // count)):
            row = rows[i]
            of = functions[json.dumps([row["messages"][:-1], sorted(t["function"]["name"] for t in row["tools"])])]
            right = answer(row["ground_truth"], pick)
            for calls in [right] + [spoil(right, pick) for _ in range(4)]:
                try:
                    exact = check(of, [{c["name"]: c["arguments"]} for c in calls], row["ground_truth"])
                except (TypeError, KeyError, AttributeError, IndexError):
                    continue  # what that checker falls over
                f.write(json.dumps({"row": i + 1, "text": text_of(calls), "exact": exact}) + "\n")
                made, passed = made + 1, passed + exact
    print(f"{made} answers, {passed} of them accepted")


def check(assay, rows_path, answers):
    said = rows_of(answers)
    told = json.loads(subprocess.run([assay, "rows", rows_path, "--answers", answers, "--chat-template", "qwen2.5", "--json"], check=True,
                                     capture_output=True, text=True).stdout)["answers"]
    rows, wrong = rows_of(rows_path), 0
    for a, b in zip(said, told, strict=True):
        if a["exact"] != b["exact"]:
            wrong += 1
            print(f"row {a['row']}: bfcl-eval says {a['exact']}, assay {b['exact']} ({b.get('why')}): {a['text']}\n"
                  f"  {json.dumps(rows[a['row'] - 1]['ground_truth'])}")
    print(f"{len(said)} answers, {wrong} other verdicts")
    sys.exit(wrong > 0)


def cut(rows_path, answers, out):
    rows = rows_of(rows_path)
    with open(out, "w") as f:
        for a in rows_of(answers):
            row = rows[a["row"] - 1]
            tools = [{"function": {"name": t["function"]["name"], "parameters": bare(t["function"]["parameters"])}} for t in row["tools"]
                     if any(t["function"]["name"] in call for call in row["ground_truth"])]
            f.write(json.dumps({"tools": tools, "ground_truth": row["ground_truth"], "text": a["text"], "exact": a["exact"]},
                               separators=(",", ":")) + "\n")


def bare(schema):
    """Without words for people."""
    if isinstance(schema, dict):
        return {k: ({n: bare(s) for n, s in v.items()} if k == "properties" else bare(v)) for k, v in schema.items()
                if k in ("type", "properties", "required", "items")}
    return schema


def main():
    words = sys.argv[1:]
    if words[:1] == ["make"] and len(words) >= 4:
        make(*words[1:4], int(words[4]) if len(words) > 4 else 1 << 30)
    elif words[:1] == ["check"] and len(words) == 4:
        check(*words[1:])
    elif words[:1] == ["cut"] and len(words) == 4:
        cut(*words[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
