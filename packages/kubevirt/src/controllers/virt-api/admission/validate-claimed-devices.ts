/** Rules about devices and networks by resource claim (kubevirt pkg/dra/admitter, pkg/network/admitter/dra). */

import type { VirtualMachineInstanceSpec } from '../../../kinds/kubevirt.ts';
import {
  type Cause,
  duplicateValue,
  invalidValue,
  missingValue,
  requiredValue,
  type ValidatedSpec,
  validateEach,
} from './causes.ts';
import { gateMissing } from './validate-resources.ts';

interface Device {
  readonly deviceName?: string;
  readonly claimName?: string;
  readonly requestName?: string;
}

const isClaimed = ({ deviceName, claimName, requestName }: Device): boolean =>
  !deviceName && (claimName !== undefined || requestName !== undefined);

/** What GPUs and devices of the host must say: the name of a resource, or a claim of the spec. */
export function validateClaimedDevices({ path, spec, config }: ValidatedSpec): Cause[] {
  const { gpus, hostDevices } = spec.domain.devices;
  const claims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  return [['gpus', gpus, 'GPUsWithDRA'] as const, ['hostDevices', hostDevices, 'HostDevicesWithDRA'] as const].flatMap(
    ([list, devices, gate]) => {
      const field = `${path}.domain.devices.${list}`;
      const all: readonly Device[] = devices ?? [];
      const claimed = all.filter(isClaimed);
      const named = all.filter((device) => !isClaimed(device));
      if (named.some(({ deviceName }) => !deviceName))
        return [invalidValue(field, `${field} contains devices without deviceName`)];
      const causes: Cause[] = [];
      if (named.some(({ claimName, requestName }) => claimName !== undefined || requestName !== undefined))
        causes.push(invalidValue(field, `${field} contains devices with both deviceName and a claim`));
      if (claimed.length > 0 && !config.isEnabled(gate))
        causes.push(invalidValue(field, `${field} contains devices by resource claim: ${gateMissing(gate)}`));
      else if (claimed.some(({ claimName = '' }) => !claims.has(claimName)))
        causes.push(
          invalidValue(`${path}.resourceClaims`, `${path}.resourceClaims must have all claims used in ${field}`),
        );
      return causes;
    },
  );
}

type Networks = NonNullable<VirtualMachineInstanceSpec['networks']>;

/** Networks by resource claim: each by an SR-IOV interface, with a claim of the spec, none twice, and none beside Multus. */
export function validateClaimedNetworks(causes: Cause[], { path, spec, config }: ValidatedSpec): void {
  const field = `${path}.networks`;
  const networks: Networks = spec.networks ?? [];
  if (!networks.some(({ resourceClaim }) => resourceClaim !== undefined)) return;
  if (!config.isEnabled('NetworkDevicesWithDRA')) {
    causes.push(invalidValue(field, gateMissing('NetworkDevicesWithDRA')));
    return;
  }
  const claims = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  const interfaces = new Map((spec.domain.devices.interfaces ?? []).map((nic) => [nic.name, nic]));
  const seen = new Set<string>();
  validateEach(causes, networks, ({ name, resourceClaim }, i) => {
    if (resourceClaim === undefined) return [];
    const causes: Cause[] = [];
    const nic = interfaces.get(name);
    if (nic !== undefined && nic.sriov === undefined)
      causes.push(
        invalidValue(
          `${path}.domain.devices.interfaces`,
          `network ${JSON.stringify(name)} by resource claim requires an SR-IOV interface binding`,
        ),
      );
    const { claimName = '', requestName = '' } = resourceClaim;
    const at = `${field}[${i}].resourceClaim`;
    if (claimName === '') causes.push(requiredValue(`${at}.claimName`, 'claimName is required for a network by claim'));
    if (requestName === '')
      causes.push(requiredValue(`${at}.requestName`, 'requestName is required for a network by claim'));
    if (claimName === '' || requestName === '') return causes;
    if (!claims.has(claimName))
      causes.push(
        missingValue(`${at}.claimName`, `there is no claim ${JSON.stringify(claimName)} in ${path}.resourceClaims`),
      );
    const key = `${claimName}/${requestName}`;
    if (seen.has(key))
      causes.push(duplicateValue(`${field}[${i}]`, `claimName/requestName ${JSON.stringify(key)} is used twice`));
    seen.add(key);
    return causes;
  });
  if (networks.some(({ multus }) => multus !== undefined))
    causes.push(invalidValue(field, 'networks by resource claim and by Multus cannot be mixed in one guest'));
}
