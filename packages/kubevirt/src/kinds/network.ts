/** Networks, and the interfaces that join a guest to them. */
import type { Static } from 'typebox';
import { atomicList, bool, count, flag, int, list, needed, object, str, strings } from './fields.ts';

const port = object('A port forwarded to the guest.', {
  name: str('Service name, unique over the guest.'),
  protocol: str('TCP or UDP; TCP when absent.'),
  port: needed(int('Port number, 1 to 65535.')),
});

const portRange = object('A range of ports forwarded to the guest.', {
  protocol: needed(str('TCP or UDP.')),
  start: needed(int('First port.')),
  end: needed(int('Last port.')),
});

export const networkInterface = object('A network interface of the guest.', {
  name: needed(str('Name of the network it joins.')),
  model: str('virtio, e1000, e1000e, igb, ne2k_pci, pcnet or rtl8139; virtio when absent.'),
  bridge: flag('Bridged to the network.'),
  slirp: flag('No longer served; use masquerade.'),
  masquerade: flag('Behind address translation.'),
  sriov: flag('A virtual function of a network card.'),
  macvtap: flag('No longer served.'),
  passt: flag('No longer served; use passtBinding.'),
  passtBinding: flag('Joined by passt.'),
  binding: object('A binding registered in the KubeVirt object.', { name: needed(str('Name of the binding.')) }),
  ports: list(port, 'Ports forwarded to the guest; all when empty.'),
  portRanges: atomicList(portRange, 'Ranges of ports forwarded to the guest; not together with ports.'),
  macAddress: str('Hardware address.'),
  bootOrder: count('Place in the boot order, from 1; unique over disks and interfaces.'),
  pciAddress: str('Fixed PCI address in the guest.'),
  dhcpOptions: object('Options of the DHCP answer.', {
    bootFileName: str('Boot file (option 67).'),
    tftpServerName: str('TFTP server (option 66).'),
    ntpServers: strings('Time servers (option 42).'),
    privateOptions: list(
      object('One private option.', {
        option: needed(int('Option number, 224 to 254.')),
        value: needed(str('Option value.')),
      }),
      'Private options.',
    ),
  }),
  tag: str('Tag in the metadata of the config drive.'),
  acpiIndex: int('Index for stable interface names in the guest.'),
  state: str('up, down or absent; up when absent.'),
});

export const network = object('A network of the guest.', {
  name: needed(str('Name, a DNS label, unique over the guest.')),
  pod: object('The network of the pod.', {
    vmNetworkCIDR: str('IPv4 range of the guest side; 10.0.2.0/24 when absent.'),
    vmIPv6NetworkCIDR: str('IPv6 range of the guest side; fd10:0:2::/120 when absent.'),
  }),
  multus: object('A secondary network by Multus.', {
    networkName: needed(str('NetworkAttachmentDefinition, as name or namespace/name.')),
    default: bool('Takes the place of the pod network.'),
  }),
  resourceClaim: object('A network device by resource claim.', {
    claimName: str('Entry of spec.resourceClaims.'),
    requestName: str('Request of that claim.'),
  }),
});

export type Interface = Static<typeof networkInterface>;
export type Network = Static<typeof network>;
export type Port = Static<typeof port>;
