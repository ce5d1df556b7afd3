/** The core group (pkg/registry/core). */

import { keepStatus } from '@coracle/apimachinery/types/strategy';
import {
  setLimitRangeDefaults,
  setNamespaceDefaults,
  setNodeDefaults,
  setReplicationControllerDefaults,
  setSecretDefaults,
  setTemplateDefaults,
  setVolumeDefaults,
} from '../defaults/core.ts';
import { prepareClaim, prepareNewClaim } from '../preparations/claims.ts';
import {
  isHeldByFinalizers,
  keepFinalizers,
  markTerminating,
  prepareNewNamespace,
} from '../preparations/namespaces.ts';
import { dropConfiguration } from '../preparations/nodes.ts';
import { nameSecrets } from '../preparations/service-accounts.ts';
import { prepareNewVolume, prepareVolumeStatus } from '../preparations/volumes.ts';
import { validateClaim } from '../validation/claims.ts';
import { validateNode } from '../validation/cluster.ts';
import { validateConfigMap, validateNamespace, validateSecret } from '../validation/core.ts';
import { validateEndpoints } from '../validation/endpoints.ts';
import { validateEvent } from '../validation/events.ts';
import { validateLimitRange } from '../validation/limit-range.ts';
import { validateVolume } from '../validation/persistent-volumes.ts';
import { validateResourceQuota } from '../validation/resource-quota.ts';
import { accountWarnings, nodeWarnings } from '../warnings/core.ts';
import { subsetWarnings } from '../warnings/network.ts';
import { volumeClaimWarnings, volumeWarnings } from '../warnings/storage.ts';
import type { Kinds } from './builtin-kind.ts';
import { POD } from './pods.ts';
import { SERVICE } from './services.ts';

export const CORE: Kinds = {
  configmaps: { validate: validateConfigMap },
  endpoints: {
    validate: validateEndpoints,
    warningsOnCreate: subsetWarnings,
    warningsOnUpdate: subsetWarnings,
  },
  events: { validate: validateEvent },
  limitranges: {
    // Every other kind asks for a name.
    namesItself: true,
    setDefaults: setLimitRangeDefaults,
    validate: validateLimitRange,
  },
  namespaces: {
    setDefaults: setNamespaceDefaults,
    prepareForCreate: prepareNewNamespace,
    keepUnwritten: keepFinalizers,
    validate: validateNamespace,
    subresources: { finalize: { keepUnwritten: keepStatus } },
    isHeld: isHeldByFinalizers,
    markDeleted: markTerminating,
  },
  nodes: {
    // A kubelet registers its node with capacity and conditions in one create.
    statusOnCreate: 'take',
    setDefaults: setNodeDefaults,
    prepareForCreate: (node) => dropConfiguration(node),
    prepareForUpdate: dropConfiguration,
    validate: validateNode,
    warningsOnCreate: nodeWarnings,
    warningsOnUpdate: nodeWarnings,
    subresources: { status: { prepareForUpdate: dropConfiguration } },
  },
  persistentvolumeclaims: {
    prepareForCreate: prepareNewClaim,
    prepareForUpdate: prepareClaim,
    validate: validateClaim,
    warningsOnCreate: volumeClaimWarnings,
    warningsOnUpdate: volumeClaimWarnings,
  },
  persistentvolumes: {
    setDefaults: setVolumeDefaults,
    prepareForCreate: prepareNewVolume,
    validate: validateVolume,
    warningsOnCreate: volumeWarnings,
    warningsOnUpdate: volumeWarnings,
    subresources: { status: { prepareForUpdate: prepareVolumeStatus } },
  },
  pods: POD,
  podtemplates: { setDefaults: setTemplateDefaults },
  replicationcontrollers: {
    setDefaults: setReplicationControllerDefaults,
    // Older than the garbage collector: clients of the first versions clean up by themselves.
    garbageCollection: 'orphan-dependents',
  },
  resourcequotas: { validate: validateResourceQuota },
  secrets: { setDefaults: setSecretDefaults, validate: validateSecret },
  serviceaccounts: {
    prepareForCreate: nameSecrets,
    prepareForUpdate: nameSecrets,
    warningsOnCreate: (account) => accountWarnings(account),
    warningsOnUpdate: accountWarnings,
  },
  services: SERVICE,
};
