/** Rights of the component, apart from its code: objects of syncs are written under accounts of their own. */

import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { GUARD_NAME } from '../guard/decide-write.ts';
import { CONFIG_SYNC_GROUP } from '../kinds/kinds.ts';

const RBAC = 'rbac.authorization.k8s.io';
const WEBHOOKS = 'admissionregistration.k8s.io : validatingwebhookconfigurations';

/** In the whole cluster, and no others. */
export const gitopsRules = policyRules(
  `get list watch patch : ${CONFIG_SYNC_GROUP} : rootsyncs reposyncs`,
  `patch : ${CONFIG_SYNC_GROUP} : rootsyncs/status reposyncs/status`,
  'get create patch delete : kpt.dev : resourcegroups',
  'patch : kpt.dev : resourcegroups/status',
  'list watch : core : namespaces',
  // Whether declared fields are guarded; on another cluster also by which webhooks.
  `list watch : ${WEBHOOKS}`,
  `update : ${WEBHOOKS} : ${GUARD_NAME}`,
  // Upstream's own manager, beside which this one stands aside.
  'list watch : apps : deployments',
  // The secret that a sync names, in its own namespace.
  'get : core : secrets',
  // The values of a chart that a sync names, in its own namespace.
  'get : core : configmaps',
  'create patch : core : events',
  `get list create patch delete : ${RBAC} : clusterrolebindings`,
  `list create delete : ${RBAC} : rolebindings`,
  // A RootSync is given cluster-admin, or the roles that it names: who may write RootSyncs may do anything.
  `bind : ${RBAC} : clusterroles roles`,
);

/** In `CONFIG_SYNC_NAMESPACE` alone. */
export const gitopsNamespaceRules = policyRules('create delete impersonate : core : serviceaccounts');
