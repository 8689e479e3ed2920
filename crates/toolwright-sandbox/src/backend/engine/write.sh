# Replaces a file by standard input, as a whole or not at all.
word=$1 path=$2 size=$3
# An engine may lose the answer of a command that leaves its input unread.
refuse() {
    echo "$word $1" >&2
    cat >/dev/null
    exit 0
}
[ -d "$path" ] && refuse directory
if [ -e "$path" ]; then
    [ -f "$path" ] || refuse special
    [ -w "$path" ] || refuse refused
fi
if [ -L "$path" ]; then
    target=$(readlink -f "$path") || refuse refused
    path=$target
fi
folder=${path%/*}
mkdir -p "$folder/" 2>/dev/null
[ -d "$folder/" ] && [ -w "$folder/" ] || refuse refused
new=$folder/.toolwright-$word.tmp
trap 'rm -f "$new"' EXIT
echo "$word start $$" >&2
mode=644
[ -e "$path" ] && mode=$(stat -c %a "$path")
(umask 077 && cat >"$new") || exit 3
# Input that ends early, because the runtime is gone, changes nothing.
[ "$(wc -c <"$new")" -eq "$size" ] || exit 4
chmod "$mode" "$new" && mv -f "$new" "$path" || exit 5
