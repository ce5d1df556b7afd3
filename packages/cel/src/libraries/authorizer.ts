/**
 * `authorizer`: questions to the authoriser from admission policies. The builder is immutable; the answer comes from a
 * function that the caller injects. It must be synchronous, as all of CEL is.
 */
import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import {
  actualSize,
  addRange,
  type CostModel,
  constant,
  fixed,
  LIST_COST,
  ONE,
  type Range,
  STRUCT_COST,
  scaleRange,
  TRAVERSAL,
} from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { CelEvaluationError } from '../errors.ts';
import { type CelType, opaqueType } from '../types.ts';
import { CelOpaque } from '../values.ts';

/** What is asked. Either `path`, or the resource attributes. */
export interface CelAuthorizerAttributes {
  readonly verb: string;
  readonly path?: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** Raw selectors; one that does not parse reaches the function as it is, as upstream hands it to the authoriser. */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /** Ask for this service account instead of the user of the request. */
  readonly serviceAccount?: { readonly namespace: string; readonly name: string };
}

export interface CelAuthorizerDecision {
  readonly allowed: boolean;
  readonly reason?: string;
  /** Set when the authoriser failed; `allowed` is false then. */
  readonly error?: string;
}

export type CelAuthorizer = (attributes: CelAuthorizerAttributes) => CelAuthorizerDecision;

interface Builder {
  readonly decide: CelAuthorizer;
  readonly attributes: Omit<CelAuthorizerAttributes, 'verb'>;
}

const PREFIX = 'kubernetes.authorization.';
const NAMES = {
  authorizer: `${PREFIX}Authorizer`,
  path: `${PREFIX}PathCheck`,
  group: `${PREFIX}GroupCheck`,
  resource: `${PREFIX}ResourceCheck`,
  decision: `${PREFIX}Decision`,
};

/** The type of the variable `authorizer`. */
export const AUTHORIZER: CelType = opaqueType(NAMES.authorizer);
/** The type of `authorizer.requestResource`. */
export const REQUEST_RESOURCE: CelType = opaqueType(NAMES.resource);

/** What to bind to `authorizer`. */
export const authorizerValue = (decide: CelAuthorizer): unknown =>
  new CelOpaque<Builder>(NAMES.authorizer, { decide, attributes: {} });

/** What to bind to `authorizer.requestResource`: a check on what the request is about. */
export const resourceCheckValue = (
  decide: CelAuthorizer,
  attributes: Omit<CelAuthorizerAttributes, 'verb' | 'path'>,
): unknown => new CelOpaque<Builder>(NAMES.resource, { decide, attributes });

type Boxed = CelOpaque<Builder>;

const step =
  (typeName: string, key: string, required = false) =>
  (box: Boxed, value: string) => {
    if (required && value.trim() === '') throw new CelEvaluationError(`${key} must not be empty`);
    const attributes = { ...box.value.attributes, [key]: value };
    return new CelOpaque<Builder>(typeName, { ...box.value, attributes });
  };

function forServiceAccount(box: Boxed, namespace: string, name: string): Boxed {
  if (checkSubdomain(name).length > 0) throw new CelEvaluationError('Invalid service account name');
  if (checkLabelName(namespace).length > 0) throw new CelEvaluationError('Invalid service account namespace');
  const attributes = { ...box.value.attributes, serviceAccount: { namespace, name } };
  return new CelOpaque(NAMES.authorizer, { ...box.value, attributes });
}

const check = (box: Boxed, verb: string): unknown =>
  new CelOpaque(NAMES.decision, box.value.decide({ ...box.value.attributes, verb }));

type Decision = CelOpaque<CelAuthorizerDecision>;

const CHECK = constant(350_000);

/** A selector is read, and a list made of at worst one requirement for every two characters. */
function selectorCost(length: Range): Range {
  const requirements = scaleRange(scaleRange(length, 0.5), LIST_COST + STRUCT_COST);
  return addRange(addRange(fixed(LIST_COST), scaleRange(length, TRAVERSAL)), requirements);
}
const SELECTOR: CostModel = {
  run: (args) => selectorCost(fixed(actualSize(args[1]))).max,
  estimate: ({ sizes }) => ({ cost: selectorCost(sizes[1]!) }),
};

export const AUTHORIZER_LIBRARY: readonly Overload[] = [
  overload('path', `${NAMES.authorizer}.(string): ${NAMES.path}`, step(NAMES.path, 'path', true), ONE),
  overload('group', `${NAMES.authorizer}.(string): ${NAMES.group}`, step(NAMES.group, 'group'), ONE),
  overload('serviceAccount', `${NAMES.authorizer}.(string, string): ${NAMES.authorizer}`, forServiceAccount, ONE),
  overload('resource', `${NAMES.group}.(string): ${NAMES.resource}`, step(NAMES.resource, 'resource', true), ONE),
  ...['subresource', 'namespace', 'name'].map((name) =>
    overload(name, `${NAMES.resource}.(string): ${NAMES.resource}`, step(NAMES.resource, name), ONE),
  ),
  ...['fieldSelector', 'labelSelector'].map((name) =>
    overload(name, `${NAMES.resource}.(string): ${NAMES.resource}`, step(NAMES.resource, name), SELECTOR),
  ),
  overload('check', `${NAMES.path}.(string): ${NAMES.decision}`, check, CHECK),
  overload('check', `${NAMES.resource}.(string): ${NAMES.decision}`, check, CHECK),
  overload('allowed', `${NAMES.decision}.(): bool`, (box: Decision) => box.value.allowed, ONE),
  overload('reason', `${NAMES.decision}.(): string`, (box: Decision) => box.value.reason ?? '', ONE),
  overload('errored', `${NAMES.decision}.(): bool`, (box: Decision) => box.value.error !== undefined, ONE),
  overload('error', `${NAMES.decision}.(): string`, (box: Decision) => box.value.error ?? '', ONE),
];
