# Takes the host name, the instance id and the public keys out of cloud-init's meta data: JSON as KubeVirt writes it,
# or YAML "key: value" lines. Writes them to files in the directory `out`.

{ text = text $0 "\n" }

END {
  name = value("local-hostname")
  if (name == "") name = value("local_hostname")
  if (name == "") name = value("hostname")
  gsub(/[^A-Za-z0-9.-]/, "", name)
  if (name != "") print name > (out "/local-hostname")
  id = value("instance-id")
  if (id != "") print id > (out "/instance-id")
  rest = text
  while (match(rest, /(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+\/=]+[^"\n]*/)) {
    print substr(rest, RSTART, RLENGTH) > (out "/keys")
    rest = substr(rest, RSTART + RLENGTH)
  }
}

function value(key, found) {
  if (!match(text, "(^|[ \t\n{,\"])" key "\"?[ \t]*:[ \t]*(\"[^\"]*\"|[^,\n}]*)")) return ""
  found = substr(text, RSTART, RLENGTH)
  sub(/^[^:]*:[ \t]*/, "", found)
  gsub(/^["']|["' \t\r]*$/, "", found)
  return found
}
