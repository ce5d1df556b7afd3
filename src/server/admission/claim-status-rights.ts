/**
 * Who may say which devices a ResourceClaim got, and how they are (feature DRAResourceClaimGranularStatusAuthorization):
 * beside `resourceclaims/status` it takes `resourceclaims/binding` for what was given to whom, and for the state of
 * devices `resourceclaims/driver`, named as their driver is. The verb of the latter says whether on any node
 * (`arbitrary-node:update`) or on that of the account alone (`associated-node:update`).
 */
import { objectAt, objectsAt, textAt, valueAt } from '../../api/kinds/builtin/read-value.ts';
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { type FieldError, forbidden } from '../../api/meta/status.ts';
import type { AuthorizationVerdict, Authorizer, UserInfo } from '../auth/identity.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

type Subresource = 'binding' | 'driver';

interface Question {
  readonly verb: string;
  readonly subresource: Subresource;
  readonly namespace: string;
  readonly name: string;
}

/** No plug-in of upstream: the kind's own rules ask there, once webhooks and policies have changed what they like. */
export function claimStatusRights(authorize: Authorizer): AdmissionPlugin {
  return {
    name: 'ResourceClaimStatusRights',
    matches: (operation, info, subresource) =>
      operation === 'UPDATE' &&
      subresource === 'status' &&
      info.group === 'resource.k8s.io' &&
      info.resource === 'resourceclaims',
    async missingRights(attributes) {
      const { info, user } = attributes;
      const ask: Ask = (question) => refusal({ authorize, user, info }, question);
      return [...(await bindingErrors(attributes, ask)), ...(await driverErrors(attributes, ask))];
    },
  };
}

/** What speaks against it; '' where nothing does. */
type Ask = (question: Question) => Promise<string>;

async function bindingErrors(
  { object, oldObject, requestVerb: verb }: AdmissionAttributes,
  ask: Ask,
): Promise<FieldError[]> {
  const given = (claim: unknown): unknown => [
    valueAt(claim, 'status', 'allocation'),
    objectsAt(claim, 'status', 'reservedFor'),
  ];
  if (deepEqual(given(object), given(oldObject))) return [];
  const why = await ask({ verb, subresource: 'binding', namespace: '', name: '' });
  if (why === '') return [];
  const detail = `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="${verb}" permission: ${why}`;
  return [{ type: 'FieldValueForbidden', field: 'status', detail }];
}

async function driverErrors(attributes: AdmissionAttributes, ask: Ask): Promise<FieldError[]> {
  const { object, oldObject, requestVerb, namespace, user } = attributes;
  const errors: FieldError[] = [];
  const verbs = [`arbitrary-node:${requestVerb}`];
  if (isOnNode(user, nodeOf(objectAt(object, 'status', 'allocation')))) verbs.unshift(`associated-node:${requestVerb}`);
  for (const name of changedDrivers(object, oldObject)) {
    let first: string | undefined;
    for (const verb of verbs) {
      const why = await ask({ verb, subresource: 'driver', namespace, name });
      first = why === '' ? '' : (first ?? why);
      if (why === '') break;
    }
    if (!first) continue;
    const detail = `changing status.devices requires resource="resourceclaims/driver", verb="[${verbs.join(' ')}]" permission: ${first}`;
    errors.push({ type: 'FieldValueForbidden', field: 'status.devices', detail });
  }
  return errors;
}

/** The drivers of devices that came, went or changed, in order. */
function changedDrivers(object: unknown, oldObject: unknown): string[] {
  const keyed = (claim: unknown): Map<string, unknown> =>
    new Map(objectsAt(claim, 'status', 'devices').map((device) => [keyOf(device), device]));
  const [now, before] = [keyed(object), keyed(oldObject)];
  const drivers = new Set<string>();
  for (const key of new Set([...now.keys(), ...before.keys()])) {
    if (deepEqual(now.get(key), before.get(key))) continue;
    drivers.add(textAt(now.get(key) ?? before.get(key), 'driver'));
  }
  return [...drivers].sort();
}

const keyOf = (device: unknown): string =>
  JSON.stringify(['driver', 'pool', 'device', 'shareID'].map((field) => textAt(device, field)));

/** The one node that these devices can be used on; '' where there may be others. */
function nodeOf(allocation: unknown): string {
  const [term, ...terms] = objectsAt(allocation, 'nodeSelector', 'nodeSelectorTerms');
  const [field, ...fields] = objectsAt(term, 'matchFields');
  if (terms.length > 0 || fields.length > 0 || objectsAt(term, 'matchExpressions').length > 0) return '';
  if (textAt(field, 'key') !== 'metadata.name' || textAt(field, 'operator') !== 'In') return '';
  const values = valueAt(field, 'values');
  return Array.isArray(values) && values.length === 1 ? String(values[0]) : '';
}

const ACCOUNT = /^system:serviceaccount:[^:]+:[^:]+$/;

/** Whether this is a service account whose token is bound to a Pod of that node. */
function isOnNode({ username, extra }: UserInfo, node: string): boolean {
  const nodes = extra?.['authentication.kubernetes.io/node-name'] ?? [];
  return node !== '' && nodes.length === 1 && nodes[0] === node && ACCOUNT.test(username);
}

interface Asking {
  readonly authorize: Authorizer;
  readonly user: UserInfo;
  readonly info: ResourceInfo;
}

async function refusal({ authorize, user, info }: Asking, question: Question): Promise<string> {
  const { group, version, resource } = info;
  const verdict = await authorize(user, { type: 'resource', group, version, resource, ...question });
  if (verdict.allowed) return '';
  const { verb, subresource, namespace, name } = question;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  const cannot = `User ${JSON.stringify(user.username)} cannot ${verb} resource "${resource}/${subresource}" in API group "${group}" ${where}`;
  const because = reasonOf(verdict);
  return forbidden(info, name, because === '' ? cannot : `${cannot}: ${because}`).message;
}

const reasonOf = ({ reason, error }: AuthorizationVerdict): string => [error, reason].filter(Boolean).join(': ');
