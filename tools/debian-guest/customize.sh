#!/bin/sh
# Run by mmdebstrap when all packages are installed; $1 is the root of the new system. Writes its configuration, then kernel,
# initrd and a raw disk with the root's file system to $DEBIAN_GUEST_OUT: here, because only here file owners are what they
# are to be, also where mmdebstrap works in a user namespace. The first $DEBIAN_GUEST_ROOT_AT bytes stay free.
set -eu
root=$1
out=$DEBIAN_GUEST_OUT

printf 'LABEL=root / ext4 errors=remount-ro 0 1\n' > "$root/etc/fstab"
printf 'debian\n' > "$root/etc/hostname"
# Both are made at the first boot: machines of one image are not to share them.
: > "$root/etc/machine-id"
rm -f "$root"/etc/ssh/ssh_host_*
ln -sf ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
# The disks that KubeVirt gives, and no search for clouds that cannot be there.
printf 'datasource_list: [NoCloud, ConfigDrive, None]\nlocale: C.UTF-8\n' > "$root/etc/cloud/cloud.cfg.d/90-kubevirt.cfg"
chroot "$root" systemctl enable --quiet systemd-networkd systemd-resolved serial-getty@ttyS0
# Work at boot that a guest of an hour has no use for.
chroot "$root" systemctl mask --quiet apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
# Everything for the boot lies on a partition that SYSLINUX reads.
cp "$root"/boot/vmlinuz-* "$out/vmlinuz"
cp "$root"/boot/initrd.img-* "$out/initrd"
rm -rf "$root"/boot/* "$root/vmlinuz" "$root/initrd.img" "$root"/vmlinuz.old "$root"/initrd.img.old
rm -rf "$root"/usr/share/doc "$root"/usr/share/man "$root"/usr/share/locale "$root"/var/cache/apt/*.bin
# A view of the root alone: /proc and its like are mounted in it.
mkdir "$out/view"
mount --bind "$root" "$out/view"
trap 'umount "$out/view"; rmdir "$out/view"' EXIT
mke2fs -q -t ext4 -L root -m 1 -E "offset=$DEBIAN_GUEST_ROOT_AT" -d "$out/view" "$out/disk.raw" 1900m
