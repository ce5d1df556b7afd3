/** Rights of the component, apart from its code: objects of syncs are written under accounts of their own. */

import { GUARD_NAME } from '../guard/decide-write.ts';
import { CONFIG_SYNC_GROUP } from '../kinds/kinds.ts';

const RBAC = 'rbac.authorization.k8s.io';
const WEBHOOKS = { apiGroups: ['admissionregistration.k8s.io'], resources: ['validatingwebhookconfigurations'] };

/** In the whole cluster, and no others. */
export const gitopsRules = [
  { apiGroups: [CONFIG_SYNC_GROUP], resources: ['rootsyncs', 'reposyncs'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: [CONFIG_SYNC_GROUP], resources: ['rootsyncs/status', 'reposyncs/status'], verbs: ['patch'] },
  { apiGroups: ['kpt.dev'], resources: ['resourcegroups'], verbs: ['get', 'create', 'patch', 'delete'] },
  { apiGroups: ['kpt.dev'], resources: ['resourcegroups/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
  // Whether declared fields are guarded; on another cluster also by which webhooks.
  { ...WEBHOOKS, verbs: ['list', 'watch'] },
  { ...WEBHOOKS, resourceNames: [GUARD_NAME], verbs: ['update'] },
  // Upstream's own manager, beside which this one stands aside.
  { apiGroups: ['apps'], resources: ['deployments'], verbs: ['list', 'watch'] },
  // The secret that a sync names, in its own namespace.
  { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
  // The values of a chart that a sync names, in its own namespace.
  { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
  { apiGroups: [RBAC], resources: ['clusterrolebindings'], verbs: ['get', 'list', 'create', 'patch', 'delete'] },
  { apiGroups: [RBAC], resources: ['rolebindings'], verbs: ['list', 'create', 'delete'] },
  // A RootSync is given cluster-admin, or the roles that it names: who may write RootSyncs may do anything.
  { apiGroups: [RBAC], resources: ['clusterroles', 'roles'], verbs: ['bind'] },
] as const;

/** In `CONFIG_SYNC_NAMESPACE` alone. */
export const gitopsNamespaceRules = [
  { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['create', 'delete', 'impersonate'] },
] as const;
