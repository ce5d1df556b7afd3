# Sourced by POSIX shells. private_cache DIR fails unless DIR, the folders in it and all above it are this user's (above
# it: or root's), and nobody else may write there (above it: but for sticky directories): Node runs what a compile cache
# holds. As `distrustCache` in packages/coracle/src/config/trusted-dir.ts. Single entries are not looked at: there may be tens of
# thousands, and others could place one only in a folder that they may write. One process does it all; each costs a
# launcher as much as the rest of this.
private_cache() (
  cache_user=$(id -u) || exit 1
  at=$1
  case $at in
    /*) ;;
    *) at=$PWD/$at ;;
  esac
  set --
  if [ -d "$at" ]; then
    CDPATH= cd -P -- "$at" || exit 1
    at=${PWD%/*}
    set -- .
    for entry in ./* ./.[!.]* ./..?*; do
      if [ -e "$entry" ] || [ -L "$entry" ]; then set -- "$@" "$entry"; fi
    done
  else
    while [ ! -d "$at" ] && [ -n "$at" ]; do at=${at%/*}; done
    CDPATH= cd -P -- "${at:-/}" || exit 1
    at=$PWD
  fi
  while [ -n "$at" ] && [ "$at" != / ]; do
    set -- "$@" "$at"
    at=${at%/*}
  done
  # What is in it is named from there, what is above it from the root.
  foreign=$(find / "$@" -prune \( \
    -path '/*' ! -user "$cache_user" ! -user 0 -o \
    -path '/*' \( -perm -020 -o -perm -002 \) ! -perm -1000 -o \
    ! -path '/*' ! -user "$cache_user" -o \
    ! -path '/*' \( -perm -020 -o -perm -002 \) \
    \) -print 2>&1) || exit 1
  [ -z "$foreign" ]
)
