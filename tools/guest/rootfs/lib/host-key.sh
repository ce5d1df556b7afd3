# The SSH host key of a machine lies on the disk that it was started from, as the key of a cloud image does: it outlives
# restarts where the disk does. Its file is named after the machine, so that a copy of the disk makes a key of its own.
# Sourced by /init, which has set `uuid`; fails where there is no such disk, or it cannot be written to.
host_key() {
  key=/etc/dropbear/dropbear_ed25519_host_key
  # Put there by the boot loader: what starts by its kernel has no disk of its own.
  read -r line </proc/cmdline
  case $line in *BOOT_IMAGE=*) ;; *) return ;; esac
  disk=
  # A SATA disk is seen late.
  for _ in 1 2 3 4 5 6 7 8; do
    disk=$(findfs LABEL=TINY 2>/dev/null) && break
    usleep 250000
  done
  [ "$disk" ] || return
  modprobe -abq vfat nls_cp437 nls_ascii
  mount -r -t vfat -o umask=077,codepage=437,iocharset=ascii,utf8=0 "$disk" /run/boot 2>/dev/null || return
  kept=/run/boot/key-$uuid
  if [ -s "$kept" ]; then
    cp "$kept" $key
  else
    # Whole or not at all, whenever the machine is stopped.
    mount -o remount,rw /run/boot 2>/dev/null &&
      /usr/sbin/dropbearkey -t ed25519 -f $key >/dev/null 2>&1 &&
      cp $key /run/boot/key.new && sync && mv /run/boot/key.new "$kept"
  fi
  umount /run/boot
  chmod 600 $key 2>/dev/null
}
