#!/bin/sh
# What udhcpc calls when a lease comes, is renewed or is lost; the lease is in the environment. An address that somebody gave
# to the interface by hand stays: udhcpc calls `deconfig` at its start too, which may be after that.
leased=/run/leased-$interface
case $1 in
  deconfig)
    [ -e "$leased" ] && ip addr del "$(cat "$leased")" dev "$interface" && rm "$leased"
    ;;
  bound | renew)
    echo "$ip/${mask:-24}" >"$leased"
    ip addr replace "$ip/${mask:-24}" dev "$interface"
    [ "$mtu" ] && ip link set "$interface" mtu "$mtu"
    if [ "$FIRST_NIC" ]; then
      [ "$router" ] && ip route replace default via "${router%% *}" dev "$interface" onlink
      : >/etc/resolv.conf
      [ "$search$domain" ] && echo "search ${search:-$domain}" >>/etc/resolv.conf
      for server in $dns; do echo "nameserver $server"; done >>/etc/resolv.conf
      echo "$ip" >/run/address
    fi
    ;;
esac
