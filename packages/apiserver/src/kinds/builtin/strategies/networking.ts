/** networking.k8s.io and discovery.k8s.io; Services are of the core group. */
import { setNetworkPolicyDefaults } from '../defaults/cluster.ts';
import { dropNewTopology, dropTopology } from '../preparations/endpoint-slices.ts';
import { validateSlice } from '../validation/endpoints.ts';
import { validateIpAddress, validateNetworkPolicy, validateServiceCidr } from '../validation/networking.ts';
import { addressTypeWarnings, endpointWarnings, networkPolicyWarnings } from '../warnings/network.ts';
import type { GroupKinds } from './builtin-kind.ts';

export const NETWORKING: GroupKinds = {
  ingressclasses: { generation: 'spec' },
  ingresses: { keyName: 'ingress', generation: 'spec' },
  ipaddresses: { names: 'path-segment', validate: validateIpAddress },
  networkpolicies: {
    generation: 'spec',
    setDefaults: setNetworkPolicyDefaults,
    validate: validateNetworkPolicy,
    warningsOnCreate: networkPolicyWarnings,
    warningsOnUpdate: networkPolicyWarnings,
  },
  servicecidrs: { validate: validateServiceCidr, statusMetadata: 'reset' },
};

export const DISCOVERY: GroupKinds = {
  endpointslices: {
    generation: 'except-status',
    // Proxies choose their slices by label, so those count as well.
    generationFollows: 'labels',
    prepareForCreate: dropTopology,
    prepareForUpdate: dropNewTopology,
    validate: validateSlice,
    warningsOnCreate: (slice) => [...addressTypeWarnings(slice), ...endpointWarnings(slice)],
    warningsOnUpdate: endpointWarnings,
  },
};
