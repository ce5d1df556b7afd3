/**
 * Fills the status of ValidatingAdmissionPolicies: which generation was looked at, and what the types of its kinds say
 * of its expressions (pkg/controller/validatingadmissionpolicystatus). Who installs a policy waits for it.
 */
import type { CustomResourceDefinition, PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { builtinResources } from '../../api/kinds/builtin/builtin-resources.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../api/kinds/builtin/resource-types.ts';
import { apiVersionOf, type ResourceType } from '../../api/meta/gvk.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';
import { OBJECT_META_SCHEMA } from '../../api/schema/prune.ts';
import type { Schema } from '../../api/schema/schema.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { type Controller, createController, DONE, ownKeys, source } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { type CheckedPolicy, type TypedKind, typeWarnings } from './policy-type-check.ts';

const GROUP = 'admissionregistration.k8s.io';
const FIELD_MANAGER = 'validatingadmissionpolicy-status-controller';

export const policyStatusRules: PolicyRule[] = [
  { apiGroups: [GROUP], resources: ['validatingadmissionpolicies'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [GROUP], resources: ['validatingadmissionpolicies/status'], verbs: ['get', 'patch', 'update'] },
  { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['list', 'watch'] },
];

const POLICIES: ResourceType<CheckedPolicy> = {
  group: GROUP,
  version: 'v1',
  kind: 'ValidatingAdmissionPolicy',
  resource: 'validatingadmissionpolicies',
  namespaced: false,
};

/** Makes the controller; its keys are policies. */
export function createPolicyStatusController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const policies = informers.of(POLICIES);
  const definitions = informers.of(CUSTOM_RESOURCE_DEFINITIONS);
  const builtin = builtinResources();
  return createController({
    name: 'validatingadmissionpolicy-status-controller',
    client,
    clock,
    log,
    sources: [ownKeys(policies), source(definitions, () => [])],
    async reconcile(key, { signal }) {
      const policy = policies.get(key);
      const { generation = 0 } = policy?.metadata ?? {};
      if (!policy || generation <= (policy.status?.observedGeneration ?? 0)) return DONE;
      const kinds = [...builtin, ...definitions.list().flatMap(customKinds)];
      const expressionWarnings = await typeWarnings(policy, kinds, clock);
      const body = {
        apiVersion: apiVersionOf(POLICIES),
        kind: POLICIES.kind,
        metadata: { name: key.name },
        status: {
          observedGeneration: generation,
          typeChecking: expressionWarnings.length > 0 ? { expressionWarnings } : {},
        },
      };
      const patch = { type: 'apply', body, fieldManager: FIELD_MANAGER, force: true } as const;
      try {
        await client.patch(POLICIES, key, patch, { subresource: 'status', signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return DONE;
    },
  });
}

/** The versions of a custom kind, their metadata typed as every object's is. */
function customKinds({ spec }: DeepReadonly<CustomResourceDefinition>): TypedKind[] {
  return spec.versions.flatMap(({ name, schema }) => {
    const root = schema?.openAPIV3Schema as Schema | undefined;
    if (!root) return [];
    const text: Schema = { type: 'string' };
    const properties = { ...root.properties, apiVersion: text, kind: text, metadata: OBJECT_META_SCHEMA };
    const { plural: resource, kind } = spec.names;
    return [{ group: spec.group, version: name, resource, kind, schema: { ...root, properties } }];
  });
}
