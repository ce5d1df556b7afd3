# Sourced by POSIX shells. find_node ROOT [STAMP] prints the path of a Node of 24 or newer: the PATH's, else
# ROOT/.node's; fails when there is none. To ask a binary for its version costs more than the rest of a launcher, so what
# was found is noted in the file STAMP, if one is given, as `ls` shows it: inode, size, time and path.
find_node() {
  for candidate in "$(command -v node 2>/dev/null || true)" "$1/.node/bin/node"; do
    [ -n "$candidate" ] && [ -x "$candidate" ] || continue
    seen=
    if [ -n "${2:-}" ]; then
      seen=$(LC_ALL=C ls -Lnil -- "$candidate" 2>/dev/null) || seen=
      # A small file is a script or a shim, which may run another Node in another folder.
      size=$(set -f && set -- $seen && printf %s "${6:-}")
      [ "$size" -ge 30000000 ] 2>/dev/null || seen=
      if [ -n "$seen" ] && [ -r "$2" ] && IFS= read -r known <"$2" && [ "$known" = "$seen" ]; then
        printf '%s\n' "$candidate"
        return 0
      fi
    fi
    version=$("$candidate" --version 2>/dev/null) || continue
    major=${version#v}
    major=${major%%.*}
    if [ "$major" -ge 24 ] 2>/dev/null; then
      if [ -n "$seen" ]; then
        { printf '%s\n' "$seen" >"$2"; } 2>/dev/null || true
      fi
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}
