#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay exporter with a recording, as clients see it: formats, compression, paths and methods, users and TLS, wrong configurations,
# a port in use, hostile and slow clients, and its memory. usage: exporter.sh BUILD ROOT [SANITIZER]
# Under a sanitizer a program takes several times its memory, so that is not judged there.
set -u
build=$(realpath "$1") root=$(realpath "$2") sanitizer=${3:-none} assay=$(realpath "$1")/src/assay
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
exporter=
trap '[ -z "$exporter" ] || kill "$exporter"; rm -rf "$tmp"' EXIT
"$build/tests/watch/recording" 8 30 > machine.rec
# up OPTION..: starts it; $port, $pid
up() {
	: > exporter.out # what the one before said is not this one's
	"$assay" exporter --replay machine.rec --port 0 "$@" > exporter.out 2>&1 < /dev/null &
	exporter=$!
	for _ in $(seq 300); do grep -q '/metrics' exporter.out && break; kill -0 "$exporter" 2> /dev/null || break; sleep 0.05; done
	port=$(sed -n 's,.*:\([0-9]*\)/metrics.*,\1,p' exporter.out)
	[ "$port" ]
}
down() {
	kill "$exporter"
	wait "$exporter"
	code=$?
	exporter=
	[ "$code" = 0 ]
}
get() { code=$(curl -s --max-time 20 -o out -D head -w '%{http_code}' "$@"); } # CURL-OPTION..
is() { # CODE CURL-OPTION..
	want=$1
	shift
	get "$@"
	[ "$code" = "$want" ]
}
url() { echo "http://127.0.0.1:$port$1"; }
metric() { curl -s "$(url /metrics)" | sed -n "s/^$1 //p"; }
fits() { [ "$sanitizer" != none ] || [ "$(awk '$1 == "VmHWM:" { print $2 }' "/proc/$exporter/status")" -lt 25000 ]; }

ok "it starts" up
ok "healthy" is 200 "$(url /-/healthy)"
ok "ready" is 200 "$(url /-/ready)"
ok "the page for people" is 200 "$(url /)"
curl -s --max-time 20 "$(url /)" > index
ok "it says why pod and namespace are absent" grep -q '<code>pod</code> and <code>namespace</code> are absent: pod_resources0' index # the reason that the recording has
curl -s --max-time 20 "$(url /metrics)" > index
ok "and they are" sh -c '[ -s index ] && ! grep -qE "[{,](pod|namespace)=" index'
ok "has the sources" says '<td>gpu</td>' out
ok "the metrics" is 200 "$(url /metrics)"
ok "as text" says 'Content-Type: text/plain; version=0.0.4; charset=utf-8' head
ok "with GPUs" says '^assay_gpu_power_watts{gpu="7"} ' out
if command -v promtool > /dev/null; then
	ok "promtool has nothing to say" sh -c 'promtool check metrics < out'
fi
ok "in OpenMetrics" is 200 -H 'Accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1' "$(url /metrics)"
ok "with its type" says 'Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8' head
ok "and its end" [ "$(tail -n 1 out)" = '# EOF' ]
ok "compressed" is 200 -H 'Accept-Encoding: gzip' "$(url /metrics)"
ok "says so" says 'Content-Encoding: gzip' head
ok "and is whole" sh -c 'gzip -d < out | grep -q "^assay_exporter_series "'
ok "HEAD" is 200 -I "$(url /metrics)"
ok "another path is 404" is 404 "$(url /metrics/)"
ok "the path is not repeated" sh -c '! grep -q "metrics/ " out'
ok "POST is 405" is 405 -d a=b "$(url /metrics)"
ok "with what is allowed" says 'Allow: GET, HEAD' head
ok "a query changes nothing" is 200 "$(url '/metrics?a=%00b')"
ok "a request in absolute form is answered" is 200 --request-target 'http://x/metrics' "$(url /)"
ok ".. with the metrics" says '^assay_gpu_power_watts{gpu="7"} ' out
ok ".. also without a path" is 200 --request-target 'HTTP://x' "$(url /metrics)"
ok ".. another path in it is 404" is 404 --request-target 'http://x/metrics/http://x/metrics' "$(url /)"
ok "a hostile path is 404" is 404 --path-as-is "$(url '/../../etc/passwd')"
ok "a long path is refused" is 414 "$(url "/$(head -c 30000 /dev/zero | tr '\0' a)")"
ok "a long header is refused" is 431 -H "X: $(head -c 30000 /dev/zero | tr '\0' a)" "$(url /metrics)"
head -c 300000 /dev/zero > body
get -X POST --data-binary @body "$(url /metrics)"
ok "a long body ends the connection" [ "$code" != 200 ]
ok "it goes on" is 200 "$(url /metrics)"
ok "scrapes are counted" sh -c "for _ in \$(seq 100); do
	curl -s $(url /metrics) | grep -q '^assay_exporter_scrapes_total [1-9]' && exit 0; sleep 0.1; done; exit 1"
ok "the port is in use" expect 2 exporter --replay machine.rec --port "$port"
ok "and the message names it" says "port $port of 127.0.0.1 is in use by another program; choose one with --port" err
ok "memory stays below 25 MB" fits
ok "TERM ends it" down

ok "both sets of names" up --names both
get "$(url /metrics)"
ok "dcgm-exporter's" says '^DCGM_FI_DEV_POWER_USAGE{.*modelName="NVIDIA H100' out
ok "and ours" says '^assay_gpu_power_watts{' out
ok "the type of a counter without _total is unknown" sh -c "curl -s -H 'Accept: application/openmetrics-text' $(url /metrics) |
	grep -q 'TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown'"
sizes() { # NAMES PLAIN COMPRESSED: bytes of a page of eight GPUs, at most
	get "$(url /metrics)"
	plain=$(wc -c < out)
	get -H 'Accept-Encoding: gzip' "$(url /metrics)"
	echo "# $1: $plain bytes, $(wc -c < out) compressed"
	[ "$plain" -gt 50000 ] && [ "$plain" -lt "$2" ] && [ "$(wc -c < out)" -lt "$3" ]
}
ok "a page of 8 GPUs with both is small" sizes both 145000 15000
ok "it ends" down
for names in assay dcgm; do
	ok "the names of $names alone" up --names $names
	ok "a page of 8 GPUs with them is small" sizes $names 75000 12000
	ok "it ends" down
done

# Clients that hold connections: more than there are places.
ok "it starts with few places" up --max-connections 64
# held KIND COUNT: clients of this kind, until release
held() {
	mkfifo hold
	"$build/tests/watch/scrapes" "$port" "$2" "$1" < hold > held.out &
	holder=$!
	exec 9> hold
	rm hold
	for _ in $(seq 300); do grep -q open held.out && break; sleep 0.1; done
	grep -q open held.out
}
release() {
	exec 9>&-
	wait "$holder"
}
closed_most() { # COUNT: more than so many were closed; the page is new every second
	for _ in $(seq 100); do
		closed=$(metric assay_exporter_closed_total)
		[ "${closed:-0}" -ge "$1" ] && return 0
		sleep 0.2
	done
	return 1
}
ok "500 idle clients" held idle 500
ok "it answers" is 200 "$(url /metrics)"
ok "they made room" closed_most 400
ok "within the limit" [ "$(metric assay_exporter_connections)" -le 64 ]
release
ok "200 clients that do not read" held unread 200
ok "it answers them too" is 200 "$(url /metrics)"
ok "they made room as well" closed_most 500
ok "memory stays below 25 MB with them" fits
release
ok "it ends with them" down

# Users: hashes of "secret" with cost 4 and 10.
cat > users.yml << 'END'
basic_auth_users:
  alice: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW
  bob: $2y$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u
http_server_config:
  headers:
    X-Frame-Options: deny
END
ok "it starts with users" up --web-config users.yml
ok "without a password, 401" is 401 "$(url /metrics)"
ok "which asks for one" says 'WWW-Authenticate: Basic realm="assay"' head
ok "a header of the configuration" says 'X-Frame-Options: deny' head
ok "a user" is 200 -u alice:secret "$(url /metrics)"
ok "again" is 200 -u alice:secret "$(url /metrics)"
ok "another user" is 200 -u bob:secret "$(url /-/ready)"
ok "a wrong password" is 401 -u alice:wrong "$(url /metrics)"
ok "an unknown user" is 401 -u carol:secret "$(url /metrics)"
ok "no user, other paths too" is 401 "$(url /-/healthy)"
# The configuration changes while it runs.
eventually() { for _ in $(seq 300); do is "$@" && return 0; sleep 0.1; done; return 1; }
echo 'basic_auth_users: [' > users.yml
ok "a changed configuration that is wrong" sh -c "for _ in \$(seq 300); do
	grep -q 'the old web configuration stays in use: users.yml:' exporter.out && exit 0; sleep 0.1; done; exit 1"
ok "changes nothing" is 200 -u alice:secret "$(url /metrics)"
cat > users.yml << 'END'
basic_auth_users:
  alice: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW
  eve: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW
END
ok "a new user" eventually 200 -u eve:secret "$(url /metrics)"
ok "one that is gone" is 401 -u bob:secret "$(url /metrics)"
ok "a header that is gone" sh -c '! grep -q X-Frame-Options head'
ok "and one that stays" is 200 -u alice:secret "$(url /metrics)"
for _ in $(seq 40); do curl -s -o guess.out -u alice:guess --max-time 30 "$(url /metrics)" & done
ok "while passwords are guessed, a known user gets an answer" is 200 -u alice:secret "$(url /metrics)"
get -u dave:x "$(url /metrics)"
ok "and a new one is refused or asked to come again" sh -c "[ $code = 503 ] || [ $code = 401 ]"
kill "$exporter" # with questions open
wait "$exporter"
ok "it ends while passwords are checked" [ $? = 0 ]
exporter=
wait

# TLS
if command -v openssl > /dev/null; then
	openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
		-addext 'subjectAltName=DNS:localhost' > openssl.out 2>&1
	printf 'tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nhttp_server_config:\n  http2: true\n' > tls.yml
	ok "it starts with TLS" up --web-config tls.yml
	ok "and says that HTTP/2 is not served" says 'tls.yml:5: http2: true has no effect' exporter.out
	ok "a client that prefers HTTP/2 is answered" is 200 --http2 --cacert cert.pem --resolve "localhost:$port:127.0.0.1" "https://localhost:$port/metrics"
	ok "HTTPS" is 200 --cacert cert.pem --resolve "localhost:$port:127.0.0.1" "https://localhost:$port/metrics"
	ok "plain HTTP is not answered" is 000 "$(url /metrics)"
	ok "TLS 1.1 is refused" is 000 -k --tls-max 1.1 "https://127.0.0.1:$port/metrics"
	openssl req -x509 -newkey rsa:2048 -nodes -keyout key2.pem -out cert2.pem -days 2 -subj /CN=renewed \
		-addext 'subjectAltName=DNS:localhost' > openssl.out 2>&1
	cp cert2.pem cert.pem # the key does not fit for a moment
	sleep 0.2
	cp key2.pem key.pem
	ok "a renewed certificate" eventually 200 --cacert cert2.pem --resolve "localhost:$port:127.0.0.1" "https://localhost:$port/metrics"
	ok "memory stays below 25 MB with TLS" fits
	ok "it ends" down
	printf 'tls_server_config:\n  cert_file: cert.pem\n  key_file: cert.pem\n' > wrong.yml
	ok "a wrong key is an error" expect 64 exporter --replay machine.rec --port 0 --web-config wrong.yml
	ok "that names certificate and key" says 'check the TLS certificate and key' err
fi

# The service that ships
if command -v systemd-analyze > /dev/null; then
	sed "s,/usr/local/bin/assay,$assay," "$root/examples/monitoring/assay-exporter.service" > assay-exporter.service
	ok "systemd reads the unit" systemd-analyze verify "$tmp/assay-exporter.service"
fi
# It may read the kernel log, and nothing more.
unit=$root/examples/monitoring/assay-exporter.service
granted=$(sed -n 's/^AmbientCapabilities=CAP_//p' "$unit" | tr '[:upper:]' '[:lower:]')
ok "the unit has one capability, for the kernel log" grep -qx 'CapabilityBoundingSet=CAP_SYSLOG' "$unit"
ok "which the process gets" [ "$granted" = syslog ]
ok "and nothing else of the unit takes it away" sh -c '! grep -qE "^(ProtectKernelLogs|PrivateDevices)=yes" "$0"' "$unit"
as_service() { # CAPABILITIES: opens the kernel log as the unit's user does
	setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set "$1" --inh-caps "$1" --ambient-caps "$1" \
		sh -c ': < /dev/kmsg'
}
without=''
if ! command -v setpriv > /dev/null; then without="setpriv is not installed (package util-linux)"
elif [ "$(id -u)" != 0 ]; then without="only root may give capabilities"
elif ! sh -c ': < /dev/kmsg' 2> /dev/null; then without="/dev/kmsg cannot be opened here"
elif ! setpriv --bounding-set -all,+syslog --inh-caps -all,+syslog --ambient-caps -all,+syslog true 2> /dev/null; then without="CAP_SYSLOG cannot be given here"
fi
if [ "$without" ]; then
	n=$((n + 1)) && echo "ok $n - the kernel log opens for the service # SKIP $without"
else
	ok "the kernel log opens for the service" as_service "-all,+$granted"
	[ "$(cat /proc/sys/kernel/dmesg_restrict)" != 1 ] || ok "but not without the capability" sh -c '! "$@" 2> /dev/null' sh \
		setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all --inh-caps -all --ambient-caps -all sh -c ': < /dev/kmsg'
fi

# Wrong configurations
printf 'basic_auth_users:\n  alice: secret\n' > wrong.yml
ok "a password without a hash" expect 64 exporter --replay machine.rec --port 0 --web-config wrong.yml
ok "is named with its place" says "wrong.yml:2: the hash of the password is not bcrypt's" err
ok "no such configuration" expect 2 exporter --replay machine.rec --port 0 --web-config none.yml
ok "is named" says 'none.yml' err
ok "no such recording" expect 2 exporter --replay none.rec --port 0
ok "is named too" says 'none.rec' err
echo nonsense > wrong.rec
ok "not a recording" expect 64 exporter --replay wrong.rec --port 0
ok "is named as well" says 'wrong.rec' err
ok "no such address" expect 64 exporter --replay machine.rec --port 0 --host 192.0.2.1
ok "is named, the address" says '192.0.2.1 is no address of this machine' err
ok "a wrong set of names" expect 64 exporter --names nvidia
cp "$assay" alone # it looks beside itself
ASSAY_MODULE_DIR='' timeout 60 ./alone exporter --replay machine.rec --port 0 > out 2> err < /dev/null
ok "without the module for HTTP" [ $? = 2 ]
ok "it is named" says 'libassay-http.so' err
finish
