#!/bin/sh
# The real binary on four GPUs that are not there: what probe p2p measures, what it says of a slow direction, of a driver that
# gives no access, of a wrong bit and of a copy that never arrives. usage: p2p.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
export FAKE_TRAFFIC="$tmp/traffic"
cat > to.yaml << LIST
name: to
cases:
  - {probe: p2p, engine: driver, target: pair, phases: burst, seconds: 200us, require: known, options: {size: 64KiB}}
LIST
cat > ways.yaml << LIST
name: ways
cases:
  - {probe: p2p, engine: [driver, store, load], target: gpu1>gpu3, phases: burst, seconds: 200us, require: measured, options: {size: 64KiB, direction: [to, both]}}
  - {probe: p2p, engine: all, target: gpu1>gpu3, phases: burst, seconds: 200us, require: measured, options: {direction: latency}}
LIST
run() { # STAGED SUITE OUT
	FAKE_CUDA="devices=4,$1" "$assay" check --suite "$2.yaml" --out "$3" > "$3.out" 2> "$3.err"
}

run "" to clean
ok "four well linked GPUs pass" [ $? = 0 ]
ok "each ordered pair was a case" [ "$(grep -c '"type":"end".*"status":"ok"' clean/journal.jsonl)" = 12 ]
ok "one worker drove them all" [ "$(grep -o '"pid":[0-9]*' clean/journal.jsonl | sort -u | wc -l)" = 1 ]
ok "the path is told" [ "$(value clean 0 path)" = NV18 ]
ok "and how wide it is" [ "$(value clean 0 nvlinks)" = 18 ]
ok "the bound is the links'" says '18 NVLinks x 26.5620 GB/s x 16/17' clean/results.json
run "slow=3>2:0.5" to slow
ok "a slow direction fails the run" [ $? = 1 ]
ok "it is the one that fails" judged 11 slow fail link_slow
ok "its reverse passes" judged 8 slow pass low_confidence
ok "the reason names the direction, the loss and the reverse" \
	says 'gpu3>gpu2: 190 GB/s, 50.0 % below the median of the other 11; gpu2>gpu3 380 GB/s is fine' slow/results.csv
ok "the matrix marks it on the terminal" says 'gpu3  *380  *380  *190 !  *-$' slow.out
ok "and says how far it is behind" says 'every pair by NV18; gpu3>gpu2 is 50.0 % behind' slow.out
ok "what is well stands in the matrix alone" sh -c '! grep -q "^gpu2>gpu3$" slow.out && grep -q "^gpu3>gpu2$" slow.out'
ok "the report in Markdown has it" says '^| gpu3 | 380 | 380 | 190 ! | - |$' slow/REPORT.md
ok "the page has it" says '<tr><th scope="row">gpu3</th><td class="num"[^>]*>380</td><td class="num"[^>]*>380</td><td class="num"[^>]*>190 !</td>' slow/report.html
ok "and results.json names the worst" sh -c 'tr -d " \n" < slow/results.json | grep -q "\"worst\":{\"target\":\"gpu3>gpu2\",\"behind_share\":0.5"'
# What NVLink's own counters say of the window: each byte of each copy, 17/16 of it raw.
whole() { # RUN CASE: payload that was sent is the iterations' size, but for parts of a KiB a link at both ends
	sent=$(value "$1" "$2" nvlink_tx_bytes) copied=$(($(value "$1" "$2" iterations) * 65536))
	[ "$sent" -lt $((copied + 65536)) ] && [ "$sent" -gt $((copied - 65536)) ]
}
ok "NVLink's counters tell what was sent" whole clean 0
ok "and that nothing came back" [ "$(value clean 0 nvlink_rx_bytes)" = 0 ]
ok "the gap is told by them" says '"name": "payload"' clean/results.json
ok "the parts for a ticket name both ends of a slow pair" says '"peer_pci": "0000:8f:00.0"' slow/results.json
FAKE_NVML_LINKWISE=1 run "" to linkwise
ok "a driver that knows no sum is asked link by link" whole linkwise 3
FAKE_NVML_RET=data_tx=3 run "" to uncounted
ok "what it does not count is absent" [ -z "$(value uncounted 0 nvlink_tx_bytes)" ]
ok "which costs nothing else" [ "$(grep -c '"type":"end".*"status":"ok"' uncounted/journal.jsonl)" = 12 ]
FAKE_NVML_ERRORS=2:7 run "" to replays
ok "replays that rise with our traffic are a warning" judged 6 replays warn nvlink_errors
ok "with the link" says 'gpu2 link 7: [0-9]' replays/results.csv
ok "for the GPU that sent, not for the others" judged 0 replays pass low_confidence
FAKE_NVML_DOWN=1:12-17 run "slow=1>*:0.667+*>1:0.667" to narrow
ok "12 of 18 links of one GPU fail the run" [ $? = 1 ]
ok "as one finding" [ "$(grep '"fail",' narrow/results.csv | cut -d , -f 1 | sort -u)" = 0 ]
ok "on the GPU, both ways" says 'gpu1 (0000:8e:00.0) sends slowly to 3 of 3 and receives slowly from 3 of 3: all its links' narrow/results.csv
ok "with the size of the loss" says '12 of 18 NVLinks up (0.667)' narrow/results.csv
ok "the links are a factor of the gap" sh -c 'tr -d " \n" < narrow/results.json | grep -q "\"name\":\"links\",\"signal\":\"12of18[^}]*\"value\":0.666"'
ok "the GPU is the part for a ticket" sh -c 'tr -d " \n" < narrow/results.json | grep -q "\"parts\":\[{\"pci\":\"0000:8e:00.0\""'
run "slow=3>2:0.5,flip_peer=0>1" to flip
ok "a wrong bit fails the run" [ $? = 1 ]
ok "its pair is named" judged 0 flip fail wrong_result
ok "with the byte" says 'gpu0>gpu1, byte 0x8000' flip/journal.jsonl
ok "the others are well" judged 1 flip pass low_confidence
ok "but for the slow one" judged 11 flip fail link_slow
run "drop_peer=2>3" to drop
ok "a copy that never arrives fails the run" [ $? = 1 ]
ok "all of it is missed" says '16384 of 16384 words are wrong, the first is gpu2>gpu3, byte 0x0' drop/journal.jsonl

# All GPUs at once, a thread each; what one gets is another's to tell.
cat > node.yaml << LIST
name: node
cases:
  - {probe: p2p, engine: driver, target: pair, phases: burst, seconds: 200us, require: measured, options: {size: 64KiB}}
  - {probe: p2p, engine: [driver, store, load], target: node, phases: burst, seconds: 200us, require: measured, options: {size: 64KiB, pattern: all}}
  - {probe: p2p, engine: [driver, store, load], target: node, phases: burst, seconds: 200us, require: measured, options: {size: 64KiB, pattern: [out, in]}}
  - {probe: p2p, engine: store, target: gpu0>gpu1, phases: burst, seconds: 200us, require: measured, options: {size: 64KiB, search: top}}
LIST
run "slow=*>3:0.333" node node # three that send to one share its links
ok "a GPU that receives slowly fails the run" [ $? = 1 ]
ok "each case of them" [ "$(grep -c '"type":"end".*"status":"ok"' node/journal.jsonl)" = 20 ]
ok "all send at once as fast as alone, but to the slow one" [ "$(value node 12 link_rate | cut -c 1-3)" = 227 ]
ok "a read has no pattern out or in" says 'pattern=out and pattern=in need engine driver or store' node/journal.jsonl
ok "stores by all, 32 and 16 multiprocessors are tried" [ "$(value node 21 variants_tried)" = 3 ]
ok "the matrix tells what all send at once" says 'all at once: 228 GB/s sent by each, 0.60 of a pair alone' node/REPORT.md
ok "and results.json" sh -c 'tr -d " \n" < node/results.json | grep -q "\"all_at_once\":{\"case\":12,\"value\":22[78]"'
run "flip_peer=2>1" node nodeflip
ok "a wrong bit among all of them fails the run" [ $? = 1 ]
ok "with who sent it to whom" says 'gpu2>gpu1, byte 0x8000' nodeflip/journal.jsonl
run "peer=0>2" node nodedeny
ok "where one pair has no access no kernel sends to all" says '"status":"unsupported".*no access to the memory of some other GPUs' nodedeny/journal.jsonl
broken=0
for staged in cuMemAlloc_v2=2@90 cuMemsetD32Async=1@40; do
	run "$staged" node "nodebroken-$staged"
	ended=$(grep -c '"type":"end","case":[0-9]*,"ending":"done"' "nodebroken-$staged/journal.jsonl")
	if [ "$ended" -lt 20 ]; then broken=$((broken + 1)) && echo "# $staged: $ended cases ended"; fi
done
ok "a call that fails in one of the ranks ends the case of all" [ "$broken" = 0 ]

run "" ways ways
ok "every engine does both ways" [ "$(grep -c '"type":"end".*"status":"ok"' ways/journal.jsonl)" = 7 ]
ok "the latency of a read is load's alone" [ "$(grep -c 'only engine load measures direction=latency' ways/journal.jsonl)" = 1 ]
ok "700 ns a hop, as staged" [ "$(value ways 8 latency_ns | cut -d . -f 1)" = 702 ]
run "peer=1>3:deny" ways deny
ok "without access the driver goes through the host" [ "$(value deny 0 path)" = host ]
ok "and it is told" says 'the driver does not use them: copies go through the host' deny/results.csv
ok "no kernel reaches the other" says '"case":2,"ending":"done","status":"unsupported".*no access to each other' deny/journal.jsonl
run "cuMemcpyPeerAsync=999@200" to lost
ok "a GPU lost on the way is inconclusive" [ $? = 2 ]
ok "both GPUs of its pair are left alone" says '"cause":"quarantined"' lost/journal.jsonl
ok "and the pair of the other two is tried" says '"type":"begin","case":8' lost/journal.jsonl
ok "in a worker of its own" [ "$(grep -o '"pid":[0-9]*' lost/journal.jsonl | sort -u | wc -l)" = 2 ]
# A call of the driver that fails ends its case with its words, and nothing else.
broken=0
for staged in cuDeviceCanAccessPeer=1 cuDeviceGetP2PAttribute=1 cuCtxEnablePeerAccess=2 cuCtxEnablePeerAccess=704 cuCtxEnablePeerAccess=217 \
	cuMemcpyPeerAsync=1@3 cuCtxSetCurrent=1@4 cuEventCreate=2 cuEventRecord=1 cuStreamWaitEvent=1 cuMemAlloc_v2=2@3 cuMemsetD32Async=1 \
	cuCtxSynchronize=1 cuStreamCreate=2@2 cuDevicePrimaryCtxRetain=2@2 cuLibraryLoadData=200@2; do
	run "$staged" ways "broken-$staged"
	ended=$(grep -c '"type":"end","case":[0-8],"ending":"done"' "broken-$staged/journal.jsonl")
	if [ "$ended" != 7 ]; then broken=$((broken + 1)) && echo "# $staged: $ended cases ended"; fi
done
ok "every call that fails is its case's end" [ "$broken" = 0 ]
# The commands of docs/how-to/measure-links-and-collectives.md, planned with four GPUs. launch.sh tests two hosts.
planned() { # COMMAND
	FAKE_CUDA=devices=4 PATH="$tmp/bin:$PATH" sh -c "$1 --plan" > out 2> err && grep -Eq '^suite [a-z]*: [1-9][0-9]* cases run' out
}
mkdir -p bin
ln -sf "$assay" bin/assay
here=$root/tests/end2end
. "$here/walk.sh"
commands how-to/measure-links-and-collectives.md | sed 's/ *#.*//' > walk
ok "the page has four commands for links and collectives" [ "$(wc -l < walk)" = 4 ]
while read -r line; do ok "measure-links-and-collectives.md: $line" planned "$line"; done < walk
finish
