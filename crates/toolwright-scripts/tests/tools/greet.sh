#!/usr/bin/env bash
set -e

# @describe Greet somebody.
#
# Several languages are known.
# @option --name! Who is greeted
# @option --language[=en|de] The language
# @option --times=1 <INT> How often
# @option --titles* <TITLE> Titles before the name
# @flag --loud In capital letters

# @env LLM_OUTPUT=/dev/stdout The output path

main() {
    word=Hello
    [[ "$argc_language" == de ]] && word=Hallo
    text="$word${argc_titles:+ ${argc_titles[*]}} $argc_name"
    [[ -n "$argc_loud" ]] && text="${text^^}"
    echo "greeting $argc_times times"
    for (( i = 0; i < argc_times; i++ )); do
        echo "$text" >> "$LLM_OUTPUT"
    done
}

eval "$(argc --argc-eval "$0" "$@")"
