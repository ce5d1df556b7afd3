#!/bin/sh
# Runs a TypeScript program of this repository: makes sure that packages and a Node of 24 or newer are there (set-up is
# idempotent and quiet; a second run costs milliseconds), then hands over. Usage: run.sh FILE [ARG ...]
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)

# A stamp of the lock file tells whether node_modules is the one it describes.
if [ ! -f "$root/node_modules/.coracle-lock" ] || ! cmp -s "$root/package-lock.json" "$root/node_modules/.coracle-lock"; then
  echo "set-up: installing packages" >&2
  # Not `npm ci`: it refuses a lock file made where an optional package of a foreign platform could not be seen.
  (cd "$root" && npm install --no-save --no-audit --no-fund --loglevel=error >&2)
  cp "$root/package-lock.json" "$root/node_modules/.coracle-lock"
fi

# shellcheck source=tools/setup/find-node.sh
. "$root/tools/setup/find-node.sh"
if ! node_bin=$(find_node "$root"); then
  os=$(uname -s | tr '[:upper:]' '[:lower:]')
  case $(uname -m) in
    x86_64 | amd64) arch=x64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) arch=$(uname -m) ;;
  esac
  echo "set-up: this Node is older than 24; installing a local one into .node/" >&2
  npm install --prefix "$root/.node" --no-save --no-audit --no-fund --loglevel=error "node-$os-$arch@26" >&2
  ln -sfn "node_modules/node-$os-$arch/bin" "$root/.node/bin"
  node_bin=$(find_node "$root") || {
    echo "error: no Node of 24 or newer: install one from your system's packages and run this again" >&2
    exit 1
  }
fi
program=$1
shift
# From here on, files are for their owner; what was installed above is for everybody who may read the repository.
umask 077
# shellcheck source=tools/setup/private-cache.sh
. "$root/tools/setup/private-cache.sh"
if [ -n "${NODE_COMPILE_CACHE:-}" ] && ! private_cache "$NODE_COMPILE_CACHE"; then
  unset NODE_COMPILE_CACHE
  export NODE_DISABLE_COMPILE_CACHE=1
fi
PATH=$(dirname "$node_bin"):$PATH
export PATH
exec "$node_bin" "$root/$program" "$@"
