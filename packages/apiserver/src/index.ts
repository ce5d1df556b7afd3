/** What other packages use of this one: nothing else is theirs to import. */
export { refuseTerminatingNamespace } from './admission/namespace-lifecycle.ts';
export type { AdmissionAttributes, AdmissionPlugin } from './admission/plugin.ts';
export { podSecurity } from './admission/pod-security/pod-security.ts';
export { policyPlugins } from './admission/policy/policy-plugins.ts';
export type { OnPolicyRefusal } from './admission/policy/validating-policies.ts';
export { resourceQuota } from './admission/resource-quota.ts';
export { denial } from './admission/webhook/webhook-failure.ts';
export { webhookPlugins } from './admission/webhook/webhook-plugins.ts';
export { createAggregator } from './aggregation/aggregator.ts';
export { ISSUER } from './assembly/access.ts';
export type { ServerCore, ServerExtension } from './assembly/assemble-server.ts';
export { createApiServer } from './assembly/create-api-server.ts';
export { type AuditSink, createAuditor } from './audit/auditor.ts';
export { type AuditPolicy, compilePolicy, DEFAULT_POLICY } from './audit/policy.ts';
export {
  type AnonymousRule,
  type AuthenticationSetup,
  readAuthenticationConfiguration,
} from './auth/authentication-configuration.ts';
export { type ConfiguredAuthorizer, readAuthorizationConfiguration } from './auth/authorization-configuration.ts';
export { AUTHORIZATION_MODES } from './auth/authorization-modes.ts';
export type { AuthorizerSetup } from './auth/authorizer-chain.ts';
export type { PolicyBinding, PolicyRole } from './auth/bootstrap-policy.ts';
export {
  type CertificateAuthority,
  createAuthority,
  createSigningRequest,
  type IssueOptions,
  isAuthorityPair,
  type KeyPairPem,
  openAuthority,
} from './auth/certificate-authority.ts';
export type { FrontProxyOptions } from './auth/front-proxy.ts';
export type { AuthorizationVerdict, Authorizer, UserInfo } from './auth/identity.ts';
export { createIssuersUsers } from './auth/jwt-users.ts';
export { type NodeDecision, nodeIdentity } from './auth/node-authorizer.ts';
export type { NodeGraph } from './auth/node-graph.ts';
export { createOidcUsers, type OidcSettings, oidcDefaults } from './auth/oidc.ts';
export { SIGNING_ALGORITHMS } from './auth/oidc-keys.ts';
export { allowsResource, effectiveRules, type PolicyRule } from './auth/rbac.ts';
export { createSigningKey, type TokenIssuer } from './auth/service-account-tokens.ts';
export { parseStaticTokens } from './auth/static-tokens.ts';
export type { FindTokenUser } from './auth/token-authenticator.ts';
export { type AuthorizationWebhook, createWebhookAuthorizer } from './auth/webhook-authorizer.ts';
export { createWebhookUsers, type TokenWebhook } from './auth/webhook-tokens.ts';
export { type ByteLimits, NAMESPACE_BYTES, TOTAL_BYTES } from './cache/namespace-bytes.ts';
export type { Change, ObjectStore, StoredObject } from './cache/object-store.ts';
export type { AggregatedApi } from './endpoints/aggregated-api.ts';
export { authorizationAttributes } from './endpoints/authorization.ts';
export { JSON_AND_YAML } from './endpoints/body.ts';
export type { ComponentHealth } from './endpoints/component-health.ts';
export { type Computed, computedResponse } from './endpoints/computed-response.ts';
export { type FormWork, type WriteElsewhere, writeForm } from './endpoints/document-forms.ts';
export { createFlowControl } from './endpoints/flow-control/flow-control.ts';
export { swagger2 } from './endpoints/openapi-v2-document.ts';
export type { LargeBody, ReadElsewhere } from './endpoints/read-elsewhere.ts';
export { createStageRunner } from './endpoints/run-stage.ts';
export { builtinResources } from './kinds/builtin/builtin-resources.ts';
export { PROTOBUF } from './kinds/protobuf/documents.ts';
export { protobufBody } from './kinds/protobuf/request-body.ts';
export type { ConnectOutbound, OutboundTarget } from './outbound/outbound.ts';
export { type ServiceAddress, serviceAddresses, serviceHost } from './outbound/service-address.ts';
export { makeOnce } from './registry/once-made-objects.ts';
export type { ResourceSource } from './registry/resource-catalog.ts';
export { createSelection } from './registry/selection.ts';
export type { RunStage, StageJob, StageResult } from './registry/stage-job.ts';
export { ObjectMoved } from './registry/write-call.ts';
export type { Registry, WriteClient } from './registry/write-contract.ts';
export { type Backend, StorageError } from './storage/backend.ts';
export { diskMarks } from './storage/disk-state.ts';
export { createSqliteBackend } from './storage/sqlite-backend.ts';
export { copyStore, divideHistory, inspectStore, type StoreFacts } from './storage/store-copy.ts';
export { takeStoreLock } from './storage/store-lock.ts';
