# shellcheck shell=bash
# Installs the tools that ./run and ./test need. Both source this file.
#
# On Debian and Ubuntu, missing packages come from apt. Rust comes from rustup. On other systems
# the functions only name what is missing. Nothing here asks a question.

# The oldest versions that work. Cargo.toml has that of Rust.
oldest_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
oldest_node=18.14
oldest_python=3.11

packages=() # of apt, to install
names=()    # of what is missing, for people

# options "$@": reads the only option, --no-install.
options() {
    install=yes
    for option; do
        case $option in
        --no-install) install=no ;;
        -h | --help)
            echo "usage: ./$command [--no-install]"
            echo "Installs missing tools, then runs 'make $command'. With --no-install, it installs nothing."
            exit 0
            ;;
        *)
            echo "./$command: unknown option '$option'; the only option is --no-install" >&2
            exit 2
            ;;
        esac
    done
}

say() { echo "./$command: $*" >&2; }

fail() {
    say "$@"
    exit 1
}

# at_least VERSION MINIMUM: is this version new enough? Compares numbers, part by part.
at_least() {
    local IFS=.
    # shellcheck disable=SC2086 # split at the dots
    set -- $1 : $2
    local have=() part
    while [ "$1" != : ]; do
        have+=("${1%%[!0-9]*}")
        shift
    done
    shift
    have+=(0 0 0)
    for part; do
        ((${have[0]:-0} > part)) && return 0
        ((${have[0]:-0} < part)) && return 1
        have=("${have[@]:1}")
    done
    return 0
}

# need NAME PACKAGE… -- TEST…: if the test fails, the packages must be installed.
need() {
    local name=$1 wanted=()
    shift
    while [ "$1" != -- ]; do
        wanted+=("$1")
        shift
    done
    shift
    "$@" >/dev/null 2>&1 && return
    names+=("$name")
    packages+=("${wanted[@]}")
}

has() { command -v "$1"; }
node_works() { at_least "$(node --version | tr -d v)" $oldest_node; }
python_works() {
    "${PYTHON:-python3}" -c "import sys, ensurepip, venv; sys.exit(sys.version_info < (${oldest_python/./, }))"
}
chromium_works() { [ -x "${CHROMIUM:-}" ] || has chromium || has chromium-browser || has google-chrome; }
rust_works() { cargo --version && at_least "$(rustc --version | cut -d' ' -f2)" "$oldest_rust"; }

# Daemons lie where not every user looks.
slurm_works() { PATH=$PATH:/usr/sbin has slurmctld && PATH=$PATH:/usr/sbin has slurmd && has sbatch && PATH=$PATH:/usr/sbin has munged; }

# Ubuntu has another name for it.
chromium_package() {
    if grep -qs '^ID=ubuntu' /etc/os-release; then echo chromium-browser; else echo chromium; fi
}

debian() { [ -e /etc/debian_version ] && has apt-get >/dev/null; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif has sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root to install packages, and there is no sudo. As root, run: apt-get install ${packages[*]}"
    fi
}

# Each of these adds to what is missing.
need_build_tools() {
    need make make -- has make
    need 'a C compiler (cc)' gcc libc6-dev -- has cc
}

need_test_tools() {
    need cmp diffutils -- has cmp
    need "Python $oldest_python or later with venv (python3)" python3 python3-venv -- python_works
    need "Node.js $oldest_node or later (node)" nodejs -- node_works
    need npm npm -- has npm
    need Chromium "$(chromium_package)" fonts-liberation -- chromium_works
    need tshark tshark -- has tshark
    need 'Slurm (slurmctld, slurmd, sbatch) and munged' slurmctld slurmd slurm-client munge -- slurm_works
}

# Installs the packages that are missing.
install_packages() {
    ((${#packages[@]})) || return 0
    say "installs with apt-get: ${packages[*]}"
    as_root apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get -qq -o Dpkg::Use-Pty=0 install --yes --no-install-recommends "${packages[@]}" >/dev/null
}

# Installs Rust, or a newer one beside a rustup that has none.
install_rust() {
    if has rustup >/dev/null; then
        say "installs Rust $oldest_rust with rustup, beside the toolchains that are there"
        rustup toolchain install "$oldest_rust" --profile minimal
        export RUSTUP_TOOLCHAIN=$oldest_rust
    else
        say "installs Rust $oldest_rust with rustup's installer, into ${CARGO_HOME:-~/.cargo} and ${RUSTUP_HOME:-~/.rustup}"
        local installer
        installer=$(mktemp)
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs -o "$installer" ||
            fail "cannot download rustup's installer. Install Rust $oldest_rust or later from https://rustup.rs"
        sh "$installer" -y --profile minimal --default-toolchain "$oldest_rust"
        rm -f "$installer"
    fi
    rust_works >/dev/null || fail "Rust $oldest_rust is still missing after the installation; see https://rustup.rs"
}

# Installs rustfmt and clippy.
install_rust_checks() {
    local component
    for component in rustfmt clippy; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
        has rustup >/dev/null || fail "needs $component, which comes with Rust: install Rust with https://rustup.rs"
        say "installs $component with rustup"
        rustup component add "$component"
    done
}

# setup COMMAND [OPTION…]: whatever `make COMMAND` needs is there afterwards.
setup() {
    command=$1
    shift
    options "$@"
    # Where rustup's installer puts Rust.
    export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    [ $install = yes ] || return 0

    local rust=yes
    rust_works >/dev/null 2>&1 || rust=no
    need_build_tools
    [ "$command" = run ] || need_test_tools
    if [ $rust = no ] && ! has rustup >/dev/null; then
        need curl curl ca-certificates -- has curl
    fi
    if ! debian; then
        [ $rust = yes ] || names+=("Rust $oldest_rust or later (https://rustup.rs)")
        ((${#names[@]} == 0)) || fail "installs only on Debian and Ubuntu. Install these: $(listed "${names[@]}")"
    fi
    install_packages
    [ $rust = yes ] || install_rust
    [ "$command" = run ] || install_rust_checks
    missing_still
}

listed() {
    local text=$1
    shift
    for name; do text+=", $name"; done
    echo "$text"
}

# A distribution's version can be too old.
missing_still() {
    names=()
    need_build_tools
    [ "$command" = run ] || need_test_tools
    ((${#names[@]} == 0)) || fail "still missing after the installation: $(listed "${names[@]}")"
}
