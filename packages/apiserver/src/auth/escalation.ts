/**
 * Nobody hands out rights they do not hold (pkg/registry/rbac/escalation_check.go): who writes a role must hold every
 * rule in it or may `escalate` it, who binds a role must hold its rules or may `bind` it.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { forbidden, notFound } from '@coracle/apimachinery/meta/status';
import type { PolicyRule, RoleBinding } from '@coracle/apimachinery/types/types';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { AdmissionAttributes, AdmissionPlugin } from '../admission/plugin.ts';
import type { Authorizer, UserInfo } from './identity.ts';
import { allows, EVERYTHING, names, RBAC_GROUP, type Rbac } from './rbac.ts';

const ROLES = new Set(['roles', 'clusterroles']);
const BINDINGS = new Set(['rolebindings', 'clusterrolebindings']);
/** What it takes to let a role collect rules that others may write. */
type Rights = Pick<Rbac, 'rulesFor' | 'rulesOf'> & { readonly authorize: Authorizer };

interface RoleParts {
  rules?: PolicyRule[] | null;
  aggregationRule?: unknown;
}

/** The check as an admission plug-in: it sees what all other plug-ins have made of the object. */
export function rbacEscalation(rbac: Rights): AdmissionPlugin {
  return {
    name: 'RbacEscalation',
    matches: (operation, info, subresource) =>
      info.group === RBAC_GROUP &&
      (operation === 'CREATE' || operation === 'UPDATE') &&
      subresource === '' &&
      (ROLES.has(info.resource) || BINDINGS.has(info.resource)),
    async validate(attributes) {
      const { user, object, oldObject, info } = attributes;
      if (user.groups.includes('system:masters') || onlyForCollectors(object!, oldObject)) return;
      if (ROLES.has(info.resource)) await checkRole(rbac, attributes);
      else await checkBinding(rbac, attributes);
    },
  };
}

/** The garbage collector strips owners and finalizers from roles without holding their rights. */
function onlyForCollectors(object: UnstructuredObject, old: Readonly<UnstructuredObject> | undefined): boolean {
  if (!old) return false;
  const bare = ({ metadata, ...rest }: Readonly<UnstructuredObject>) => {
    const { ownerReferences: _o, finalizers: _f, managedFields: _m, resourceVersion: _r, ...kept } = metadata;
    return { ...rest, metadata: kept };
  };
  return deepEqual(bare(object), bare(old));
}

async function checkRole(rbac: Rights, attributes: AdmissionAttributes): Promise<void> {
  const { user, info, name, object, oldObject } = attributes;
  const { aggregationRule, rules } = object as RoleParts;
  const namespace = info.namespaced ? attributes.namespace : '';
  if (await mayDo(rbac, user, { verb: 'escalate', resource: info.resource, namespace, name })) return;
  const held = rbac.rulesFor(user, namespace);
  const aggregates =
    aggregationRule !== undefined || (oldObject as RoleParts | undefined)?.aggregationRule !== undefined;
  if (aggregates && (await uncovered(held, EVERYTHING)).length > 0) {
    throw forbidden(info, name, 'must have cluster-admin privileges to use an aggregationRule');
  }
  refuseMissing(attributes, await uncovered(held, rules ?? []));
}

async function checkBinding(rbac: Rights, attributes: AdmissionAttributes): Promise<void> {
  const { user, info, object } = attributes;
  const namespace = info.namespaced ? attributes.namespace : '';
  const { kind, name } = (object as unknown as Pick<RoleBinding, 'roleRef'>).roleRef;
  const resource = kind === 'ClusterRole' ? 'clusterroles' : 'roles';
  if (await mayDo(rbac, user, { verb: 'bind', resource, namespace, name })) return;
  const granted = rbac.rulesOf({ kind, namespace, name });
  if (!granted) throw notFound({ group: RBAC_GROUP, resource }, name);
  refuseMissing(attributes, await uncovered(rbac.rulesFor(user, namespace), granted));
}

async function mayDo(
  { authorize }: Rights,
  user: UserInfo,
  asked: { readonly verb: string; readonly resource: string; readonly namespace: string; readonly name: string },
): Promise<boolean> {
  const attributes = { type: 'resource', group: RBAC_GROUP, version: 'v1', subresource: '', ...asked } as const;
  return (await authorize(user, attributes)).allowed;
}

function refuseMissing({ user, info, name }: AdmissionAttributes, missing: readonly PolicyRule[]): void {
  if (missing.length === 0) return;
  const lines = compact(missing).map(ruleText).sort();
  throw forbidden(
    info,
    name,
    `user ${JSON.stringify(user.username)} (groups=${listText(user.groups)}) is attempting to grant RBAC permissions not currently held:\n${lines.join('\n')}`,
  );
}

/** Missing parts that are reported. A rule of a thousand verbs, groups and resources has a thousand million parts. */
const MAX_MISSING = 5000;
/** Rules looked at in one go: others are served before the next. */
const LOOKED_TOGETHER = 20_000;

/**
 * The parts of `wanted`, one group, resource, name and verb each, that no held rule covers, or the first thousands of
 * them. Others are served in between: both sides may be long.
 */
export async function uncovered(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): Promise<PolicyRule[]> {
  const missing: PolicyRule[] = [];
  let looked = 0;
  for (const rule of wanted) {
    for (const part of breakDown(rule)) {
      const at = held.findIndex((one) => covers(one, part));
      looked += at < 0 ? held.length + 1 : at + 1;
      if (at < 0 && missing.push(part) === MAX_MISSING) return missing;
      if (looked < LOOKED_TOGETHER) continue;
      looked = 0;
      await nextTurn();
    }
  }
  return missing;
}

function* breakDown(rule: PolicyRule): Generator<PolicyRule, void, void> {
  for (const verb of rule.verbs) {
    for (const url of rule.nonResourceURLs ?? []) yield { verbs: [verb], nonResourceURLs: [url] };
    for (const group of rule.apiGroups ?? []) {
      for (const resource of rule.resources ?? []) {
        const part: PolicyRule = { verbs: [verb], apiGroups: [group], resources: [resource] };
        if (!rule.resourceNames?.length) yield part;
        else for (const name of rule.resourceNames) yield { ...part, resourceNames: [name] };
      }
    }
  }
}

function covers(rule: PolicyRule, part: PolicyRule): boolean {
  const [verb = ''] = part.verbs;
  const path = part.nonResourceURLs?.[0];
  if (path !== undefined) return allows(rule, { type: 'path', verb, path });
  if (!names(rule.verbs, verb)) return false;
  const resource = part.resources![0]!;
  const slash = resource.indexOf('/');
  const anyParent = slash >= 0 && rule.resources?.includes(`*${resource.slice(slash)}`) === true;
  if (!names(rule.apiGroups, part.apiGroups![0]!) || !(names(rule.resources, resource) || anyParent)) return false;
  if (!rule.resourceNames?.length) return true;
  return part.resourceNames !== undefined && rule.resourceNames.includes(part.resourceNames[0]!);
}

/** Parts that differ in their verb only become one rule again. */
function compact(parts: readonly PolicyRule[]): PolicyRule[] {
  const merged = new Map<string, { readonly rest: Omit<PolicyRule, 'verbs'>; readonly verbs: Set<string> }>();
  for (const { verbs, ...rest } of parts) {
    const key = JSON.stringify(rest);
    const known = merged.get(key);
    if (known) known.verbs.add(verbs[0]!);
    else merged.set(key, { rest, verbs: new Set(verbs) });
  }
  return [...merged.values()].map(({ rest, verbs }) => ({ ...rest, verbs: [...verbs] }));
}

const listText = (list: readonly string[]): string => `[${list.map((text) => JSON.stringify(text)).join(' ')}]`;

function ruleText(rule: PolicyRule): string {
  const { apiGroups, resources, nonResourceURLs, resourceNames, verbs } = rule;
  const shown = Object.entries({
    APIGroups: apiGroups,
    Resources: resources,
    NonResourceURLs: nonResourceURLs,
    ResourceNames: resourceNames,
    Verbs: verbs,
  }).flatMap(([name, list]) => (list?.length ? [`${name}:${listText(list)}`] : []));
  return `{${shown.join(', ')}}`;
}
