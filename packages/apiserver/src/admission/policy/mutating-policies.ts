/** MutatingAdmissionPolicy (policy/mutating/dispatcher): policies by name, each binding and parameter in its turn. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, internalError } from '@coracle/apimachinery/meta/status';
import { applyJsonPatch, FailedTest } from '@coracle/apimachinery/patch/json-patch';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { celBudget } from '@coracle/cel/cel';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { ExpressionFailed } from '../matching/compiled-expression.ts';
import { RequestBindings } from '../matching/expression-environment.ts';
import { mutatedKind, shownKind } from '../matching/mutated-kind.ts';
import { normalizeMutated, replaceObject } from '../matching/mutated-object.ts';
import { whenAnswered } from '../matching/request-authorizer.ts';
import { namespaceOf } from '../matching/selectors.ts';
import { showObjects } from '../matching/served-kinds.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../plugin.ts';
import { reinvocationOf } from '../reinvocation.ts';
import { mergeConfiguration } from './apply-configuration.ts';
import type { CompiledMutation } from './compiled-mutation.ts';
import { collectParams, type Param } from './params.ts';
import {
  admissionForbidden,
  attempted,
  conversionProblem,
  namespaceObjectOf,
  type PolicyServices,
  targetOf,
} from './policy-services.ts';
import type { BoundPolicy, PolicySource } from './policy-source.ts';
import type { MutatingPolicySpec } from './policy-types.ts';

const NAME = 'MutatingAdmissionPolicy';
/** What one mutation may cost. */
const BUDGET = 10_000_000;
const PER_CALL = 1_000_000;

/** Invocations without letting others in: a binding may have thousands of parameters. */
const TOGETHER = 20;

type Policy = BoundPolicy<MutatingPolicySpec, CompiledMutation>;

interface Invocation {
  readonly policy: Policy;
  readonly binding: string;
  readonly matched: ResourceInfo;
  readonly param: Param;
}

interface Failure {
  readonly policy: Policy;
  readonly binding: string | undefined;
  readonly message: string;
  /** '' keeps `Forbidden`. */
  readonly reason: string;
}

/** The plug-in over the policies of `source`. */
export function mutatingPolicies(
  source: PolicySource<MutatingPolicySpec, CompiledMutation>,
  services: PolicyServices,
): AdmissionPlugin {
  return {
    name: NAME,
    matches: (operation, info, subresource) =>
      operation !== 'DELETE' && source.candidates(operation, info, subresource).length > 0,
    mutate(attributes) {
      const { operation, info, subresource } = attributes;
      return mutate(source.candidates(operation, info, subresource), { attributes, services, failures: [] });
    },
  };
}

async function mutate(policies: readonly Policy[], context: Context): Promise<void> {
  const invocations: Invocation[] = [];
  for (const policy of policies) invocations.push(...(await invocationsOf(policy, context)));
  if (invocations.length > 0) await mutateAll(invocations, context);
  const refusals = context.failures.filter(({ policy }) => policy.spec.failurePolicy !== 'Ignore');
  if (refusals.length > 0) throw refusalOf(context.attributes, refusals);
}

interface Context {
  readonly attributes: AdmissionAttributes;
  readonly services: PolicyServices;
  readonly failures: Failure[];
}

async function invocationsOf(policy: Policy, { attributes, services, failures }: Context): Promise<Invocation[]> {
  const misconfigured = (binding?: string) => (problem: string) => {
    const message = `failed to configure ${binding === undefined ? 'policy' : 'binding'}: ${problem}`;
    failures.push({ policy, binding, message, reason: '' });
  };
  const target = await attempted(() => targetOf(policy, attributes, services), misconfigured());
  if (!target) return [];
  const { matched, info } = target;
  const found: Invocation[] = [];
  for (const { name: binding, spec, matcher } of policy.bindings) {
    const report = misconfigured(binding);
    if (!(await attempted(() => matcher.match(attributes), report))) continue;
    // Whether it can be shown is asked here, where a failure is one of the policy.
    if (!(await attempted(() => showObjects(attributes, matched), misconfigured(), conversionProblem))) continue;
    const where = { info, ref: spec.paramRef, namespace: namespaceOf(attributes) };
    const params = await attempted(() => collectParams(services.store, where), report);
    for (const param of params ?? []) found.push({ policy, binding, matched, param });
  }
  return found;
}

async function mutateAll(invocations: readonly Invocation[], context: Context): Promise<void> {
  const { attributes, services, failures } = context;
  const reinvocation = reinvocationOf(attributes);
  const callers = reinvocation.of(NAME);
  if (reinvocation.again && callers.outputChanged(attributes.object)) callers.requirePrevious();
  const namespaceObject = namespaceObjectOf(attributes, services.store);
  let worked = false;
  try {
    for (const [i, invocation] of invocations.entries()) {
      if (i % TOGETHER === TOGETHER - 1) await nextTurn();
      const { policy, binding, matched, param } = invocation;
      const key = `${policy.name}/${binding}/${param?.metadata.namespace ?? ''}/${param?.metadata.name ?? ''}`;
      const { conditions } = policy.compiled;
      if (conditions) {
        const { authorizer } = services;
        const shown = await showObjects(attributes, matched);
        const match = () => conditions.match(attributes, { matched, shown, params: param, authorizer });
        const outcome = await whenAnswered(authorizer, attributes, match);
        if (outcome.error !== undefined) failures.push({ policy, binding, message: outcome.error, reason: 'Invalid' });
        if (!outcome.matches) continue;
      }
      // After the conditions: one that fails refuses the write, whoever is due.
      if (reinvocation.again && !callers.isDue(key)) continue;
      const failuresBefore = failures.length;
      const { metrics } = services;
      const began = metrics.now();
      const mutated = await mutateOne(invocation, { ...context, namespaceObject });
      const failed = failures.length > failuresBefore;
      const counted = { kind: 'mutating', policy: policy.name, binding, failed } as const;
      metrics.policy({ ...counted, action: failed ? 'deny' : 'allow', ms: metrics.now() - began });
      if (mutated === 'changed') callers.requirePrevious();
      if (policy.spec.reinvocationPolicy === 'IfNeeded') callers.addReinvocable(key);
      worked ||= mutated !== 'failed';
    }
    if (worked) {
      // Also for the last of them, and when it left everything as it was: a policy that allows it runs twice.
      callers.requirePrevious();
      reinvocation.wanted = true;
    }
  } finally {
    callers.keepOutput(attributes.object);
  }
}

/**
 * All mutations of one invocation, each on what the one before left: `changed` when the object is another one now,
 * `failed` when none of them could be done.
 */
async function mutateOne(
  { policy, binding, matched, param }: Invocation,
  context: Context & { readonly namespaceObject: Readonly<Record<string, unknown>> | null },
): Promise<'changed' | 'same' | 'failed'> {
  const { attributes, services, failures, namespaceObject } = context;
  const { info, subresource } = attributes;
  let outcome: 'changed' | 'same' | 'failed' = 'failed';
  for (const { patchType, program } of policy.compiled.mutations) {
    if (!attributes.object) continue;
    const { authorizer } = services;
    const shown = await showObjects(attributes, matched);
    const before = shown.object as Readonly<UnstructuredObject>;
    const evaluate = (): unknown => {
      const bindings = new RequestBindings(attributes, { matched, shown, params: param, namespaceObject, authorizer });
      const budget = celBudget(BUDGET, PER_CALL);
      policy.compiled.variables.bind(bindings, budget);
      return program.json(bindings.values, budget);
    };
    try {
      const patch = await whenAnswered(authorizer, attributes, evaluate);
      const next =
        patchType === 'JSONPatch'
          ? patched(before, patch)
          : mergeConfiguration(shownKind(matched, subresource) ?? matched, before, asObject(patch));
      const { shape, version } = mutatedKind(matched, { subresource, object: next });
      const unknown = shape ? normalizeMutated(shape, next) : [];
      // The result of a JSON patch is decoded strictly where the kind is built in.
      if (unknown.length > 0 && patchType === 'JSONPatch' && !matched.strategy.custom) {
        const fields = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
        throw internalError(`strict decoding error: ${fields.join(', ')}`);
      }
      if (outcome === 'failed') outcome = 'same';
      if (deepEqual(before, next)) continue;
      const back = await showObjects({ info: version, object: next, oldObject: undefined }, info);
      replaceObject(attributes, cloneJson(back.object) as UnstructuredObject);
      outcome = 'changed';
    } catch (error) {
      // What the object's kind cannot hold is an answer of its own.
      if (error instanceof ApiError || !(error instanceof Error)) throw error;
      failures.push({ policy, binding, message: mutationFailure(error), reason: 'Invalid' });
    }
  }
  return outcome;
}

/** What a mutation itself says when it does not compile, without the words of an evaluation around it. */
const mutationFailure = (error: Error): string =>
  error instanceof ExpressionFailed && error.phase === 'compile' ? error.detail : error.message;

function asObject(value: unknown): JsonObject {
  if (isJsonObject(value)) return value;
  throw new Error(`unsupported return type from ApplyConfiguration expression: ${typeof value}`);
}

/** A patch whose `test` does not hold changes nothing. */
function patched(object: Readonly<UnstructuredObject>, operations: unknown): UnstructuredObject {
  try {
    return applyJsonPatch(object, operations) as UnstructuredObject;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.cause instanceof FailedTest) return cloneJson(object) as UnstructuredObject;
    const text = error.cause instanceof Error ? error.cause.message : (error.status.message ?? '');
    throw new Error(`JSON Patch: ${text}`);
  }
}

function refusalOf(attributes: AdmissionAttributes, failures: readonly Failure[]): ApiError {
  const texts = failures.map(({ policy, binding, message }) =>
    binding === undefined
      ? `policy ${JSON.stringify(policy.name)} denied request: ${message}`
      : `policy '${policy.name}' with binding '${binding}' denied request: ${message}`,
  );
  const [{ reason }] = failures as readonly [Failure];
  const { status } = admissionForbidden(attributes, 'admission request denied by policy');
  return new ApiError({
    // Whatever the reason is.
    code: status.code,
    reason: reason === '' ? (status.reason ?? '') : reason,
    message: texts[0]!,
    details: { ...status.details, causes: texts.map((message) => ({ message })) },
  });
}
