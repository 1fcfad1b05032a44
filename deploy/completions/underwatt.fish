# Completion of underwatt for fish.  Commands and options are asked of the program itself.
function __underwatt_commands
    underwatt --help 2>/dev/null | string match -r '^  [a-z-]+  .*' | string replace -r '^  ([a-z-]+) +(.*)' '$1\t$2'
end
function __underwatt_options
    set -l words (commandline -opc)
    underwatt $words[2] --help 2>/dev/null | string match -r '^ .*--[a-z-]+.*' | string replace -r '^ +(?:-[a-zA-Z], )?(--[a-z-]+)(?: [A-Z|%-]+)? +(.*)' '$1\t$2'
end
function __underwatt_presets
    set -l names (underwatt policy show 2>/dev/null | string match -r '^presets: .*' | string replace -r '^presets: ' '' | string split ', ' | string replace -r ' [0-9.]+ %$' '')
    if test (count $names) -gt 0
        string join \n $names
    else
        string join \n aggressive balanced minimal
    end
end
function __underwatt_classes
    underwatt policy show 2>/dev/null | string match -r '^classes: .*' | string replace -r '^classes: ' '' | string split ', '
end
function __underwatt_before
    set -l words (commandline -opc)
    test (count $words) -gt 0; and test $words[-1] = $argv[1]
end
complete -c underwatt -f
complete -c underwatt -n __fish_is_first_token -a '(__underwatt_commands)'
complete -c underwatt -n 'not __fish_is_first_token' -a '(__underwatt_options)'
complete -c underwatt -n '__underwatt_before --goal' -a 'energy edp eds: cost: slowdown: time'
complete -c underwatt -n '__underwatt_before --preset' -a '(__underwatt_presets)'
complete -c underwatt -n '__underwatt_before --class' -a '(__underwatt_classes)'
complete -c underwatt -n '__underwatt_before --by' -a 'job user group project class partition account qos array gpu cpu day label:'
complete -c underwatt -n '__underwatt_before --format' -a 'text csv json html'
complete -c underwatt -n '__fish_seen_subcommand_from cap' -a 'set clear show'
complete -c underwatt -n '__fish_seen_subcommand_from policy' -F -a 'check show'
complete -c underwatt -n '__fish_seen_subcommand_from signal' -a 'list set unset'
complete -c underwatt -n '__fish_seen_subcommand_from carbon price' -a 'now forecast'
