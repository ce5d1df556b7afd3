/** Which kinds warn of what, on a create and on an update (WarningsOnCreate and WarningsOnUpdate of their strategies). */
import { checkLabelName } from '@coracle/apimachinery/meta/name-rules';
import { type JsonObject, objectAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import {
  addressTypeWarnings,
  endpointWarnings,
  networkPolicyWarnings,
  podAddressWarnings,
  serviceWarnings,
  subsetWarnings,
} from './network.ts';
import { podSpecWarnings } from './pod-spec.ts';
import { storageClassWarnings, volumeClaimWarnings, volumeWarnings } from './storage.ts';

type Warns = Pick<ResourceInfo, 'warnings' | 'updateWarnings' | 'statusWarnings'>;
type Check = (object: JsonObject) => string[];

const always = (validateOne: Check): Warns => ({ warnings: validateOne, updateWarnings: validateOne });

function pod(object: JsonObject): string[] {
  const problems = checkLabelName(textAt(object, 'metadata', 'name'));
  const first =
    problems.length === 0
      ? []
      : [
          `metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [${problems.join(' ')}]`,
        ];
  return [...first, ...podSpecWarnings(object)];
}

const node: Check = (object) => [
  ...(valueAt(object, 'spec', 'configSource') == null ? [] : ['spec.configSource: the feature is removed']),
  ...(textAt(object, 'spec', 'externalID') === ''
    ? []
    : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
];

const ENFORCED = 'kubernetes.io/enforce-mountable-secrets';
const isEnforced = (account: JsonObject): boolean =>
  Object.hasOwn(objectAt(account, 'metadata', 'annotations'), ENFORCED);
const account: Check = (object) =>
  isEnforced(object)
    ? [
        `metadata.annotations[${ENFORCED}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
      ]
    : [];

function newSlice(slice: JsonObject): string[] {
  return [...addressTypeWarnings(slice), ...endpointWarnings(slice)];
}

const KINDS: Readonly<Record<string, Warns>> = {
  // Those who update Pods all day are no people.
  pods: { warnings: pod, statusWarnings: podAddressWarnings },
  endpoints: always(subsetWarnings),
  nodes: always(node),
  services: always(serviceWarnings),
  serviceaccounts: {
    warnings: account,
    updateWarnings: (object, old) => (isEnforced(old) ? [] : account(object)),
  },
  persistentvolumes: always(volumeWarnings),
  persistentvolumeclaims: always(volumeClaimWarnings),
  'storageclasses.storage.k8s.io': always(storageClassWarnings),
  'networkpolicies.networking.k8s.io': always(networkPolicyWarnings),
  'endpointslices.discovery.k8s.io': {
    ...always(endpointWarnings),
    warnings: newSlice,
  },
};

/** What the server says of objects of this kind that are valid and odd. */
export const warningsOf = (group: string, resource: string): Warns =>
  KINDS[group === '' ? resource : `${resource}.${group}`] ?? {};
