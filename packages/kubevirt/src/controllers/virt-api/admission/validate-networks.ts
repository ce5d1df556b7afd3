/** Rules about networks and interfaces. */
import type { Interface, Network, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { countPresent, type Findings } from './causes.ts';
import { isPortName, looseAddress, MAC_OCTETS, octetsOf } from './formats.ts';
import { isPciAddress } from './validate-devices.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const MODELS = ['virtio', 'e1000', 'e1000e', 'igb', 'ne2k_pci', 'pcnet', 'rtl8139'];
/** The bridge in the pod has this address: a guest behind masquerade must not. */
const RESERVED_MAC = '02:00:00:00:00:00';
const REMOVED_BINDINGS = ['slirp', 'macvtap', 'passt'] as const;
const MAX_PORT_RANGES = 10;

/** There are at most 256 networks and interfaces; what an interface lists may be more. */
export function validateNetworks(found: Findings, spec: Spec, config: ClusterConfig): void {
  const networks = new Map((spec.networks ?? []).map((network) => [network.name, network]));
  validateSources(found, spec);
  validateNames(found, spec, networks);
  found.each('.domain.devices.interfaces', spec.domain.devices.interfaces, (at, nic) => {
    const bound: BoundInterface = { nic, network: networks.get(nic.name), config };
    validateState(at, bound);
    validateBinding(at, bound);
    validateInterface(at, nic);
    validatePorts(at, bound);
    validateDhcpOptions(found, at, nic);
  });
}

interface BoundInterface {
  readonly nic: Readonly<Interface>;
  readonly network: Readonly<Network> | undefined;
  readonly config: ClusterConfig;
}

function validateSources(found: Findings, { networks = [] }: Spec): void {
  const pods = networks.filter(({ pod }) => pod !== undefined);
  const defaults = networks.filter(({ multus }) => multus?.default);
  if (pods.length > 1)
    found.duplicate('.interfaces', `more than one interface is connected to a pod network in ${found.path}.interfaces`);
  if (defaults.length > 1) found.invalid('.networks', 'Multus CNI should only have one default network');
  if (pods.length > 0 && defaults.length > 0)
    found.invalid('.networks', 'Pod network cannot be defined when Multus default network is defined');
  found.each('.networks', networks, (at, { pod, multus, resourceClaim }) => {
    const sources = countPresent([pod, multus, resourceClaim]);
    if (sources === 0) at.required('', 'should have a network type');
    else if (sources > 1) at.required('', 'should have only one network type');
    if (multus !== undefined && !multus.networkName) at.required('', 'CNI delegating plugin must have a networkName');
  });
}

function validateNames(found: Findings, spec: Spec, networks: ReadonlyMap<string, Readonly<Network>>): void {
  const interfaces = spec.domain.devices.interfaces ?? [];
  const nicNames = new Set(interfaces.map(({ name }) => name));
  const seenNetworks = new Set<string>();
  found.each('.networks', spec.networks, (at, { name }) => {
    if (seenNetworks.has(name)) {
      const text = `Network with name ${JSON.stringify(name)} already exists, every network must have a unique name`;
      at.duplicate('.name', text);
    }
    seenNetworks.add(name);
    if (!nicNames.has(name)) at.required('.name', `${at.path}.name '${name}' not found.`);
  });
  const seenNics = new Set<string>();
  found.each('.domain.devices.interfaces', interfaces, (at, { name }) => {
    if (seenNics.has(name)) at.duplicate('.name', 'Only one interface can be connected to one specific network');
    seenNics.add(name);
    if (!networks.has(name)) at.invalid('.name', `${at.path}.name '${name}' not found.`);
  });
}

function validateState(found: Findings, { nic, network }: BoundInterface): void {
  const { state = '' } = nic;
  const refuse = (text: string): void => found.invalid('.state', text);
  const name = JSON.stringify(nic.name);
  if (!['', 'up', 'down', 'absent'].includes(state))
    refuse(`logical ${nic.name} interface state value is unsupported: ${state}`);
  if (state === 'down' && nic.sriov !== undefined)
    refuse(`${name} interface's state "down" is not supported for SR-IOV binding`);
  if (state !== 'absent') return;
  if (nic.bridge === undefined && nic.sriov === undefined)
    refuse(`${name} interface's state "absent" is supported only for bridge binding`);
  if (network?.pod !== undefined || network?.multus?.default)
    refuse(`${name} interface's state "absent" is not supported on default networks`);
}

function validateBinding(found: Findings, { nic, network, config }: BoundInterface): void {
  const onPod = network?.pod !== undefined;
  const removed = REMOVED_BINDINGS.filter((name) => nic[name] !== undefined);
  for (const name of removed) found.invalid(`.${name}`, `${name} interface support has been removed since v1.3`);
  const methods = countPresent([nic.bridge, nic.masquerade, nic.sriov, nic.passtBinding]);
  const logical = `logical ${nic.name} interface`;
  if (nic.binding !== undefined && methods > 0)
    found.invalid('.binding', `${logical} cannot have both binding plugin and interface binding method`);
  else if (methods > 1) found.invalid('', `${logical} must have exactly one binding method`);
  if (nic.binding === undefined && methods === 0 && removed.length === 0)
    found.required('', `${logical} must have an interface binding method or a binding plugin`);
  if (nic.binding !== undefined && !config.networkBindings.has(nic.binding.name)) {
    const name = JSON.stringify(nic.binding.name);
    found.invalid(
      '.binding',
      `network binding ${name} is not registered in configuration.network.binding of the KubeVirt object`,
    );
  }
  if (nic.masquerade !== undefined && !onPod)
    found.invalid('.name', 'Masquerade interface only implemented with pod network');
  if (nic.masquerade !== undefined && nic.macAddress?.toLowerCase().replaceAll('-', ':') === RESERVED_MAC)
    found.invalid(
      '.macAddress',
      'The requested MAC address is reserved for the in-pod bridge. Please choose another one.',
    );
  if (nic.passtBinding !== undefined) {
    if (!onPod) found.invalid('.name', 'Passt interface only implemented with pod network');
    found.gated('', 'PasstBinding', config);
  }
  if (nic.bridge !== undefined && onPod && !config.permitBridgeInterfaceOnPodNetwork)
    found.invalid('.name', 'Bridge on pod network configuration is not enabled under kubevirt-config');
}

function validateInterface(found: Findings, { name, model, macAddress, pciAddress }: Readonly<Interface>): void {
  if (!/^[A-Za-z0-9-_]+$/.test(name)) {
    const allowed = 'alphabetical characters, numbers, dashes (-) or underscores (_)';
    found.invalid('.name', `Network interface name can only contain ${allowed}`);
  }
  const named = `interface ${found.path}.name`;
  if (model && !MODELS.includes(model))
    found.unsupported('.model', `${named} uses model ${model} that is not supported.`);
  const octets = macAddress ? octetsOf(macAddress) : MAC_OCTETS;
  if (octets === undefined) found.invalid('.macAddress', `${named} has malformed MAC address (${macAddress}).`);
  else if (octets > MAC_OCTETS)
    found.invalid('.macAddress', `${named} has MAC address (${macAddress}) that is too long.`);
  if (pciAddress && !isPciAddress(pciAddress))
    found.invalid('.pciAddress', `${named} has malformed PCI address (${pciAddress}).`);
}

function validatePorts(found: Findings, { nic, network, config }: BoundInterface): void {
  const checkProtocol = (at: Findings, protocol: string | undefined): void => {
    if (protocol !== 'TCP' && protocol !== 'UDP') at.invalid('.protocol', 'Unknown protocol, only TCP or UDP allowed');
  };
  if (nic.portRanges !== undefined) {
    const refuse = (text: string): void => found.invalid('.portRanges', text);
    found.gated('.portRanges', 'PortRangesSpec', config);
    if ((nic.ports?.length ?? 0) > 0) refuse('ports and portRanges are mutually exclusive');
    if (nic.masquerade === undefined) refuse('portRanges need the masquerade binding');
    if (nic.portRanges.length > MAX_PORT_RANGES) refuse(`there may be at most ${MAX_PORT_RANGES} portRanges`);
    found.each('.portRanges', nic.portRanges, (at, { protocol, start, end }) => {
      checkProtocol(at, protocol);
      if (!(start > 0 && start <= end && end < 65536)) at.invalid('', 'a range must satisfy 0 < start <= end < 65536');
    });
  }
  if (network?.pod === undefined) return;
  const names = new Set<string>();
  found.each('.ports', nic.ports, (at, { name, port, protocol }) => {
    if (name) {
      if (names.has(name)) at.duplicate('.name', `Duplicate name of the port: ${name}`);
      if (!isPortName(name)) at.invalid('.name', `Invalid name of the port: ${name}`);
      names.add(name);
    }
    if (!port) at.required('', 'Port field is mandatory.');
    else if (port < 0 || port > 65535) at.invalid('.port', 'Port field must be in range 0 < x < 65536.');
    if (protocol) checkProtocol(at, protocol);
  });
}

/** Upstream names the spec for what is wrong with private options. */
function validateDhcpOptions(spec: Findings, found: Findings, nic: Readonly<Interface>): void {
  const { privateOptions = [], ntpServers = [] } = nic.dhcpOptions ?? {};
  if (new Set(privateOptions.map(({ option }) => option)).size < privateOptions.length)
    spec.invalid('', 'Found Duplicates: you have provided duplicate DHCPPrivateOptions');
  for (const { option } of privateOptions)
    if (option < 224 || option > 254)
      spec.invalid('', 'provided DHCPPrivateOptions are out of range, must be in range 224 to 254');
  found.each('.dhcpOptions.ntpServers', ntpServers, (at, server) => {
    if (looseAddress(server)?.family !== 4) at.invalid('', 'NTP servers must be a list of valid IPv4 addresses.');
  });
}
