# Completion of underwatt for bash.  Commands and options are asked of the program
# itself, so they are those of the version installed.

_underwatt_commands() {
    "$1" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\)  .*/\1/p'
}

_underwatt_options() {
    "$1" "$2" --help 2>/dev/null |
        sed -n 's/^  \(-[a-zA-Z]\), \(--[a-z-]*\).*/\1 \2/p; s/^      \(--[a-z-]*\).*/\1/p'
}

# Those of the daemon's policy; without a daemon the built-in ones.
_underwatt_presets() {
    local names
    names=$("$1" policy show 2>/dev/null | sed -n 's/ [0-9.]* %//g; s/,//g; s/^presets: //p')
    echo "${names:-aggressive balanced minimal}"
}

# Those of the daemon's policy and of its caps.classes.
_underwatt_classes() {
    "$1" policy show 2>/dev/null | sed -n 's/,//g; s/^classes: //p'
}

# Does this option take a value?
_underwatt_takes() {
    "$1" "$2" --help 2>/dev/null | grep -Eq -- "^ .*$3 [A-Z]"
}

_underwatt() {
    local cur prev cmd program i
    COMPREPLY=()
    program=${COMP_WORDS[0]}
    cur=${COMP_WORDS[COMP_CWORD]}
    prev=${COMP_WORDS[COMP_CWORD-1]}
    cmd=${COMP_WORDS[1]}

    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "$(_underwatt_commands "$program") --help --version" -- "$cur"))
        return
    fi
    # Behind -- stands another program's command line.
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [ "${COMP_WORDS[i]}" = -- ]; then
            if [ "$i" -eq $((COMP_CWORD - 1)) ]; then
                COMPREPLY=($(compgen -c -- "$cur"))
            else
                COMPREPLY=($(compgen -f -- "$cur"))
            fi
            return
        fi
    done
    case $prev in
    --goal|-g)
        COMPREPLY=($(compgen -W "energy edp eds: cost: slowdown: time" -- "$cur")); return ;;
    --preset)
        COMPREPLY=($(compgen -W "$(_underwatt_presets "$program")" -- "$cur")); return ;;
    --class)
        COMPREPLY=($(compgen -W "$(_underwatt_classes "$program")" -- "$cur")); return ;;
    --by)
        COMPREPLY=($(compgen -W "job user group project class partition account qos array gpu cpu day label:" -- "$cur")); return ;;
    --format)
        COMPREPLY=($(compgen -W "text csv json html" -- "$cur")); return ;;
    --gpus)
        COMPREPLY=($(compgen -W "all $("$program" list 2>/dev/null | sed -n 's/^ *\([0-9][0-9]*\) .*/\1/p')" -- "$cur"))
        return ;;
    esac
    case $prev in
    --json|--report|--output|--boards|--ledger|--config)
        COMPREPLY=($(compgen -f -- "$cur")); return ;;
    esac
    case $cmd:$prev in
    report:-b)
        COMPREPLY=($(compgen -W "job user group project class partition account qos array gpu cpu day label:" -- "$cur")); return ;;
    report:-f)
        COMPREPLY=($(compgen -W "text csv json html" -- "$cur")); return ;;
    esac
    case $prev in
    -?*)
        _underwatt_takes "$program" "$cmd" "$prev" && return ;;
    esac
    case $cmd:$cur in
    *:-*)
        COMPREPLY=($(compgen -W "$(_underwatt_options "$program" "$cmd") --" -- "$cur")) ;;
    cap:*)
        COMPREPLY=($(compgen -W "set clear show" -- "$cur")) ;;
    policy:*)
        COMPREPLY=($(compgen -W "check show" -- "$cur") $(compgen -f -- "$cur")) ;;
    signal:*)
        COMPREPLY=($(compgen -W "list set unset" -- "$cur")) ;;
    carbon:*|price:*)
        COMPREPLY=($(compgen -W "now forecast" -- "$cur")) ;;
    help:*)
        COMPREPLY=($(compgen -W "$(_underwatt_commands "$program")" -- "$cur")) ;;
    esac
    # "eds:" wants its value right behind it.
    case ${COMPREPLY[0]-} in
    *:) [ "${#COMPREPLY[@]}" -eq 1 ] && compopt -o nospace 2>/dev/null ;;
    esac
}
complete -F _underwatt underwatt
