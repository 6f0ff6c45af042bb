"""Asks a served model with the package openai, and prints the answer as it comes. usage: ask.py URL MODEL QUESTION"""

import sys

import openai

url, model, question = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key="none")
stream = client.chat.completions.create(
    model=model, messages=[{"role": "user", "content": question}], temperature=0, max_tokens=40, stream=True
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
print()
