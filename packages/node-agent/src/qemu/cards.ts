/** Network cards in the forms of QEMU: `-netdev` and `-device`, and the same over QMP. */
import type { Segment } from '@coracle/kubevirt/rules/launcher/network-attachments';
import type { PlannedInterface } from '@coracle/kubevirt/rules/machine/machine-plan';

/** Id of the back end of the card on the network of Pods, for `hostfwd_add`. */
export const POD_NETDEV = 'net-0';
/** That of any card. */
export const netdevId = ({ segment }: Pick<PlannedInterface, 'segment'>): string =>
  segment ? `net-${segment.podInterface}` : POD_NETDEV;
/** Where the switch of the node takes up the line to a card that is on a segment. */
export const segmentSocket = ({ podInterface }: Segment): string => `net-${podInterface}.sock`;

/** Where the guest asks for names: the third address of the range, free, as the guest is the second. */
export function dnsAddress(network: { readonly guest: string }): string {
  const octets = network.guest.split('.').map(Number);
  octets[3] = (octets[3] ?? 0) + 1;
  return octets.join('.');
}

/** A card for `netdev_add` and `device_add`, at the place that it was given. */
export function pluggedCard(
  nic: PlannedInterface,
  hostname = '',
): {
  readonly netdev: { type: string; id: string };
  readonly device: { driver: string; id: string };
} {
  const id = netdevId(nic);
  const { network, segment, dhcp } = nic;
  const netdev = segment
    ? { type: 'stream', id, server: true, addr: { type: 'unix', path: segmentSocket(segment) } }
    : {
        type: 'user',
        id,
        ipv6: false,
        ...(network && {
          net: network.cidr,
          host: network.gateway,
          dhcpstart: network.guest,
          dns: dnsAddress(network),
        }),
        ...(hostname !== '' && { hostname }),
        ...(dhcp.searches && { dnssearch: dhcp.searches.map((str) => ({ str })) }),
        ...(dhcp.bootFile !== undefined && { bootfile: dhcp.bootFile }),
        ...(dhcp.tftpServer !== undefined && { 'tftp-server-name': dhcp.tftpServer }),
      };
  const card = {
    driver: nic.driver,
    id: nic.id,
    netdev: id,
    mac: nic.mac,
    // A boot ROM costs a second of every boot; only a card that shall boot gets one.
    ...(nic.bootIndex === undefined ? { romfile: '' } : { bootindex: nic.bootIndex }),
    ...nic.place,
  };
  return { netdev, device: card };
}
