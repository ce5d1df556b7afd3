/** The audit policy (audit.k8s.io/v1 Policy, apiserver/pkg/audit/policy): the first rule that matches gives the level. */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { UserInfo } from '../auth/identity.ts';
import type { RequestInfo } from '../endpoints/request-info.ts';

export type AuditLevel = 'None' | 'Metadata' | 'Request' | 'RequestResponse';
export type AuditStage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete' | 'Panic';

const LEVELS: readonly AuditLevel[] = ['None', 'Metadata', 'Request', 'RequestResponse'];
const STAGES: readonly AuditStage[] = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'];

/** What rules look at. */
export type AuditedRequest = Omit<RequestInfo, 'version' | 'parts'> & { readonly user: UserInfo | undefined };

export interface AuditDecision {
  readonly level: AuditLevel;
  readonly omitStages: ReadonlySet<AuditStage>;
  readonly omitManagedFields: boolean;
}

export type AuditPolicy = (request: AuditedRequest) => AuditDecision;

interface GroupResources {
  group?: string;
  resources?: string[];
  resourceNames?: string[];
}

interface Rule {
  level: AuditLevel;
  users?: string[];
  userGroups?: string[];
  verbs?: string[];
  resources?: GroupResources[];
  namespaces?: string[];
  nonResourceURLs?: string[];
  omitStages?: AuditStage[];
  omitManagedFields?: boolean;
}

interface PolicyDocument {
  apiVersion?: string;
  kind?: string;
  rules?: Rule[];
  omitStages?: AuditStage[];
  omitManagedFields?: boolean;
}

const PROBES = ['/healthz*', '/livez*', '/readyz*', '/version', '/version/'];

/** Everything but probes, when it is done, without any contents: no Secret and no token is ever in the file. */
export const DEFAULT_POLICY: PolicyDocument = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [{ level: 'None', nonResourceURLs: PROBES }, { level: 'Metadata' }],
};

/** Checks a policy document and makes its function. Throws SyntaxError that names every field that is wrong. */
export function compilePolicy(document: unknown): AuditPolicy {
  const policy = checked(document);
  const rules = (policy.rules ?? []).map((rule) => ({
    matches: matcher(rule),
    decision: {
      level: rule.level,
      omitStages: new Set([...(policy.omitStages ?? []), ...(rule.omitStages ?? [])]),
      omitManagedFields: rule.omitManagedFields ?? policy.omitManagedFields ?? false,
    },
  }));
  const none: AuditDecision = { level: 'None', omitStages: new Set(policy.omitStages), omitManagedFields: false };
  return (request) => rules.find(({ matches }) => matches(request))?.decision ?? none;
}

function matcher(rule: Rule): (request: AuditedRequest) => boolean {
  const users = listed(rule.users);
  const groups = listed(rule.userGroups);
  const verbs = listed(rule.verbs);
  const namespaces = listed(rule.namespaces);
  const { resources = [], nonResourceURLs = [] } = rule;
  return (request) => {
    const { user } = request;
    if (users && !(user && users.has(user.username))) return false;
    if (groups && !user?.groups.some((group) => groups.has(group))) return false;
    if (verbs && !verbs.has(request.verb)) return false;
    if (namespaces || resources.length > 0) {
      if (!request.isResource) return false;
      if (namespaces && !namespaces.has(request.namespace)) return false;
      return resources.length === 0 || resources.some((one) => matchesResource(one, request));
    }
    if (nonResourceURLs.length === 0) return true;
    return !request.isResource && nonResourceURLs.some((pattern) => matchesPath(pattern, request.path));
  };
}

const listed = (list: readonly string[] | undefined): ReadonlySet<string> | undefined =>
  list && list.length > 0 ? new Set(list) : undefined;

function matchesResource(
  { group = '', resources = [], resourceNames = [] }: GroupResources,
  request: AuditedRequest,
): boolean {
  if (group !== request.group) return false;
  if (resources.length === 0) return true;
  if (resourceNames.length > 0 && !resourceNames.includes(request.name)) return false;
  const { resource, subresource } = request;
  const combined = subresource === '' ? resource : `${resource}/${subresource}`;
  return resources.some(
    (one) =>
      one === '*' || one === combined || (subresource !== '' && one === `*/${subresource}`) || one === `${resource}/*`,
  );
}

const matchesPath = (pattern: string, path: string): boolean =>
  pattern === '*' || pattern === path || (pattern.endsWith('*') && path.startsWith(pattern.slice(0, -1)));

function checked(document: unknown): PolicyDocument {
  if (!isJsonObject(document)) throw new SyntaxError('an audit policy is an object of kind Policy');
  const policy = document as PolicyDocument;
  const problems = [...problemsOf(policy)];
  if (problems.length > 0) throw new SyntaxError(problems.join('; '));
  return policy;
}

function* problemsOf({ apiVersion, kind, omitStages, rules }: PolicyDocument): Generator<string> {
  if (kind !== 'Policy' || apiVersion !== 'audit.k8s.io/v1')
    yield `it is ${apiVersion ?? 'no apiVersion'} ${kind ?? 'no kind'}, not audit.k8s.io/v1 Policy`;
  if (!isStageList(omitStages)) yield `omitStages: takes a list of ${STAGES.join(', ')}`;
  if (!Array.isArray(rules) || rules.length === 0) yield 'rules: at least one is needed';
  else for (const [at, rule] of rules.entries()) for (const why of ruleProblems(rule)) yield `rules[${at}]${why}`;
}

const TEXT_LISTS = ['users', 'userGroups', 'verbs', 'namespaces', 'nonResourceURLs'] as const;
const KNOWN = new Set<string>(['level', 'resources', 'omitStages', 'omitManagedFields', ...TEXT_LISTS]);
const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');
const isStageList = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) && value.every((one) => STAGES.includes(one as AuditStage)));

/** What is wrong with a rule: each with the field, as it follows the place of the rule. */
function* ruleProblems(rule: unknown): Generator<string> {
  if (!isJsonObject(rule)) {
    yield ': takes an object';
    return;
  }
  for (const name of Object.keys(rule)) if (!KNOWN.has(name)) yield `.${name}: no such field`;
  if (!LEVELS.includes(rule['level'] as AuditLevel)) yield `.level: takes one of ${LEVELS.join(', ')}`;
  for (const name of TEXT_LISTS)
    if (rule[name] !== undefined && !isTextList(rule[name])) yield `.${name}: takes a list of texts`;
  if (!isStageList(rule['omitStages'])) yield `.omitStages: takes a list of ${STAGES.join(', ')}`;
  const { resources = [], namespaces = [], nonResourceURLs = [] } = rule as unknown as Rule;
  if (!Array.isArray(resources) || !resources.every(isGroupResources))
    yield '.resources: takes a list of {group, resources, resourceNames}';
  if (nonResourceURLs.length > 0 && (resources.length > 0 || namespaces.length > 0))
    yield '.nonResourceURLs: a rule cannot have resources or namespaces as well';
  for (const url of isTextList(nonResourceURLs) ? nonResourceURLs : []) {
    const star = url.indexOf('*');
    if (url !== '*' && (!url.startsWith('/') || (star >= 0 && star < url.length - 1)))
      yield `.nonResourceURLs: ${JSON.stringify(url)} must begin with "/" and may have "*" only at its end`;
  }
}

const isGroupResources = (value: unknown): boolean =>
  isJsonObject(value) &&
  (value['group'] === undefined || typeof value['group'] === 'string') &&
  (value['resources'] === undefined || isTextList(value['resources'])) &&
  (value['resourceNames'] === undefined || isTextList(value['resourceNames']));
