/** Rules about devices and networks by resource claim (kubevirt pkg/dra/admitter, pkg/network/admitter/dra). */

import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import type { ClusterConfig } from '../../../rules/machine-defaults/cluster-config.ts';
import { type Findings, gateMissing } from './causes.ts';

type Spec = Readonly<VirtualMachineInstanceSpec>;

interface Device {
  readonly deviceName?: string;
  readonly claimName?: string;
  readonly requestName?: string;
}

const hasClaim = ({ claimName, requestName }: Device): boolean => claimName !== undefined || requestName !== undefined;
const isClaimed = (device: Device): boolean => !device.deviceName && hasClaim(device);

/** What GPUs and devices of the host must say: the name of a resource, or a claim of the spec. */
export function validateClaimedDevices(found: Findings, spec: Spec, config: ClusterConfig): void {
  const { gpus = [], hostDevices = [] } = spec.domain.devices;
  const claims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  const validate = (list: string, devices: readonly Device[], gate: 'GPUsWithDRA' | 'HostDevicesWithDRA'): void => {
    const at = found.at(`.domain.devices.${list}`);
    const refuse = (text: string): void => at.invalid('', `${at.path} contains devices ${text}`);
    const claimed = devices.filter(isClaimed);
    const named = devices.filter((device) => !isClaimed(device));
    if (named.some(({ deviceName }) => !deviceName)) {
      refuse('without deviceName');
      return;
    }
    if (named.some(hasClaim)) refuse('with both deviceName and a claim');
    if (claimed.length > 0 && !config.isEnabled(gate)) refuse(`by resource claim: ${gateMissing(gate)}`);
    else if (claimed.some(({ claimName = '' }) => !claims.has(claimName)))
      found.invalid('.resourceClaims', `${found.path}.resourceClaims must have all claims used in ${at.path}`);
  };
  validate('gpus', gpus, 'GPUsWithDRA');
  validate('hostDevices', hostDevices, 'HostDevicesWithDRA');
}

/** Networks by resource claim: each by an SR-IOV interface, with a claim of the spec, none twice, and none beside Multus. */
export function validateClaimedNetworks(found: Findings, spec: Spec, config: ClusterConfig): void {
  const { networks = [] } = spec;
  if (!networks.some(({ resourceClaim }) => resourceClaim !== undefined)) return;
  if (!config.isEnabled('NetworkDevicesWithDRA')) {
    found.gated('.networks', 'NetworkDevicesWithDRA', config);
    return;
  }
  const claims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  const interfaces = new Map((spec.domain.devices.interfaces ?? []).map((nic) => [nic.name, nic]));
  const seen = new Set<string>();
  found.each('.networks', networks, (at, { name, resourceClaim }) => {
    if (resourceClaim === undefined) return;
    const nic = interfaces.get(name);
    if (nic !== undefined && nic.sriov === undefined) {
      const text = `network ${JSON.stringify(name)} by resource claim requires an SR-IOV interface binding`;
      found.invalid('.domain.devices.interfaces', text);
    }
    const { claimName = '', requestName = '' } = resourceClaim;
    for (const [member, value] of Object.entries({ claimName, requestName }))
      if (value === '') at.required(`.resourceClaim.${member}`, `${member} is required for a network by claim`);
    if (claimName === '' || requestName === '') return;
    if (!claims.has(claimName)) {
      const text = `there is no claim ${JSON.stringify(claimName)} in ${found.path}.resourceClaims`;
      at.missing('.resourceClaim.claimName', text);
    }
    const key = `${claimName}/${requestName}`;
    if (seen.has(key)) at.duplicate('', `claimName/requestName ${JSON.stringify(key)} is used twice`);
    seen.add(key);
  });
  if (networks.some(({ multus }) => multus !== undefined))
    found.invalid('.networks', 'networks by resource claim and by Multus cannot be mixed in one guest');
}
