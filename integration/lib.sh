# Common to the commands of this folder; to be sourced. Brings the machine to the point where Python takes over.
# shellcheck shell=bash

TREE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${KUBELET_MP_CACHE:-/var/cache/kubelet-mp}

say() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Start the calling command again as root, with the same PATH (Go may be there) and settings.
as_root() {
  if [ "$(id -u)" = 0 ]; then return; fi
  command -v sudo >/dev/null || die "this must run as root, and there is no sudo: run it as root"
  exec sudo -E env "PATH=$PATH" "$@"
}

# apt_install PACKAGE…: install Debian packages that the caller found missing.
apt_install() {
  command -v apt-get >/dev/null || die "these Debian packages are needed, and there is no apt-get here: $*"
  say "installing Debian packages: $*"
  export DEBIAN_FRONTEND=noninteractive
  apt-cache show "$@" >/dev/null 2>&1 || apt_update
  apt_try "$@" || { apt_update && apt_try "$@"; } || die "apt-get install $* failed, its output is above"
}
apt_update() {
  say "fetching the package lists (apt-get update)"
  apt-get -qq update >&2 || die "apt-get update failed: is the machine's Debian mirror reachable?"
}
apt_try() { apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" </dev/null 1>&2; }

# need_commands COMMAND:PACKAGE…: install the packages whose command is not there.
need_commands() {
  local pair missing=()
  for pair in "$@"; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}"
}

# The first interpreter that is new enough and can make a virtual environment.
find_python() {
  local p
  for p in python3 python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if "$p" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$p"
      return
    fi
  done
  return 1
}

# Sets PY to the interpreter of a virtual environment that holds all dependencies, made on the first call.
need_python() {
  local base
  base=$(find_python) || { apt_install python3 python3-venv; base=$(find_python); } ||
    die "Python 3.11 or newer with its venv module is needed (Debian 12: python3-venv)"
  # nothing is written into the tree, whoever owns it; byte code is kept as that of an installed package is
  export KUBELET_MP_CACHE=$CACHE PYTHONPYCACHEPREFIX=$CACHE/pycache PYTHONPATH=$TREE
  unset PYTHONDONTWRITEBYTECODE
  PY=$("$base" -m integration.rig.venv) || exit 1
}

# What a container runtime needs of the machine: packet filter, network tool, the library of runc.
need_runtime_packages() {
  need_commands iptables:iptables ip:iproute2
  compgen -G '/usr/lib/*/libseccomp.so.2' >/dev/null || apt_install libseccomp2
}

# What building the tests' runtime needs beside Go.
need_build_packages() {
  need_commands gcc:gcc pkg-config:pkg-config
  [ -e /usr/include/stdio.h ] || apt_install libc6-dev
  pkg-config --exists libseccomp || apt_install libseccomp-dev
}
