/** Groups about who may do what, and about the API itself. */
import { markCrdDeleted, setCrdDefaults } from '../../custom/crd-strategy.ts';
import { validateCrd } from '../../custom/crd-validation.ts';
import { formatWarnings, newFormatWarnings } from '../../custom/format-warnings.ts';
import { setBindingDefaults, setPriorityLevelDefaults } from '../defaults/cluster.ts';
import { prepareNewApiService } from '../preparations/api-services.ts';
import { keepAllButApproval, keepRequest, keepVerdicts } from '../preparations/certificate-requests.ts';
import {
  validateMutatingBinding,
  validateMutatingPolicy,
  validateValidatingBinding,
  validateValidatingPolicy,
} from '../validation/admission-policies.ts';
import {
  validateClusterRole,
  validateClusterRoleBinding,
  validateLease,
  validatePriorityClass,
  validateRole,
  validateRoleBinding,
} from '../validation/cluster.ts';
import { validateStrictEvent } from '../validation/events.ts';
import { validateFlowSchema, validatePriorityLevel } from '../validation/flow-control.ts';
import { validateApiService } from '../validation/registration.ts';
import { validateWebhooks } from '../validation/webhooks.ts';
import type { GroupKinds } from './builtin-kind.ts';

export const ADMISSION: GroupKinds = {
  mutatingadmissionpolicies: {
    generation: 'spec',
    validate: validateMutatingPolicy,
    allowUnconditionalUpdate: false,
  },
  mutatingadmissionpolicybindings: {
    generation: 'spec',
    validate: validateMutatingBinding,
    allowUnconditionalUpdate: false,
  },
  mutatingwebhookconfigurations: {
    generation: 'except-status',
    validate: validateWebhooks,
    allowUnconditionalUpdate: false,
  },
  validatingadmissionpolicies: {
    generation: 'spec',
    validate: validateValidatingPolicy,
    statusMetadata: 'reset',
    allowUnconditionalUpdate: false,
  },
  validatingadmissionpolicybindings: {
    generation: 'spec',
    validate: validateValidatingBinding,
    allowUnconditionalUpdate: false,
  },
  validatingwebhookconfigurations: {
    generation: 'except-status',
    validate: validateWebhooks,
    allowUnconditionalUpdate: false,
  },
};

export const EXTENSIONS: GroupKinds = {
  customresourcedefinitions: {
    server: 'extension',
    generation: 'spec',
    setDefaults: setCrdDefaults,
    // All that the type asks for is asked by the kind's own rules, under the paths and in the words of upstream.
    validateSchema: () => [],
    validate: validateCrd,
    warningsOnCreate: formatWarnings,
    warningsOnUpdate: newFormatWarnings,
    // Upstream means to reset the metadata, and resets it to itself (kubernetes/kubernetes#137681).
    statusMetadata: 'accept',
    allowUnconditionalUpdate: false,
    beginDeletion: markCrdDeleted,
  },
};

export const REGISTRATION: GroupKinds = {
  apiservices: {
    server: 'extension',
    names: 'path-segment',
    prepareForCreate: prepareNewApiService,
    validate: validateApiService,
    statusMetadata: 'reset',
    allowUnconditionalUpdate: false,
  },
};

export const CERTIFICATES: GroupKinds = {
  certificatesigningrequests: {
    names: 'path-segment',
    keepUnwritten: keepRequest,
    subresources: { approval: { keepUnwritten: keepAllButApproval }, status: { keepUnwritten: keepVerdicts } },
  },
};

export const COORDINATION: GroupKinds = {
  leases: { validate: validateLease, allowUnconditionalUpdate: false, allowCreateOnUpdate: true },
};

export const EVENTS: GroupKinds = {
  events: { validate: validateStrictEvent, allowCreateOnUpdate: true, garbageCollection: 'unsupported' },
};

export const FLOW_CONTROL: GroupKinds = {
  flowschemas: {
    generation: 'spec',
    validate: validateFlowSchema,
    statusMetadata: 'reset',
  },
  prioritylevelconfigurations: {
    generation: 'spec',
    setDefaults: setPriorityLevelDefaults,
    validate: validatePriorityLevel,
    statusMetadata: 'reset',
  },
};

export const NODE: GroupKinds = { runtimeclasses: { allowUnconditionalUpdate: false, allowCreateOnUpdate: true } };

export const RBAC: GroupKinds = {
  clusterrolebindings: {
    names: 'path-segment',
    setDefaults: setBindingDefaults,
    validate: validateClusterRoleBinding,
    allowCreateOnUpdate: true,
  },
  clusterroles: {
    names: 'path-segment',
    validate: validateClusterRole,
    allowCreateOnUpdate: true,
  },
  rolebindings: {
    names: 'path-segment',
    setDefaults: setBindingDefaults,
    validate: validateRoleBinding,
    allowCreateOnUpdate: true,
  },
  roles: { names: 'path-segment', validate: validateRole, allowCreateOnUpdate: true },
};

export const SCHEDULING: GroupKinds = {
  priorityclasses: {
    generation: 'one',
    validate: validatePriorityClass,
  },
};
