# Kills what a command left behind: its own process, everything that carries its mark, and orphans nobody owns.
# A mark that is not of a running command belongs to nobody. Marks from "next" up are of commands yet to start.
sweep() {
    next=$1 mark=$2 root=$3 live=" $4 " tries=0
    while [ "$tries" -lt 100 ]; do
        tries=$((tries + 1)) found=
        for entry in /proc/[0-9]*; do
            pid=${entry#/proc/}
            [ "$pid" = 1 ] || [ "$pid" = "$$" ] && continue
            { read -r stat <"$entry/stat"; } 2>/dev/null || continue
            # The name stands in brackets and may hold anything; state and parent follow the last one.
            stat=${stat##*) }
            state=${stat%% *} stat=${stat#* }
            parent=${stat%% *}
            [ "$state" = Z ] && continue
            if [ "$pid" != "$root" ]; then
                job=$({ tr '\0' '\n' <"$entry/environ"; } 2>/dev/null)
                case "$job" in *TOOLWRIGHT_JOB=*) ;; *) job= ;; esac
                job=${job#*TOOLWRIGHT_JOB=}
                job=${job%%[!0-9]*}
                if [ -z "$job" ]; then
                    [ "$parent" = 1 ] || continue
                elif [ "$job" != "$mark" ]; then
                    [ "$job" -lt "$next" ] 2>/dev/null || continue
                    case "$live" in *" $job "*) continue ;; esac
                fi
            fi
            kill -KILL "$pid" 2>/dev/null && found=1
        done
        [ -z "$found" ] && return
    done
}
