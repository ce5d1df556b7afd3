#!/bin/sh
# Asks for an address on one interface: three tries a second apart, then on in the background. With FIRST_NIC set the
# lease also gives the default route and the name servers.
export PATH=/sbin:/bin FIRST_NIC
ip link set "$1" up
exec udhcpc -i "$1" -s /lib/dhcp-event.sh -t 3 -T 1 -A 10 -b
