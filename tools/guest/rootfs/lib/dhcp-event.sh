#!/bin/sh
# What udhcpc calls when a lease comes, is renewed or is lost; the lease is in the environment.
case $1 in
  deconfig)
    ip addr flush dev "$interface"
    ;;
  bound | renew)
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
