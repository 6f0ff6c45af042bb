#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The clients that people use, against the front end with the stand-in engine. usage: serve_clients.py URL ANSWER-FILE

ANSWER-FILE holds the token ids that the engine answers with; the script writes it with /tokenize.
"""
import json
import os
import sys
import urllib.request

import openai

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it would fetch one
URL, ANSWER = sys.argv[1], sys.argv[2]
MESSAGES = [{"role": "user", "content": "Hello"}]
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}}]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Bern"}}\n</tool_call>'
failed = 0


def check(name, holds, note=""):
    global failed
    print(f"{'ok' if holds else 'not ok'} {name}{'' if holds else f': {note}'}")
    failed += not holds


def answer_with(text):
    request = urllib.request.Request(f"{URL}/tokenize", json.dumps({"prompt": text}).encode(), {"Content-Type": "application/json"})
    ids = json.load(urllib.request.urlopen(request))["tokens"]
    with open(ANSWER, "w", encoding="ascii") as out:
        out.write(" ".join(map(str, ids)))


def use_openai():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none", max_retries=0)
    check("openai: models", "stand-in" in [m.id for m in client.models.list()])
    answer_with("Well, hello.")
    whole = client.chat.completions.create(model="stand-in", messages=MESSAGES, logprobs=True, top_logprobs=2)
    check("openai: chat", whole.choices[0].message.content == "Well, hello." and whole.choices[0].finish_reason == "stop", whole)
    check("openai: usage", whole.usage.prompt_tokens_details.cached_tokens == whole.usage.prompt_tokens // 2, whole.usage)
    check("openai: logprobs", len(whole.choices[0].logprobs.content) == whole.usage.completion_tokens)
    parts = list(client.chat.completions.create(model="stand-in", messages=MESSAGES, stream=True, n=2,
                                                stream_options={"include_usage": True}))
    for index in range(2):
        text = "".join(c.delta.content or "" for p in parts for c in p.choices if c.index == index)
        check(f"openai: stream, choice {index}", text == "Well, hello.", text)
    check("openai: usage at the end", parts[-1].usage.completion_tokens > 0, parts[-1])
    old = client.completions.create(model="stand-in", prompt=["a", "b"], max_tokens=4, echo=True, logprobs=1)
    check("openai: completions", [c.text[0] for c in old.choices] == ["a", "b"], old)
    check("openai: echo", old.choices[0].logprobs.token_logprobs[0] is None, old)
    parsed = client.chat.completions.create(model="stand-in", messages=MESSAGES, response_format={
        "type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}})
    check("openai: response_format", parsed.choices[0].message.content is not None)
    answered = client.responses.create(model="stand-in", input="Hello", instructions="Be brief")
    check("openai: responses", answered.output_text == "Well, hello." and answered.status == "completed", answered)
    events = list(client.responses.create(model="stand-in", input="Hello", stream=True))
    check("openai: responses as a stream", events[-1].response.output_text == "Well, hello.", events[-1])
    check("openai: events of responses", "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Well, hello.")
    content = client.responses.create(model="stand-in", input="Hello", include=["message.output_text.logprobs"], top_logprobs=2).output[0].content[0]
    check("openai: log probabilities of responses", "".join(one.token for one in content.logprobs) == content.text and
          all(one.logprob == -0.25 and one.top_logprobs for one in content.logprobs), content)
    repeated = client.responses.create(model="stand-in", input=[
        {"role": "user", "content": "Hello"}, {"type": "function_call", "call_id": "1", "name": "weather", "arguments": ""},
        {"type": "function_call_output", "call_id": "1", "output": [{"type": "input_text", "text": "sunny"}]}])
    check("openai: a call's output in parts", repeated.output_text == "Well, hello.", repeated)
    answer_with(CALL)
    called = client.chat.completions.create(model="stand-in", messages=MESSAGES, tools=TOOLS).choices[0]
    check("openai: a call", json.loads(called.message.tool_calls[0].function.arguments) == {"city": "Bern"} and
          called.finish_reason == "tool_calls", called)
    with client.chat.completions.stream(model="stand-in", messages=MESSAGES, tools=TOOLS) as stream:
        final = stream.get_final_completion().choices[0].message.tool_calls[0].function
    check("openai: a streamed call", final.name == "weather" and json.loads(final.arguments) == {"city": "Bern"}, final)
    item = client.responses.create(model="stand-in", input="Hello", tools=[
        {"type": "function", "name": "weather", "parameters": {"type": "object"}}]).output[0]
    check("openai: a call of responses", item.type == "function_call" and item.name == "weather", item)
    try:
        client.chat.completions.create(model="stand-in", messages=MESSAGES, temperature=9)
        check("openai: a wrong field", False, "accepted")
    except openai.BadRequestError as problem:
        check("openai: a wrong field", problem.param == "temperature", problem)
    try:
        client.chat.completions.create(model="other", messages=MESSAGES)
        check("openai: an unknown model", False, "accepted")
    except openai.NotFoundError as problem:
        check("openai: an unknown model", problem.code == "model_not_found", problem)


def use_litellm():
    try:
        import litellm
    except ImportError:
        print("ok litellm is not installed # SKIP")
        return
    litellm.telemetry = False
    answer_with("Well, hello.")
    where = {"model": "openai/stand-in", "api_base": f"{URL}/v1", "api_key": "none"}
    whole = litellm.completion(messages=MESSAGES, **where)
    check("litellm: chat", whole.choices[0].message.content == "Well, hello.", whole)
    text = "".join(p.choices[0].delta.content or "" for p in litellm.completion(messages=MESSAGES, stream=True, **where))
    check("litellm: stream", text == "Well, hello.", text)
    answer_with(CALL)
    called = litellm.completion(messages=MESSAGES, tools=TOOLS, **where).choices[0].message.tool_calls[0].function
    check("litellm: a call", called.name == "weather" and json.loads(called.arguments) == {"city": "Bern"}, called)


def use_anthropic():
    try:
        import anthropic
    except ImportError:
        print("ok anthropic is not installed # SKIP")
        return
    client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
    answer_with("Well, hello.")
    whole = client.messages.create(model="stand-in", max_tokens=99, messages=MESSAGES, system="Be brief")
    check("anthropic: message", whole.content[0].text == "Well, hello." and whole.stop_reason == "end_turn", whole)
    with client.messages.stream(model="stand-in", max_tokens=99, messages=MESSAGES) as stream:
        final = stream.get_final_message()
    check("anthropic: stream", final.content[0].text == "Well, hello.", final)
    answer_with(CALL)
    with client.messages.stream(model="stand-in", max_tokens=99, messages=MESSAGES, tools=[
            {"name": "weather", "input_schema": {"type": "object"}}]) as stream:
        final = stream.get_final_message()
    check("anthropic: a call", final.content[0].input == {"city": "Bern"} and final.stop_reason == "tool_use", final)


def use_langchain():
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        print("ok langchain_openai is not installed # SKIP")
        return
    model = ChatOpenAI(model="stand-in", base_url=f"{URL}/v1", api_key="none", max_retries=0, stream_usage=True)
    answer_with("Well, hello.")
    whole = model.invoke([("system", "Be brief"), ("human", "Hello")])
    check("langchain: chat", whole.content == "Well, hello." and whole.response_metadata["finish_reason"] == "stop", whole)
    check("langchain: usage", whole.usage_metadata["output_tokens"] > 0, whole)
    parts = list(model.stream("Hello"))
    check("langchain: stream", "".join(p.content for p in parts) == "Well, hello.", parts)
    check("langchain: batch", [a.content for a in model.batch(["a", "b", "c"])] == ["Well, hello."] * 3)
    answer_with('{"city": "Bern"}')
    schema = {"title": "place", "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
              "additionalProperties": False}
    place = model.with_structured_output(schema, method="json_schema").invoke("Hello")
    check("langchain: structured output", place == {"city": "Bern"}, place)
    answer_with(CALL)
    call = model.bind_tools(TOOLS).invoke("Hello").tool_calls[0]
    check("langchain: a call", call["name"] == "weather" and call["args"] == {"city": "Bern"}, call)
    joined = None
    for part in model.bind_tools(TOOLS, tool_choice="required").stream("Hello"):
        joined = part if joined is None else joined + part
    check("langchain: a streamed call", joined.tool_calls[0]["args"] == {"city": "Bern"}, joined)


def score_as_lm_eval():
    """The request of lm-eval's local-completions for log likelihoods, and what it reads of the answer."""
    prompts = [[5, 6, 7, 8], [9, 10, 11]]
    request = {"model": "stand-in", "prompt": prompts, "max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0, "seed": 1234}
    whole = json.load(urllib.request.urlopen(urllib.request.Request(
        f"{URL}/v1/completions", json.dumps(request).encode(), {"Content-Type": "application/json"})))
    choices = sorted(whole["choices"], key=lambda choice: choice["index"])
    check("lm-eval: a choice for each prompt", [c["index"] for c in choices] == [0, 1], choices)
    for ids, choice in zip(prompts, choices):
        scores, tops = choice["logprobs"]["token_logprobs"], choice["logprobs"]["top_logprobs"]
        check("lm-eval: a score for each token", len(scores) == len(ids) + 1 == len(tops) and scores[0] is None, choice)
        check("lm-eval: scores of the continuation", sum(scores[1:-1]) < 0 and all(t for t in tops[1:]), choice)


use_openai()
use_langchain()
score_as_lm_eval()
use_litellm()
use_anthropic()
sys.exit(failed > 0)
