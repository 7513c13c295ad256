# Completion for bash. It asks jobboard for the commands and the jobs on the board.

_jobboard() {
    local rest=${COMP_LINE:0:COMP_POINT} words=() helps=() word gap at value help head width=0
    # bash splits words at = and :, but here they belong to the word.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        gap=${rest%%[![:space:]]*}
        rest=${rest#"$gap"}
        # Of the last word, only the part before the cursor counts.
        [[ $rest == "$word"* ]] || word=$rest
        rest=${rest#"$word"}
        if [[ -n $gap || ${#words[@]} -eq 0 ]]; then
            words+=("$word")
        else
            words[-1]+=$word
        fi
    done
    # Any command can follow --.
    [[ " ${words[*]} " != *" -- "* ]] || compopt -o default
    head=${words[-1]%"$2"}
    head=${head//[\"\']/}
    COMPREPLY=()
    while IFS=$'\t' read -r value help; do
        value=${value#"$head"}
        if [[ ${words[-1]} != [\"\']* && $value == *[![:alnum:]_@%+=:,./~-]* ]]; then
            printf -v value %q "$value"
        fi
        COMPREPLY+=("$value")
        helps+=("$help")
        ((${#value} <= width)) || width=${#value}
    done < <(COMPLETE=bash jobboard -- "${words[@]}" 2>/dev/null)
    if ((${#COMPREPLY[@]} == 1)); then
        [[ ${COMPREPLY[0]} != *[=:/.] ]] || compopt -o nospace
    elif ((COMP_TYPE != 37)); then
        # bash inserts only the common prefix; a menu (37) inserts a candidate unchanged.
        for at in "${!COMPREPLY[@]}"; do
            [[ -n ${helps[at]} ]] || continue
            printf -v value '%-*s  (%s)' "$width" "${COMPREPLY[at]}" "${helps[at]}"
            COMPREPLY[at]=${value:0:${COLUMNS:-80}-2}
        done
    fi
}

complete -o bashdefault -o nosort -F _jobboard jobboard
