/**
 * ValidatingAdmissionPolicy (policy/validating/dispatcher): every policy, binding and parameter is evaluated; the first
 * denial makes the answer.
 */

import { goJson } from '@coracle/apimachinery/meta/go-text';
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import { whenAnswered } from '../matching/request-authorizer.ts';
import { namespaceOf } from '../matching/selectors.ts';
import { type ShownObjects, showObjects } from '../matching/served-kinds.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../plugin.ts';
import type { CompiledValidation, Denial, Evaluation } from './compiled-validation.ts';
import { collectParams } from './params.ts';
import {
  admissionForbidden,
  attempted,
  codeOfReason,
  conversionProblem,
  namespaceObjectOf,
  type PolicyServices,
  targetOf,
} from './policy-services.ts';
import type { BoundPolicy, PolicyBinding, PolicySource } from './policy-source.ts';
import type { ValidatingPolicySpec } from './policy-types.ts';

type Policy = BoundPolicy<ValidatingPolicySpec, CompiledValidation>;

/** A policy that refuses. */
export interface PolicyRefusal {
  readonly policy: string;
  /** Undefined when the policy itself cannot work. */
  readonly binding: string | undefined;
  readonly message: string;
  readonly reason: string;
}

const FAILURE_ANNOTATION = 'validation.policy.admission.k8s.io/validation_failure';
const ACTIONS: Readonly<Record<string, 'deny' | 'warn' | 'audit'>> = { Deny: 'deny', Warn: 'warn', Audit: 'audit' };

/** What is refused, reported before it is thrown: the refusals of every policy, the one that is answered first. */
export type OnPolicyRefusal = (attributes: AdmissionAttributes, refusals: readonly PolicyRefusal[]) => void;

/** The plug-in over the policies of `source`. */
export function validatingPolicies(
  source: PolicySource<ValidatingPolicySpec, CompiledValidation>,
  services: PolicyServices,
  onRefusal?: OnPolicyRefusal,
): AdmissionPlugin {
  return {
    name: 'ValidatingAdmissionPolicy',
    matches: (operation, info, subresource) => source.candidates(operation, info, subresource).length > 0,
    validate(attributes) {
      const { operation, info, subresource } = attributes;
      return new Run(attributes, services, onRefusal).all(source.candidates(operation, info, subresource));
    },
  };
}

/** Evaluations without letting others in: a binding may have thousands of parameters. */
const TOGETHER = 200;

/** All policies against one write. */
class Run {
  readonly #attributes: AdmissionAttributes;
  readonly #services: PolicyServices;
  readonly #onRefusal: OnPolicyRefusal | undefined;
  readonly #refusals: PolicyRefusal[] = [];
  #evaluations = 0;
  #namespaceObject: Readonly<Record<string, unknown>> | null | undefined;
  /** The first failure under the action Audit: an annotation is never overwritten, so that later ones are not reported. */
  #audited: unknown;
  /** The objects in the version of a matched resource, converted once. */
  readonly #shown = new Map<ResourceInfo, ShownObjects | Promise<ShownObjects>>();

  constructor(attributes: AdmissionAttributes, services: PolicyServices, onRefusal: OnPolicyRefusal | undefined) {
    this.#attributes = attributes;
    this.#services = services;
    this.#onRefusal = onRefusal;
  }

  async all(policies: readonly Policy[]): Promise<void> {
    for (const policy of policies) await this.#policy(policy);
    this.#finish();
  }

  async #policy(policy: Policy): Promise<void> {
    const report = (problem: string): void => this.#misconfigured(policy, undefined, problem);
    const target = await attempted(() => targetOf(policy, this.#attributes, this.#services), report);
    if (!target) return;
    const annotations = new Map<string, string[]>();
    for (const binding of policy.bindings) await this.#binding(policy, binding, { ...target, annotations });
    for (const [key, values] of annotations) this.#attributes.annotate(`${policy.name}/${key}`, values.join(', '));
  }

  #finish(): void {
    if (this.#audited !== undefined) this.#attributes.annotate(FAILURE_ANNOTATION, goJson([this.#audited]));
    const [first] = this.#refusals;
    if (!first) return;
    this.#onRefusal?.(this.#attributes, this.#refusals);
    throw refusalOf(this.#attributes, first);
  }

  async #binding(
    policy: Policy,
    binding: PolicyBinding,
    context: {
      readonly matched: ResourceInfo;
      readonly info: ResourceInfo | undefined;
      readonly annotations: Map<string, string[]>;
    },
  ): Promise<void> {
    const { store, authorizer, metrics } = this.#services;
    const { matched, info, annotations } = context;
    const where = { info, ref: binding.spec.paramRef, namespace: namespaceOf(this.#attributes) };
    const params = await attempted(
      () => (binding.matcher.match(this.#attributes) ? collectParams(store, where) : []),
      (problem) => this.#misconfigured(policy, binding, problem),
    );
    if (!params || params.length === 0) return;
    const shown = await attempted(
      () => getOrInsert(this.#shown, matched, (to) => showObjects(this.#attributes, to)),
      (problem) => this.#misconfigured(policy, binding, `failed to convert object version: ${problem}`),
      conversionProblem,
    );
    if (!shown) return;
    if (this.#namespaceObject === undefined) this.#namespaceObject = namespaceObjectOf(this.#attributes, store);
    const namespaceObject = this.#namespaceObject;
    for (const param of params) {
      if (++this.#evaluations % TOGETHER === 0) await nextTurn();
      const began = metrics.now();
      const evaluate = (): Evaluation =>
        policy.compiled.evaluate(this.#attributes, { matched, shown, param, namespaceObject, authorizer });
      const evaluation = await whenAnswered(authorizer, this.#attributes, evaluate);
      const ms = metrics.now() - began;
      this.#conclude(policy, binding, { evaluation, ms, annotations });
    }
  }

  #conclude(
    { name: policy }: Policy,
    { name: binding, spec }: PolicyBinding,
    { evaluation, ms, annotations }: { evaluation: Evaluation; ms: number; annotations: Map<string, string[]> },
  ): void {
    const { metrics } = this.#services;
    const counted = { kind: 'validating', policy, binding, ms } as const;
    if (evaluation.denials.length === 0) metrics.policy({ ...counted, action: 'allow', failed: false });
    for (const denial of evaluation.denials) {
      for (const action of spec.validationActions ?? []) {
        metrics.policy({ ...counted, action: ACTIONS[action] ?? 'deny', failed: denial.reason === '' });
      }
      for (const action of spec.validationActions ?? []) this.#act(action, denial, { policy, binding, spec });
    }
    for (const message of evaluation.annotationErrors) this.#refusals.push({ policy, binding, message, reason: '' });
    for (const { key, value } of evaluation.annotations) {
      const values = annotations.get(key) ?? [];
      if (!values.includes(value)) annotations.set(key, [...values, value]);
    }
  }

  #act(
    action: string,
    denial: Denial,
    at: { readonly policy: string; readonly binding: string; readonly spec: PolicyBinding['spec'] },
  ): void {
    const { message, reason, expressionIndex } = denial;
    const { policy, binding } = at;
    if (action === 'Deny') this.#refusals.push({ policy, binding, message, reason });
    else if (action === 'Warn') {
      const who = `ValidatingAdmissionPolicy '${policy}' with binding '${binding}'`;
      this.#attributes.warn(`Validation failed for ${who}: ${message}`);
    } else if (action === 'Audit') {
      const { validationActions } = at.spec;
      this.#audited ??= { message, policy, binding, expressionIndex, validationActions };
    }
  }

  /** failurePolicy Ignore passes it by. */
  #misconfigured(policy: Policy, binding: PolicyBinding | undefined, problem: string): void {
    if (policy.spec.failurePolicy === 'Ignore') return;
    const message = `failed to configure ${binding ? 'binding' : 'policy'}: ${problem}`;
    this.#refusals.push({ policy: policy.name, binding: binding?.name, message, reason: '' });
  }
}

function refusalOf(attributes: AdmissionAttributes, { policy, binding, message, reason }: PolicyRefusal): ApiError {
  const by = binding === undefined ? `'${policy}'` : `'${policy}' with binding '${binding}'`;
  const text = `ValidatingAdmissionPolicy ${by} denied request: ${message}`;
  const { status } = admissionForbidden(attributes, text);
  const shown = reason || 'Invalid';
  return new ApiError({
    code: codeOfReason(shown),
    reason: shown,
    message: status.message ?? text,
    details: { ...status.details, causes: [{ message: text }] },
  });
}
