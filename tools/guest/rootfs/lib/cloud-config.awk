# Reads the part of #cloud-config this guest acts on and leaves it as files in the directory `out`:
#   hostname, password, chpasswd (user:password lines), keys, bootcmd, runcmd (shell scripts), heartbeat,
#   files/N.{path,content,permissions,encoding,append}
# It knows the YAML people write there: scalars plain or quoted, block scalars (| and >), lists of both kinds.
# Unknown keys are stepped over, whatever they hold.

{ sub(/\r$/, ""); line[++lines] = $0 }

END {
  at = 1
  while (at <= lines) top()
}

# One key of the outermost level, with all that belongs to it.
function top(   key, rest) {
  if (skip(at) || indent(at) > 0 || !match(line[at], /^["']?[A-Za-z0-9_-]+["']?[ \t]*:([ \t]|$)/)) { at++; return }
  key = substr(line[at], 1, RLENGTH)
  rest = trim(substr(line[at], RLENGTH + 1))
  gsub(/["' \t:]/, "", key)
  at++
  if (key == "hostname") one(rest, "hostname", "[^A-Za-z0-9.-]")
  else if (key == "fqdn" && !("hostname" in seen)) { sub(/\..*/, "", rest); one(rest, "hostname", "[^A-Za-z0-9.-]") }
  else if (key == "password") one(rest, "password", "")
  else if (key == "coracle_heartbeat") { if (scalar(rest) == "true") print "on" > (out "/heartbeat") }
  else if (key == "ssh_authorized_keys") list(rest, "keys")
  else if (key == "runcmd" || key == "bootcmd") list(rest, key)
  else if (key == "write_files") maps()
  else if (key == "chpasswd") passwords()
  else if (rest ~ /^[|>]/) block(1, rest)
}

function one(rest, name, forbidden,   text) {
  text = rest ~ /^[|>]/ ? block(1, rest) : scalar(rest)
  sub(/\n+$/, "", text)
  if (forbidden != "") gsub(forbidden, "", text)
  if (text != "") { print text > (out "/" name); seen[name] = 1 }
}

# A list at the current line (or in brackets in `rest`): its entries go to `name`, one line or one command each.
function list(rest, name,   depth, item, text) {
  if (rest ~ /^\[/) {
    text = bracketed(rest)
    if (name == "keys") { words(text); for (item = 1; item <= count; item++) print word[item] > (out "/keys") }
    else entries(text, name)
    return
  }
  while (at <= lines) {
    if (skip(at)) { at++; continue }
    if (!isDash(at)) return
    depth = indent(at)
    item = trim(substr(line[at], depth + 2))
    at++
    if (item ~ /^\[/) { words(bracketed(item)); emit(name, command()) }
    else if (item ~ /^-([ \t]|$)/) emit(name, nested(depth, item))
    else if (item ~ /^[|>]/) emit(name, block(depth + 1, item))
    else emit(name, folded(depth, item))
  }
}

function emit(name, text) {
  sub(/\n$/, "", text)
  print text > (out "/" name)
}

# The outer brackets of `[ [a, b], "c" ]`: each inner list and each scalar is one command.
function entries(text, name,   i, char, depth, quote, part) {
  text = substr(text, 2, length(text) - 2)
  for (i = 1; i <= length(text) + 1; i++) {
    char = i > length(text) ? "," : substr(text, i, 1)
    if (quote != "") { if (char == "\\" && quote == "\"") { part = part char; char = substr(text, ++i, 1) } else if (char == quote) quote = "" }
    else if (char == "\"" || char == "'") quote = char
    else if (char == "[") depth++
    else if (char == "]") depth--
    else if (char == "," && depth < 1) {
      part = trim(part)
      if (part ~ /^\[/) { words(part); emit(name, command()) }
      else if (part != "") emit(name, scalar(part))
      part = ""
      continue
    }
    part = part char
  }
}

# "- - sh" and the deeper "- ..." lines after it: the words of one command.
function nested(depth, first,   text, inner) {
  count = 0
  inner = depth + 2
  word[++count] = scalar(trim(substr(first, 2)))
  while (at <= lines && (skip(at) || indent(at) >= inner)) {
    if (skip(at)) { at++; continue }
    text = trim(substr(line[at], indent(at) + 2))
    at++
    word[++count] = text ~ /^[|>]/ ? block(inner + 1, text) : scalar(text)
  }
  return command()
}

# A plain or quoted scalar that may go on in deeper lines.
function folded(depth, text) {
  while (at <= lines && !skip(at) && indent(at) > depth) text = text " " trim(line[at++])
  return scalar(text)
}

# The entries of write_files.
function maps(   depth, n, rest, key, inner) {
  while (at <= lines) {
    if (skip(at)) { at++; continue }
    if (!isDash(at)) return
    depth = indent(at)
    n++
    # The first key stands on the dash's line; a blank in the dash's place makes it a line like the others.
    line[at] = substr(line[at], 1, depth) " " substr(line[at], depth + 2)
    while (at <= lines && (skip(at) || indent(at) > depth)) {
      if (skip(at)) { at++; continue }
      inner = indent(at)
      rest = trim(line[at++])
      if (!match(rest, /^[a-z_]+[ \t]*:/)) continue
      key = substr(rest, 1, RLENGTH - 1)
      rest = trim(substr(rest, RLENGTH + 1))
      if (key !~ /^(path|content|permissions|encoding|append)$/) continue
      if (n == 1 && !made) { system("mkdir -p " out "/files"); made = 1 }
      rest = rest ~ /^[|>]/ ? block(inner + 1, rest) : folded(inner, rest)
      # Only the content keeps its exact end; the others are read as lines.
      printf "%s%s", rest, (key == "content" ? "" : "\n") > (out "/files/" n "." key)
    }
    close(out "/files/" n ".content")
  }
}

# chpasswd: { list: | user:password lines, or a list of them }. `expire` needs nothing: passwords do not expire here.
function passwords(   rest, item, text, n, i, part) {
  while (at <= lines && (skip(at) || indent(at) > 0)) {
    rest = trim(line[at])
    if (rest !~ /^list[ \t]*:/) { at++; continue }
    item = indent(at++)
    sub(/^list[ \t]*:[ \t]*/, "", rest)
    if (rest !~ /^[|>]/) { list(rest, "chpasswd"); continue }
    text = block(item + 1, rest)
    n = split(text, part, "\n")
    for (i = 1; i <= n; i++) if (part[i] != "") print part[i] > (out "/chpasswd")
  }
}

# A block scalar whose lines are indented by at least `least`; `style` is its mark (|, >, with - or + after it).
function block(least, style,   depth, text, blanks) {
  depth = -1
  while (at <= lines) {
    if (line[at] ~ /^[ \t]*$/) { blanks = blanks "\n"; at++; continue }
    if (indent(at) < least) break
    if (depth < 0) { depth = indent(at); blanks = "" }
    if (indent(at) < depth) break
    if (text == "") text = substr(line[at], depth + 1)
    else if (blanks != "") text = text (style ~ /^>/ ? "" : "\n") blanks substr(line[at], depth + 1)
    else text = text (style ~ /^>/ ? " " : "\n") substr(line[at], depth + 1)
    blanks = ""
    at++
  }
  return style ~ /-/ ? text : text "\n"
}

# `rest` with the following lines joined to it until its brackets close.
function bracketed(rest) {
  while (at <= lines && !closes(rest)) rest = rest " " trim(line[at++])
  return rest
}

function closes(text,   i, char, depth, quote) {
  for (i = 1; i <= length(text); i++) {
    char = substr(text, i, 1)
    if (quote != "") { if (char == "\\" && quote == "\"") i++; else if (char == quote) quote = "" }
    else if (char == "\"" || char == "'") quote = char
    else if (char == "[") depth++
    else if (char == "]" && --depth == 0) return 1
  }
  return 0
}

# Splits "[a, 'b', \"c\"]" into word[1..count].
function words(text,   i, char, quote, part) {
  count = 0
  sub(/^\[/, "", text)
  sub(/][^]]*$/, "", text)
  for (i = 1; i <= length(text) + 1; i++) {
    char = i > length(text) ? "," : substr(text, i, 1)
    if (quote != "") {
      if (char == "\\" && quote == "\"") { part = part char; char = substr(text, ++i, 1) }
      else if (char == quote) quote = ""
    }
    else if ((char == "\"" || char == "'") && trim(part) == "") quote = char
    else if (char == ",") { part = trim(part); if (part != "") word[++count] = scalar(part); part = ""; continue }
    part = part char
  }
}

# word[1..count] as one shell command, each word quoted.
function command(   i, text, safe) {
  for (i = 1; i <= count; i++) {
    safe = word[i]
    gsub(/'/, "'\\''", safe)
    text = text (i > 1 ? " " : "") "'" safe "'"
  }
  return text
}

# The value of a one-line scalar: without its quotes, or without the comment after it.
function scalar(text,   quote, i, char, value) {
  text = trim(text)
  quote = substr(text, 1, 1)
  if (quote == "'") {
    text = substr(text, 2)
    for (i = 1; i <= length(text); i++) {
      char = substr(text, i, 1)
      if (char == "'" && substr(text, i + 1, 1) != "'") return value
      if (char == "'") i++
      value = value char
    }
    return value
  }
  if (quote == "\"") {
    for (i = 2; i <= length(text); i++) {
      char = substr(text, i, 1)
      if (char == "\"") return value
      if (char == "\\") {
        char = substr(text, ++i, 1)
        if (char == "n") char = "\n"
        else if (char == "t") char = "\t"
        else if (char == "r") char = "\r"
      }
      value = value char
    }
    return value
  }
  sub(/[ \t]+#.*$/, "", text)
  return text
}

function indent(n) { match(line[n], /^ */); return RLENGTH }
function isDash(n) { return line[n] ~ /^ *-([ \t]|$)/ }
function skip(n) { return line[n] ~ /^[ \t]*(#.*)?$/ }
function trim(text) { gsub(/^[ \t]+|[ \t]+$/, "", text); return text }
