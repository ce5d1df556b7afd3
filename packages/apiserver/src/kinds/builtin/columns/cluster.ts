/** Cells of networking, discovery, storage, rbac, admission, scheduling and the other cluster-level groups. */

import { age, humanDuration } from '@coracle/apimachinery/types/age';
import {
  isTrueAt,
  type JsonObject,
  listAt,
  numberAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  type Cell,
  type Cells,
  conditionOf,
  firstFew,
  formatSelector,
  type GroupCells,
  NONE,
  text,
  UNSET,
} from './cell.ts';

const count =
  (...path: string[]): Cell =>
  (object) =>
    listAt(object, ...path).length;

function parentRef(address: JsonObject): string {
  const ref = valueAt(address, 'spec', 'parentRef');
  if (ref == null) return NONE;
  const group = textAt(ref, 'group');
  const resource = `${textAt(ref, 'resource')}${group === '' ? '' : `.${group}`}`.toLowerCase();
  return [resource, textAt(ref, 'namespace'), textAt(ref, 'name')].filter((part) => part !== '').join('/');
}

export const NETWORKING_CELLS: GroupCells = {
  networkpolicies: { 'Pod-Selector': (object) => formatSelector(valueAt(object, 'spec', 'podSelector')), Age: age },
  ipaddresses: { ParentRef: parentRef },
  servicecidrs: { CIDRs: (object) => textsAt(object, 'spec', 'cidrs').join(','), Age: age },
};

export const DISCOVERY_CELLS: GroupCells = {
  endpointslices: {
    AddressType: text('addressType'),
    Ports: (slice) =>
      firstFew(
        objectsAt(slice, 'ports').map((port) => String(valueAt(port, 'port') ?? valueAt(port, 'name') ?? '*')),
        { max: 3, empty: UNSET },
      ) || UNSET,
    Endpoints: (slice) =>
      firstFew(
        objectsAt(slice, 'endpoints').flatMap((endpoint) => textsAt(endpoint, 'addresses')),
        { max: 3, empty: UNSET },
      ),
    Age: age,
  },
};

/** The default class says so in its name, hence a Name cell of its own. */
const nameOfClass =
  (...marks: string[]): Cell =>
  (object) => {
    const isDefault = marks.some((key) => textAt(object, 'metadata', 'annotations', key) === 'true');
    return `${textAt(object, 'metadata', 'name')}${isDefault ? ' (default)' : ''}`;
  };

const flag =
  (path: string, preset: boolean): Cell =>
  (object) => {
    const value = valueAt(object, ...path.split('.'));
    return typeof value === 'boolean' ? value : preset;
  };

export const STORAGE_CELLS: GroupCells = {
  storageclasses: {
    Name: nameOfClass(
      'storageclass.kubernetes.io/is-default-class',
      'storageclass.beta.kubernetes.io/is-default-class',
    ),
    Provisioner: text('provisioner'),
    ReclaimPolicy: text('reclaimPolicy', 'Delete'),
    VolumeBindingMode: text('volumeBindingMode', 'Immediate'),
    AllowVolumeExpansion: flag('allowVolumeExpansion', false),
    Age: age,
  },
};

const subjects =
  (kind: string): Cell =>
  (binding) =>
    objectsAt(binding, 'subjects')
      .filter((subject) => subject['kind'] === kind)
      .map((subject) =>
        kind === 'ServiceAccount'
          ? `${textAt(subject, 'namespace')}/${textAt(subject, 'name')}`
          : textAt(subject, 'name'),
      )
      .join(', ');

const BINDING_CELLS: Cells = {
  Role: (binding) => `${textAt(binding, 'roleRef', 'kind')}/${textAt(binding, 'roleRef', 'name')}`,
  Age: age,
  Users: subjects('User'),
  Groups: subjects('Group'),
  ServiceAccounts: subjects('ServiceAccount'),
};

export const RBAC_CELLS: GroupCells = { rolebindings: BINDING_CELLS, clusterrolebindings: BINDING_CELLS };

function paramKind(policy: JsonObject): string {
  const kind = valueAt(policy, 'spec', 'paramKind');
  return kind == null ? UNSET : `${textAt(kind, 'apiVersion')}/${textAt(kind, 'kind')}`;
}

function paramRef(binding: JsonObject): string {
  const ref = valueAt(binding, 'spec', 'paramRef');
  if (ref == null) return UNSET;
  const name = textAt(ref, 'name');
  if (name === '') return valueAt(ref, 'selector') == null ? UNSET : formatSelector(valueAt(ref, 'selector'));
  return `${textAt(ref, 'namespace') || '*'}/${name}`;
}

const POLICY_BINDING: Cells = { PolicyName: text('spec.policyName'), ParamRef: paramRef, Age: age };

export const ADMISSION_CELLS: GroupCells = {
  mutatingwebhookconfigurations: { Webhooks: count('webhooks'), Age: age },
  validatingwebhookconfigurations: { Webhooks: count('webhooks'), Age: age },
  mutatingadmissionpolicies: { Mutations: count('spec', 'mutations'), ParamKind: paramKind, Age: age },
  validatingadmissionpolicies: { Validations: count('spec', 'validations'), ParamKind: paramKind, Age: age },
  mutatingadmissionpolicybindings: POLICY_BINDING,
  validatingadmissionpolicybindings: POLICY_BINDING,
};

function csrCondition(csr: JsonObject): string {
  const parts = [
    conditionOf(csr, 'Denied') ? 'Denied' : conditionOf(csr, 'Approved') ? 'Approved' : 'Pending',
    ...(conditionOf(csr, 'Failed') ? ['Failed'] : []),
    ...(textAt(csr, 'status', 'certificate') !== '' ? ['Issued'] : []),
  ];
  return parts.join(',');
}

export const CERTIFICATE_CELLS: GroupCells = {
  certificatesigningrequests: {
    Age: age,
    SignerName: text('spec.signerName', NONE),
    Requestor: text('spec.username'),
    RequestedDuration: (csr) => {
      const seconds = valueAt(csr, 'spec', 'expirationSeconds');
      return typeof seconds === 'number' ? humanDuration(seconds * 1000) : NONE;
    },
    Condition: csrCondition,
  },
};

export const SCHEDULING_CELLS: GroupCells = {
  priorityclasses: {
    Value: (object) => numberAt(object, 'value'),
    'Global-Default': (object) => isTrueAt(object, 'globalDefault'),
    Age: age,
    PreemptionPolicy: text('preemptionPolicy', 'PreemptLowerPriority'),
  },
};

export const COORDINATION_CELLS: GroupCells = { leases: { Holder: text('spec.holderIdentity'), Age: age } };

function available(service: JsonObject): string {
  const condition = conditionOf(service, 'Available');
  if (condition === undefined) return 'Unknown';
  const status = textAt(condition, 'status');
  return status === 'True' ? status : `${status} (${textAt(condition, 'reason')})`;
}

export const REGISTRATION_CELLS: GroupCells = {
  apiservices: {
    Service: (object) => {
      const service = valueAt(object, 'spec', 'service');
      return service == null ? 'Local' : `${textAt(service, 'namespace')}/${textAt(service, 'name')}`;
    },
    Available: available,
    Age: age,
  },
};

const numberOrNone =
  (...path: string[]): Cell =>
  (object) => {
    const value = valueAt(object, ...path);
    return typeof value === 'number' ? value : NONE;
  };

export const FLOWCONTROL_CELLS: GroupCells = {
  flowschemas: {
    PriorityLevel: text('spec.priorityLevelConfiguration.name'),
    MatchingPrecedence: (object) => numberAt(object, 'spec', 'matchingPrecedence'),
    DistinguisherMethod: text('spec.distinguisherMethod.type', NONE),
    Age: age,
    MissingPL: (object) => textAt(conditionOf(object, 'Dangling'), 'status') || '?',
  },
  prioritylevelconfigurations: {
    Type: text('spec.type'),
    NominalConcurrencyShares: numberOrNone('spec', 'limited', 'nominalConcurrencyShares'),
    Queues: numberOrNone('spec', 'limited', 'limitResponse', 'queuing', 'queues'),
    HandSize: numberOrNone('spec', 'limited', 'limitResponse', 'queuing', 'handSize'),
    QueueLengthLimit: numberOrNone('spec', 'limited', 'limitResponse', 'queuing', 'queueLengthLimit'),
    Age: age,
  },
};
