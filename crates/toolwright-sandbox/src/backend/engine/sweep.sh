# Ends what a command left behind: its own process, everything that carries its mark, and orphans nobody owns.
# A mark that is not of a running command belongs to nobody. Marks from "next" up are of commands yet to start.
# Everything is stopped before anything is killed, so that a bomb of processes finds no place to grow into; and nothing
# here starts a process, for there may be no place for one.
sweep() {
    next=$1 mark=$2 root=$3 live=" $4 "
    for signal in STOP KILL; do
        tries=0 found=1
        while [ "$found" -gt 0 ] && [ "$tries" -lt 100 ]; do
            tries=$((tries + 1)) found=0
            for entry in /proc/[0-9]*; do
                pid=${entry#/proc/}
                [ "$pid" = 1 ] || [ "$pid" = "$$" ] && continue
                { read -r stat <"$entry/stat"; } 2>/dev/null || continue
                # The name stands in brackets and may hold anything; state and parent follow the last one.
                stat=${stat##*) }
                state=${stat%% *} stat=${stat#* }
                parent=${stat%% *}
                case "$state$signal" in [ZX]* | TSTOP) continue ;; esac
                if [ "$pid" != "$root" ]; then
                    job=
                    # Shells leave out the zeros between variables; the mark ends with a point of its own.
                    { while read -r line || [ -n "$line" ]; do
                        case "$line" in *TOOLWRIGHT_JOB=[0-9]*.*) job=${line#*TOOLWRIGHT_JOB=} && break ;; esac
                    done <"$entry/environ"; } 2>/dev/null
                    job=${job%%.*}
                    if [ -z "$job" ]; then
                        [ "$parent" = 1 ] || continue
                    elif [ "$job" != "$mark" ]; then
                        [ "$job" -lt "$next" ] 2>/dev/null || continue
                        case "$live" in *" $job "*) continue ;; esac
                    fi
                fi
                kill -s "$signal" "$pid" 2>/dev/null && found=$((found + 1))
                # Processes that come and go faster than they can be looked at end only all at once. Others that run
                # here go with them, but only when nothing else has helped.
                if [ "$found" -gt 100 ] && { [ -z "${4# }" ] || [ "$tries" -gt 4 ]; }; then
                    kill -s KILL -- -1 2>/dev/null
                    kill -s KILL -- -1 2>/dev/null
                    return
                fi
            done
        done
    done
}
