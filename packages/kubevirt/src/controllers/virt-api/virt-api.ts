/** virt-api: admission and subresources of KubeVirt's kinds, the roles that go with them, and the KubeVirt object. */
export { type AdmissionUser, isKubeVirtComponent } from './admission/admission-context.ts';
export { denial as causeDenial } from './admission/causes.ts';
export type { ClaimUuid } from './admission/claim-uuid.ts';
export {
  createDeletionWebhook,
  DELETION_WEBHOOK_PATH,
  deletionWebhookRules,
} from './admission/deletion-webhook.ts';
export {
  type Mutated,
  type Validated,
  type VirtAdmission,
  type VirtAdmissionOptions,
  type VirtAdmissionRequest,
  virtAdmission,
} from './admission/virt-admission.ts';
export { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './admission/virt-webhooks.ts';
export { admit, createVirtApiWebhooks } from './admission/webhook-server.ts';
export {
  kubevirtClusterRoleBindings,
  kubevirtClusterRoles,
  VIRT_API_ACCOUNT,
  virtApiRules,
} from './cluster-roles.ts';
export { type DefaultKubeVirtOptions, defaultKubeVirt, KUBEVIRT_NAMESPACE } from './default-kubevirt.ts';
export { sourceReader } from './source-reader.ts';
export { createConnectionCounts } from './subresources/connection-counts.ts';
export type { GraphReader } from './subresources/read-extended-graph.ts';
export {
  type CreateSubresourceApiOptions,
  createSubresourceApi,
  type SubresourceAttributes,
  type SubresourceAuthorizer,
} from './subresources/subresource-api.ts';
