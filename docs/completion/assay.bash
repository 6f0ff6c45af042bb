# bash completion for assay; printed by the program from its tables
_assay()
{
	local cur=${COMP_WORDS[COMP_CWORD]} words=
	if [ "$COMP_CWORD" -eq 1 ]; then
		words=''
	else
		case ${COMP_WORDS[1]} in
		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	[ "${#COMPREPLY[@]}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _assay assay
