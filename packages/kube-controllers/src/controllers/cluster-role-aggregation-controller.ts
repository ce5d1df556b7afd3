/**
 * Writes the rules of the ClusterRoles that an aggregating one selects into its own `rules`, where people and tools
 * look for them (pkg/controller/clusterroleaggregation).
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CLUSTER_ROLES } from '@coracle/apimachinery/types/resource-types';
import type { ClusterRole, PolicyRule } from '@coracle/apimachinery/types/types';
import { orAbsent } from '@coracle/client/api-failure';
import { type Controller, createController, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

const RBAC = 'rbac.authorization.k8s.io';

/** It grants what others hold, so it has to be allowed what it does not hold itself. */
export const clusterRoleAggregationRules = policyRules(`list watch patch escalate : ${RBAC} : clusterroles`);

/** The rules of the selected roles, in the order of their names, each rule once. */
export function aggregatedRules(
  role: DeepReadonly<ClusterRole>,
  all: readonly DeepReadonly<ClusterRole>[],
): DeepReadonly<PolicyRule>[] {
  const selectors = (role.aggregationRule?.clusterRoleSelectors ?? []).map((selector) =>
    fromLabelSelectorObject(selector as Parameters<typeof fromLabelSelectorObject>[0]),
  );
  const rules = all
    .filter((other) => other.metadata.name !== role.metadata.name)
    .filter((other) => selectors.some((selector) => matchesLabels(selector, other.metadata.labels ?? {})))
    .sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
    .flatMap((other) => other.rules ?? []);
  return Array.from(Map.groupBy(rules, textOf).values(), ([first]) => first!);
}

/** The same for equal rules only. */
const textOf = ({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: DeepReadonly<PolicyRule>): string =>
  JSON.stringify([verbs, apiGroups, resources, resourceNames, nonResourceURLs]);

/** Makes the controller; its keys are aggregating ClusterRoles. */
export function createClusterRoleAggregationController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const roles = informers.of(CLUSTER_ROLES);
  return createController({
    ...environment,
    name: 'clusterrole-aggregation-controller',
    // A change of any role may be a change of every aggregating one: there are a handful.
    sources: [
      source(roles, () =>
        roles
          .list()
          .filter((role) => role.aggregationRule !== undefined)
          .map((role) => ({ namespace: '', name: role.metadata.name ?? '' })),
      ),
    ],
    async reconcile(key, { signal }) {
      const role = roles.get(key);
      if (!role?.aggregationRule) return;
      const rules = aggregatedRules(role, roles.list());
      if (deepEqual(rules, role.rules ?? [])) return;
      const { resourceVersion } = role.metadata;
      await orAbsent(
        client.patch(CLUSTER_ROLES, key, { type: 'merge', body: { metadata: { resourceVersion }, rules } }, { signal }),
      );
    },
  });
}
