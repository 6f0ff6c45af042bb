#!/bin/sh
# `assay load` against the stub server: bad input, schedules, what a run writes and shows, and stops. load_truth.sh has the figures, load_faults.sh the
# faults of servers.
# usage: load.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/load_bed.sh"

again() { "$assay" report "$dir" > out 2> err; [ $? = "$code" ] && says missed out; } # the same verdict as that of the run

# 1. Words that are wrong anywhere
ok "a model that does not exist" refuses 64 'cannot open model nowhere' --model nowhere --rate 1
ok "no server" refuses 64 'no server given' --rate 1
ok "an address without a scheme" refuses 64 'must begin with http' 127.0.0.1:1 --rate 1
ok "an address and a model" refuses 64 'not both' http://h --model m
ok "an address with a query" refuses 64 'has a blank, ? or #' 'http://h?x=y'
ok "an address with the path of requests" refuses 64 'give the address up to /v1' http://h/v1/chat/completions/
ok "an address with a password" refuses 64 'leave them out' http://user:pass1word@h/v1
ok "which is not repeated" eval '! grep -q pass1word err'
ok "an @ in the path is none" refuses 64 'needs --slo' http://h/@x --sweep
ok "an option without effect: steps" refuses 64 '\-\-steps needs --arrival steps' http://h --steps 5,10
ok "rate-end" refuses 64 'needs --arrival ramp' http://h --rate-end 5
ok "burstiness" refuses 64 'needs --arrival gamma' http://h --burstiness 0.5
ok "trace-speed" refuses 64 'needs --trace' http://h --trace-speed 2
ok "think" refuses 64 'needs --users or --turns' http://h --think 2
ok "prefix-groups" refuses 64 'needs --prefix' http://h --prefix-groups 2
ok "arrival in a closed loop" refuses 64 'is for an open loop' http://h --users 2 --arrival constant
ok "a rate of zero" refuses 64 'rate is 0' http://h --rate 0
ok "an unknown set of limits" refuses 64 'chatt' http://h --slo chatt
ok "a sweep without limits" refuses 64 'needs --slo' http://h --sweep
ok "a ramp without its end" refuses 64 'rate-end' http://h --arrival ramp
ok "a wrong length" refuses 64 'normal' http://h --input normal:1
printf '{"timestamp": 5, "input_length": 9, "output_length": 2}\n{"timestamp": 4, "input_length": 9, "output_length": 2}\n' > back.jsonl
ok "a trace whose time goes back" refuses 64 'back.jsonl:2' http://127.0.0.1:1 --trace back.jsonl --plan
# A file as long as a trace of 10^9 requests. What follows its first 20,001 lines must never be read: it is no trace.
awk 'BEGIN { for (i = 0; i < 20001; i++) printf "{\"timestamp\": %d, \"input_length\": 9, \"output_length\": 2}\n", i }' > huge.jsonl
if truncate -s 60G huge.jsonl 2> /dev/null; then
	room=300000 # kB
	if objdump -T "$assay" | grep -q __asan_init; then room=unlimited; fi # ASan reserves terabytes
	little() { (ulimit -d $room && exec timeout 20 "$assay" load http://127.0.0.1:1 --trace huge.jsonl --plan "$@" > out 2> err); }
	little --max-requests 20000
	ok "a trace of 10^9 requests is refused at the limit" [ $? = 64 ]
	ok "with what to do" says 'huge.jsonl:20001: the trace has more than 20000 requests; a shorter duration or a larger --max-requests is needed' err
	ok "or is read up to the duration" little --max-requests 20000 --duration 10
	ok "as its plan says" says '^10000 requests in 10 s' out
else
	untested "a trace of 10^9 requests" "the file system has no sparse files"
fi
ok "a plan sends nothing" expect 0 load http://127.0.0.1:1 --rate 10 --duration 60 --plan
ok "and says how many requests" says 'requests in 60 s' out
ok "a plan of users has a limit, not a number" expect 0 load http://127.0.0.1:1 --users 5 --duration 60 --max-requests 5000 --plan
ok "which it says" says '^5 users for 60 s, .* at most 5000 requests$' out
ok "a warm-up that leaves too little is told before the run" eval 'expect 0 load http://127.0.0.1:1 --duration 30 --warmup 13 --plan && says "warmup 13 s is too long for a schedule of 30 s: 12 s at its begin and at its end are not measured" err'
ok "one that fits is not" eval 'expect 0 load http://127.0.0.1:1 --duration 30 --warmup 12 --plan && [ ! -s err ]'
ok "a plan as JSON" eval 'expect 0 load http://127.0.0.1:1 --rate 10 --duration 60 --arrival constant --input 20 --output 8 --plan --json && says "\"requests\": 600," out'
ok "has its tokens" says '"prompt_tokens": 12000.0' out
ok "and nothing but JSON" sh -c '[ "$(head -c 1 out)$(tail -n 1 out)" = "{}" ]'
printf '{"messages": [{"role": "user", "content": "Say yes."}, {"role": "assistant", "content": "Yes."}]}\n%.0s' 1 2 3 > three.jsonl
ok "the plan of a dataset" expect 0 load http://127.0.0.1:1 --dataset three.jsonl --rate 10 --duration 60 --arrival constant --plan
ok "names its rows, and no lengths that are not its own" says "^600 requests in 60 s, .*; prompts and lengths of answers from the dataset's 3 rows$" out
ok "as JSON too" eval 'expect 0 load http://127.0.0.1:1 --dataset three.jsonl --plan --json && says "\"dataset_rows\": 3" out && ! grep -q tokens out'
for option in dataset tokenizer api-key-file; do
	ok "a plan reads what --$option names" refuses 2 nowhere http://127.0.0.1:1 --plan --$option nowhere
done
for option in expectations ca-file; do
	ok "a plan reads what --$option names" refuses 64 nowhere http://127.0.0.1:1 --plan --$option nowhere
done
ok "a body that is no JSON" refuses 64 '^assay: error: --body is not a JSON object: it ends too early (column 1)' http://127.0.0.1:1 --plan --body '{'
ok "a body with a member of the load test" refuses 64 '\-\-body: "n" cannot be given' http://127.0.0.1:1 --plan --body '{"n": 2}'
ok "a plan that its run would refuse" refuses 64 'a prompt of 3 tokens is impossible' http://127.0.0.1:1 --plan --input 3 --tokenizer "$root/tests/data/tokenizer/qwen.json" --chat-template chatml
ok "a plan of users as JSON has a limit too" eval 'expect 0 load http://127.0.0.1:1 --users 5 --max-requests 5000 --plan --json && says "\"requests_most\": 5000" out && ! grep -q tokens out'

# 2. Servers that cannot be met
ok "nobody listens" refuses 2 'http://127.0.0.1:1/v1/models' http://127.0.0.1:1 --out r-connect --no-telemetry
ok "a name that does not exist" refuses 2 'nowhere.invalid' http://nowhere.invalid:80 --out r-dns --no-telemetry
ok "few descriptors are said before the run" sh -c "ulimit -n 80; '$assay' load http://127.0.0.1:1 --users 500 --out r-fd --no-telemetry 2> err; [ \$? = 2 ] && grep -q 'ulimit -n' err"

# 3. A good server
up --ttft-ms 30 --itl-ms 5
ok "a run" sound --rate 40 --duration 5 --arrival constant --slo ttft=2s,tpot=1s --attainment 0.9
ok "has the requests of its window" holds "$(value requests) == 160"
ok "all answered" holds "$(value answered) == 160 && $(value failed) == 0"
ok "its limits were printed" says 'it stops after 1000000 requests or 5 s' err
ok "and nothing is drawn where there is no terminal" eval '! grep -q " s left" err'
ok "it meets wide limits" holds "$(value slo_share) == 1"
ok "it writes each request" [ "$(grep -c '"scheduled' "$dir/requests.jsonl")" = "$(wc -l < "$dir/requests.jsonl")" ]
ok "a summary" [ -s "$dir/SUMMARY.md" ]
ok "and a page" [ -s "$dir/report.html" ]
ok "JSON" [ -s "$dir/load.json" ]
ok "and CSV" [ -s "$dir/load.csv" ]
ok "prompts from a dataset" sound --dataset three.jsonl --rate 20 --duration 2 --warmup 0
ok "whose rows the first line names" says "prompts and lengths of answers from the dataset's 3 rows; it stops after" err
ok "a body that is no object" refuses 64 'object' "$url" --body '[1]' --out r-body --no-telemetry --idle 0
ok "limits that nothing can meet are missed" missed --rate 20 --duration 3 --slo ttft=1ms
ok "a report is made again" again

# A window without an answer
up --ttft-ms 2500 --itl-ms 5
ok "no answer before the end of the run is no pass" load 2 --rate 10 --duration 1 --warmup 0 --arrival constant --grace 0.2
ok "which the verdict says" says '^[*][*]none of the 10 requests of the measured window was answered' "$dir/SUMMARY.md"
ok "nor are answers that all end after the window" load 2 --rate 10 --duration 1 --warmup 0 --arrival constant --grace 20
ok "with their time" says 'no answer ended within the measured window: half of them took more than 2\.[0-9]* s' "$dir/SUMMARY.md"
ok "and its cause" says '"cause": "no_answer"' "$dir/results.json"
up --ttft-ms 30 --itl-ms 5

# What a terminal shows while it runs
if command -v script > /dev/null 2>&1 && script -qec true /dev/null > /dev/null 2>&1 < /dev/null; then
	script -qec "stty cols 200; '$assay' load $url --rate 40 --duration 3 --warmup 0 --input 20 --output 8 --out shown --no-telemetry --idle 0" typed > /dev/null 2>&1 < /dev/null
	tr '\r' '\n' < typed | sed 's/.*\x1b\[K//' > out
	ok "a terminal sees progress, rate, errors, percentiles and time left" says \
		'^[1-9][0-9]* of 1[0-9]* requests, [1-9][0-9.]*/s, 0 errors | [1-9][0-9]* tokens/s | TTFT P50/95/99 [1-9][0-9.]*/[1-9][0-9.]*/[1-9][0-9.]* ms | E2E [0-9./]* ms | [0-3] s left' out
	ok "which grows" [ "$(sed -n 's/^\([0-9]*\) of .* s left.*/\1/p' out | sort -nu | wc -l)" -gt 1 ]
	ok "the last line is wiped" eval 'tr "\n" " " < typed | sed "s/.* s left//" | grep -q "$(printf "\033\[K")"'
else
	untested "a terminal sees the run" "script is not installed"
fi
ok "a long warm-up is cut" sound --rate 20 --duration 2 --warmup 1
ok "with a warning" says 'warmup 1 s is too long for a schedule of 2 s: 0.8 s' err
ok "users in a closed loop" sound --users 5 --duration 3
ok "are never more than five at once" holds "$(value in_flight_most) <= 5"
ok "and of GPUs that nobody named nothing is said" sh -c '! grep -q server_gpus out'
ok "with the limits of their run" says 'it stops after 1000000 requests or 3 s' err
ok "conversations" sound --rate 4 --duration 4 --turns 3 --warmup 0
ok "have their later turns" says '"turn":2' "$dir/requests.jsonl"
# Each turn adds its message once, so all prompts of a turn have the same number of words.
ok "many conversations at once" sound --rate 30 --turns 4 --think 0.2 --duration 4 --warmup 0
ok "say each thing once" [ "$(sed -n 's/.*"turn":\([0-9]*\).*"prompt_usage":\([0-9]*\).*/\1 \2/p' "$dir/requests.jsonl" | sort -u | wc -l)" = 4 ]
ok "steps" sound --arrival steps --steps 5,20 --duration 4
ok "a ramp" sound --arrival ramp --rate 1 --rate-end 30 --duration 3
ok "bursts" sound --arrival gamma --burstiness 0.3 --rate 20 --duration 3
printf '{"timestamp": 0, "input_length": 30, "output_length": 3, "hash_ids": [1]}\n{"timestamp": 900, "input_length": 40, "output_length": 4, "hash_ids": [1]}\n' > t.jsonl
ok "a trace" sound --trace t.jsonl --warmup 0
ok "with its lengths" says '"output_asked":4' "$dir/requests.jsonl"
ok "answers at once, not streamed" sound --rate 20 --duration 3 --no-stream
ok "completions" sound --rate 20 --duration 3 --endpoint completions
ok "the same seed gives the same schedule" sh -c "'$assay' load $url --rate 9 --duration 9 --seed 4 --plan > one; '$assay' load $url --rate 9 --duration 9 --seed 4 --plan > two; cmp one two"

# A sanitizer's own library must come first, so this is for ordinary builds.
if ! objdump -T "$assay" 2> /dev/null | grep -q __asan_init; then
	stepping() { LD_PRELOAD=$build/tests/load/libclock_steps.so sound "$@"; }
	ok "the wall clock jumps by hours" stepping --rate 20 --duration 3
	ok "and no figure knows" holds "$(value e2e_max_s) < 60 && $(value requests) > 20"
fi
ok "TLS to a server without it" refuses 2 'https://127' "https://${url#http://}" --out r-tls --no-telemetry --idle 0
mkdir -p bin
ln -s "$assay" bin/assay
printf '#!/bin/sh\nfor word; do :; done\nexec sh -c "$word"\n' > bin/ssh # runs the command here
chmod +x bin/ssh
over_ssh() { PATH=$tmp/bin:$PATH sound "$@"; }
ok "telemetry of the server's node, over ssh" over_ssh --node there --rate 10 --duration 2
ok "is in the journal" says cpu_busy_share "$dir/journal.jsonl"
# Both clocks are the same here, so the offset is at most the error, which the stalls of a busy machine make larger.
node_value() { sed -n 's/.*"phase":"node","values":{.*"'"$1"'":\([-0-9.e]*\).*/\1/p' "$dir/journal.jsonl"; }
ok "with the offset of its clock and the error" holds "$(node_value clock_error_s) > 0 && ($(node_value clock_offset_s)) ^ 2 <= $(node_value clock_error_s) ^ 2"
ok "and the cost takes its energy, or says why not" eval '"$assay" cost "$dir" > out 2> err; says "the server.s node" out'
if [ -e "$build/tests/fake/libnvidia-ml.so.1" ]; then # four GPUs on the node, none here
	printf '#!/bin/sh\nfor word; do :; done\nLD_LIBRARY_PATH=%s FAKE_NVML_FILE=%s exec sh -c "$word"\n' "$build/tests/fake" "$root/tests/fake/h100x4.json" > bin/ssh
	ok "a node with GPUs" over_ssh --node there --rate 10 --duration 3
	ok "has their power and memory" eval 'says "\"source\":\"gpu:.*power_w" "$dir/journal.jsonl" && says "memory_used_bytes" "$dir/journal.jsonl"'
	ok "which are the server's GPUs" [ "$(value server_gpus)" = 4 ]
	ok "and their charts" [ -s "$dir/load-memory.svg" ]
	ok "and a table that says whose they are" says "GPUs of the server.s node. The difference of its clock" "$dir/REPORT.md"
	ok "and the cost counts them" eval '"$assay" cost "$dir" > out 2> err; says "the server.s node x 4" out'
	ok "a tiny model" expect 0 make-model --shape tiny --seed 3 --out tiny
	# own OPTION..: a server of our own, on a CPU, beside the node with four GPUs
	own() {
		runs=$((runs + 1)) dir=run$runs
		PATH=$tmp/bin:$PATH "$assay" load --model tiny --serve-options '--device cpu' --out "$dir" --no-telemetry --idle 0 --json --input 20 --output 8 \
			--rate 4 --duration 2 --warmup 0 --node there "$@" > out 2> err
		holds "$(value answered) > 0" && says '"source":"gpu:' "$dir/journal.jsonl"
	}
	ok "a server that assay starts, beside a node with GPUs" own
	ok "has its own GPUs, not those of the node" [ "$(value server_gpus)" = 0 ]
	ok "and --gpus before all" eval 'own --gpus 2 && [ "$(value server_gpus)" = 2 ]'
fi
printf '#!/bin/sh\nexit 255\n' > bin/ssh
ok "a node that does not answer" over_ssh --node there --rate 10 --duration 2
ok "is told" says 'no telemetry of there' err
printf '#!/bin/sh\nexec sh -c "echo hello"\n' > bin/ssh
ok "a node whose assay does not tell its clock" over_ssh --node there --rate 10 --duration 2
ok "is told too" says 'does not tell its clock' err
ok "a node that looks like an option" refuses 64 'not the name' "$url" --node -oProxyCommand=x --out r-node --no-telemetry --idle 0

# So many events that a sender waits for several of them at a time, if the machine is fast enough.
up --ttft-ms 1 --itl-ms 1
ok "very many tokens" sound --users 100 --threads 1 --duration 2 --warmup 0
ok "are all read" holds "$(value failed) == 0 && $(value answered) > 0 && $(value output_tokens) == 8 * $(value answered)"
down

# A server that begins 60 answers in a second: at 180 requests/s half of those of the first second wait for longer than one.
up --ttft-ms 5 --itl-ms 1 --rate-most 60
ok "a sweep" sound --sweep --slo ttft=1s --attainment 0.5 --duration 1 --warmup 0
ok "with the limits of its stages" says 'a stage stops after 1000000 requests or 1 s' err
ok "finds the rate that the server holds" holds "$(value sweep_met_rate) >= 40 && $(value sweep_met_rate) < 200"
ok "and says which rate is met with confidence" holds "$(value sweep_sure_rate) > 0 && $(value sweep_sure_rate) <= $(value sweep_met_rate)"
down

# 4. A stop: what was measured is reported
up --ttft-ms 20 --itl-ms 5
"$assay" load "$url" --out stopped --no-telemetry --idle 0 --rate 30 --duration 600 --warmup 0 --input 20 --output 8 > out 2> err &
run=$!
for _ in $(seq 400); do [ "$(wc -l < stopped/requests.jsonl 2> /dev/null || echo 0)" -gt 20 ] && break; sleep 0.05; done
kill -INT $run
wait $run
code=$?
ok "Ctrl-C ends it" [ "$code" = 2 ]
ok "what was measured is reported" [ -s stopped/SUMMARY.md ]
ok "with the requests" [ "$(wc -l < stopped/requests.jsonl)" -gt 20 ]
ok "and the advice is to begin again" grep -q 'What to do: start a new run' stopped/SUMMARY.md
ok "as in the report" grep -q 'start a new run' stopped/REPORT.md
"$assay" load "$url" --out killed --no-telemetry --idle 0 --rate 30 --duration 600 --warmup 0 --input 20 --output 8 > out 2> err &
run=$!
for _ in $(seq 400); do [ "$(wc -l < killed/requests.jsonl 2> /dev/null || echo 0)" -gt 20 ] && break; sleep 0.05; done
kill -KILL "$(pgrep -P $run -f __load_client)"
wait $run
code=$?
ok "a client process that dies is told" [ "$code" = 2 ]
ok "by its signal" says 'signal 9' err
down
finish
