#!/usr/bin/env bash
# The devices of four testbeds on real frames, with a binary of xoff. Lockstep must give the bytes of the
# simulator, with devices as processes and as threads. By the wall clock the ring must deadlock under PFC, tshark
# must see its pauses, and Roundabout must dissolve the deadlock without loss. A device that is killed or stopped
# must be named, and nothing may be left of a run. Usage: live.sh XOFF DIRECTORY
set -euo pipefail
xoff=$(realpath "$1")
out=$2
root=$(cd "$(dirname "$0")/.." && pwd)
rm -rf "$out"
mkdir -p "$out"
out=$(realpath "$out")
ring=$root/examples/ring3.toml

# The same for an ordinary user, if this one is root: the files lie where that user may read them.
as=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    cp "$xoff" "$copy/xoff"
    cp "$ring" "$copy"
    chmod -R a+rX "$copy"
    as=(setpriv --reuid 65534 --regid 65534 --clear-groups "$copy/xoff" live "$copy/ring3.toml" --lockstep --no-out)
fi

if ! "$xoff" live "$ring" --lockstep --no-out --quiet >"$out/first.txt" 2>&1; then
    if grep -q 'forbids network namespaces' "$out/first.txt"; then
        echo "live: skipped, $(grep -o 'this system forbids.*' "$out/first.txt")"
        exit 0
    fi
    cat "$out/first.txt"
    exit 1
fi
if [ ${#as[@]} -gt 0 ]; then
    if "${as[@]}" --quiet >"$out/user.txt" 2>&1; then
        echo 'live: ok     an ordinary user runs the ring'
    elif grep -q 'forbids network namespaces' "$out/user.txt"; then
        echo 'live: skipped, an ordinary user may not make namespaces here'
    else
        cat "$out/user.txt"
        exit 1
    fi
fi

# NAME FILE SCHEME [KEY=VALUE ...]
how=()
lockstep() {
    local name=$1 file=$2 set=(--set "flow_control.scheme=$3")
    for key in "${@:4}"; do set+=(--set "$key"); done
    "$xoff" run "$file" "${set[@]}" --quiet --out "$out/$name-simulated" >/dev/null
    "$xoff" live "$file" "${set[@]}" --lockstep "${how[@]}" --quiet --out "$out/$name" >/dev/null
    for table in flows pauses series drops; do
        [ ! -e "$out/$name-simulated/$table.parquet" ] ||
            cmp "$out/$name-simulated/$table.parquet" "$out/$name/$table.parquet"
    done
    echo "live: ok     lockstep equals the simulator: $name"
}
storm=(flow_control.detection_time=50us flow_control.restoration_time=50us)
lockstep ring-pfc "$ring" pfc
lockstep ring-watchdog "$ring" pfc-watchdog "${storm[@]}"
lockstep ring-itsy "$ring" itsy
lockstep ring-roundabout "$ring" roundabout
for scheme in pfc tagger portfc; do
    lockstep "relaying-hosts-$scheme" "$root/examples/live/relaying-hosts.toml" "$scheme"
done
for scheme in pfc bfc pyrrha; do
    lockstep "incast-$scheme" "$root/examples/live/incast.toml" "$scheme"
done
how=(--one-process)
lockstep ring-threads "$ring" roundabout
lockstep incast-threads "$root/examples/live/incast.toml" pfc
how=()
lockstep long-link-pfc "$root/examples/live/long-link.toml" pfc
lockstep long-link-bifrost "$root/examples/live/long-link.toml" bifrost flow_control.slot=2us

# tshark and the dissector in wireshark/ decode every control frame that leaves a device.
# NAME FILE SCHEME DEVICE
frames() {
    command -v tshark >/dev/null || return 0
    local file=$out/$1-frames.pcapng
    "$xoff" live "$2" --set "flow_control.scheme=$3" --lockstep --no-out --quiet \
        --in "$4=tshark -q -i any -w $file" >/dev/null 2>"$out/tshark.txt"
    # Some systems permit captures only to members of a group.
    [ -s "$file" ] || { echo "live: left out, tshark captures nothing: $1"; return 0; }
    read() { tshark -X "lua_script:$root/wireshark/xoff.lua" -r "$file" -Y "$1" 2>>"$out/tshark.txt" | wc -l; }
    local control bad
    control=$(read 'macc or xoff')
    bad=$(read '(_ws.malformed or _ws.expert.severity == "Error") or ((eth.type == 0x88b5 or sll.etype == 0x88b5) and not xoff)')
    [ "$control" -gt 0 ] && [ "$bad" = 0 ] || { echo "live: tshark: $1: $control control frames, $bad bad"; exit 1; }
    echo "live: ok     tshark decodes $control control frames: $1"
}
frames ring-pfc "$ring" pfc S0.0
frames ring-roundabout "$ring" roundabout S0.0
frames ring-itsy "$ring" itsy S0.0
frames incast-bfc "$root/examples/live/incast.toml" bfc S0.0
frames incast-pyrrha "$root/examples/live/incast.toml" pyrrha S0.0
frames incast-cbfc "$root/examples/live/incast.toml" cbfc S0.0

# Drills: a link fails and recovers, frames are lost, a host stops reading for good.
lockstep drill-link "$root/examples/live/incast.toml" pfc 'failure=[{link="S0.0-S1.0",at="5us",until="15us"}]'
lockstep drill-switch "$root/examples/live/incast.toml" pfc 'failure=[{switch="S1.1",at="5us"}]' run.duration=300us
lockstep drill-loss "$root/examples/live/incast.toml" pfc 'loss=[{link="S0.0-S1.0",rate=0.05}]' run.duration=300us
lockstep drill-storm "$root/examples/live/incast.toml" pfc 'slow_receiver=[{host="H0",stall_from="3us",stall_until="1s"}]' \
    host.buffer=60kB run.duration=300us

# After kill -9, and after Ctrl-C, no process and no namespace of the run is left. SIGNAL STATUS [OPTION]
left() { { readlink /proc/[0-9]*/ns/net /proc/[0-9]*/task/*/ns/net /proc/[0-9]*/fd/* 2>/dev/null || true; } | sort -u; }
vanish() {
    "$xoff" live "$ring" --dilate 1000000 --quiet --overwrite --out "$out/ended" ${3:+"$3"} >/dev/null 2>&1 &
    local ended=$! made processes status=0 i
    sleep 3
    processes=$(cat "/proc/$ended/task/$ended/children")
    made=$(for process in $ended $processes; do readlink "/proc/$process/ns/net" "/proc/$process"/fd/*; done |
        grep '^net:' | sort -u | grep -vxF "$(readlink /proc/self/ns/net)" || true)
    [ -n "$made" ] || { echo 'live: the run has no namespace'; exit 1; }
    kill -s "$1" "$ended"
    wait "$ended" 2>/dev/null || status=$?
    [ "$status" = "$2" ] || { echo "live: $1 ends the run with status $status"; exit 1; }
    for i in 1 2 3 4 5 6 7 8 9 10; do
        ! grep -qxF "$made" <(left) || { sleep 0.2; continue; }
        ! ls -d ${processes:+$(printf '/proc/%s ' $processes)} 2>/dev/null | grep -q /proc/ || { sleep 0.2; continue; }
        echo "live: ok     $(wc -w <<<"$processes") processes and $(wc -l <<<"$made") namespaces vanish with $1 ${3:-}"
        return
    done
    echo "live: a process or a namespace is left after $1 ${3:-}"
    exit 1
}
vanish KILL 137
vanish KILL 137 --one-process
vanish INT 130
grep -q '"stop": "interrupted"' "$out/ended/manifest.json"

# A device dies, or hangs. DEVICE SIGNAL SECONDS
hit() {
    local run=$! process
    sleep 2.5
    for process in $(cat "/proc/$run/task/$run/children"); do
        [ "$(cat "/proc/$process/comm")" != "xoff:$1" ] || break
    done
    kill -s "$2" "$process"
    sleep "$3"
    [ "$2" = KILL ] || kill -s CONT "$process"
    status=0
    wait "$run" || status=$?
    [ "$status" = 6 ] || { cat "$out/drill.txt"; echo "live: $2 of $1 ends with status $status"; exit 1; }
}
"$xoff" live "$ring" --dilate 20000 --quiet --overwrite --out "$out/drill" >"$out/drill.txt" 2>&1 &
hit S0.1 KILL 0
tr -s '\n ' ' ' <"$out/drill.txt" | grep -q 'S0.1 (process [0-9]*) was killed by SIGKILL at'
grep -q '"valid": false' "$out/drill/manifest.json"
grep -q '"stop": "end-time"' "$out/drill/manifest.json"
grep -q '"state": "not-promised"' "$out/drill/summary.json"
if grep '"state": "held"' "$out/drill/summary.json"; then exit 1; fi
"$xoff" explain "$out/drill" >/dev/null
echo 'live: ok     the others go on after a switch was killed, and the results name it'
"$xoff" live "$ring" --dilate 50000 --set flow_control.scheme=roundabout --set traffic.0.size=1MB \
    --set run.duration=100us --quiet --overwrite --out "$out/drill" >"$out/drill.txt" 2>&1 &
hit H0 STOP 1
tr -s '\n ' ' ' <"$out/drill.txt" | grep -q 'H0 was stopped for [01].[0-9] s from'
echo 'live: ok     the results name a host that was stopped'

# By the wall clock, RUNS times: until an event is too late, no device sees anything in another order than in the
# simulator. A machine with other work is slower: then the same with more time. NAME FILE SCHEME COMMAND [KEY=VALUE ...]
wall() {
    local name=$1 set=(--set "flow_control.scheme=$3") key dilate status worst=0 fastest=0
    for key in "${@:5}"; do set+=(--set "$key"); done
    "$xoff" run "$2" "${set[@]}" --quiet --out "$out/$name-simulated" >/dev/null
    for ((i = 1; i <= ${RUNS:-1}; i++)); do
        for dilate in 20000 80000; do
            status=0
            "$xoff" live "$2" "${set[@]}" --dilate "$dilate" --quiet --overwrite --out "$out/$name" --in "S0.0=$4" \
                >"$out/$name.txt" 2>&1 || status=$?
            [ "$status" = 6 ] || break
            echo "live: invalid at a dilation of $dilate: $(tr -s '\n ' ' ' <"$out/$name.txt" | grep -o 'events were at most [^;]*')"
        done
        [ "$status" = 0 ] || { cat "$out/$name.txt"; exit 1; }
        for table in flows pauses; do cmp "$out/$name-simulated/$table.parquet" "$out/$name/$table.parquet"; done
        value() { grep -o "\"$1\": [0-9]*" "$out/$name/manifest.json" | grep -o '[0-9]*$'; }
        worst=$(($(value latest_ps) > worst ? $(value latest_ps) : worst))
        fastest=$(($(value busiest_device_frames_per_second) > fastest ? $(value busiest_device_frames_per_second) : fastest))
    done
    echo "live: ok     ${RUNS:-1} by the wall clock as simulated: $name; at most $((worst / 1000)) ns late, $fastest frames/s in a device"
}
capture=true
if command -v tshark >/dev/null; then
    capture="tshark -q -i p1 -w $out/ring.pcapng"
fi
wall wall-pfc "$ring" pfc "$capture" run.duration=250us
grep -q '^deadlock *formed' "$out/wall-pfc.txt"
echo 'live: ok     the ring deadlocks under PFC on real frames'
if [ -e "$out/ring.pcapng" ]; then
    pauses=$(tshark -r "$out/ring.pcapng" -Y 'macc.opcode == 0x0101' 2>/dev/null | wc -l)
    [ "$pauses" -ge 2 ] || { echo "live: tshark saw $pauses PFC frames"; exit 1; }
    echo "live: ok     tshark decodes $pauses PFC frames of S0.0:1"
fi
wall wall-roundabout "$ring" roundabout true run.duration=250us
grep -q '^deadlock *none' "$out/wall-roundabout.txt"
grep -q '^losslessness *held' "$out/wall-roundabout.txt"
grep -q '3 of 3 flows finished' "$out/wall-roundabout.txt"
echo 'live: ok     Roundabout dissolves the deadlock; nothing is lost'

# The other testbeds, and schemes of the ring. With RUNS=10 this takes seven minutes.
wall wall-watchdog "$ring" pfc-watchdog true run.duration=250us "${storm[@]}"
wall wall-itsy "$ring" itsy true run.duration=250us
for scheme in pfc tagger portfc; do
    wall "wall-relaying-hosts-$scheme" "$root/examples/live/relaying-hosts.toml" "$scheme" true run.duration=60us
done
for scheme in pfc bfc pyrrha; do
    wall "wall-incast-$scheme" "$root/examples/live/incast.toml" "$scheme" true run.duration=60us
done
wall wall-long-link-pfc "$root/examples/live/long-link.toml" pfc true run.duration=200us
wall wall-long-link-bifrost "$root/examples/live/long-link.toml" bifrost true run.duration=200us flow_control.slot=2us
