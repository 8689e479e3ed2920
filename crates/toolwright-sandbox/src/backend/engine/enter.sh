# Becomes a command. The first line on standard error tells whether it starts, with a word the command cannot know.
word=$1 folder=$2 rows=$3 columns=$4 input=$5 count=$6
shift 6
# An engine may lose the answer of a command that leaves its input unread.
refuse() {
    echo "$word $1" >&2
    cat >/dev/null
    exit 0
}
while [ "$count" -gt 0 ]; do
    eval "export $1=\"\$TOOLWRIGHT_VALUE_$count\"; unset TOOLWRIGHT_VALUE_$count"
    shift
    count=$((count - 1))
done
cd "$folder" 2>/dev/null || refuse folder
case $1 in
*/*) found=$1 ;;
*)
    found=
    set -f
    IFS=:
    for place in $PATH; do
        place=${place:-.}/$1
        [ -f "$place" ] || continue
        found=$place
        [ -x "$place" ] && break
    done
    set +f
    unset IFS
    ;;
esac
[ -n "$found" ] && [ -e "$found" ] || refuse missing
[ -f "$found" ] && [ -x "$found" ] || refuse refused
[ "$rows" = 0 ] || stty rows "$rows" cols "$columns" 2>/dev/null
echo "$word start $$" >&2
[ "$input" = 0 ] && exec "$@"
# An engine may also take unread input for a failure, so the rest of it is read here. The shell's own remarks on how the
# command ended are nobody's business.
exec 4>&2 2>/dev/null
"$@" 2>&4 4>&-
code=$?
cat >/dev/null
exit "$code"
