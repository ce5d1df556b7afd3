# Sourced by POSIX shells. private_cache DIR fails unless DIR, all in it and all above it are this user's (above it: or
# root's), and nobody else may write there (above it: but for sticky directories): Node runs what a compile cache holds.
private_cache() {
  cache_user=$(id -u)
  at=$1
  [ -d "$at" ] && at=$(CDPATH= cd -P -- "$at" && pwd -P) || true
  if [ -e "$at" ]; then
    foreign=$(find "$at" \( ! -user "$cache_user" -o -perm -020 -o -perm -002 \) -print 2>&1) || return 1
    [ -z "$foreign" ] || return 1
  fi
  while [ ! -d "$at" ] && [ -n "$at" ]; do at=${at%/*}; done
  at=$(CDPATH= cd -P -- "${at:-/}" && pwd -P) || return 1
  [ -d "$1" ] && at=${at%/*}
  set --
  while [ -n "$at" ]; do
    set -- "$@" "$at"
    at=${at%/*}
  done
  foreign=$(find / "$@" -prune \( ! -user "$cache_user" ! -user 0 -o \( -perm -020 -o -perm -002 \) ! -perm -1000 \) \
    -print 2>&1) || return 1
  [ -z "$foreign" ]
}
