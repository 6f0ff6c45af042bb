#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What jinja2 makes of conversations by the chat templates of models.

usage: chat_templates.py DIR     (DIR: tests/data/template; its jinja/*.jinja are the templates)

Writes DIR/tool_chats.jsonl, conversations with ids of calls and arguments as text, and DIR/jinja_sums.jsonl: a line per template,
{"template", "sums"}. The sums are 64-bit FNV-1a of the text, null if the template refuses, for each conversation of chats.jsonl
and tool_chats.jsonl, each without and with generation prompt, and then with enable_thinking false. Needs jinja2.
"""
import copy
import datetime
import glob
import json
import os
import sys

from jinja import environment

TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Wëather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}}]
ASK = {"role": "user", "content": "  How is it in 北京? <|im_end|>\n"}
SYSTEM = {"role": "system", "content": "Be brief.\n"}
THOUGHT = {"role": "assistant", "content": "Fine.", "reasoning_content": "Easy.\n"}


def calls(*names, content=None, text=False):
    given = {"get_weather": {"city": "北京", "days": 2}, "now": {}}
    return {"role": "assistant", "content": content, "tool_calls": [
        {"id": f"call0000{i}", "type": "function", "function": {
            "name": name, "arguments": json.dumps(given[name], ensure_ascii=False) if text else given[name]}}
        for i, name in enumerate(names)]}


def result(i, content):
    return {"role": "tool", "tool_call_id": f"call0000{i}", "name": "get_weather", "content": content}


CHATS = [
    [ASK, calls("get_weather")],
    [ASK, calls("get_weather", text=True), result(0, "{\"t\": 21}")],
    [SYSTEM, ASK, calls("get_weather", content="Let me see."), result(0, "rain"), {"role": "assistant", "content": "It rains."}],
    [ASK, calls("get_weather", "now", text=True), result(0, "sun"), result(1, "noon"), THOUGHT, ASK],
    [SYSTEM, ASK, THOUGHT, ASK, calls("now", content=""), result(0, "noon"), THOUGHT],
    [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]}],
]


def normal(message, as_text):
    """A message as the program gives it to the template; as_text: a call's arguments are text."""
    message = copy.deepcopy(message)
    message["role"] = {"developer": "system"}.get(message["role"], message["role"])
    if isinstance(message["content"], list):
        message["content"] = "".join(part["text"] for part in message["content"])
    if not isinstance(message["content"], str):
        message["content"] = None if message.get("tool_calls") else ""
    for call in message.get("tool_calls", []):
        if isinstance(call["function"]["arguments"], str) and not as_text:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        elif not isinstance(call["function"]["arguments"], str) and as_text:
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    return message


def wants_text(template):
    """Whether the template renders arguments only as text."""
    for as_text in (False, True):
        call = {"role": "assistant", "content": None, "tool_calls": [
            {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]}
        try:
            template.render(messages=[{"role": "user", "content": "a"}, normal(call, as_text)], tools=None, bos_token="", eos_token="",
                            add_generation_prompt=False)
            return as_text
        except Exception:  # of any kind: jinja2 raises Python's own, too
            pass
    return False


def has_tools(chat):
    return "tools" in chat or any(m["role"] == "tool" or m.get("tool_calls") for m in chat["messages"])


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return f"{h:016x}"


def main():
    folder = sys.argv[1]
    env = environment()
    env.globals["strftime_now"] = datetime.datetime.fromtimestamp(1722000000, datetime.timezone.utc).strftime
    with open(folder + "/tool_chats.jsonl", "w") as f:
        for messages in CHATS:
            for tools in ([TOOLS] if messages[-1]["role"] == "user" else [TOOLS, None]):
                f.write(json.dumps({"messages": messages, **({"tools": tools} if tools else {})}, ensure_ascii=False) + "\n")
    chats = [json.loads(line) for name in ("chats", "tool_chats") for line in open(f"{folder}/{name}.jsonl")]
    with open(folder + "/jinja_sums.jsonl", "w") as f:
        for path in sorted(glob.glob(folder + "/jinja/*.jinja")):
            source = open(path).read()
            template = env.from_string(source)
            as_text = wants_text(template)
            sums = []
            for chat in chats:
                for more in ({"add_generation_prompt": False}, {"add_generation_prompt": True},
                             {"add_generation_prompt": True, "enable_thinking": False}):
                    if has_tools(chat) and "tool" not in source:  # the program refuses to drop them
                        sums.append(None)
                        continue
                    try:
                        text = template.render(messages=[normal(m, as_text) for m in chat["messages"]], tools=chat.get("tools"),
                                               bos_token="<|begin_of_text|>", eos_token="</s>", **more)
                        sums.append(fnv(text.encode()))
                        if len(sys.argv) > 2:  # to be read by people
                            print(json.dumps([os.path.basename(path), len(sums), text], ensure_ascii=False))
                    except Exception:  # of any kind: jinja2 raises Python's own, too
                        sums.append(None)
            f.write(json.dumps({"template": os.path.basename(path), "sums": sums}) + "\n")


if __name__ == "__main__":
    main()
