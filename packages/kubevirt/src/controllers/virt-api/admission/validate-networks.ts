/** Rules about networks and interfaces. */
import { parseAddress } from '@coracle/apimachinery/meta/ip-address';
import type { Interface, Network, VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import {
  addAll,
  type Cause,
  countPresent,
  duplicateValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
  type ValidatedSpec,
  validateEach,
} from './causes.ts';
import { isPortName, MAC_OCTETS, octetsOf } from './formats.ts';
import { isPciAddress } from './validate-devices.ts';
import { gateMissing } from './validate-resources.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

const MODELS = ['virtio', 'e1000', 'e1000e', 'igb', 'ne2k_pci', 'pcnet', 'rtl8139'];
/** The bridge in the pod has this address: a guest behind masquerade must not. */
const RESERVED_MAC = '02:00:00:00:00:00';
const REMOVED_BINDINGS = ['slirp', 'macvtap', 'passt'] as const;
const MAX_PORT_RANGES = 10;

/** There are at most 256 networks and interfaces; what an interface lists may be more. */
export function validateNetworks(causes: Cause[], { path, spec, config }: ValidatedSpec): void {
  const networks = new Map((spec.networks ?? []).map((network) => [network.name, network]));
  addAll(causes, validateSources(path, spec));
  addAll(causes, validateNames(path, spec, networks));
  for (const [i, nic] of (spec.domain.devices.interfaces ?? []).entries()) {
    const field = `${path}.domain.devices.interfaces[${i}]`;
    const network = networks.get(nic.name);
    addAll(causes, validateState(field, nic, network));
    addAll(causes, validateBinding(field, { nic, network, config }));
    addAll(causes, validateInterface(field, nic));
    validatePorts(causes, field, { nic, network, config });
    validateDhcpOptions(causes, path, { nic, field });
  }
}

function validateSources(path: string, spec: Spec): Cause[] {
  const causes: Cause[] = [];
  const networks = spec.networks ?? [];
  const pods = networks.filter(({ pod }) => pod !== undefined);
  const defaults = networks.filter(({ multus }) => multus?.default);
  if (pods.length > 1) {
    causes.push(
      duplicateValue(
        `${path}.interfaces`,
        `more than one interface is connected to a pod network in ${path}.interfaces`,
      ),
    );
  }
  if (defaults.length > 1) {
    causes.push(invalidValue(`${path}.networks`, 'Multus CNI should only have one default network'));
  }
  if (pods.length > 0 && defaults.length > 0) {
    causes.push(
      invalidValue(`${path}.networks`, 'Pod network cannot be defined when Multus default network is defined'),
    );
  }
  networks.forEach(({ pod, multus, resourceClaim }, i) => {
    const field = `${path}.networks[${i}]`;
    const sources = countPresent([pod, multus, resourceClaim]);
    if (sources === 0) causes.push(requiredValue(field, 'should have a network type'));
    else if (sources > 1) causes.push(requiredValue(field, 'should have only one network type'));
    if (multus !== undefined && !multus.networkName) {
      causes.push(requiredValue(field, 'CNI delegating plugin must have a networkName'));
    }
  });
  return causes;
}

function validateNames(path: string, spec: Spec, networks: ReadonlyMap<string, Readonly<Network>>): Cause[] {
  const causes: Cause[] = [];
  const interfaces = spec.domain.devices.interfaces ?? [];
  const nicNames = new Set(interfaces.map(({ name }) => name));
  const seenNetworks = new Set<string>();
  spec.networks?.forEach(({ name }, i) => {
    const field = `${path}.networks[${i}].name`;
    if (seenNetworks.has(name)) {
      causes.push(
        duplicateValue(
          field,
          `Network with name ${JSON.stringify(name)} already exists, every network must have a unique name`,
        ),
      );
    }
    seenNetworks.add(name);
    if (!nicNames.has(name)) causes.push(requiredValue(field, `${field} '${name}' not found.`));
  });
  const seenNics = new Set<string>();
  interfaces.forEach(({ name }, i) => {
    const field = `${path}.domain.devices.interfaces[${i}].name`;
    if (seenNics.has(name)) {
      causes.push(duplicateValue(field, 'Only one interface can be connected to one specific network'));
    }
    seenNics.add(name);
    if (!networks.has(name)) causes.push(invalidValue(field, `${field} '${name}' not found.`));
  });
  return causes;
}

function validateState(field: string, nic: Readonly<Interface>, network: Readonly<Network> | undefined): Cause[] {
  const state = nic.state ?? '';
  const at = `${field}.state`;
  if (!['', 'up', 'down', 'absent'].includes(state)) {
    return [invalidValue(at, `logical ${nic.name} interface state value is unsupported: ${state}`)];
  }
  if (state !== 'absent') {
    return state === 'down' && nic.sriov !== undefined
      ? [invalidValue(at, `${JSON.stringify(nic.name)} interface's state "down" is not supported for SR-IOV binding`)]
      : [];
  }
  const causes: Cause[] = [];
  if (nic.bridge === undefined && nic.sriov === undefined) {
    causes.push(
      invalidValue(at, `${JSON.stringify(nic.name)} interface's state "absent" is supported only for bridge binding`),
    );
  }
  if (network?.pod !== undefined || network?.multus?.default) {
    causes.push(
      invalidValue(at, `${JSON.stringify(nic.name)} interface's state "absent" is not supported on default networks`),
    );
  }
  return causes;
}

interface BoundInterface {
  readonly nic: Readonly<Interface>;
  readonly network: Readonly<Network> | undefined;
  readonly config: ClusterConfig;
}

function validateBinding(field: string, { nic, network, config }: BoundInterface): Cause[] {
  const causes: Cause[] = [];
  const onPod = network?.pod !== undefined;
  for (const removed of REMOVED_BINDINGS) {
    if (nic[removed] !== undefined) {
      causes.push(invalidValue(`${field}.${removed}`, `${removed} interface support has been removed since v1.3`));
    }
  }
  const methods = countPresent([nic.bridge, nic.masquerade, nic.sriov, nic.passtBinding]);
  if (nic.binding !== undefined && methods > 0) {
    causes.push(
      invalidValue(
        `${field}.binding`,
        `logical ${nic.name} interface cannot have both binding plugin and interface binding method`,
      ),
    );
  } else if (methods > 1) {
    causes.push(invalidValue(field, `logical ${nic.name} interface must have exactly one binding method`));
  }
  const removed = REMOVED_BINDINGS.some((name) => nic[name] !== undefined);
  if (nic.binding === undefined && methods === 0 && !removed) {
    causes.push(
      requiredValue(field, `logical ${nic.name} interface must have an interface binding method or a binding plugin`),
    );
  }
  if (nic.binding !== undefined && !config.networkBindings.has(nic.binding.name)) {
    causes.push(
      invalidValue(
        `${field}.binding`,
        `network binding ${JSON.stringify(nic.binding.name)} is not registered in configuration.network.binding of the KubeVirt object`,
      ),
    );
  }
  if (nic.masquerade !== undefined && !onPod) {
    causes.push(invalidValue(`${field}.name`, 'Masquerade interface only implemented with pod network'));
  }
  if (nic.masquerade !== undefined && nic.macAddress?.toLowerCase().replaceAll('-', ':') === RESERVED_MAC) {
    causes.push(
      invalidValue(
        `${field}.macAddress`,
        'The requested MAC address is reserved for the in-pod bridge. Please choose another one.',
      ),
    );
  }
  if (nic.passtBinding !== undefined) {
    if (!onPod) causes.push(invalidValue(`${field}.name`, 'Passt interface only implemented with pod network'));
    if (!config.isEnabled('PasstBinding')) causes.push(invalidValue(field, gateMissing('PasstBinding')));
  }
  if (nic.bridge !== undefined && onPod && !config.permitBridgeInterfaceOnPodNetwork) {
    causes.push(
      invalidValue(`${field}.name`, 'Bridge on pod network configuration is not enabled under kubevirt-config'),
    );
  }
  return causes;
}

function validateInterface(field: string, nic: Readonly<Interface>): Cause[] {
  const causes: Cause[] = [];
  if (!/^[A-Za-z0-9-_]+$/.test(nic.name)) {
    causes.push(
      invalidValue(
        `${field}.name`,
        'Network interface name can only contain alphabetical characters, numbers, dashes (-) or underscores (_)',
      ),
    );
  }
  if (nic.model && !MODELS.includes(nic.model)) {
    causes.push(
      unsupportedValue(`${field}.model`, `interface ${field}.name uses model ${nic.model} that is not supported.`),
    );
  }
  const octets = nic.macAddress ? octetsOf(nic.macAddress) : MAC_OCTETS;
  if (octets === undefined) {
    causes.push(
      invalidValue(`${field}.macAddress`, `interface ${field}.name has malformed MAC address (${nic.macAddress}).`),
    );
  } else if (octets > MAC_OCTETS) {
    causes.push(
      invalidValue(
        `${field}.macAddress`,
        `interface ${field}.name has MAC address (${nic.macAddress}) that is too long.`,
      ),
    );
  }
  if (nic.pciAddress && !isPciAddress(nic.pciAddress)) {
    causes.push(
      invalidValue(`${field}.pciAddress`, `interface ${field}.name has malformed PCI address (${nic.pciAddress}).`),
    );
  }
  return causes;
}

function validatePorts(causes: Cause[], field: string, { nic, network, config }: BoundInterface): void {
  if (nic.portRanges !== undefined) {
    const at = `${field}.portRanges`;
    if (!config.isEnabled('PortRangesSpec')) causes.push(invalidValue(at, gateMissing('PortRangesSpec')));
    if ((nic.ports?.length ?? 0) > 0) causes.push(invalidValue(at, 'ports and portRanges are mutually exclusive'));
    if (nic.masquerade === undefined) causes.push(invalidValue(at, 'portRanges need the masquerade binding'));
    if (nic.portRanges.length > MAX_PORT_RANGES) {
      causes.push(invalidValue(at, `there may be at most ${MAX_PORT_RANGES} portRanges`));
    }
    validateEach(causes, nic.portRanges, ({ protocol, start, end }, i) => {
      const range = `${at}[${i}]`;
      const found: Cause[] = [];
      if (protocol !== 'TCP' && protocol !== 'UDP') {
        found.push(invalidValue(`${range}.protocol`, 'Unknown protocol, only TCP or UDP allowed'));
      }
      if (!(start > 0 && start <= end && end < 65536)) {
        found.push(invalidValue(range, 'a range must satisfy 0 < start <= end < 65536'));
      }
      return found;
    });
  }
  if (network?.pod === undefined) return;
  const names = new Set<string>();
  validateEach(causes, nic.ports ?? [], ({ name, port, protocol }, i) => {
    const at = `${field}.ports[${i}]`;
    const found: Cause[] = [];
    if (name) {
      if (names.has(name)) found.push(duplicateValue(`${at}.name`, `Duplicate name of the port: ${name}`));
      if (!isPortName(name)) found.push(invalidValue(`${at}.name`, `Invalid name of the port: ${name}`));
      names.add(name);
    }
    if (!port) found.push(requiredValue(at, 'Port field is mandatory.'));
    else if (port < 0 || port > 65535)
      found.push(invalidValue(`${at}.port`, 'Port field must be in range 0 < x < 65536.'));
    if (protocol && protocol !== 'TCP' && protocol !== 'UDP') {
      found.push(invalidValue(`${at}.protocol`, 'Unknown protocol, only TCP or UDP allowed'));
    }
    return found;
  });
}

function validateDhcpOptions(
  causes: Cause[],
  path: string,
  { nic, field }: { nic: Readonly<Interface>; field: string },
): void {
  const { privateOptions = [], ntpServers = [] } = nic.dhcpOptions ?? {};
  if (new Set(privateOptions.map(({ option }) => option)).size < privateOptions.length) {
    causes.push(invalidValue(path, 'Found Duplicates: you have provided duplicate DHCPPrivateOptions'));
  }
  validateEach(causes, privateOptions, ({ option }) => {
    if (option >= 224 && option <= 254) return [];
    return [invalidValue(path, 'provided DHCPPrivateOptions are out of range, must be in range 224 to 254')];
  });
  validateEach(causes, ntpServers, (server, i) => {
    if (parseAddress(server)?.family === 4) return [];
    const at = `${field}.dhcpOptions.ntpServers[${i}]`;
    return [invalidValue(at, 'NTP servers must be a list of valid IPv4 addresses.')];
  });
}
