#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random JSON schemas as grammars, beside PyPI's jsonschema.

usage: grammar_schemas.py WALKER VOCAB COUNT [SEED]     (WALKER: build/tests/grammar_walk; VOCAB: "bytes" or QWEN.tiktoken)
       grammar_schemas.py bench WALKER VOCAB            mask times of typical schemas

Each schema comes with values that satisfy it. Checks: every text of a random walk through the masks parses and satisfies
the schema; the grammar takes each value in three canonical forms; it takes no value of other schemas that jsonschema
refuses. Needs jsonschema.
"""
import json
import random
import subprocess
import sys

import jsonschema

VALIDATOR = jsonschema.Draft202012Validator
PATTERNS = [  # pattern, texts that match
    (r"^[a-z]{2,5}$", ["ab", "hello"]), (r"^\d{3}-\d{4}$", ["555-1234"]), (r"^(foo|bar)+$", ["foo", "foobar"]),
    (r"[0-9]", ["a1", "2"]), (r"^[A-Z][a-z]*( [A-Z][a-z]*)*$", ["Ann", "Ann Lee"]), (r"^[^\s]+$", ["x\u00e9", "a\"b"]),
    (r"^\w+@\w+\.(com|org)$", ["a@b.com"]), (r"^.{0,3}$", ["", "\u20ac\U0001f600"]), (r"^#[0-9a-fA-F]{6}$", ["#00ffAA"]),
    (r"end$", ["the end"]), (r"^$|^x$", ["", "x"]),
]
FORMATS = [("date", "2023-11-28"), ("time", "12:30:00Z"), ("date-time", "2023-11-28T12:30:00Z"), ("ipv4", "10.0.0.1"),
           ("ipv6", "fe80::1"), ("uuid", "123e4567-e89b-12d3-a456-426614174000"), ("email", "ann@example.org")]
WORDS = ["a", "id", "name", "na", "value", "caf\u00e9", "x-y", "items", "b\"c", "data", "\u4f60", "d"]
CHARS = "abc XYZ012_-.,:/\\\"\n\t\u00e9\u20ac\U0001f600"


class Generator:
    """Pairs of a schema and a function that makes a value for it."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.defs = {}

    def text(self, low, high):
        return "".join(self.r.choice(CHARS) for _ in range(self.r.randint(low, high)))

    def string(self, depth):
        kind = self.r.randint(0, 4)
        if kind == 0:
            pattern, texts = self.r.choice(PATTERNS)
            return {"type": "string", "pattern": pattern}, lambda: self.r.choice(texts)
        if kind == 1:
            name, text = self.r.choice(FORMATS)
            return {"type": "string", "format": name}, lambda: text
        if kind == 2:
            low, high = sorted((self.r.randint(0, 6), self.r.randint(0, 12)))
            schema = {"type": "string", "minLength": low, "maxLength": high}
            for key in list(schema):
                if key != "type" and not self.r.randint(0, 3):
                    del schema[key]
            return schema, lambda: self.text(low, high)
        return {"type": "string"}, lambda: self.text(0, 8)

    def integer(self, depth):
        most = 18 if self.r.randint(0, 3) else 19  # 64-bit identifiers, times in nanoseconds
        low, high = sorted(max(-2 ** 63 + 2, min(2 ** 63 - 2, self.r.randint(-10 ** self.r.randint(1, most), 10 ** self.r.randint(1, most))))
                           for _ in range(2))
        kind = self.r.randint(0, 5)
        if kind == 0:
            return {"type": "integer"}, lambda: self.r.randint(-10 ** 9, 10 ** 9)
        if kind == 1:
            step = self.r.randint(2, 60)
            return {"type": "integer", "multipleOf": step}, lambda: step * self.r.randint(-99, 99)
        if kind == 2:
            return {"type": "integer", "minimum": low}, lambda: min(low + self.r.randint(0, 10 ** 6), 2 ** 63 - 1)
        if kind == 3:
            return {"type": "integer", "exclusiveMaximum": high}, lambda: max(high - self.r.randint(1, 10 ** 6), 1 - 2 ** 63)
        if kind == 4 and high - low >= 2:
            return ({"type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": high},
                    lambda: self.r.randint(low + 1, high - 1))
        return {"type": "integer", "minimum": low, "maximum": high}, lambda: self.r.randint(low, high)

    def number(self, depth):
        digits = self.r.randint(0, 4)
        low, high = sorted(round(self.r.uniform(-1, 1) * 10 ** self.r.randint(0, 5), digits) for _ in range(2))
        kind = self.r.randint(0, 4)
        if kind == 0:
            return {"type": "number"}, lambda: self.r.choice([0, -1.5, 1e-05, 1e+16, 123.25, 7])
        between = lambda: min(max(round(self.r.uniform(low, high), 3), low), high)
        if kind == 1:
            return {"type": "number", "minimum": low}, lambda: low + self.r.randint(0, 100)
        if kind == 2 and low < high:
            middle = (low + high) / 2
            if not low < round(middle, 6) < high:
                return {"type": "number", "maximum": high}, lambda: high
            return {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}, lambda: round(middle, 6)
        return {"type": "number", "minimum": low, "maximum": high}, between

    def constant(self, depth):
        values = [self.r.choice([None, True, False, 0, -3, 2.5, "", self.text(0, 5), [1, "a"], {"k": [None]}])
                  for _ in range(self.r.randint(1, 4))]
        if self.r.randint(0, 2):
            return {"enum": values}, lambda: self.r.choice(values)
        return {"const": values[0]}, lambda: values[0]

    def simple(self, depth):
        kind = self.r.randint(0, 3)
        if kind == 0:
            return {"type": "boolean"}, lambda: self.r.choice([True, False])
        if kind == 1:
            return {"type": "null"}, lambda: None
        if kind == 2:
            return {"type": ["integer", "string"]}, lambda: self.r.choice([5, "five"])
        return {}, lambda: self.r.choice([1, "x", None, [1.5], {"a": {"b": []}}])

    def array(self, depth):
        item, make = self.value(depth - 1)
        low, high = sorted((self.r.randint(0, 3), self.r.randint(0, 4)))
        kind = self.r.randint(0, 3)
        if kind == 0:
            parts = [self.value(depth - 1) for _ in range(self.r.randint(1, 3))]
            return ({"type": "array", "prefixItems": [p[0] for p in parts], "items": False, "minItems": len(parts)},
                    lambda: [p[1]() for p in parts])
        if kind == 1:
            return {"type": "array", "items": item}, lambda: [make() for _ in range(self.r.randint(0, 3))]
        schema = {"type": "array", "items": item, "minItems": low, "maxItems": high}
        if kind == 2:
            del schema["minItems"]
        return schema, lambda: [make() for _ in range(self.r.randint(low, high))]

    def object(self, depth):
        names = self.r.sample(WORDS, self.r.randint(0, 4))
        parts = {name: self.value(depth - 1) for name in names}
        required = [name for name in names if self.r.randint(0, 1)]
        schema = {"type": "object", "properties": {name: part[0] for name, part in parts.items()}}
        extra = None
        if required:
            schema["required"] = required
        kind = self.r.randint(0, 5)
        if kind == 0 or (kind > 2 and names):
            schema["additionalProperties"] = False
        elif kind == 1:
            schema["additionalProperties"], extra = self.value(depth - 1)
        if kind == 5 and len(names) > 1:
            schema["minProperties"] = self.r.randint(0, len(names))

        def make():
            value = {name: part[1]() for name, part in parts.items()
                     if name in required or self.r.randint(0, 1) or "minProperties" in schema}
            if extra and self.r.randint(0, 1):
                value["extra1"] = extra()
            return value
        return schema, make

    def map(self, depth):
        item, make = self.value(depth - 1)
        kind = self.r.randint(0, 2)
        if kind == 0:
            return ({"type": "object", "patternProperties": {"^k[0-9]$": item}, "additionalProperties": False},
                    lambda: {"k%d" % i: make() for i in range(self.r.randint(0, 2))})
        if kind == 1:
            return ({"type": "object", "additionalProperties": item, "maxProperties": 2},
                    lambda: {"k%d" % i: make() for i in range(self.r.randint(0, 2))})
        return {"type": "object", "additionalProperties": item}, lambda: {"k": make()}

    def choice(self, depth):
        parts = [self.value(depth - 1) for _ in range(self.r.randint(1, 3))]
        return {"anyOf": [p[0] for p in parts]}, lambda: self.r.choice(parts)[1]()

    def tagged(self, depth):
        parts = []
        for name in self.r.sample(WORDS, 2):
            schema, make = self.value(depth - 1)
            parts.append(({"type": "object", "properties": {"kind": {"const": name}, "v": schema},
                           "required": ["kind", "v"], "additionalProperties": False},
                          lambda name=name, make=make: {"kind": name, "v": make()}))
        return {"oneOf": [p[0] for p in parts]}, lambda: self.r.choice(parts)[1]()

    def merged(self, depth):
        kind = self.r.randint(0, 2)
        if kind == 0:
            return ({"allOf": [{"type": "integer", "minimum": -5}, {"maximum": 5}, {"type": "number"}]},
                    lambda: self.r.randint(-5, 5))
        a, make_a = self.value(depth - 1)
        b, make_b = self.value(depth - 1)
        first = {"type": "object", "properties": {"a": a}, "required": ["a"]}
        if kind == 1:
            return {"allOf": [first, {"properties": {"b": b}}]}, lambda: {"a": make_a(), "b": make_b()}
        return ({"type": "object", "properties": {"a": a, "b": b}, "additionalProperties": False,
                 "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
                lambda: self.r.choice([{"a": make_a()}, {"b": make_b()}, {"a": make_a(), "b": make_b()}]))

    def recursive(self, depth):
        name = "d%d" % len(self.defs)
        item, make = self.value(0)
        self.defs[name] = {"type": "object", "properties": {
            "v": item, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/" + name}]}}, "required": ["v", "next"],
            "additionalProperties": False}
        return ({"$ref": "#/$defs/" + name},
                lambda: {"v": make(), "next": self.r.choice([None, {"v": make(), "next": None}])})

    def value(self, depth):
        leaves = [self.string, self.integer, self.number, self.constant, self.simple]
        inner = [self.array, self.object, self.object, self.map, self.choice, self.tagged, self.merged, self.recursive]
        return self.r.choice(inner if depth > 0 and self.r.randint(0, 4) else leaves)(depth)

    def whole(self):
        schema, make = self.value(self.r.randint(0, 4))
        if self.defs:
            schema = dict(schema, **{"$defs": self.defs})
        return schema, make


def forms(value):
    return [json.dumps(value, ensure_ascii=False), json.dumps(value, separators=(",", ":"), ensure_ascii=False),
            json.dumps(value, indent=2, ensure_ascii=False)]


def ask(walker, vocab, walks, requests):
    done = subprocess.run([walker, vocab, str(walks)], input="".join(json.dumps(r) + "\n" for r in requests),
                          stdout=subprocess.PIPE, check=True, text=True)
    return [json.loads(line) for line in done.stdout.split("\n") if line]



def check(walker, vocab, count, seed):
    cases, requests = [], []
    for i in range(count):
        schema, make = Generator(seed * 1000003 + i).whole()
        cases.append((schema, [make() for _ in range(3)]))
    checkers = [VALIDATOR(schema, format_checker=VALIDATOR.FORMAT_CHECKER) for schema, _ in cases]
    r = random.Random(seed)
    wrong = []
    for i, (schema, values) in enumerate(cases):
        for value in values:
            if not checkers[i].is_valid(value):
                raise SystemExit("the generator made %r for %r" % (value, schema))
        strangers = [v for _ in range(6) for v in r.choice(cases)[1] if not checkers[i].is_valid(v)]
        requests.append({"source": {"type": "json_schema", "schema": schema},
                         "try": [f for v in values for f in forms(v)] + [json.dumps(v, ensure_ascii=False) for v in strangers],
                         "good": 3 * len(values)})
    texts = unfinished = tried = refused = 0
    answers = ask(walker, vocab, 5, requests)
    assert len(answers) == len(requests)
    for i, (request, answer) in enumerate(zip(requests, answers)):
        schema = json.dumps(request["source"]["schema"])
        if "error" in answer or answer["warnings"]:
            wrong.append((schema, answer.get("error"), answer.get("warnings")))
            continue
        for k, (text, takes) in enumerate(zip(request["try"], answer["takes"])):
            tried += k < request["good"]
            refused += k >= request["good"]
            if takes != (k < request["good"]):
                wrong.append((schema, "takes" if takes else "refuses", text))
        unfinished += answer["unfinished"]
        for text in answer["texts"]:
            texts += 1
            try:
                value = json.loads(text)
            except (TypeError, ValueError) as problem:
                wrong.append((schema, str(problem), text))
                continue
            for problem in checkers[i].iter_errors(value):
                wrong.append((schema, problem.message, text))
                break
    for line in wrong[:20]:
        print(*line, sep="\n  ")
    print("%d schemas: %d texts of walks, %d unfinished; %d canonical texts, %d texts of other schemas; %d wrong" %
          (count, texts, unfinished, tried, refused, len(wrong)))
    return 1 if wrong or unfinished * 10 > texts + unfinished else 0


def bench(walker, vocab):
    person = {"type": "object", "properties": {
        "name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "email": {"type": "string", "format": "email"}, "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                    "required": ["street", "city"], "additionalProperties": False}},
        "required": ["name", "age", "email", "tags", "address"], "additionalProperties": False}
    sources = {
        "any object": {"type": "json_object"},
        "person": {"type": "json_schema", "schema": person},
        "list of persons": {"type": "json_schema", "schema": {"type": "array", "items": person, "minItems": 3}},
        "enum of 1,000": {"type": "json_schema", "schema": {"enum": ["value %d" % i for i in range(1000)]}},
        "string of at most 200": {"type": "json_schema", "schema": {"type": "string", "maxLength": 200, "minLength": 100}},
        "pattern": {"type": "json_schema", "schema": {"type": "string", "pattern": "^[a-z]{40,80}$"}},
        "tool calls, auto": {"type": "tool_calls", "format": "chatml", "mode": "auto", "tools": [
            {"type": "function", "function": {"name": "f%d" % i, "parameters": person}} for i in range(20)]},
    }
    answers = ask(walker, vocab, 50, [{"source": s, "try": []} for s in sources.values()])
    for name, a in zip(sources, answers):
        print("%-24s compile %8.0f us, masks of the first text %8.1f us, of 49 further texts %7.1f us" %
              (name, a["compile_us"], a["cold_us"], a["warm_us"]))


if __name__ == "__main__":
    if sys.argv[1] == "bench":
        bench(*sys.argv[2:4])
    else:
        sys.exit(check(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1))
