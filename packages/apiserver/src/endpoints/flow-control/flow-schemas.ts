/** FlowSchemas compiled for matching: which flow, and so which priority level, a request belongs to (flowcontrol's rule.go). */

import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type {
  FlowcontrolSubject,
  FlowSchemaSpec,
  FlowSchemaStatus,
  NonResourcePolicyRule,
  PolicyRulesWithSubjects,
  ResourcePolicyRule,
} from '@coracle/apimachinery/types/types';
import type { UserInfo } from '../../auth/identity.ts';
import type { RequestInfo } from '../request-info.ts';

type Rule = DeepReadonly<PolicyRulesWithSubjects>;

export type FlowSchemaObject = UnstructuredObject & { spec: FlowSchemaSpec; status?: FlowSchemaStatus };

/** A FlowSchema as requests are held against it. */
export interface FlowSchema {
  readonly name: string;
  readonly uid: string;
  readonly level: string;
  readonly precedence: number;
  /** Requests of one flow share a queue: by user, by namespace, or all of them. */
  readonly distinguisher: 'ByUser' | 'ByNamespace' | '';
  readonly rules: readonly Rule[];
}

const UNSET_PRECEDENCE = 1000;

/** The schemas in the order in which they are tried: by precedence, then by name. */
export function compileFlowSchemas(objects: readonly Readonly<UnstructuredObject>[]): FlowSchema[] {
  return objects
    .map((object): FlowSchema => {
      const { metadata, spec } = object as FlowSchemaObject;
      const by = spec.distinguisherMethod?.type;
      return {
        name: metadata.name ?? '',
        uid: metadata.uid ?? '',
        level: spec.priorityLevelConfiguration.name,
        precedence: spec.matchingPrecedence ?? UNSET_PRECEDENCE,
        distinguisher: by === 'ByUser' || by === 'ByNamespace' ? by : '',
        rules: spec.rules ?? [],
      };
    })
    .sort((a, b) => a.precedence - b.precedence || (a.name < b.name ? -1 : 1));
}

/** The rules of a schema whose subjects include the user; what they match depends on the request alone. */
export const rulesFor = (schema: FlowSchema, user: UserInfo): Rule[] =>
  schema.rules.filter(({ subjects = [] }) => subjects.some((subject) => isSubject(subject, user)));

/** True when one of the rules covers the request. */
export const covers = (rules: readonly Rule[], info: RequestInfo): boolean =>
  rules.some(({ resourceRules = [], nonResourceRules = [] }) =>
    info.isResource
      ? resourceRules.some((rule) => coversResource(rule, info))
      : nonResourceRules.some((rule) => coversPath(rule, info)),
  );

const ACCOUNT = 'system:serviceaccount:';

function isSubject(
  { kind, user, group, serviceAccount }: DeepReadonly<FlowcontrolSubject>,
  { username, groups }: UserInfo,
): boolean {
  if (kind === 'User') return user !== undefined && (user.name === '*' || user.name === username);
  if (kind === 'Group') return group !== undefined && (group.name === '*' || groups.includes(group.name));
  if (kind !== 'ServiceAccount' || serviceAccount === undefined) return false;
  const { namespace, name } = serviceAccount;
  return name === '*' ? username.startsWith(`${ACCOUNT}${namespace}:`) : username === `${ACCOUNT}${namespace}:${name}`;
}

/** A lone `*` is every value. */
const has = (list: readonly string[] | undefined, value: string): boolean =>
  list !== undefined && ((list.length === 1 && list[0] === '*') || list.includes(value));

function coversResource(rule: DeepReadonly<ResourcePolicyRule>, info: RequestInfo): boolean {
  if (!has(rule.verbs, info.verb)) return false;
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  if (!has(rule.resources, resource) || !has(rule.apiGroups, info.group)) return false;
  return info.namespace === '' ? rule.clusterScope === true : has(rule.namespaces, info.namespace);
}

function coversPath(
  { verbs, nonResourceURLs = [] }: DeepReadonly<NonResourcePolicyRule>,
  { verb, path }: RequestInfo,
): boolean {
  if (!has(verbs, verb)) return false;
  return nonResourceURLs.some((url) => {
    if (url === '*' || url === path) return true;
    const prefix = url.replace(/\*$/, '');
    return path.startsWith(prefix.endsWith('/') ? prefix : `${prefix}/`);
  });
}
