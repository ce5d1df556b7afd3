/** Rights on the bin that the roles of namespaces collect: who may make virtual machines may bring them back. */

import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import { CORACLE_GROUP, DELETED_VIRTUAL_MACHINES } from '../../kinds/kinds.ts';
import { UNDELETE_VERB } from './bin-names.ts';

interface BinRole {
  readonly kind: 'ClusterRole';
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly rules: PolicyRule[];
}

const role = (name: string, targets: readonly string[], verbs: string): BinRole => ({
  kind: 'ClusterRole',
  name,
  labels: Object.fromEntries(targets.map((target) => [`rbac.authorization.k8s.io/aggregate-to-${target}`, 'true'])),
  rules: policyRules(`${verbs} : ${CORACLE_GROUP} : ${DELETED_VIRTUAL_MACHINES.resource}`),
});

/** Contents are in none of them: they hold Secrets. */
export const BIN_ROLES: readonly BinRole[] = [
  role('coracle:bin-view', ['view'], 'get list watch'),
  role('coracle:bin-edit', ['edit', 'admin'], `get list watch patch update delete deletecollection ${UNDELETE_VERB}`),
];
