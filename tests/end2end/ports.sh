# Ports that no other test has, for the scripts beside it, which take it in with `.`. All lie below those that the system gives to whoever connects.
# ports [COUNT]: $port is the first of COUNT, 100 or 600, until the script ends: descriptor 9 holds their lock, a file in the build's folder.
ports() {
	width=${1:-100} held=$(dirname "$assay")/ports
	if [ "$width" = 100 ]; then first=20000 last=26000; else first=26000 last=29600; fi # 29611 on are the teams' own
	slots=$(((last - first) / width))
	for i in $(seq "$slots"); do
		port=$((first + ($$ + i) % slots * width))
		(mkdir -p "$held" && : >> "$held/$port" && command -v flock) > /dev/null 2>&1 || return 0 # as it comes
		exec 9> "$held/$port"
		if flock -n 9; then return 0; fi
	done
}
