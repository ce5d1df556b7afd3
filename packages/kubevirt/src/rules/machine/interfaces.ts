import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Interface, Network } from '../../kinds/kinds.ts';
import { segmentOf } from '../launcher/network-attachments.ts';
import {
  type ForwardedPort,
  type MachinePlan,
  type PlanContext,
  PlanError,
  type PlannedInterface,
  plainText,
  type Resolvers,
} from './machine-plan.ts';
import { freePlace } from './plug-room.ts';

type ReadonlyInterface = DeepReadonly<Interface>;

/** Models that are called like QEMU's driver for them. */
const MODELS = ['e1000', 'e1000e', 'igb', 'ne2k_pci', 'pcnet', 'rtl8139'];
/** Cards for PCI Express. */
const EXPRESS = new Set(['virtio-net-pci', 'e1000e', 'igb']);
/** The field of a BOOTP packet, with its closing NUL. */
const MAX_BOOT_FILE = 127;
/** What a DHCP option holds. */
const MAX_OPTION = 255;
/** Time servers and private options: what is left of a packet beside all others at their longest. Not more than an option of servers holds. */
const MAX_FURTHER = 252;
/** What is left for domains in a message of DHCP beside all else that stands in it, without their compression. */
const MAX_SEARCH_BYTES = 200;
const CLUSTER_DOMAIN = 'cluster.local';
const DEFAULT_CIDR = '10.0.2.0/24';
/** Forwarded when a VMI declares no port. Upstream forwards all; one host address cannot bind all, so others are added when `portforward` asks for them. */
const DEFAULT_PORTS = [22, 80];
const MAC = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;
/** More than this is a mistake in the spec, and a process of ours would pay for it. */
const MAX_PORTS = 512;

/** Network cards: that of the network of Pods sits behind user-mode address translation, all others on a segment each. */
export function configureInterfaces({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const { devices } = vmi.spec.domain;
  const networks = new Map((vmi.spec.networks ?? []).map((network) => [network.name, network]));
  let interfaces: readonly ReadonlyInterface[] = devices.interfaces ?? [];
  if (interfaces.length === 0 && networks.size === 0 && devices.autoattachPodInterface !== false) {
    interfaces = [{ name: 'default', masquerade: {} }];
    networks.set('default', { name: 'default', pod: {} });
  }
  const searches = interfaces.length > 0 ? searchesOf(vmi, plan) : [];
  const resolvers = resolversOf(vmi.spec);
  for (const nic of interfaces) {
    if (nic.state === 'absent') continue;
    const network = networks.get(nic.name);
    if (refusalOf(nic, network)) continue;
    const card = {
      name: nic.name,
      id: `ua-${nic.name}`,
      driver: driverOf(nic, facts.devices, plan),
      mac: macOf(nic, vmi, plan.uuid),
      ...(nic.bootOrder !== undefined && { bootIndex: nic.bootOrder }),
      linkUp: nic.state !== 'down',
    };
    const segment = segmentOf(nic, network, vmi.metadata.namespace ?? '');
    if (segment) {
      // In a port, where there is one, so that it can be unplugged.
      const place = EXPRESS.has(card.driver) ? freePlace(plan, 'virtio') : undefined;
      plan.interfaces.push({ ...card, segment, ports: [], dhcp: {}, ...(place && { place }) });
      continue;
    }
    plan.interfaces.push({
      ...card,
      network: guestNetwork(network?.pod?.vmNetworkCIDR ?? DEFAULT_CIDR),
      ports: portsOf(nic),
      dhcp: { ...dhcpOptionsOf(nic), ...(searches.length > 0 && { searches }) },
      ...(resolvers && { resolvers }),
    });
  }
}

function dhcpOptionsOf({ name, dhcpOptions }: ReadonlyInterface): PlannedInterface['dhcp'] {
  const { bootFileName, tftpServerName, ntpServers = [], privateOptions = [] } = dhcpOptions ?? {};
  const bootFile = bootFileName && plainText(`interface ${name}: bootFileName`, bootFileName, MAX_BOOT_FILE);
  const tftpServer = tftpServerName && plainText(`interface ${name}: tftpServerName`, tftpServerName, MAX_OPTION);
  let bytes = 4 * ntpServers.length;
  for (const { option, value } of privateOptions)
    bytes += 2 + plainText(`interface ${name}: private option ${option}`, value, MAX_OPTION).length;
  if (bytes > MAX_FURTHER)
    throw new PlanError(`interface ${name}: ntpServers and privateOptions have more than ${MAX_FURTHER} bytes`);
  return {
    ...(bootFile !== undefined && { bootFile }),
    ...(tftpServer !== undefined && { tftpServer }),
    ...(ntpServers.length > 0 && { ntpServers }),
    ...(privateOptions.length > 0 && { privateOptions }),
  };
}

/** The card on the network of Pods: behind address translation, with ports that are forwarded. */
export const podCard = (plan: DeepReadonly<Pick<MachinePlan, 'interfaces'>> | undefined) =>
  plan?.interfaces.find(({ segment }) => !segment);

const isClusterFirst = ({ dnsPolicy }: PlanContext['vmi']['spec']): boolean =>
  (dnsPolicy || 'ClusterFirst').startsWith('ClusterFirst');

/** As a kubelet writes the name servers of a Pod; undefined for what a guest has anyway. */
function resolversOf(spec: PlanContext['vmi']['spec']): Resolvers | undefined {
  const servers = spec.dnsConfig?.nameservers ?? [];
  const cluster = isClusterFirst(spec);
  return cluster && servers.length === 0 ? undefined : { cluster, host: spec.dnsPolicy !== 'None', servers };
}

/**
 * Domains in which a guest looks for short names: those of a Pod (kubelet, ClusterFirst), before them the one of its
 * subdomain, as KubeVirt has it, behind them those of the spec.
 */
function searchesOf({ metadata, spec }: PlanContext['vmi'], plan: MachinePlan): string[] {
  const { searches = [] } = spec.dnsConfig ?? {};
  const service = `svc.${CLUSTER_DOMAIN}`;
  const own = `${metadata.namespace}.${service}`;
  const all = isClusterFirst(spec)
    ? [...(spec.subdomain ? [`${spec.subdomain}.${own}`] : []), own, service, CLUSTER_DOMAIN, ...searches]
    : searches;
  const kept: string[] = [];
  let bytes = 0;
  for (const domain of new Set(all.map((one) => one.replace(/\.$/, '')))) {
    const size = domain.length + 2;
    if (bytes + size <= MAX_SEARCH_BYTES) {
      bytes += size;
      kept.push(plainText('dnsConfig.searches', domain, MAX_SEARCH_BYTES));
    } else plan.unsupported.push(`search domain ${domain.slice(0, 253)}: it does not fit into a DHCP message`);
  }
  return kept;
}

/** Why a card is left out, and which field says so. */
export function refusalOf(
  nic: ReadonlyInterface,
  network: DeepReadonly<Network> | undefined,
): { readonly isOf: 'network' | 'interface'; readonly member: string; readonly text: string } | undefined {
  if (!network) return { isOf: 'interface', member: 'name', text: 'it has no network of its name' };
  if (network.multus?.default)
    return { isOf: 'network', member: 'multus.default', text: 'a multus network does not replace that of Pods here' };
  if (network.resourceClaim)
    return { isOf: 'network', member: 'resourceClaim', text: 'networks by resource claim are not supported' };
  if (nic.sriov) return { isOf: 'interface', member: 'sriov', text: 'SR-IOV is not supported' };
  if (nic.binding)
    return { isOf: 'interface', member: 'binding', text: `binding plug-in ${nic.binding.name} is not supported` };
  return undefined;
}

function driverOf(nic: ReadonlyInterface, devices: readonly string[], plan: MachinePlan): string {
  const model = nic.model ?? 'virtio';
  if (model === 'virtio') return 'virtio-net-pci';
  if (MODELS.includes(model) && devices.includes(model)) return model;
  const instead = model === 'igb' && devices.includes('e1000e') ? 'e1000e' : 'virtio-net-pci';
  plan.unsupported.push(`interface ${nic.name}: model ${model} is not offered by this QEMU; ${instead} is used`);
  return instead;
}

/**
 * The given address; else that of the running guest; else one made of the firmware's UUID, so that a machine keeps it from start
 * to start: guests write the address of their first boot into their network configuration, and know no other card.
 */
function macOf(nic: ReadonlyInterface, { status }: PlanContext['vmi'], uuid: string): string {
  if (nic.macAddress) {
    const mac = nic.macAddress.toLowerCase().replaceAll('-', ':');
    if (!MAC.test(mac))
      throw new PlanError(`interface ${nic.name}: macAddress ${JSON.stringify(nic.macAddress)} is not one`);
    return mac;
  }
  const running = status?.interfaces?.find(({ name }) => name === nic.name)?.mac;
  if (running !== undefined && MAC.test(running)) return running;
  // FNV-1a, 64 bits; 02 marks a locally administered unicast address.
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(`${uuid}/${nic.name}`))
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  const hex = hash.toString(16).padStart(16, '0').slice(0, 10);
  return `02:${hex.match(/../g)?.join(':')}`;
}

/** Gateway is the first address of the range, the guest the second, as upstream's masquerade has it. */
export function guestNetwork(cidr: string): { cidr: string; gateway: string; guest: string } {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(cidr);
  const octets = match?.slice(1, 5).map(Number) ?? [];
  const bits = Number(match?.[5] ?? 99);
  if (octets.length !== 4 || octets.some((octet) => octet > 255) || bits < 8 || bits > 29)
    throw new PlanError(`vmNetworkCIDR ${JSON.stringify(cidr)} is not an IPv4 range between /8 and /29`);
  const base = (octets.reduce((sum, octet) => sum * 256 + octet, 0) & (-1 << (32 - bits))) >>> 0;
  const text = (n: number): string => [24, 16, 8, 0].map((shift) => (n >>> shift) & 255).join('.');
  return { cidr: `${text(base)}/${bits}`, gateway: text(base + 1), guest: text(base + 2) };
}

function portsOf(nic: ReadonlyInterface): ForwardedPort[] {
  const declared = nic.ports ?? [];
  if (declared.length === 0) return DEFAULT_PORTS.map((port) => ({ protocol: 'tcp', port, declared: false }));
  const ports = new Map<string, ForwardedPort>();
  for (const { port, protocol } of declared.slice(0, MAX_PORTS)) {
    if (!Number.isInteger(port) || port < 1 || port > 65535) continue;
    const name = protocol?.toUpperCase() === 'UDP' ? 'udp' : 'tcp';
    ports.set(`${name}/${port}`, { protocol: name, port, declared: true });
  }
  return [...ports.values()];
}
