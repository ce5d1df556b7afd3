/**
 * Whoever writes a policy with parameters can make their content show in messages, so that he must be allowed to read
 * them (registry/admissionregistration: policy and binding authz.go).
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { apiVersionOf, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import { forbidden } from '@coracle/apimachinery/validation/field-errors';
import type { Authorizer, UserInfo } from '../../auth/identity.ts';
import type { ObjectStore } from '../../cache/object-store.ts';
import type { ServedResources } from '../matching/served-kinds.ts';
import type { AdmissionPlugin } from '../plugin.ts';
import type { BindingSpec, ParamKind, PolicySpec, WithSpec } from './policy-types.ts';

const GROUP = 'admissionregistration.k8s.io';
/** Policies by the resource of their bindings. */
const POLICIES_OF: Readonly<Record<string, string>> = {
  validatingadmissionpolicybindings: 'validatingadmissionpolicies',
  mutatingadmissionpolicybindings: 'mutatingadmissionpolicies',
};
const POLICIES: ReadonlySet<string> = new Set(Object.values(POLICIES_OF));

export interface ParamAccessOptions {
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly resources: ServedResources;
  readonly authorize: Authorizer;
}

/** The plug-in: it refuses policies and bindings whose writer may not read their parameters. */
export function paramAccess(options: ParamAccessOptions): AdmissionPlugin {
  return {
    name: 'PolicyParamAccess',
    matches: (operation, info, subresource) =>
      info.group === GROUP &&
      subresource === '' &&
      (operation === 'CREATE' || operation === 'UPDATE') &&
      (POLICIES.has(info.resource) || Object.hasOwn(POLICIES_OF, info.resource)),
    async validate({ info, object, oldObject, user, name }) {
      const ask = { ...options, user };
      const policies = POLICIES_OF[info.resource];
      const error =
        policies === undefined
          ? await policyError(object!, oldObject, ask)
          : await bindingError(object!, oldObject, { ...ask, policies });
      if (error) throw invalid(info, name, [error]);
    },
  };
}

type Ask = ParamAccessOptions & { readonly user: UserInfo };

async function policyError(
  policy: WithSpec<PolicySpec>,
  old: WithSpec<PolicySpec> | undefined,
  ask: Ask,
): Promise<FieldError | undefined> {
  const kind = policy.spec?.paramKind;
  // What stood there before was asked about before.
  if (!kind || (old && deepEqual(old.spec?.paramKind, kind))) return undefined;
  const target = resourceFor(kind, ask.resources);
  if (await mayRead(ask, { verb: 'get', ...target, namespace: '*', name: '*' })) return undefined;
  return forbidden(
    'spec.paramKind',
    `user ${JSON.stringify(ask.user.username)} must have "get" permission on all objects of the referenced paramKind (kind=${kind.kind}, apiVersion=${kind.apiVersion})`,
  );
}

async function mayRead(
  { authorize, user }: Ask,
  what: Readonly<Record<'verb' | 'group' | 'version' | 'resource' | 'namespace' | 'name', string>>,
): Promise<boolean> {
  return (await authorize(user, { type: 'resource', subresource: '', ...what })).allowed;
}

async function bindingError(
  binding: WithSpec<BindingSpec>,
  old: WithSpec<BindingSpec> | undefined,
  ask: Ask & { readonly policies: string },
): Promise<FieldError | undefined> {
  const ref = binding.spec?.paramRef;
  if (!ref || (old && deepEqual(old.spec?.paramRef, ref) && old.spec?.policyName === binding.spec?.policyName)) {
    return undefined;
  }
  const prefix = `${GROUP}/${ask.policies}`;
  const policy = ask.store.peek({ prefix, namespace: '', name: binding.spec?.policyName ?? '' })?.object;
  const kind = (policy as WithSpec<PolicySpec> | undefined)?.spec?.paramKind;
  // A policy that is not there yet may come to take any parameters.
  const target = kind ? resourceFor(kind, ask.resources) : { group: '*', version: '*', resource: '*' };
  if (policy && !kind) return undefined;
  const verb = ref.name ? 'get' : 'list';
  const where = { namespace: ref.namespace || '*', name: ref.name || '*' };
  if (await mayRead(ask, { verb, ...target, ...where })) return undefined;
  return forbidden(
    'spec.paramRef',
    `user ${JSON.stringify(ask.user.username)} does not have "${verb}" permission on the object referenced by paramRef`,
  );
}

function resourceFor(kind: ParamKind, resources: ServedResources) {
  const { group, version } = parseApiVersion(kind.apiVersion);
  const found = resources.all().find((info) => info.kind === kind.kind && apiVersionOf(info) === kind.apiVersion);
  return { group, version, resource: found?.resource ?? '*' };
}
