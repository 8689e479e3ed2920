#!/bin/bash
# @describe Fail after some output.
# @option --code=3 <INT> The exit code
# @arg words* Words to print
echo "some output"
echo "what went wrong" >&2
code=3
while [[ $# -gt 0 ]]; do
    case "$1" in
        --code) code="$2"; shift 2 ;;
        --code=*) code="${1#*=}"; shift ;;
        --) shift ;;
        *) echo "word <$1>"; shift ;;
    esac
done
exit "$code"
