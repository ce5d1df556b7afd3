# cloud-init's data (NoCloud, or a config drive), as far as this guest understands them. Sourced by /init.

# Sets `disk` to the seed's block device; fails when there is none.
seed_find() {
  for label in cidata CIDATA config-2; do
    disk=$(findfs LABEL=$label 2>/dev/null) && return
  done
  return 1
}

# Leaves the files of the seed in /run/seed and their reading in /run/cloud.
seed_read() {
  if [ "$disk" ]; then
    modprobe -abq isofs
    if ! mount -r -t iso9660 "$disk" /run/mnt 2>/dev/null; then
      modprobe -abq vfat nls_cp437 nls_iso8859-1 nls_ascii nls_utf8
      mount -r -t vfat "$disk" /run/mnt
    fi
    if [ -d /run/mnt/openstack ]; then
      cp /run/mnt/openstack/latest/meta_data.json /run/seed/meta-data 2>/dev/null
      cp /run/mnt/openstack/latest/user_data /run/seed/user-data 2>/dev/null
    else
      cp /run/mnt/meta-data /run/mnt/user-data /run/seed/ 2>/dev/null
    fi
    umount /run/mnt
  fi
  [ -s /run/seed/meta-data ] && awk -v out=/run/cloud -f /lib/meta-data.awk /run/seed/meta-data
  [ -s /run/seed/user-data ] || return 0
  first=
  read -r first </run/seed/user-data
  case $first in
    '#cloud-config'*) awk -v out=/run/cloud -f /lib/cloud-config.awk /run/seed/user-data ;;
    '#!'*) cp /run/seed/user-data /run/cloud/script && chmod 755 /run/cloud/script ;;
  esac
  first=
}

# What must hold before the network and the logins start: name, passwords, keys, files.
seed_apply() {
  [ -s /run/cloud/hostname ] || cp /run/cloud/local-hostname /run/cloud/hostname 2>/dev/null ||
    echo tiny >/run/cloud/hostname
  if [ -s /run/cloud/password ]; then
    read -r password </run/cloud/password
    printf 'root:%s\ntiny:%s\n' "$password" "$password" | chpasswd
  fi
  [ -s /run/cloud/chpasswd ] && chpasswd </run/cloud/chpasswd
  if [ -s /run/cloud/keys ]; then
    for home in /root /home/tiny; do
      mkdir -p $home/.ssh
      cat /run/cloud/keys >>$home/.ssh/authorized_keys
      chmod 700 $home/.ssh
      chmod 600 $home/.ssh/authorized_keys
    done
    chown -R tiny:tiny /home/tiny
  fi
  for file in /run/cloud/files/*.path; do
    [ -e "$file" ] && seed_write_file "${file%.path}"
  done
}

seed_write_file() {
  read -r path <"$1.path"
  mkdir -p "${path%/*}"
  read -r encoding 2>/dev/null <"$1.encoding" || encoding=
  read -r append 2>/dev/null <"$1.append" || append=false
  [ "$append" = true ] || : >"$path"
  case $encoding in
    b64 | base64) base64 -d "$1.content" >>"$path" ;;
    gz+b64 | gz+base64 | gzip+base64) base64 -d "$1.content" | gunzip -c >>"$path" ;;
    *) cat "$1.content" >>"$path" ;;
  esac
  read -r mode 2>/dev/null <"$1.permissions" && chmod "$mode" "$path"
}

# The user's own commands, with their output on the console as cloud-init does it.
seed_run() {
  cd /
  [ -s /run/cloud/bootcmd ] && sh /run/cloud/bootcmd
  [ -s /run/cloud/runcmd ] && sh /run/cloud/runcmd
  [ -s /run/cloud/script ] && /run/cloud/script
}
