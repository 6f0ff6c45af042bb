#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What transformers makes of conversations by the Jinja templates of the families.

usage: templates.py BFCL SMOLLM2.gguf OUT     (BFCL: bfcl-eval's package folder; OUT: tests/data/template)

Jinja texts come from where they are carried: Qwen3's, Llama 3.1's and one that is Qwen2.5's but for the default system turn
from bfcl-eval's handlers, SmolLM2's from the GGUF. Writes OUT/chats.jsonl, the conversations, and OUT/cases.jsonl: {"template",
"chat": line, "prompt", "no_thinking", "sum": 64-bit FNV-1a of the text, "trained": [[begin, end], ..] in bytes}. Needs
transformers, jinja2, gguf.
"""
import copy
import itertools
import json
import re
import sys
import textwrap

from gguf import GGUFReader
from transformers.utils.chat_template_utils import _compile_jinja_template

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
QWEN2 = ("{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}"
         "{% endif %}" + CHATML)
LLAMA3 = ("{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + "
          "message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}"
          "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")


def carried(path):
    """The Jinja text in a handler's docstring."""
    with open(path) as f:
        text = re.search(r'"chat_template":\n(.*?)"""', f.read(), re.S).group(1)
    return textwrap.dedent(text).strip("\n").replace("\\n", "\\n")


def qwen3_instruct(qwen3):
    """Without thoughts: what Qwen3's template has between the turn's begin and its calls."""
    begin = qwen3.index("        {%- set reasoning_content = '' %}")
    end = qwen3.index("        {%- if message.tool_calls %}")
    text = qwen3[:begin] + "        {{- '<|im_start|>' + message.role + '\\n' + content }}\n" + qwen3[end:]
    return re.sub(r"\n *\{%- if enable_thinking.*?endif %\}", "", text, flags=re.S)


def templates(bfcl, gguf):
    handlers = bfcl + "/model_handler/local_inference/"
    default = "You are a helpful assistant designed to assist with the user query by making one or more function calls if needed."
    qwen3 = carried(handlers + "qwen_fc.py")
    llama31 = carried(handlers + "llama_3_1.py")
    field = GGUFReader(gguf).fields["tokenizer.chat_template"]
    return {
        "chatml": CHATML, "qwen2": QWEN2, "llama3": LLAMA3, "smollm2": field.contents(), "qwen3": qwen3,
        "qwen3-instruct": qwen3_instruct(qwen3), "llama3.1": llama31,
        "qwen2.5": carried(handlers + "arch.py").replace(
            default, "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
    }


TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather — \"now\" <b>&'\u007f", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "enum": ["Zürich", "北京"]},
                                         "days": {"type": "integer", "default": 3}}, "required": []}}},
    {"type": "function", "function": {"name": "f", "parameters": {}, "x": [1.0, 0.1, 1e-5, 1e16, 123456789.125, -2.5e-7, True,
                                                                          None, [], "\u0001\t\\/"]}},
]


def say(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


SYSTEM = say("system", "Be brief.")
ASK, ASK2 = say("user", "  What's up?\n"), say("user", "And in 北京?")
TELL, TELL2 = say("assistant", "Not much.\n"), say("assistant", "")
THINK = say("assistant", "<think>\nHm, \nlet me see.\n</think>\n\nIt is 5.")
REASON = say("assistant", "Six.", reasoning_content="\nBecause.\n")
CALL = say("assistant", "", tool_calls=[call("get_weather", {"city": "北京", "days": 2})])
CALL_SAID = say("assistant", "Let me look.", tool_calls=[call("f", {})])
CALLS = say("assistant", "", tool_calls=[call("f", {"x": [1, 2.5]}), call("get_weather", {"city": "a\"b"})])
GIVE, GIVE2 = say("tool", "{\"t\": 21}"), say("tool", "rain\nwind")
PLAIN = [
    [ASK], [SYSTEM, ASK], [ASK, TELL], [SYSTEM, ASK, TELL, ASK2], [SYSTEM, ASK, TELL, ASK2, TELL2], [SYSTEM],
    [ASK, SYSTEM, TELL], [ASK, THINK], [ASK, THINK, ASK2, THINK], [ASK, REASON, ASK2, REASON], [ASK, TELL, ASK2, TELL],
    [say("user", "<tool_response>x</tool_response>"), TELL, TELL2], [ASK, TELL, TELL2, REASON, TELL],
    [ASK, say("assistant", "a</think>b<think>c</think>\n\nd")], [ASK, say("assistant", "<think>a<think>\nb</think>")],
]
WITH_CALLS = [
    [ASK, CALL], [SYSTEM, ASK, CALL, GIVE], [ASK, CALL, GIVE, TELL], [SYSTEM, ASK, CALL_SAID, GIVE, TELL, ASK2, CALL, GIVE2, TELL],
    [ASK, CALL_SAID, GIVE, CALL, GIVE2], [ASK, CALL, GIVE, THINK],
]
SEVERAL_CALLS = [[ASK, CALLS, GIVE, GIVE2, TELL], [SYSTEM, ASK, CALLS], [ASK, CALLS, GIVE, GIVE2, REASON, ASK2, CALLS]]


def trained(name, text):
    """What the assistant says and the token that ends it, found in the text."""
    if name.startswith("llama"):
        spans = re.finditer(r"<\|start_header_id\|>assistant<\|end_header_id\|>\n\n(.*?<\|eot_id\|>)", text, re.S)
    else:
        spans = re.finditer(r"<\|im_start\|>assistant\n(.*?<\|im_end\|>)", text, re.S)
    return [[len(text[:m.start(1)].encode()), len(text[:m.end(1)].encode())] for m in spans]


def conversations(name):
    yield from ((m, None) for m in PLAIN)
    if name not in ("qwen2.5", "qwen3", "qwen3-instruct", "llama3.1"):
        return
    several = [] if name == "llama3.1" else SEVERAL_CALLS
    for messages, tools in itertools.product(PLAIN[:6] + WITH_CALLS + several, (TOOLS, None)):
        if tools and name == "llama3.1" and messages == [SYSTEM]:
            continue
        yield messages, tools


def fnv(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return f"{h:016x}"


def main():
    bfcl, gguf, out = sys.argv[1:4]
    chats = {}
    with open(out + "/cases.jsonl", "w") as f:
        for name, jinja in templates(bfcl, gguf).items():
            compiled = _compile_jinja_template(jinja)
            for (messages, tools), prompt in itertools.product(conversations(name), (False, True)):
                for off in (False, True) if name == "qwen3" and prompt else (False,):
                    more = {"tools": tools} if tools or name != "llama3.1" else {}
                    if off:
                        more["enable_thinking"] = False
                    text = compiled.render(messages=copy.deepcopy(messages), add_generation_prompt=prompt,
                                           bos_token="<|begin_of_text|>", **more)
                    chat = json.dumps({"messages": messages, **({"tools": tools} if tools else {})}, ensure_ascii=False)
                    row = {"template": name, "chat": chats.setdefault(chat, len(chats)), "prompt": prompt, "no_thinking": off,
                           "sum": fnv(text.encode()), "trained": trained(name, text)}
                    f.write(json.dumps(row) + "\n")
                    if len(sys.argv) > 4:  # to be read by people
                        print(json.dumps({**row, "text": text}, ensure_ascii=False))
    with open(out + "/chats.jsonl", "w") as f:
        f.writelines(chat + "\n" for chat in chats)


if __name__ == "__main__":
    main()
