# bash completion for assay; printed by the program from its tables
_assay()
{
	local cur=${COMP_WORDS[COMP_CWORD]} words=
	if [ "$COMP_CWORD" -eq 1 ]; then
		words='info '
	else
		case ${COMP_WORDS[1]} in
		info) words='--help summary cpu memory gpu links fabric storage software all --json --record --machine --real-names' ;;
		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	[ "${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _assay assay
