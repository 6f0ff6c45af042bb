#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""openai, LangChain, litellm and anthropic against `assay serve` of a model of random numbers: same greedy text, streams, a schema, a call.
usage: client_serve.py URL"""
import json
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch one
import anthropic
import litellm
import openai
from langchain_openai import ChatOpenAI

URL = sys.argv[1]
MESSAGES = [{"role": "user", "content": "Hello"}]
MOST = 16
SCHEMA = {"title": "place", "type": "object", "properties": {"north": {"type": "boolean"}, "size": {"enum": ["small", "large"]}},
          "required": ["north", "size"], "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}]
FORMAT = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
failed = 0


def check(name, holds, note=""):
    global failed
    print(f"{'ok' if holds else 'not ok'} {name}{'' if holds else f': {note}'}")
    failed += not holds


def is_place(value):
    return set(value) == {"north", "size"} and isinstance(value["north"], bool) and value["size"] in ("small", "large")


client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
model = client.models.list().data[0].id
asked = {"model": model, "messages": MESSAGES, "temperature": 0, "max_tokens": MOST}
whole = client.chat.completions.create(**asked)
text = whole.choices[0].message.content
check("openai: chat", len(text) > 0 and 0 < whole.usage.completion_tokens <= MOST, whole)
parts = list(client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **asked))
check("openai: the stream is the same text", "".join(c.delta.content or "" for p in parts for c in p.choices) == text, parts)
check("openai: usage of the stream", parts[-1].usage.completion_tokens == whole.usage.completion_tokens, parts[-1])
answered = client.responses.create(model=model, input="Hello", temperature=0, max_output_tokens=MOST)
check("openai: responses is the same text", answered.output_text == text, answered)
placed = client.chat.completions.create(response_format=FORMAT, **{**asked, "max_tokens": 200})
check("openai: a schema", is_place(json.loads(placed.choices[0].message.content)), placed)
called = client.chat.completions.create(tools=TOOLS, tool_choice="required", **{**asked, "max_tokens": 200}).choices[0]
check("openai: a call", is_place(json.loads(called.message.tool_calls[0].function.arguments)), called)

chain = ChatOpenAI(model=model, base_url=f"{URL}/v1", api_key="none", max_retries=0, temperature=0, max_tokens=MOST)
long = ChatOpenAI(model=model, base_url=f"{URL}/v1", api_key="none", max_retries=0, temperature=0, max_tokens=200)
check("langchain: the same text", chain.invoke("Hello").content == text)
check("langchain: the stream", "".join(p.content for p in chain.stream("Hello")) == text)
check("langchain: batch", [a.content for a in chain.batch(["Hello"] * 3)] == [text] * 3)
check("langchain: structured output", is_place(long.with_structured_output(SCHEMA, method="json_schema").invoke("Hello")))
check("langchain: a call", is_place(long.bind_tools(TOOLS, tool_choice="required").invoke("Hello").tool_calls[0]["args"]))

litellm.telemetry = False
where = {**asked, "model": f"openai/{model}", "api_base": f"{URL}/v1", "api_key": "none"}
check("litellm: the same text", litellm.completion(**where).choices[0].message.content == text)
check("litellm: the stream", "".join(p.choices[0].delta.content or "" for p in litellm.completion(stream=True, **where)) == text)
call = litellm.completion(tools=TOOLS, tool_choice="required", **{**where, "max_tokens": 200}).choices[0].message.tool_calls[0].function
check("litellm: a call", call.name == "weather" and is_place(json.loads(call.arguments)), call)

other = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
message = other.messages.create(model=model, max_tokens=MOST, messages=MESSAGES, extra_body={"temperature": 0})
check("anthropic: the same text", message.content[0].text == text, message)
with other.messages.stream(model=model, max_tokens=MOST, messages=MESSAGES, extra_body={"temperature": 0}) as stream:
    final = stream.get_final_message()
check("anthropic: the stream", final.content[0].text == text, final)
sys.exit(failed > 0)
