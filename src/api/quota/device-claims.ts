/** What a ResourceClaim may take of each device class at most (pkg/quota/v1/evaluator/core/resource_claims.go). */
import type { UnstructuredObject } from '../meta/object.ts';
import { type Amounts, larger, plus, whole } from './amounts.ts';

export const DEVICES_SUFFIX = '.deviceclass.resource.k8s.io/devices';
/** Devices of one claim, at most: what a request for all of them is charged with. */
const MAX_DEVICES = 32;

interface DeviceRequest {
  readonly deviceClassName?: string;
  readonly allocationMode?: string;
  readonly count?: number;
}

/** Devices by class; of alternatives, the dearest for each class. */
export function claimedDevices(claim: Readonly<UnstructuredObject>): Amounts {
  const { devices } = (claim['spec'] ?? {}) as {
    devices?: { requests?: readonly { exactly?: DeviceRequest; firstAvailable?: readonly DeviceRequest[] }[] };
  };
  let sum: Amounts = new Map();
  for (const { exactly, firstAvailable = [] } of devices?.requests ?? []) {
    let most: Amounts = exactly ? asked(exactly) : new Map();
    for (const one of firstAvailable) most = larger(most, asked(one));
    sum = plus(sum, most);
  }
  return sum;
}

/** A mode that is not known counts for nothing: it comes from a newer server. */
function asked({ deviceClassName = '', allocationMode = 'ExactCount', count = 1 }: DeviceRequest): Amounts {
  const devices = allocationMode === 'ExactCount' ? count : allocationMode === 'All' ? MAX_DEVICES : 0;
  return new Map([[`${deviceClassName}${DEVICES_SUFFIX}`, whole(devices)]]);
}
