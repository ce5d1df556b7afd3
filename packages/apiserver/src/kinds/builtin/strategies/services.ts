/**
 * Services (pkg/registry/core/service) and their IPAddresses, which become durable in one commit: an address is taken when
 * the Service that has it is written, and given back when it goes or lets go of it. Upstream writes the two one after the
 * other (service/storage/alloc.go) and has a controller look for what a crash left between them.
 */

import { invalid } from '@coracle/apimachinery/meta/status';
import { addressOf, belongsTo, clusterIpsOf } from '@coracle/apimachinery/types/service-cidrs';
import type { CommitChange, CommitPart, ResourceName } from '@coracle/apimachinery/types/strategy';
import type { IPAddress } from '@coracle/apimachinery/types/types';
import { invalid as invalidValue } from '@coracle/apimachinery/validation/field-errors';
import { setServiceDefaults } from '../defaults/core.ts';
import { validateService } from '../validation/services.ts';
import { serviceWarnings } from '../warnings/network.ts';
import type { BuiltinKind } from './builtin-kind.ts';

export const SERVICE: BuiltinKind = {
  setDefaults: setServiceDefaults,
  validate: validateService,
  warnings: serviceWarnings,
  commitWith: commitAddresses,
};

export const IP_ADDRESSES: ResourceName = { group: 'networking.k8s.io', version: 'v1', resource: 'ipaddresses' };
/** Whom the fields of an IPAddress belong to. */
const MANAGER = 'kube-apiserver';

interface ServiceName {
  readonly namespace: string;
  readonly name: string;
}

/** The IPAddress of a Service; one that is there stays. */
export const takeAddress = (ip: string, service: ServiceName): CommitPart => ({
  type: 'create',
  of: IP_ADDRESSES,
  object: addressOf(ip, service),
  manager: MANAGER,
});

/** Lets an IPAddress go, if it is `service`'s; one that somebody holds by a finalizer waits for that. */
export const giveBack = (ip: string, service?: ServiceName): CommitPart => ({
  type: 'delete',
  of: IP_ADDRESSES,
  namespace: '',
  name: ip,
  ...(service && { isMeant: (object) => belongsTo(object as IPAddress, service) }),
});

/** Throws ApiError 422 when an address is another's. */
function commitAddresses(change: CommitChange): readonly CommitPart[] {
  const before = clusterIpsOf(change.before);
  const after = clusterIpsOf(change.after);
  const gained = after.filter((ip) => !before.includes(ip));
  const taken = gained.find((ip) => change.exists(IP_ADDRESSES, '', ip));
  if (taken !== undefined) {
    throw invalid({ group: '', kind: 'Service' }, change.name, [
      invalidValue('spec.clusterIPs', [taken], `failed to allocate IP ${taken}: provided IP is already allocated`),
    ]);
  }
  return [
    ...gained.map((ip) => takeAddress(ip, change)),
    ...before.filter((ip) => !after.includes(ip)).map((ip) => giveBack(ip, change)),
  ];
}
