# bash completion for assay; printed by the program from its tables
_assay()
{
	local cur=${COMP_WORDS[COMP_CWORD]} words=
	if [ "$COMP_CWORD" -eq 1 ]; then
		words='archive check compare info list probe report roofline '
	else
		case ${COMP_WORDS[1]} in
		archive) words='--help --out --check' ;;
		check) words='--help --suite --target --out --seconds --rounds --search-seconds --seed --resume --plan --machine --expect --site --expectations --wait --beside --price --telemetry --real-names --format --json' ;;
		compare) words='--help --as --json --all --expectations' ;;
		info) words='--help summary cpu memory gpu links fabric storage software all --json --record --machine --real-names' ;;
		list) words='--help probes engines suites causes expectations --suite --machine --expectations --all --json' ;;
		probe) words='--help --target --out --seconds --rounds --search-seconds --seed --resume --plan --machine --expect --site --expectations --wait --beside --price --telemetry --real-names --format --json --engine clock_state contamination dispatch ecc gemm gpu_count gpu_mode hbm host_state limits link memory nccl_env null numa nvlink_state pcie_state peak remap sm stress versions xid' ;;
		report) words='--help --format --json --expectations --expect --site --real-names --write' ;;
		roofline) words='--help --out --format --expectations --seconds --price --real-names' ;;
		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	[ "${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _assay assay
