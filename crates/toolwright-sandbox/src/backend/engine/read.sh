# Sends at most the first bytes of a regular file.
word=$1 path=$2 most=$3
if [ -d "$path" ]; then echo "$word directory" >&2
elif [ ! -e "$path" ]; then echo "$word missing" >&2
elif [ ! -f "$path" ]; then echo "$word special" >&2
elif [ ! -r "$path" ]; then echo "$word refused" >&2
else
    echo "$word start $$" >&2
    exec head -c "$most" "$path"
fi
