# Sourced by POSIX shells. find_node ROOT prints the path of a Node of 24 or newer: the PATH's, else ROOT/.node's; fails when there is none.
find_node() {
  for candidate in "$(command -v node 2>/dev/null || true)" "$1/.node/bin/node"; do
    [ -n "$candidate" ] && [ -x "$candidate" ] || continue
    version=$("$candidate" --version 2>/dev/null) || continue
    major=${version#v}
    major=${major%%.*}
    if [ "$major" -ge 24 ] 2>/dev/null; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}
