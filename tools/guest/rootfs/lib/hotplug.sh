#!/bin/sh
# Called by `uevent` for each device event: loads drivers of plugged devices, brings new CPUs, memory and interfaces into use.
[ "$ACTION" = add ] || exit 0
export PATH=/sbin:/bin
[ "$MODALIAS" ] && modprobe -bq "$MODALIAS"
case $SUBSYSTEM in
  scsi) modprobe -abq sd_mod sr_mod ;;
  cpu) echo 1 >"/sys$DEVPATH/online" ;;
  memory) echo online >"/sys$DEVPATH/state" ;;
  net) [ -e /run/cloud/done ] && /lib/dhcp-start.sh "$INTERFACE" ;;
  virtio-ports) /lib/agent.sh ;;
esac
