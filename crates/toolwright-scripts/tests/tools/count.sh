#!/bin/sh
# /// tool
# description: Counts the lines of a text.
# input:
#   - {name: text, type: str, description: The text.}
#   - {name: prefix, type: str, optional: true, description: Only lines that begin so.}
# args: env
# output:
#   type: object
#   properties: {lines: {type: integer}}
#   required: [lines]
# read_only: true
# ///
printf '{"lines": %s}' "$(printf '%s\n' "$argc_text" | grep -c "^${argc_prefix:-}")"
