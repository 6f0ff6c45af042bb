#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rules, alerts and dashboards in promtool and in a real Prometheus, which scrapes an exporter with a recording and a server with
# the stand-in engine: each alert fires and does not fire where it should, and each query of each dashboard returns data.
# usage: exporter_prometheus.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2") assay=$(realpath "$1")/src/assay
. "$root/tests/end2end/tap.sh"
for program in prometheus promtool; do
	command -v $program > /dev/null || lacks "$program is not installed (package prometheus)"
done
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
exporter='' secured='' front='' prometheus='' load=''
stop() { for pid in $load $prometheus $exporter $secured $front; do kill "$pid" 2> /dev/null; wait "$pid" 2> /dev/null; done; rm -rf "$tmp"; }
trap stop EXIT

ok "rules" expect 0 list metrics --as prometheus-rules
mv out rules.yaml
ok "alerts" expect 0 list metrics --as alerts
mv out alerts.yaml
ok "promtool reads the rules" promtool check rules rules.yaml
ok "promtool reads the alerts" promtool check rules alerts.yaml
cp "$root"/tests/data/watch/alerts*.test.yaml .
ok "each alert fires and does not fire" promtool test rules alerts.test.yaml
ok "an alert about a week" promtool test rules alerts_week.test.yaml
cp "$root"/examples/monitoring/*.yml .
ok "promtool reads the example's configuration" promtool check config prometheus.yml
printf change-me > password
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
	-addext 'subjectAltName=DNS:localhost' > openssl.out 2>&1 || lacks "openssl is not installed"
ok "and the one with TLS and users" promtool check config prometheus-tls.yml
ok "promtool reads the web configuration" promtool check web-config web-config.yml
ok "dashboards" expect 0 list metrics --as grafana
mv out dashboards.json
# Grafana's own library has its schema. CI fetches it (tests/run.sh); elsewhere it is used where it is.
PYTHONPATH=${ASSAY_GRAFANA_SCHEMA:-} python3 "$root/tests/oracles/grafana_dashboards.py" "$assay" > out 2> err
code=$?
if [ $code = 77 ]; then
	n=$((n + 1)) && echo "ok $n - dashboards have Grafana's schema # SKIP python3 has no grafana-foundation-sdk"
else
	ok "dashboards have Grafana's schema" [ $code = 0 ]
fi
ok "one dashboard" expect 0 list metrics fleet --as grafana
ok "an unknown dashboard" expect 64 list metrics flet --as grafana
ok "is named" says 'there is no dashboard "flet"' err
ok "--as without metrics" expect 64 list causes --as grafana
ok "the list" expect 0 list metrics
ok "has a metric of each kind" sh -c 'grep -q "^assay_gpu_power_watts .*DCGM_FI_DEV_POWER_USAGE" out && grep -q "^assay_requests_total .* server " out &&
	grep -q "^assay_exporter_series .* exporter " out'

# The node, a second one with TLS and users, and a server.
"$build/tests/watch/recording" 8 900 > machine.rec
port_of() { sed -n 's,.*:\([0-9]*\)/metrics.*,\1,p' "$1"; }
"$assay" exporter --replay machine.rec --port 0 --names both > exporter.out 2>&1 < /dev/null &
exporter=$!
"$assay" exporter --replay machine.rec --port 0 --web-config web-config.yml > secured.out 2>&1 < /dev/null &
secured=$!
mkdir model && cp "$root/tests/data/tokenizer/qwen.json" model/tokenizer.json
echo '{"eos_token": "<|im_end|>"}' > model/tokenizer_config.json
ASSAY_MODULE_DIR=$build/src/serve "$build/tests/serve/serve_front" model --chat-template qwen2.5 -- "$build/tests/serve/stand_in_engine" \
	> front.out 2> front.err < /dev/null &
front=$!
for _ in $(seq 300); do
	[ "$(port_of exporter.out)" ] && [ "$(port_of secured.out)" ] && grep -q port front.out && break
	grep -q 'built without' front.err && break
	sleep 0.1
done
serves=yes server=$(sed -n 's/^port //p' front.out)
[ "$server" ] || serves=no server=1
ask() { # one request after another, so that each metric has values
	while :; do
		curl -s -o answer --max-time 20 "http://127.0.0.1:$server/v1/completions" -H 'Content-Type: application/json' -d '{"prompt":"Hello","max_tokens":4}'
		sleep 0.2
	done
}
if [ $serves = yes ]; then ask & load=$!; fi
{
	sed "s/15s/1s/; s/127.0.0.1:19841/127.0.0.1:$(port_of exporter.out)/; s/127.0.0.1:8000/127.0.0.1:$server/" prometheus.yml
	sed -n '/scheme: https/,$p' prometheus-tls.yml | sed "s/127.0.0.1:19841/127.0.0.1:$(port_of secured.out)/; 1i\\
\\  - job_name: secured"
} > run.yml
ok "promtool reads the test's configuration" promtool check config run.yml
prometheus --config.file=run.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:0 --log.level=info > prometheus.out 2>&1 < /dev/null &
prometheus=$!
for _ in $(seq 300); do grep -q 'Listening on' prometheus.out && break; kill -0 $prometheus 2> /dev/null || break; sleep 0.1; done
api=http://$(sed -n 's/.*msg="Listening on" address=\([0-9.:]*\).*/\1/p' prometheus.out | head -n 1)/api/v1
# query TEXT: the answer is in `result`
query() { curl -s -G --max-time 20 --data-urlencode "query=$1" "$api/query" > result; }
has_data() { # a value that is a number
	query "$1"
	grep -q '"status":"success"' result && grep -q '"value":\[[0-9.]*,"[0-9.e+-]*"\]' result
}
eventually() { for _ in $(seq 400); do has_data "$1" && return 0; sleep 0.2; done; cat result; return 1; }
ok "Prometheus scrapes the node" eventually 'up{job="assay"} == 1 and count_over_time(up{job="assay"}[1m]) > 12'
ok "and the one with TLS and a password" eventually 'up{job="secured"} == 1'
ok "every series arrives" eventually 'scrape_samples_scraped{job="assay"} == on (instance) assay_exporter_series'
if [ $serves = yes ]; then ok "and the server" eventually 'rate(assay_time_to_first_token_seconds_count[10s]) > 0'; fi

# expressions DASHBOARD: its queries, one a line, with values for Grafana's variables
expressions() {
	"$assay" list metrics "$1" --as grafana | sed -n 's/^ *"expr": "\(.*\)",$/\1/p' | sed 's/\\"/"/g; s/\\\\/\\/g; s/\$__rate_interval/10s/g
		s/\$instance/.*/g; s/\$server/.*/g; s/\$price_kwh/0.16/g; s/\$pue/1.3/g; s/\$gpu_hour/2.5/g'
}
every_query_has_data() {
	expressions "$1" > expressions.out
	[ "$(wc -l < expressions.out)" -gt 8 ] || return 1
	missing=0
	while read -r expression; do
		eventually "$expression" > eventually.out || { echo "no data: $expression"; cat eventually.out; missing=1; }
	done < expressions.out
	return $missing
}
ok "every query has a test" [ "$(grep -c '"expr"' dashboards.json)" = "$(for d in fleet node training serving cost; do expressions $d; done | wc -l)" ]
for dashboard in fleet node training; do
	ok "every query of the dashboard $dashboard returns data" every_query_has_data $dashboard
done
for dashboard in serving cost; do
	if [ $serves = yes ]; then
		ok "every query of the dashboard $dashboard returns data" every_query_has_data $dashboard
	else
		n=$((n + 1)) && echo "ok $n - dashboard $dashboard # SKIP this build has no tokenizers, so no server"
	fi
done
for rule in $(sed -n 's/.*record: //p' rules.yaml); do
	case $rule in
	*requests_failed* | *tokens* | *token_* | *request_* | model:*) [ $serves = yes ] || continue ;;
	esac
	ok "rule $rule returns data" eventually "$rule"
done
ok "no rule failed" sh -c "curl -s '$api/rules' | grep -q '\"health\":\"ok\"' && ! curl -s '$api/rules' | grep -q '\"health\":\"err\"'"
ok "Prometheus refused no series" sh -c '! grep -q "Error on ingesting\|duplicate" prometheus.out'
finish
