#!/usr/bin/env bash
# What tools/setup.sh installs on which machine, and what it says. Nothing is installed here:
# the functions that look at the machine are replaced by those of a pretended one.
set -euo pipefail
cd "$(dirname "$0")/.."
checks=0

# on "THERE…" LINES COMMAND…: runs setup on a machine that has only these tools. The lines in
# LINES override the pretended machine.
on() {
    # shellcheck disable=SC2034 # `there` is read by the functions in $machine
    local there=" $1 " more=$2
    shift 2
    (
        . tools/setup.sh
        # shellcheck disable=SC2034 # read by $more
        real_as_root=$(declare -f as_root)
        eval "$machine
$more"
        setup "$@"
        echo 'done'
    ) 2>&1 || echo "status $?"
}

# A Debian machine, as root. What is installed is there afterwards.
# shellcheck disable=SC2016 # expanded later
machine='
has() { [[ $there == *" $1 "* ]]; }
debian() { true; }
node_works() { has node; }
python_works() { has python; }
chromium_works() { has chromium; }
slurm_works() { has slurm; }
rust_works() { has rust; }
chromium_package() { echo chromium; }
as_root() { echo "root: $*"; [[ $* != *install* ]] || there+=" make cc curl cmp node npm python chromium tshark slurm "; }
curl() { echo "curl: $*"; }
sh() { echo "installer: ${*:2}"; there+=" rust rustup "; }
rustup() { echo "rustup: $*"; there+=" rust "; }
cargo() { has "cargo-$1"; }
'

# expect NAME ACTUAL LINE…: each line of what was printed contains that part, in order.
expect() {
    local name=$1 actual=$2 line
    shift 2
    while IFS= read -r line; do
        if [ $# -eq 0 ] || [[ $line != *"$1"* ]]; then
            printf '%s: expected "%s", got:\n%s\n' "$name" "${1:-nothing more}" "$actual" >&2
            exit 1
        fi
        shift
    done <<<"$actual"
    [ $# -eq 0 ] || { printf '%s: "%s" is missing in:\n%s\n' "$name" "$1" "$actual" >&2; exit 1; }
    checks=$((checks + 1))
}

expect 'a bare machine runs' "$(on '' '' run)" \
    './run: installs with apt-get: make gcc libc6-dev curl ca-certificates' \
    'root: apt-get -qq update' \
    "./run: installs Rust 1.95 with rustup's installer" \
    'curl: --proto =https' \
    'installer: -y --profile minimal --default-toolchain 1.95' \
    'done'
expect 'a bare machine tests' "$(on '' '' test)" \
    './test: installs with apt-get: make gcc libc6-dev diffutils python3 python3-venv nodejs npm chromium fonts-liberation tshark slurmctld slurmd slurm-client munge curl' \
    'apt-get -qq update' \
    './test: installs Rust 1.95' \
    'curl:' \
    'installer:' \
    './test: installs rustfmt with rustup' \
    'rustup: component add rustfmt' \
    './test: installs clippy with rustup' \
    'rustup: component add clippy' \
    'done'
expect 'nothing is missing' "$(on 'make cc rust' '' run)" 'done'
expect 'nothing is missing for tests' \
    "$(on 'make cc cmp python node npm chromium tshark slurm rust rustup cargo-fmt cargo-clippy' '' test)" 'done'
expect 'Rust is too old' "$(on 'make cc rustup' '' run)" \
    './run: installs Rust 1.95 with rustup, beside the toolchains that are there' \
    'rustup: toolchain install 1.95 --profile minimal' \
    'done'
expect 'nothing may be installed' "$(on '' '' run --no-install)" 'done'
expect 'another system' "$(on 'make' 'debian() { false; }' run)" \
    './run: installs only on Debian and Ubuntu. Install these: a C compiler (cc), curl, Rust 1.95 or later (https://rustup.rs)' \
    'status 1'
expect "the distribution's Node.js is too old" "$(on 'rust rustup cargo-fmt cargo-clippy' 'node_works() { false; }' test)" \
    './test: installs with apt-get:' \
    'apt-get -qq update' \
    './test: still missing after the installation: Node.js 18.14 or later (node)' \
    'status 1'
expect "rustup's installer cannot be had" "$(on 'make cc curl' 'curl() { return 6; }' run)" \
    './run: installs Rust' \
    "./run: cannot download rustup's installer. Install Rust 1.95 or later from https://rustup.rs" \
    'status 1'
# shellcheck disable=SC2016 # expanded later
user='eval "$real_as_root"
id() { echo 1000; }
sudo() { echo "sudo: $*"; [[ $* != *install* ]] || there+=" make cc "; }'
expect 'a user with sudo' "$(on 'rust sudo make' "$user" run)" \
    './run: installs with apt-get: gcc libc6-dev' \
    'sudo: apt-get -qq update' \
    'done'
expect 'a user without sudo' "$(on 'rust make' "$user" run)" \
    './run: installs with apt-get: gcc libc6-dev' \
    './run: needs root to install packages, and there is no sudo. As root, run: apt-get install gcc libc6-dev' \
    'status 1'
expect 'an unknown option' "$(on '' '' run --yes)" \
    "./run: unknown option '--yes'; the only option is --no-install" \
    'status 2'

# Versions are compared as numbers.
. tools/setup.sh
for newer in '1.95.0 1.95' '1.100.0-nightly 1.95' '2 1.95' '20.20.2 18.14' '18.14.0 18.14'; do
    at_least "${newer% *}" "${newer#* }" || { echo "$newer: too old" >&2; exit 1; }
    checks=$((checks + 1))
done
for older in '1.94.9 1.95' '1.9 1.95' '17.99 18.14' '18.4.0 18.14'; do
    ! at_least "${older% *}" "${older#* }" || { echo "$older: new enough" >&2; exit 1; }
    checks=$((checks + 1))
done
! at_least '' 1.95 || { echo 'no version is new enough' >&2; exit 1; }

# Both scripts take the option, and call make.
for command in run test; do
    fake=$(mktemp -d)
    printf '#!/bin/sh\necho "make $*"\n' >"$fake/make"
    chmod +x "$fake/make"
    expect "./$command" "$(CARGO_HOME=$fake PATH=$fake:$PATH ./$command --no-install)" "make $command"
    rm -r "$fake"
done

# A workspace with two programs must say which one runs.
! grep -n 'CARGO) run' Makefile | grep -v -e '--bin ' -e ' -p ' || { echo 'which program?' >&2; exit 1; }
echo "$checks checks of ./run and ./test"
