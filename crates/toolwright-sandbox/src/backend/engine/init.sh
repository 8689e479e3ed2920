# Process 1 of the container: says what protects it, then serves the runtime until its input ends, and everything
# in the container ends with it.
while read -r name value rest; do
    case $name in Seccomp: | NoNewPrivs: | CapBnd:) echo "$name $value" ;; esac
done </proc/self/status
{ read -r inside outside count </proc/self/uid_map && echo "Users: $count"; } 2>/dev/null
for limit in memory/memory.limit_in_bytes memory.max; do
    { read -r value <"/sys/fs/cgroup/$limit" && echo "Memory: $value"; } 2>/dev/null
done
for limit in pids/pids.max pids.max; do
    { read -r value <"/sys/fs/cgroup/$limit" && echo "Processes: $value"; } 2>/dev/null
done
echo ready
while read -r order one two three rest; do
    answer=done
    case $order in
    sweep) sweep "$one" "$two" "$three" "$rest" ;;
    signal)
        # The group in the foreground of the command's terminal, or the command's own group.
        if { read -r stat <"/proc/$two/stat"; } 2>/dev/null; then
            set -- ${stat##*) }
            group=$6
            [ "$group" -gt 0 ] || group=$3
            kill -s "$one" -- "-$group" 2>/dev/null
        fi
        ;;
    alive) { read -r stat <"/proc/$one/stat"; } 2>/dev/null && answer=here || answer=gone ;;
    size) stty rows "$one" cols "$two" <"/proc/$three/fd/0" 2>/dev/null ;;
    esac
    echo "$answer"
done
