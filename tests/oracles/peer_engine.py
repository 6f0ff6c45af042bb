"""A decode step, prefill and many requests at once by vLLM, as tests/gpu/time_engine.c measures them for assay: Qwen2-7B's shape with random
weights. One line of JSON each.

SEQUENCES (512) in the environment: most sequences that run at once.

usage: peer_engine.py bf16|fp8|fp8-cache WHAT[,WHAT..]    fp8: weights; fp8-cache: the cache too. WHAT: bN, b1t, pre, off (tests/gpu/time_engine.c)
"""
import json
import os
import random
import sys
import time

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
os.environ.setdefault("VLLM_ATTENTION_BACKEND", "FLASH_ATTN")
os.environ.setdefault("VLLM_USE_DEEP_GEMM", "0")

SHAPE = dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=3584, intermediate_size=18944, num_hidden_layers=28,
             num_attention_heads=28, num_key_value_heads=4, vocab_size=152064, rope_theta=1e6, max_position_embeddings=32768,
             rms_norm_eps=1e-6, tie_word_embeddings=False, hidden_act="silu", torch_dtype="bfloat16", bos_token_id=151643,
             eos_token_id=151645, use_sliding_window=False)


def tell(**line):
    print(json.dumps(line), flush=True)


class Bench:
    def __init__(self, precision):
        begin = time.time()
        try:
            from vllm import LLM, SamplingParams
        except ImportError as e:
            print(f"skipped: {e}")
            sys.exit(0)
        self.params = SamplingParams
        folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), "peer_engine_model")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(SHAPE, f)
        more = dict(quantization="fp8") if precision != "bf16" else {}
        if precision == "fp8-cache":
            more["kv_cache_dtype"] = "fp8"
        self.llm = LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, max_model_len=8192, gpu_memory_utilization=0.88,
                       max_num_seqs=int(os.environ.get("SEQUENCES", "512")), max_num_batched_tokens=16384, enable_prefix_caching=False, disable_log_stats=True, **more)
        tell(what="start", by="vllm", precision=precision, seconds=round(time.time() - begin, 1))
        self.run(8, 128, 16)

    def run(self, count, prompt, made, **sampling):
        prompts = [dict(prompt_token_ids=[random.randrange(1000, 150000) for _ in range(prompt)]) for _ in range(count)]
        params = self.params(max_tokens=made, min_tokens=made, ignore_eos=True, detokenize=False, **(sampling or dict(temperature=0)))
        begin = time.time()
        outputs = self.llm.generate(prompts, params, use_tqdm=False)
        took = time.time() - begin
        assert sum(len(o.outputs[0].token_ids) for o in outputs) == count * made
        return took

    def decode(self, what, count, prompt, steps, **sampling):
        self.run(count, prompt, 16, **sampling)
        brief, whole = zip(*((self.run(count, prompt, 16, **sampling), self.run(count, prompt, 16 + steps, **sampling)) for _ in range(3)))
        best = (min(whole) - min(brief)) / steps  # as tests/gpu/time_engine.c
        tell(what=what, by="vllm", batch=count, context=prompt, step_ms=round(best * 1e3, 3), tokens_per_s=round(count / best))

    def many(self, what, count, prompt, made):
        s = self.run(count, prompt, made)
        tell(what=what, by="vllm", requests=count, prompt=prompt, made=made, seconds=round(s, 3), out_per_s=round(count * made / s),
             all_per_s=round(count * (prompt + made) / s))

    def measure(self, what):
        if what == "pre":
            self.many(what, 32, 4096, 1)
        elif what == "off":
            self.many(what, 1024, 1000, 1000)
        elif what == "b1t":
            self.decode(what, 1, 128, 256, temperature=0.7, top_p=0.9)
        elif what == "b1":
            self.decode(what, 1, 128, 256)
        else:
            self.decode(what, int(what[1:]), 512, 128)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("bf16", "fp8", "fp8-cache"):
        sys.exit(__doc__.strip().splitlines()[-1])
    bench = Bench(sys.argv[1])
    for what in sys.argv[2].split(","):
        bench.measure(what)
