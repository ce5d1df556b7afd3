/** Cells of the groups beside the core group that show more than one field. */

import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { humanDuration } from '@coracle/apimachinery/types/age';
import { type JsonObject, objectsAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { type Cell, type Cells, conditionOf, firstFew, formatSelector, type KindCells, NONE, UNSET } from './cell.ts';
import { EVENT_CELLS } from './event.ts';

/** `pod.group`, `pod` of the core group, in lower case. */
const qualified = (name: string, group: string): string => `${name}${group === '' ? '' : `.${group}`}`.toLowerCase();

function parentRef(address: JsonObject): string {
  const ref = valueAt(address, 'spec', 'parentRef');
  if (ref == null) return NONE;
  const resource = qualified(textAt(ref, 'resource'), textAt(ref, 'group'));
  return [resource, textAt(ref, 'namespace'), textAt(ref, 'name')].filter((part) => part !== '').join('/');
}

function controllerName(revision: JsonObject): string {
  const owner = objectsAt(revision, 'metadata', 'ownerReferences').find((ref) => ref['controller'] === true);
  if (owner === undefined) return NONE;
  const { group } = parseApiVersion(textAt(owner, 'apiVersion'));
  return `${qualified(textAt(owner, 'kind'), group)}/${textAt(owner, 'name')}`;
}

const few = (items: readonly string[]): string => firstFew(items, { max: 3, empty: UNSET });

const DEFAULT_CLASS_MARKS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

/** The default class says so in its name, hence a Name cell of its own. */
function nameOfClass(object: JsonObject): string {
  const isDefault = DEFAULT_CLASS_MARKS.some((mark) => textAt(object, 'metadata', 'annotations', mark) === 'true');
  return `${textAt(object, 'metadata', 'name')}${isDefault ? ' (default)' : ''}`;
}

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
  Users: subjects('User'),
  Groups: subjects('Group'),
  ServiceAccounts: subjects('ServiceAccount'),
};

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

function csrCondition(csr: JsonObject): string {
  const parts = [conditionOf(csr, 'Denied') ? 'Denied' : conditionOf(csr, 'Approved') ? 'Approved' : 'Pending'];
  if (conditionOf(csr, 'Failed')) parts.push('Failed');
  if (textAt(csr, 'status', 'certificate') !== '') parts.push('Issued');
  return parts.join(',');
}

function requestedDuration(csr: JsonObject): string {
  const seconds = valueAt(csr, 'spec', 'expirationSeconds');
  return typeof seconds === 'number' ? humanDuration(seconds * 1000) : NONE;
}

function available(apiService: JsonObject): string {
  const condition = conditionOf(apiService, 'Available');
  if (condition === undefined) return 'Unknown';
  const status = textAt(condition, 'status');
  return status === 'True' ? status : `${status} (${textAt(condition, 'reason')})`;
}

function serviceBehind(apiService: JsonObject): string {
  const service = valueAt(apiService, 'spec', 'service');
  return service == null ? 'Local' : `${textAt(service, 'namespace')}/${textAt(service, 'name')}`;
}

const numberOrPercent =
  (field: string): Cell =>
  (budget) =>
    String(valueAt(budget, 'spec', field) ?? 'N/A');

export const CLUSTER_CELLS: KindCells = {
  'admissionregistration.k8s.io/mutatingadmissionpolicies': { ParamKind: paramKind },
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': { ParamRef: paramRef },
  'admissionregistration.k8s.io/validatingadmissionpolicies': { ParamKind: paramKind },
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': { ParamRef: paramRef },
  'apiregistration.k8s.io/apiservices': { Service: serviceBehind, Available: available },
  'apps/controllerrevisions': { Controller: controllerName },
  'certificates.k8s.io/certificatesigningrequests': { RequestedDuration: requestedDuration, Condition: csrCondition },
  'discovery.k8s.io/endpointslices': {
    Ports: (slice) =>
      few(objectsAt(slice, 'ports').map((port) => String(port['port'] ?? port['name'] ?? '*'))) || UNSET,
    Endpoints: (slice) => few(objectsAt(slice, 'endpoints').flatMap((endpoint) => textsAt(endpoint, 'addresses'))),
  },
  'events.k8s.io/events': EVENT_CELLS,
  'flowcontrol.apiserver.k8s.io/flowschemas': {
    MissingPL: (object) => textAt(conditionOf(object, 'Dangling'), 'status') || '?',
  },
  'networking.k8s.io/ipaddresses': { ParentRef: parentRef },
  'networking.k8s.io/networkpolicies': {
    'Pod-Selector': (object) => formatSelector(valueAt(object, 'spec', 'podSelector')),
  },
  'networking.k8s.io/servicecidrs': { CIDRs: (object) => textsAt(object, 'spec', 'cidrs').join(',') },
  'policy/poddisruptionbudgets': {
    'Min Available': numberOrPercent('minAvailable'),
    'Max Unavailable': numberOrPercent('maxUnavailable'),
  },
  'rbac.authorization.k8s.io/clusterrolebindings': BINDING_CELLS,
  'rbac.authorization.k8s.io/rolebindings': BINDING_CELLS,
  'storage.k8s.io/storageclasses': { Name: nameOfClass },
};
