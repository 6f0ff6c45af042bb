# bash completion for assay; printed by the program from its tables
_assay_words()
{
	COMPREPLY=($(compgen -W "$1" -- "$2"))
	[[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace 2> /dev/null
}
_assay()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words= key=
	if [ "$COMP_CWORD" -eq 1 ]; then
		_assay_words 'archive check compare comprehensive cost demo deploy eval exporter generate health history info ladder launch list load make-model merge probe profile quantize report roofline rows serve tokens top train help --help --version' "$cur"
		return
	fi
	if [ "${COMP_WORDS[1]}" = help ]; then
		_assay_words 'archive check compare comprehensive cost demo deploy eval exporter generate health history info ladder launch list load make-model merge probe profile quantize report roofline rows serve tokens top train ' "$cur"
		return
	fi
	# the words after -- are a program, or the command that ranks run
	case "${COMP_WORDS[1]} $prev" in
	'launch --') _assay_words 'check probe' "$cur"; return ;;
	'profile --') COMPREPLY=($(compgen -c -- "$cur")); return ;;
	esac
	# the shell splits name=value at the sign
	if [ "$cur" = = ]; then cur= key=$prev
	elif [ "$prev" = = ]; then key=${COMP_WORDS[COMP_CWORD - 2]}
	else case $prev in --*) key=$prev ;; esac
	fi
	case ${COMP_WORDS[1]}:$key in
	check:--suite) words=' acceptance attention comprehensive-devices comprehensive-links comprehensive-stress full health-active health links quick roofline stress training' ;;
	check:--target) words=' cpu cpu-each-numa gpu pair pair-once node node-doubling team team-doubling all' ;;
	check:--format) words='text markdown html json csv' ;;
	compare:--as) words='auto history fleet' ;;
	cost:--format) words='text json csv' ;;
	deploy:--as) words='ssh slurm-array kubernetes-job kubernetes-daemonset kubernetes-hpa kubernetes-servicemonitor containerfile' ;;
	eval:--grammar) words='none auto required' ;;
	eval:--device) words='auto cpu gpu' ;;
	exporter:--names) words='assay dcgm both' ;;
	generate:--device) words='auto cpu gpu' ;;
	generate:--weights) words='auto fp8' ;;
	generate:--grammar) words='none auto required' ;;
	health:--for) words='nobody slurm-prolog slurm-epilog slurm-healthcheck npd readiness' ;;
	health:--suite) words=' acceptance attention comprehensive-devices comprehensive-links comprehensive-stress full health-active health links quick roofline stress training' ;;
	ladder:--device) words='auto cpu gpu' ;;
	ladder:--shape) words='tiny tiny-qwen3 tiny-llama tiny-64 tiny-qwen3-64 tiny-llama-64 smollm2-135m qwen2-0.5b qwen2-1.5b qwen2-7b qwen2.5-3b qwen2.5-14b qwen2.5-32b qwen2-72b qwen3-0.6b qwen3-4b qwen3-8b llama-3.2-1b llama-3.1-8b' ;;
	launch:--how) words='auto plain ssh slurm mpirun' ;;
	list:--suite) words=' acceptance attention comprehensive-devices comprehensive-links comprehensive-stress full health-active health links quick roofline stress training' ;;
	list:--as) words='prometheus-rules alerts grafana doc' ;;
	load:--endpoint) words='chat completions' ;;
	load:--arrival) words='poisson constant gamma ramp steps' ;;
	make-model:--shape) words='tiny tiny-qwen3 tiny-llama tiny-64 tiny-qwen3-64 tiny-llama-64 smollm2-135m qwen2-0.5b qwen2-1.5b qwen2-7b qwen2.5-3b qwen2.5-14b qwen2.5-32b qwen2-72b qwen3-0.6b qwen3-4b qwen3-8b llama-3.2-1b llama-3.1-8b' ;;
	make-model:--dtype) words='bf16 f16 f32' ;;
	merge:--dtype) words='base bf16 f16 f32' ;;
	probe:--target) words=' cpu cpu-each-numa gpu pair pair-once node node-doubling team team-doubling all' ;;
	probe:--format) words='text markdown html json csv' ;;
	profile:--graphs) words='nodes whole' ;;
	quantize:--to) words='nf4 fp4' ;;
	quantize:--dtype) words='base bf16 f16 f32' ;;
	report:--format) words='text markdown html json csv' ;;
	roofline:--plot) words='svg png pdf' ;;
	rows:--format) words='auto chat glaive sharegpt bfcl' ;;
	rows:--chat-template) words='auto chatml llama3 llama3.1 qwen2 qwen2.5 qwen3 qwen3-instruct smollm2' ;;
	serve:--device) words='auto cpu gpu' ;;
	serve:--kv-cache) words='auto fp8' ;;
	serve:--weights) words='auto fp8' ;;
	top:--sort) words='usual utilization memory temperature power pid user command' ;;
	top:--theme) words='dark light contrast mono' ;;
	esac
	case ${COMP_WORDS[1]}:${COMP_WORDS[2]}:$key in
	probe:attention:pass) words='forward backward' ;;
	probe:attention:type) words='fp16 bf16 e4m3' ;;
	probe:attention:out) words='wide same' ;;
	probe:attention:mask) words='none causal window' ;;
	probe:attention:layout) words='bhsd bshd' ;;
	probe:attention:pattern) words='none mask strided random file' ;;
	probe:attention:search) words='first top exhaustive' ;;
	probe:attention:data) words='random large' ;;
	probe:collective:algorithm) words='auto ring tree nvls nvlstree collnetdirect collnetchain pat' ;;
	probe:collective:buffers) words='plain library registered window' ;;
	probe:collective:launch) words='stream graph' ;;
	probe:collective:op) words='allreduce allgather reducescatter alltoall broadcast reduce sendrecv' ;;
	probe:collective:place) words='out in' ;;
	probe:collective:protocol) words='auto ll ll128 simple' ;;
	probe:collective:reduce) words='sum min max avg' ;;
	probe:collective:search) words='first top' ;;
	probe:collective:type) words='fp32 bf16 fp16 e4m3 e5m2 int8 int32 fp64' ;;
	probe:dispatch:what) words='launch graph' ;;
	probe:gemm:type) words='fp64 fp32 tf32 fp16 bf16 e4m3 e5m2 int8' ;;
	probe:gemm:ta) words='n t' ;;
	probe:gemm:tb) words='n t' ;;
	probe:gemm:accumulate) words='fast exact' ;;
	probe:gemm:scale) words='tensor block' ;;
	probe:gemm:search) words='first top exhaustive' ;;
	probe:gemm:data) words='random zeros' ;;
	probe:link:direction) words='h2d d2h both latency' ;;
	probe:link:memory) words='pinned pageable' ;;
	probe:memory:op) words='read write copy scale add triad dot gather chase set' ;;
	probe:memory:store) words='auto regular nontemporal memcpy' ;;
	probe:memory:search) words='first top' ;;
	probe:p2p:direction) words='to both latency' ;;
	probe:p2p:pattern) words='pair all out in' ;;
	probe:p2p:search) words='first top' ;;
	probe:peak:unit) words='fma add mma read read2 write read_write read2_write write_nt read_write_nt read2_write_nt' ;;
	probe:peak:isa) words='auto sse2 avx2 avx512f avx512_bf16 avx512_vnni avx_vnni neon' ;;
	probe:peak:type) words='fp64 fp32 tf32 fp16 bf16 e4m3 e5m2 int8' ;;
	probe:scaling:type) words='bf16 fp16' ;;
	probe:sm:type) words='fp64 fp32 tf32 fp16 bf16 e4m3 e5m2 int8' ;;
	probe:stress:unit) words='all tensor memory' ;;
	probe:stress:type) words='bf16 fp16 tf32 fp32 fp64 e4m3 int8' ;;
	esac
	if [ -n "$words" ]; then _assay_words "$words" "$cur"; return; fi
	case ${COMP_WORDS[1]} in
	archive) words='--help --out --check' ;;
	check) words='--help acceptance attention comprehensive-devices comprehensive-links comprehensive-stress full health-active health links quick roofline stress training --suite --target --out --seconds --rounds --search-seconds --seed --resume --plan --machine --expect --site --expectations --wait --beside --price --telemetry --isolate --node --interface --team-secret --join --real-names --format --columns --json' ;;
	compare) words='--help --as --json --all --expectations' ;;
	comprehensive) words='--help --quick --plan --only --model --data --rate --duration --input --output --stress --out --archive --keep-model --json' ;;
	cost) words='--help --prices --electricity --api --price-per-hour --capital --years --idle-share --idle-power --node-power --sku --gpus --same-server --date --format --json' ;;
	demo) words='--help quick full benchmark training serve start attach kill quick full benchmark training serve --steps --pause --plan --model --duration --train-steps --price-per-hour --keep-model --detach --out' ;;
	deploy) words='--help --as --hostfile --out --resume --stop --bundle --send --env --ssh-config --accept-new --remote-dir --keep --patience --fetch-most --nodes --gpus-per-node --machine --image --namespace --name --port --time --partition --account' ;;
	eval) words='--help --data --precisions --compare --max-rows --context --stride --tokens --grammar --device --perplexity-mark --calls-mark --chat-template --tokenizer --json' ;;
	exporter) words='--help --host --port --names --interval --web-config --processes --max-connections --runs --job-files --pod-resources --replay' ;;
	generate) words='--help --adapter --merge --device --weights --any-base --messages --rows --out --max-rows --system --raw --chat-template --tokenizer --grammar --control --no-thinking --tokens --temperature --top-k --top-p --seed --json --logprobs --no-cache' ;;
	health) words='--help --for --active --run --drain-with --resume-with --node --state --new-baseline --within --expect --site --expectations --suite --out --machine --json' ;;
	history) words='--help --plot --all --json --expectations' ;;
	info) words='--help summary cpu memory gpu links fabric storage software all --json --record --machine --real-names --alone --out --node --interface --team-secret --join' ;;
	ladder) words='--help --device --shape --model --loss-model --steps --length --rounds --within --plan --keep-weights --resume --out --json' ;;
	launch) words='--help --how --nodes --hosts --hostfile --gpus-per-node --ranks-per-node --time --partition --account --sbatch --script --restarts --env --derive --mpi --master --ssh-config --machine --print --exports --wait' ;;
	list) words='--help probes engines suites kernels causes expectations nccl metrics --suite --machine --expectations --as --all --json' ;;
	load) words='--help --model --serve-options --name --endpoint --tokenizer --chat-template --api-key-file --ca-file --insecure --rate --arrival --burstiness --rate-end --steps --trace --trace-speed --users --think --turns --duration --max-requests --input --output --dataset --prefix --prefix-groups --warm-cache --ignore-eos --temperature --stream --body --recount --slo --attainment --expectations --sweep --warmup --grace --timeout --ready-timeout --max-connections --threads --seed --metrics --idle --node --gpus --telemetry --real-names --out --plan --json' ;;
	make-model) words='--help --out --shape --seed --dtype --shard --tokenizer --holes' ;;
	merge) words='--help --out --dtype --shard --any-base' ;;
	probe) words='--help --target --out --seconds --rounds --search-seconds --seed --resume --plan --machine --expect --site --expectations --wait --beside --price --telemetry --isolate --node --interface --team-secret --join --real-names --format --columns --json --engine --preset' ;;
	profile) words='--help --out --kernels-only --api --graphs --counters --counters-skip --counters-count --counters-flop --counters-l2 --limit-size --flush --trace --telemetry --tracks-every --real-names --json' ;;
	quantize) words='--help --to --double-quant --adapter --out --dtype --shard' ;;
	report) words='--help --format --columns --json --expectations --expect --site --real-names --write' ;;
	roofline) words='--help --out --plot --expectations --prices --seconds --price --real-names' ;;
	rows) words='--help --format --out --held-out --share --seed --model --chat-template --max-length --max-bad --show --answers --json' ;;
	serve) words='--help --adapter --any-base --served-model-name --host --port --device --context --max-sequences --max-rows --max-step-ms --max-queue --memory --page-tokens --kv-cache --weights --no-prefix-cache --deterministic --chat-template --api-key-file --tls-certificate --tls-key --cors --max-connections --max-body --max-seconds --request-log --log-requests --out --telemetry --real-names --plan --json' ;;
	tokens) words='--help --file --control --json' ;;
	top) words='--help nccl nvlink ib links --hosts --hosts-file --ssh-config --program --interval --gpus-only --record --replay --at --once --count --json --pid --sort --filter --theme --machine' ;;
	train) words='--help --out --resume --resume-if-exists --plan --gpus --nodes --link-rate --network-rate --telemetry --real-names --silence --no-cache --json --node --interface --team-secret --join' ;;
	esac
	if [ "${COMP_WORDS[1]}" = probe ] && [ "$COMP_CWORD" -eq 2 ]; then
		words='attention clock_state collective contamination dispatch ecc gemm gpu_count gpu_mode hbm host_state limits link memory nccl_env numa nvlink_state pcie_state p2p peak remap scaling sm stress versions xid --help'
	elif [ "${COMP_WORDS[1]}" = probe ]; then
		case ${COMP_WORDS[2]} in
		attention) words="$words pass= type= out= batch= heads= kv_heads= seq= kv_seq= head_dim= mask= left= right= layout= lengths= pattern= density= block_q= block_k= file= seed= search= data= threads=" ;;
		collective) words="$words algorithm= buffers= ctas= launch= op= place= protocol= reduce= root= search= size= type=" ;;
		dispatch) words="$words what= nodes=" ;;
		gemm) words="$words type= m= n= k= ta= tb= batch= bias= accumulate= scale= search= data= threads=" ;;
		hbm) words="$words size=" ;;
		limits) words="$words path=" ;;
		link) words="$words direction= memory= size= numa=" ;;
		memory) words="$words op= size= store= threads= search=" ;;
		p2p) words="$words direction= pattern= search= size=" ;;
		peak) words="$words unit= isa= type= threads=" ;;
		scaling) words="$words layers= m= width= buckets= type= overlap=" ;;
		sm) words="$words type=" ;;
		stress) words="$words unit= type= n= bytes= threads=" ;;
		esac
	fi
	_assay_words "$words" "$cur"
	case ${COMP_WORDS[1]}:$cur in # a word that is no option may be a file
	*:-*) ;;
	probe:* | list:* | info:* | top:*) ;;
	*) COMPREPLY+=($(compgen -f -- "$cur")) ;;
	esac
}
complete -F _assay assay
