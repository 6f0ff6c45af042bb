#!/bin/sh
# assay cost: prices of made-up runs with known energy and tokens, held against arithmetic of this script; every refusal.
# usage: cost.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch

# run DIR [NAME=VALUE..]: a run directory. Two H200 idle at 100 W each, then draw watts0 from 20 s, watts1 from 40 s and watts2 from 60 s to
# 80 s. Counters move every 100 ms and are read every 50 ms.
run() {
	dir=$1
	shift
	mkdir -p "$dir"
	awk -v kind=load -v input=6000000 -v cached=600000 -v output=3000000 -v duration=60 -v gpu='NVIDIA H200' -v device_id=590680286 -v memory=150754820096 \
		-v word=--model -v stages=0 -v frozen=0 -v backwards=0 -v counter=1 -v gpus=2 -v watts0=500 -v watts1=500 -v watts2=500 -v price=0 -v doubt=0 -v rapl=0 -v meter=0 -v silent=0 -v silent_to=0 -v node=0 -v rate=0 -v ranks=1 -v card=43 \
		$(printf ' -v %s' "$@" | sed 's/ -v $//') -f "$tmp/run.awk" > "$dir/journal.jsonl"
}
cat > run.awk << 'END'
function watts(t) { return t < 20 || t >= 80 ? 100 : t < 40 ? watts0 : t < 60 ? watts1 : watts2 }
function joules(t,    sum, i, from, to) { # the integral of watts
	sum = 0
	for (i = 0; i < 5; i++) {
		from = edge[i] < t ? edge[i] : t
		to = edge[i + 1] < t ? edge[i + 1] : t
		sum += (to - from) * watts(edge[i])
	}
	return sum
}
function count(t) { # the counter as it is read
	if (frozen && t > frozen) t = frozen
	t = int(t * 10 + 1e-6) / 10
	return 1000 + joules(t) - (backwards && t > backwards ? 900 : 0)
}
function line(type, t, body) { printf "{\"n\":%d,\"t\":%.0f,\"type\":\"%s\",%s}\n", n++, t * 1e9, type, body }
function telemetry(source, host,    from, t, after, e, p, last) {
	for (from = 10; from < 85; from++) {
		after = e = p = ""
		last = from
		for (t = from; t < from + 1 - 1e-6; t += 0.05) {
			after = after sprintf("%s%.0f", after == "" ? "" : ",", (t - last) * 1e9)
			e = e sprintf("%s%.9g", e == "" ? "" : ",", count(t))
			p = p sprintf("%s%.9g", p == "" ? "" : ",", watts(t))
			last = t
		}
		if (host)
			e = "\"cpu_energy_j\":{\"kind\":\"counter\",\"after\":[" after "],\"v\":[" e "]}" (meter && (from < silent || from >= silent_to) ? sprintf(",\"node_power_w\":{\"kind\":\"gauge\",\"after\":[0],\"v\":[%d]}", meter) : "")
		else
			e = (counter ? "\"energy_j\":{\"kind\":\"counter\",\"after\":[" after "],\"v\":[" e "]}," : "") "\"power_w\":{\"kind\":\"gauge\",\"after\":[" after "],\"v\":[" p "]}"
		line("telemetry", from + 1, sprintf("\"source\":\"%s\",\"from\":%.0f,\"signals\":{%s}", source, from * 1e9, e))
	}
}
function phase(name, from, to) { line("phase", to, sprintf("\"case\":0,\"phase\":\"%s\",\"t0\":%.0f,\"t1\":%.0f", name, from * 1e9, to * 1e9)) }
function result(name, values) { line("result", 85, sprintf("\"case\":0,\"phase\":\"%s\",\"values\":{%s}", name, values)) }
BEGIN {
	split("0 20 40 60 80", x, " ")
	for (i = 0; i < 5; i++) edge[i] = x[i + 1]
	edge[5] = 1000
	line("open", 9, "\"schema\":3,\"program\":\"0.1.0\",\"command\":[\"assay\",\"" kind "\",\"" word "\"],\"wall\":\"2026-11-28T09:14:02Z\",\"node\":\"n\",\"suite\":\"" kind "\",\"expectations\":\"builtin\",\"options\":{}" (price ? ",\"price_per_hour\":" price : ""))
	pci[0] = "0000:1b:00.0"; pci[1] = "0000:43:00.0"
	for (i = 0; i < gpus; i++) {
		list = list (i ? "," : "") "\"" pci[i] "\""
		facts = facts (i ? "," : "") "{\"name\":\"" gpu "\",\"uuid\":\"GPU-" i "\",\"serial\":\"" i "\",\"pci\":\"" pci[i] "\",\"slot\":\"\",\"pci_device\":" device_id ",\"status\":\"ok\",\"granted\":true,\"cuda_index\":" i ",\"nvml_index\":" i ",\"facts\":{\"sm_count\":132,\"cc\":90,\"memory_bytes\":" memory ",\"bus_bits\":6016,\"sm_clock_max_mhz\":1980,\"memory_clock_max_mhz\":3201,\"power_limit_w\":700,\"power_limit_default_w\":700}}"
	}
	if (node) list = facts = "" # the telemetry is that of another machine
	line("machine", 9.1, "\"facts\":{\"format\":1,\"live\":false,\"label\":\"\",\"layer\":\"software\",\"system\":{\"hostname\":\"n\",\"page_bytes\":4096},\"cpu\":{\"model\":\"CPU\",\"vendor\":\"GenuineIntel\",\"sockets\":1,\"threads\":16,\"usable\":16,\"affinity\":\"0-15\",\"isa\":[\"sse2\"],\"caches\":[],\"numa\":[]},\"memory\":{\"total_bytes\":206158430208},\"gpus\":[" facts "],\"driver\":{\"version\":\"580.159.04\",\"cuda_version\":\"13.0\"},\"software\":{}}")
	line("plan", 9.2, "\"hash\":\"\",\"suite\":\"" kind "\",\"fields\":{\"" kind "\":[]},\"steps\":[{\"together\":false,\"cases\":[{\"case\":0,\"key\":\"" kind " x\",\"probe\":\"" kind "\",\"engine\":\"\",\"options\":{},\"kind\":\"" (kind == "memory" ? "timed" : "job") "\",\"target\":\"node\",\"gpus\":[" list "],\"phases\":\"once\",\"require\":\"measured\",\"limit_ms\":0,\"group\":\"" kind "\",\"work\":{\"limit\":\"\"},\"skip\":null}]}]")
	line("begin", 9.3, "\"case\":0,\"attempt\":1,\"pid\":0")
	for (i = 0; i < gpus; i++) telemetry("gpu:" pci[i], 0)
	if (rapl) telemetry("host", 1)
	if (kind == "load") {
		phase("window", 20, 80)
		for (i = 0; i < stages; i++) phase("stage " i, 20 + 20 * i, 40 + 20 * i)
		if (stages) {
			result("stage 0", "\"prompt_tokens\":4000000,\"output_tokens\":800000,\"cached_tokens\":0")
			result("stage 1", "\"prompt_tokens\":1000000,\"output_tokens\":1800000,\"cached_tokens\":0")
			result("stage 2", "\"prompt_tokens\":7000000,\"output_tokens\":1200000,\"cached_tokens\":1000000")
		}
		if (node) {
			phase("node", 9.4, 85)
			result("node", "\"clock_offset_s\":1.5,\"clock_error_s\":" node)
		}
		phase("once", 9.4, 85)
		result("once", "\"prompt_tokens\":" input ",\"output_tokens\":" output ",\"cached_tokens\":" cached ",\"window_s\":" duration (rate ? sprintf(",\"output_tokens_per_s\":%d,\"total_tokens_per_s\":%d", rate, 3 * rate) : "") (doubt ? ",\"untrusted\":[\"the server reported other token counts\"]" : ""))
	} else if (kind == "serve") {
		phase("serve", 20, 80)
		phase("once", 9.4, 85)
		result("once", "\"prompt_tokens\":" input ",\"tokens\":" output ",\"cache_hit_share\":0.1,\"engine_starts\":1")
	} else if (kind == "train") {
		phase("load", 9.5, 12)
		result("load", gpus ? "\"device\":\"NVIDIA H200 (0000:" card ":00.0)\"" : "\"device\":\"cpu\"")
		for (i = 0; i <= 30; i++)
			line("telemetry", 20 + 2 * i, sprintf("\"source\":\"train\",\"from\":%.0f,\"signals\":{\"step\":{\"kind\":\"gauge\",\"after\":[0],\"v\":[%d]}}", (20 + 2 * i) * 1e9, i))
		phase("once", 10, 84)
		result("once", "\"steps\":30,\"ranks\":" ranks ",\"tokens\":" output ",\"tokens_per_s\":50000,\"steady_steps\":28" (counter ? ",\"power_w\":" watts1 ",\"energy_j\":" watts1 * 56 : ""))
	}
	line("end", 85, "\"case\":0,\"ending\":\"done\",\"status\":\"ok\",\"cause\":\"\",\"text\":\"\"")
	line("close", 85, "\"ending\":\"done\",\"text\":\"\"")
}
END
cat > prices.yaml << 'END'
sources:
  s: {title: "a list", date: 2026-10-01}
  old: {title: "an old list", date: 2026-05}
electricity:
  - {name: us, dollars_per_kwh: 0.16, pue: 1.5, source: s}
gpu_hours:
  - {sku: h200-sxm, low: 2.5, high: 7, source: old}
capital:
  - {sku: h200-sxm, low: 28000, high: 42000, years: 3, source: s}
apis:
  - {model: big, input: 2, output: 10, cached_input: 0.2, source: s}
END
# cost CODE ARGS..: by these prices, as CSV, on a fixed day
cost() {
	want=$1
	shift
	expect "$want" cost --prices prices.yaml --date 2026-11-28 --format csv "$@"
}
# near TABLE ROW COLUMN FORMULA [SHARE]: the value in out is that of the formula, within 0.01 % or the share
near() {
	awk -F, -v table="$1" -v row="$2" -v column="$3" -v expected="$(awk "BEGIN { printf \"%.12g\", $4 }")" -v share="${5:-0.0001}" '
		{ label = $3; value = $5; name = $4 }
		$0 ~ /,"/ { # a label with a comma is quoted
			rest = $0; sub(/^[^,]*,[^,]*,/, "", rest)
			if (rest ~ /^"/) { sub(/^"/, "", rest); label = rest; sub(/".*/, "", label); sub(/^[^"]*",/, "", rest); split(rest, f, ","); name = f[1]; value = f[2] }
		}
		$2 == table && index(label, row) == 1 && name == column { found = 1; print label, value, expected; if (value == "" || value / expected - 1 > share || value / expected - 1 < -share) bad = 1; exit }
		END { exit !found || bad }' out
}
# absent TABLE ROW COLUMN: the value is in no line
absent() { grep ",$1," out | grep -- "$2" | grep -q ",$3,,"; }

run load
ok "a load has prices" cost 0 load
ok "its energy is that of the counters, over the exact window" near energy "2 GPUs" joules "2 * 500 * 60" 0.002
ok "with joules per token" eval 'near energy_per_token "per token" joules "60000 / 9e6" 0.002 && near energy_per_token "per output token" joules "60000 / 3e6" 0.002'
ok "beside the idle power" near energy "idle" watts 200
ok "electricity counts energy, PUE and price" near price "electricity us" blended "60000 / 3.6e6 * 0.16 * 1.5 / 9" 0.002
ok "GPU-hours count both GPUs" eval 'near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 60 / 9" && near price "GPU-hours, h200-sxm low" tokens_per_dollar "9e6 / (2 * 2.5 / 60)"'
ok "capital counts years and utilization" near price "capital low \$56000 over 3 years, 25 % used" blended "4 * 56000 / (3 * 8760 * 60) / 9"
ok "an API costs what the run's mix costs there, cached input apart" near break_even big api "(5.4 * 2 + 0.6 * 0.2 + 3 * 10) / 9"
ok "renting breaks even at a utilization" near break_even big rent_low "2 * 2.5 / 60 / 40.92"
ok "buying at a volume" near break_even big buy_low "56000 / ((40.92 - 0.004) / 9)"
ok "the cached share has prices of its own" near cache big hit_90 "(0.6 * 2 + 5.4 * 0.2 + 30) / 9"
ok "the sensitivity is that of each input" near sensitivity "rented: price of the hour" spread 0.4
ok "every row of a price has its date" eval '[ "$(grep -c ",price,.*,2026-" out)" -gt 20 ] && ! grep ",price," out | grep -v ",2026-"'
ok "old prices are marked" eval 'grep "GPU-hours" out | grep -q ",2026-05,yes,an old list," && ! grep "capital" out | grep -q ",yes,"'
ok "and told" says "2 of 12 prices are more than 90 days old on 2026-11-28" err
ok "a day at which they are new has no warning" eval 'expect 0 cost --prices prices.yaml --date 2026-06-01 load && [ ! -s err ] && ! says " old$" out'
ok "without stages there is no price of input" eval 'says "a split needs at least 3 stages" out && ! says "^  *input  *output " out'
ok "text says run, device, tokens and prices" eval 'says "^load: load on NVIDIA H200 x 2, window of 60 s" out && says "6000000 input tokens (10.0 % cached), 3000000 output tokens, ratio 2" out && says "^prices: prices.yaml" out'
run doubted doubt=1
ok "an untrusted run is priced, but inconclusive" eval 'expect 2 cost --prices prices.yaml --date 2026-11-28 doubted && says "doubted is untrusted, so its prices may be wrong: the server reported other token counts" err'
ok "the tables say so too" says 'UNTRUSTED, so the prices may be wrong' out
ok "and JSON" eval 'expect 2 cost --prices prices.yaml --date 2026-11-28 --json doubted && says "\"untrusted\": \"the server reported" out'
ok "JSON holds the same" eval 'expect 0 cost --prices prices.yaml --date 2026-11-28 --json load && says "\"schema\": \"assay.cost\"" out && says "\"tokens_per_dollar\":" out && says "\"date\": \"2026-05\"" out && says "\"old\": true" out'
ok "several runs are tables one after the other" eval 'run second && expect 0 cost --prices prices.yaml load second && [ "$(grep -c "^Energy of the window" out)" = 2 ]'
ok "the built-in prices work too" eval 'expect 0 cost load && says "^prices: prices/prices.yaml" out && says "GPU-hours, h200-sxm low" out && says "gpt-5-mini" out'
ok "one API alone" eval 'expect 0 cost load --api gpt-5-mini && says "gpt-5-mini" out && ! says "claude" out'

run staged stages=3 watts0=400 watts1=500 watts2=600 input=12000000 cached=1000000 output=3800000
ok "stages with different ratios give the split" cost 0 staged
ok "of prefill" near energy_per_token "prefill" joules 0.002 0.01
ok "and decode" near energy_per_token "decode" joules 0.01 0.01
ok "which divides every price" near price "GPU-hours, h200-sxm low" input "2 * 2.5 / 60 * 22000 / 60000 / 12" 0.01
run a watts0=400 watts1=400 watts2=400 input=12000000 output=2400000 cached=0
run b input=3000000 output=5400000 cached=0
run c watts0=600 watts1=600 watts2=600 input=18000000 output=3600000 cached=0
ok "so do runs of one server" eval 'cost 0 a b c --same-server && near energy_per_token "prefill" joules 0.002 0.01 && near energy_per_token "decode" joules 0.01 0.01'
ok "unless they are too alike" eval 'cost 0 a c c --same-server && says "almost the same ratio of input to output" out'

run frozen frozen=50
ok "a frozen counter gives no energy, and the reason" eval 'cost 0 frozen && says "the energy counter stood still for" out && absent price "electricity us" blended'
ok "and leaves the prices of time" near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 60 / 9"
run backwards backwards=50
ok "so does one that runs backwards" eval 'cost 0 backwards && says "ran backwards or wrapped" out'
run nocounter counter=0
ok "and one that is not there" eval 'cost 0 nocounter && says "no energy counter" out && near energy "the same, by integrated power" joules 60000 0.001'
run apart duration=30
ok "a window that is not that of the tokens gives no energy" eval 'cost 0 apart && says "the tokens were counted over 30.0 s, and the journal.s window has 60.0 s" out'

run away word=http://server:8000
ok "a server elsewhere has no energy and no GPUs here" eval 'cost 2 away && says "give --sku and --gpus" out && says "give --node-power" out && says "no price is known" err'
ok "unless they are given" eval 'cost 0 away --sku h200-sxm --gpus 8 --node-power 6kW && near price "GPU-hours, h200-sxm low" blended "8 * 2.5 / 60 / 9" && near price "electricity us" blended "6 * 0.16 * 1.5 / 60 / 9"'
run near_by word=http://127.0.0.1:8000/v1
ok "a server on this machine has" eval 'cost 0 near_by && near price "electricity us" blended "60000 / 3.6e6 * 0.16 * 1.5 / 9" 0.002'

run node word=http://server:8000 node=0.001 rapl=1
ok "a server elsewhere whose node was sampled has its energy" eval 'cost 0 node && near price "electricity us" blended "90000 / 3.6e6 * 0.16 * 1.5 / 9" 0.002 && near energy "2 GPUs" joules 60000 0.002'
ok "but no type of GPU" says "the type of the server.s GPUs is not known: give --sku" out
ok "which the user gives" eval 'cost 0 node --sku h200-sxm && near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 60 / 9" && near price "electricity us" blended "90000 / 3.6e6 * 0.16 * 1.5 / 9" 0.002'
ok "and the number of those that the server used" eval 'cost 0 node --sku h200-sxm --gpus 1 && near price "GPU-hours, h200-sxm low" blended "2.5 / 60 / 9"'
ok "a meter still counts before the counters" eval 'cost 0 node --node-power 6kW && near price "electricity us" blended "6 * 0.16 * 1.5 / 60 / 9"'
error_j() { sed -n 's/.*,energy,"2 GPUs, by counter",error_joules,\([0-9.]*\),.*/\1/p' out; }
run tunnel word=http://127.0.0.1:8000 node=0.5
ok "so does one that is reached through a tunnel" eval 'cost 0 tunnel && near energy "2 GPUs" joules 60000 0.02'
ok "the error of its clock is part of the energy's" eval 'wide=$(error_j); cost 0 node && awk "BEGIN { exit !($wide > $(error_j) + 2 * 0.5 * 400) }"'
run node_cpu word=http://server:8000 node=0.001 gpus=0
ok "a node without GPUs and RAPL has no energy" eval 'cost 2 node_cpu && says "the server.s node has no telemetry of GPUs" out'
ok "and GPUs that are only named have none either" eval 'cost 0 node_cpu --sku h200-sxm --gpus 8 && says "no energy of the GPUs was recorded" out && near price "GPU-hours, h200-sxm low" blended "8 * 2.5 / 60 / 9"'

run cpu gpus=0
ok "a run on the CPU without RAPL has no price" eval 'cost 2 cpu && says "(RAPL) was not readable" out && says "the run used no GPU: give --price-per-hour" out'
ok "but that of its hours" eval 'cost 0 cpu --price-per-hour 0.6 && near price "machine-hours" blended "0.01 / 9"'
ok "and that of its purchase" eval 'cost 0 cpu --capital 3000 --years 5 && near price "capital, stated \$3000 over 5 years, 100 %" blended "3000 / (5 * 8760 * 60) / 9"'
run cpu_rapl gpus=0 rapl=1 price=1.2
ok "RAPL gives it electricity" eval 'cost 0 cpu_rapl && near price "electricity us" blended "30000 / 3.6e6 * 0.16 * 1.5 / 9" 0.002'
ok "and a price stated with the run counts" near price "machine-hours, stated \$1.2" blended "0.02 / 9"
run both rapl=1
ok "the host's energy is added to that of the GPUs" eval 'cost 0 both && near energy "counted: GPUs" joules 90000 0.002'
node='whole node, by its power meter (in no figure above)'
ok "a machine without a power meter says so" says "$node.*no power meter (ACPI, hwmon) of the run.s machine" out
run metered rapl=1 meter=1900
ok "a power meter of the node has its own row" eval 'cost 0 metered && near energy "$node" watts 1900 && near energy "$node" joules "60 * 1900"'
ok "which is in no sum" near energy "counted: GPUs" joules 90000 0.002
run skipped rapl=1 meter=1900 silent=40 silent_to=42
ok "two readings of the meter may be absent" eval 'cost 0 skipped && near energy "$node" watts 1900'
run paused rapl=1 meter=1900 silent=40 silent_to=44
ok "four of them may not" eval 'cost 0 paused && says "$node.*of the run.s machine has no reading for 5 s of the window, allowed 3 s" out'
run fading rapl=1 meter=1900 silent=23 silent_to=90
ok "nor may the end of the window" eval 'cost 0 fading && says "$node.*has no reading for 58 s" out'
run unmetered rapl=1 meter=1900 counter=0
ok "GPUs of unknown energy do not show what the meter measures" eval 'cost 0 unmetered --price-per-hour 1; says "$node.*nothing shows" out'
ok "a meter of a server elsewhere was not read" eval 'cost 2 away; says "$node.*another machine, whose power meter was not read" out'
ok "unless the node was sampled" eval 'cost 0 node && says "$node.*of the server.s node was readable" out'
run board rapl=1 meter=1400
ok "a meter that shows less than the parts is not the node's" eval 'cost 0 board && says "$node.*1400 W, less than the counted parts" out'
ok "idle time adds idle energy" eval 'cost 0 load --idle-share 0.5 && near price "electricity us" blended "(60000 + 200 * 60) / 3.6e6 * 0.16 * 1.5 / 9" 0.002'

run waves rate=60000
ok "tokens are those that arrived in the window of the energy" eval 'cost 0 waves && near energy_per_token "per output" joules "60000 / (60 * 60000)" 0.002 && near energy_per_token "per token" joules "60000 / (3 * 60 * 60000)" 0.002'
ok "so are those of the price" near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 60 / (3 * 60 * 0.06)"
ok "the cached share stays that of the requests" eval 'expect 0 cost waves && says "(10.0 % cached)" out'

run serve kind=serve
ok "a server's run" eval 'cost 0 serve && near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 60 / 9" && near break_even big api "40.92 / 9"'
run train kind=train
ok "a training run, on the GPU that it used" eval 'cost 0 train && near energy_per_token "per trained token" joules "500 / 50000" 0.002'
ok "per million trained tokens" near price "GPU-hours, h200-sxm low" blended "2.5 / 3600 / 50000 * 1e6"
ok "and as a whole" eval 'near run "GPU-hours, h200-sxm low" dollars "2.5 * 74 / 3600" && near run "electricity us" dollars "(10 * 100 + 60 * 500 + 4 * 100) / 3.6e6 * 0.24" 0.005'


# Two ranks on GPUs of one node. Each journal has the telemetry of both GPUs, but counts for its own rank only.
ranks() { # DIR NAME=VALUE..: of rank 1
	dir=$1
	shift
	run "$dir" kind=train ranks=2 card=1b
	run "$dir/nodes/n/rank-1" kind=train ranks=2 watts0=300 watts1=300 watts2=300 "$@"
}
ranks both
ok "a run of two ranks counts both GPUs" eval 'cost 0 both && near energy_per_token "per trained token" joules "(500 + 300) / 50000" 0.002 && near energy "2 GPUs" watts "500 + 300" 0.002'
ok ".. in its price" near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 3600 / 50000 * 1e6"
ok ".. and in that of the whole run" eval 'near run "GPU-hours, h200-sxm low" dollars "2 * 2.5 * 74 / 3600" && near run "electricity us" dollars "(10 * 200 + 60 * 800 + 4 * 200) / 3.6e6 * 0.24" 0.005'
ok ".. and says so" eval 'expect 0 cost both && says "both: train on NVIDIA H200 x 2" out'
ok "so does its report" eval 'expect 0 report both && says "energy_per_token *16.0 mJ .*all ranks" out && says "energy_j *44.8 kJ .*all ranks" out'
ranks blind counter=0
ok "a rank without readings makes the energy unknown" eval 'cost 0 blind && absent energy_per_token "per trained token" joules && says "GPUs: rank 1 on n: the device has no energy counter" out'
ok ".. but not the price of the hours" near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 3600 / 50000 * 1e6"
ok ".. in the report too" eval 'expect 0 report blind && says "energy_per_token *– *not known: rank 1 on n: no energy of its GPU was recorded" out'
ranks lost
rm -r lost/nodes
ok "so does a rank whose journal is missing" eval 'cost 0 lost && absent energy_per_token "per trained token" joules && says "GPUs: rank 1: its journal is not in the run directory" out'
ok ".. which is counted among the GPUs" near price "GPU-hours, h200-sxm low" blended "2 * 2.5 / 3600 / 50000 * 1e6"
ok ".. in the report too" eval 'expect 0 report lost && says "not known: rank 1: its journal is not in the run directory" out'
ranks foreign
sed -i 's/"hash":""/"hash":"ab"/' foreign/nodes/n/rank-1/journal.jsonl
ok "a journal of another run does not count" eval 'cost 0 foreign && says "GPUs: rank 1 on n: its journal is of another run" out'
ranks earlier
sed -i 's/"steps":30,/"steps":20,/' earlier/nodes/n/rank-1/journal.jsonl
ok "nor does that of an earlier attempt" eval 'cost 0 earlier && says "GPUs: rank 1 on n: its journal is of an earlier attempt" out'
cp -r both/nodes/n earlier/nodes/o
ok ".. beside that of the last one" eval 'cost 0 earlier && near energy_per_token "per trained token" joules "(500 + 300) / 50000" 0.002'
ranks cut
sed -i '/"type":"result".*"once"/,$d;/"phase":"once"/d' cut/nodes/n/rank-1/journal.jsonl
ok "a journal that ends early has no energy" eval 'cost 0 cut && says "GPUs: rank 1 on n: its journal ends early" out'
ranks torn
echo "{" > torn/nodes/n/rank-1/journal.jsonl
ok "nor has one that cannot be read" eval 'cost 0 torn && absent energy_per_token "per trained token" joules && says "GPUs: rank 1 on n: its journal " out'
run cpus kind=train ranks=2 gpus=0 rapl=1
run cpus/nodes/n/rank-1 kind=train ranks=2 gpus=0 rapl=1
ok "ranks on the CPU of one node share its energy" eval 'cost 0 cpus --price-per-hour 1 && near energy_per_token "per trained token" joules "500 / 50000" 0.002'
run nodes kind=train ranks=2 gpus=0 rapl=1
run nodes/nodes/o/rank-1 kind=train ranks=2 gpus=0 rapl=1 watts0=300 watts1=300 watts2=300
sed -i 's/"node":"n"/"node":"o"/' nodes/nodes/o/rank-1/journal.jsonl
ok "of two nodes both count" eval 'cost 0 nodes --price-per-hour 1 && near energy_per_token "per trained token" joules "800 / 50000" 0.002'
run dark kind=train ranks=2 gpus=0
run dark/nodes/n/rank-1 kind=train ranks=2 gpus=0
ok "ranks on a CPU without RAPL have no energy" eval 'cost 0 dark --price-per-hour 1 && absent energy_per_token "per trained token" joules && says "the energy of the CPU (RAPL) was not readable" out'

run letters kind=train card=1B
ok "a driver that writes an address in capitals names the same GPU" eval 'cost 0 letters && near energy_per_token "per trained token" joules "500 / 50000" 0.002'

run other gpu=NVIDIA_L40S device_id=649400542 memory=48305799168
ok "a GPU without a price says so" eval 'cost 0 other && says "the prices have no GPU-hours of .*: give --price-per-hour" out'
run none output=0 input=0
ok "a run without tokens" eval 'cost 2 none && says "none: the run counted no tokens" err'
run memory kind=memory
ok "a run of something else" eval 'cost 64 memory && says "memory: a run of memory; cost reads runs of load, serve and train" err'
ok "no run" eval 'expect 64 cost && says "no run directory given" err'
ok "a run that is not there" eval 'cost 64 no/such && says "no/such" err'
mkdir begun && head -n 1 load/journal.jsonl > begun/journal.jsonl
ok "a run that was killed before its job began" eval 'cost 64 begun && says "begun: its journal ends before the job began" err'
ok "an unknown electricity, with the nearest" eval 'expect 64 cost load --electricity us-averag && says "did you mean us-average" err'
ok "an unknown API" eval 'expect 64 cost load --api gpt-5-minni && says "did you mean gpt-5-mini" err'
ok "an unknown SKU" eval 'expect 64 cost load --sku h200-sxn && says "did you mean h200-sxm" err'
ok "GPUs without their SKU" eval 'expect 64 cost load --gpus 4 && says "gpus needs --sku" err'
ok "one GPU is the default" eval 'cost 0 away --sku h200-sxm && near price "GPU-hours, h200-sxm low" blended "2.5 / 60 / 9"'
ok "a date that is none" eval 'expect 64 cost load --date yesterday && says "date yesterday is not YYYY-MM-DD" err'
ok "two forms" eval 'expect 64 cost load --json --format csv && says "exclude each other" err'
sed 's/high: 7/hihg: 7/' prices.yaml > bad.yaml
ok "a mistake in the prices has its line" eval 'expect 64 cost load --prices bad.yaml && says "bad.yaml:7: unknown key \"hihg\", did you mean \"high\"" err'
ok "prices that are not there" eval 'expect 64 cost load --prices no.yaml && says "no.yaml" err'
ok "the roofline reads the same file" eval 'expect 64 roofline "$root/tests/data/report/h200" --prices bad.yaml --out r && says "bad.yaml:7" err && [ ! -d r ]'
mkdir priced && sed "s/,\"price_per_hour\":3.59//" "$root/tests/data/report/h200/journal.jsonl" > priced/journal.jsonl
ok "and prints its date" eval 'expect 0 roofline priced --prices prices.yaml --out r || expect 1 roofline priced --prices prices.yaml --out r; says "2.50–7.00" r/REPORT.md && says "an old list, 2026-05: more than 90 days before the run" r/REPORT.md && says "\"old\": true" r/manifest.json'
echo "1..$n"
exit "$fail"
