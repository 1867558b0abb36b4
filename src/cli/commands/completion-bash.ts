/**
 * The script for bash. Unlike that of the library for completions it runs nothing that stands on the line, and nothing that a candidate says:
 * that one gives the line to `eval`, with its redirections, and the candidates to `compgen -W`, which expands them.
 */
export const BASH_SCRIPT = `# bash completion for tollgate

_tollgate() {
    local cur prev words cword value description
    # Takes redirections out of the words, and completes their files itself.
    _init_completion -n '=:' || return
    COMPREPLY=()
    while IFS=$'\\t' read -r value description; do
        [[ $value != :* && $value == "$cur"* ]] && COMPREPLY+=("$value")
    done < <(tollgate complete -- "\${words[@]:1:cword-1}" "$cur" 2>/dev/null)
}

complete -F _tollgate tollgate
`;
