/**
 * The control plane put together, in any JavaScript engine: an API server with all its parts, and KubeVirt's API in it.
 * What a host adds (TLS, files, node agents) is in host.ts; what runs beside it (controllers) in components.ts.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type VersionFacts, versionInfo } from '@coracle/apimachinery/meta/version-info';
import type { CustomResourceDefinition, PolicyRule } from '@coracle/apimachinery/types/types';
import { podSecurity } from '@coracle/apiserver/admission/pod-security/pod-security';
import { policyPlugins } from '@coracle/apiserver/admission/policy/policy-plugins';
import { resourceQuota } from '@coracle/apiserver/admission/resource-quota';
import { webhookPlugins } from '@coracle/apiserver/admission/webhook/webhook-plugins';
import { createAggregator } from '@coracle/apiserver/aggregation/aggregator';
import type { ServerCore, ServerExtension } from '@coracle/apiserver/assembly/assemble-server';
import { type ApiServerOptions, createApiServer } from '@coracle/apiserver/assembly/create-api-server';
import { type AuditSink, createAuditor } from '@coracle/apiserver/audit/auditor';
import type { AuditPolicy } from '@coracle/apiserver/audit/policy';
import type { AuthenticationSetup } from '@coracle/apiserver/auth/authentication-configuration';
import type { PolicyBinding, PolicyRole } from '@coracle/apiserver/auth/bootstrap-policy';
import { createIssuersUsers } from '@coracle/apiserver/auth/jwt-users';
import { createOidcUsers, type OidcSettings } from '@coracle/apiserver/auth/oidc';
import type { FindTokenUser } from '@coracle/apiserver/auth/token-authenticator';
import { createWebhookAuthorizer } from '@coracle/apiserver/auth/webhook-authorizer';
import { createWebhookUsers, type TokenWebhook } from '@coracle/apiserver/auth/webhook-tokens';
import { createFlowControl } from '@coracle/apiserver/endpoints/flow-control/flow-control';
import { swagger2 } from '@coracle/apiserver/endpoints/openapi-v2-document';
import { PROTOBUF } from '@coracle/apiserver/kinds/protobuf/documents';
import { protobufBody } from '@coracle/apiserver/kinds/protobuf/request-body';
import type { Client } from '@coracle/client/client';
import { createClient } from '@coracle/client/create-client';
import { volumeSnapshotCrds } from '@coracle/cluster-rules/volume-snapshot/definitions';
import { configSyncCrds } from '@coracle/gitops/kinds/definitions';
import { CONFIG_SYNC_NAMESPACE } from '@coracle/gitops/kinds/kinds';
import { VIRT_API_ACCOUNT } from '@coracle/kubevirt/controllers/virt-api/virt-api';
import { kubevirtCrds, kubevirtResources, otherCrds } from '@coracle/kubevirt/kinds/kubevirt';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { createMetricsApi, METRICS_READER } from '../resource-metrics/metrics-api.ts';
import { createNodeUsage } from '../resource-metrics/node-usage.ts';
import { createUploadTokenApi } from '../upload-proxy/upload-token-api.ts';
import { createUploadTokens } from '../upload-proxy/upload-tokens.ts';
import { createAskAgent } from './ask-agent.ts';
import { policyOf } from './component-policy.ts';
import { AGENT_ACCOUNT, COMPONENT_NAMESPACE, COMPONENTS, NO_NODES } from './components.ts';
import { declaredFieldsGuard } from './declared-fields-guard.ts';
import { deletesWhole } from './deletion-protection.ts';
import { createKruiseProtection } from './kruise-protection.ts';
import { nodeInstances } from './node-vmis.ts';
import { podNetworkRights } from './pod-network-rights.ts';
import { createRecycleBin } from './recycle-bin.ts';
import { createRefusalEvidence, EVIDENCE_ACCOUNT, evidenceRules, noteDeletionPolicy } from './refusal-evidence.ts';
import { makeStorageClasses } from './storage-classes.ts';
import { createVirtApi, virtPolicy } from './virt-api.ts';
import { createVirtMetrics } from './virt-metrics.ts';

/** What an API server cannot be left to choose here. */
type Needed = 'backend' | 'clock' | 'log' | 'signingKey' | 'issuer' | 'signal';
/** Made from the options below, or always the same. */
type Made = 'version' | 'resources' | 'parts' | 'extend' | 'tokenUsers' | 'anonymous' | 'nodeRights';

export interface ControlPlaneOptions
  extends Omit<ApiServerOptions, Needed | Made>,
    Required<Pick<ApiServerOptions, Needed>> {
  /** Coracle's own version. */
  readonly version: string;
  /** What `/version` tells of this program. */
  readonly build?: VersionFacts;
  /** Architecture of the host, as Go names it; amd64 when not given. */
  readonly architecture?: string;
  /** Reaches a node's own API, for consoles and guest commands. Throws when the node cannot be reached. */
  readonly connectNode?: (nodeName: string, client: Client) => Promise<ApiHandler>;
  /** What the nodes of this process have to say in `/metrics`. */
  readonly nodeMetrics?: () => Promise<readonly MetricFamily[]>;
  /** Whether the controllers of this process run and can work. */
  readonly controllersReady?: () => boolean;
  /** What nodes may do beside what the Node authorizer gives them. */
  readonly agentRules?: readonly PolicyRule[];
  /** Users by tokens from a file. */
  readonly staticTokens?: FindTokenUser;
  /** The OpenID Connect issuer whose ID tokens are believed; none without. */
  readonly oidc?: OidcSettings;
  /** Asked about tokens that nobody else knows. */
  readonly tokenWebhook?: TokenWebhook;
  /** Issuers of tokens and who may come without one, looked at with each request; everybody may when not given. */
  readonly authentication?: () => AuthenticationSetup;
  /** What is audited, and where it is written; nothing without. */
  readonly audit?: { readonly policy: AuditPolicy; readonly sink: AuditSink };
}

export type ControlPlane = Awaited<ReturnType<typeof startControlPlane>>;

const ADMIN = { name: 'kubernetes-admin', groups: ['system:masters'] };
const NODE_ROLE = 'coracle:agent';
const NODE_BINDING: PolicyBinding = {
  kind: 'ClusterRoleBinding',
  name: NODE_ROLE,
  roleKind: 'ClusterRole',
  role: NODE_ROLE,
  subjects: [{ kind: 'Group', name: 'system:nodes' }],
};

/** No token: it would die with the account, and who deletes its namespace waits for these very clients to finish that. */
function clientOfComponent(handlerAs: ServerCore['handlerAs'], account: string): Client {
  const name = `system:serviceaccount:${COMPONENT_NAMESPACE}:${account}`;
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${COMPONENT_NAMESPACE}`];
  return createClient(handlerAs({ name, groups }), { userAgent: account });
}

/** Starts the control plane on a backend; resolves when it is ready to serve. Rejects with StorageError when the state cannot be opened. */
export async function startControlPlane(options: ControlPlaneOptions) {
  const { clock, log, connectNode = NO_NODES, authentication, staticTokens, oidc, tokenWebhook } = options;
  const virtResources = kubevirtResources();
  const server = await createApiServer({
    ...options,
    version: versionInfo({ ...options.build, platform: `linux/${options.architecture ?? 'amd64'}` }),
    resources: virtResources,
    parts: {
      policies: policyPlugins,
      webhooks: webhookPlugins,
      aggregation: createAggregator,
      flowControl: createFlowControl,
      quota: resourceQuota,
      podSecurity,
      webhookAuthorizer: createWebhookAuthorizer,
      bodyDecoders: new Map([[PROTOBUF, protobufBody]]),
      swagger2,
      ...(options.audit && { auditor: createAuditor({ ...options.audit, now: () => clock.now() }) }),
    },
    extend: (core) => extension(core, options),
    tokenUsers: ({ connect }) => [
      ...(staticTokens ? [staticTokens] : []),
      ...(oidc ? [createOidcUsers(oidc, { connect, clock, log })] : []),
      ...(authentication ? [createIssuersUsers(() => authentication().issuers, { connect, clock, log })] : []),
      ...(tokenWebhook ? [createWebhookUsers(tokenWebhook, { audiences: [options.issuer], clock, log })] : []),
    ],
    ...(authentication && { anonymous: () => authentication().anonymous ?? { enabled: true } }),
    nodeRights: (facts) => ({
      more: { 'kubevirt.io/virtualmachineinstances': nodeInstances(facts) },
      beside: podNetworkRights(facts.store),
    }),
  });
  const { handlerAs } = server;
  const virtClient = clientOfComponent(handlerAs, VIRT_API_ACCOUNT);
  return {
    handler: server.handler,
    store: server.store,
    /** A client that acts as one of the components' service accounts, also while that does not exist. */
    clientFor: (account: string) => clientOfComponent(handlerAs, account),
    /** A client with every right (group system:masters), for the process that holds the state anyway. */
    adminClient: async () => createClient(handlerAs(ADMIN), { userAgent: 'coracle-admin' }),
    /** Asks agents for controllers; rejects for all where the plane knows no way to them. */
    askAgent: createAskAgent((name) => connectNode(name, virtClient)),
    /** A client that acts as the agent of a node (`system:node:NAME`). */
    clientForNode: (name: string) =>
      createClient(handlerAs({ name: `system:node:${name}`, groups: ['system:nodes'] }), { userAgent: AGENT_ACCOUNT }),
    /** Signs the token of a Secret of type `kubernetes.io/service-account-token`. */
    signLegacyToken: server.signLegacyToken,
    /** Answers what is in flight, makes everything durable, closes the store. */
    close: server.close,
  };
}

/** What makes of an API server one of virtual machines: KubeVirt's API, protection, the bin, kinds and roles of its own. */
function extension(core: ServerCore, options: ControlPlaneOptions): ServerExtension {
  const { store, resources, authorize, handlerAs, clock, log } = core;
  const { connectNode } = options;
  const closing = new AbortController();
  const evidence = createRefusalEvidence({
    store,
    client: clientOfComponent(handlerAs, EVIDENCE_ACCOUNT),
    clock,
    log,
    signal: closing.signal,
  });
  const virtClient = clientOfComponent(handlerAs, VIRT_API_ACCOUNT);
  const connect = connectNode && ((name: string) => connectNode(name, virtClient));
  const { architecture = 'amd64' } = options;
  const virtApi = createVirtApi({ ...options, ...core, architecture, client: virtClient, evidence });
  const { version, controllersReady = () => false } = options;
  const virtMetrics = createVirtMetrics(store, { clock, version, controllersReady });
  const kruise = createKruiseProtection({ store, evidence });
  const bin = createRecycleBin({ store, resources, authorize, clock });
  return {
    admission: [...virtApi.admission, kruise.plugin, bin.plugin, declaredFieldsGuard({ store })],
    onPolicyRefusal: noteDeletionPolicy(evidence),
    aggregated: [
      virtApi.subresources,
      createUploadTokenApi(
        store,
        createUploadTokens(options.signingKey, () => clock.now()),
      ),
      ...(connect
        ? [
            createMetricsApi({
              store,
              nodes: resources.lookup('', 'v1', 'nodes')!,
              pods: resources.lookup('', 'v1', 'pods')!,
              usage: createNodeUsage({ connect, clock, log, signal: closing.signal }),
              clock,
            }),
          ]
        : []),
    ],
    ...(connect && { connectNode: connect }),
    deletesWhole,
    metrics: async () => [
      ...virtMetrics(),
      ...virtApi.metrics(),
      ...kruise.families(),
      ...evidence.families(),
      ...((await options.nodeMetrics?.()) ?? []),
    ],
    objects: firstObjects(clock.now()),
    lasting: [...componentObjects(), ...virtApi.objects],
    ...componentRights(options.agentRules ?? []),
    prepare: (registry) => makeStorageClasses(registry, resources),
    stop() {
      closing.abort(new Error('the server is closing'));
      virtApi.stop();
      bin.stop();
    },
  };
}

/** Definitions of the kinds that are served, and the namespace of syncs. */
const firstObjects = (now: number): UnstructuredObject[] =>
  [kubevirtCrds, volumeSnapshotCrds, configSyncCrds, otherCrds]
    .flatMap((definitions) => definitions(now))
    .map(asObserved)
    .concat({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: CONFIG_SYNC_NAMESPACE } });

/** With the last of what a definition's status says once it was looked at: none of them is written a second time. */
const asObserved = (definition: CustomResourceDefinition): UnstructuredObject =>
  ({ ...definition, status: { ...definition.status, observedGeneration: 1 } }) as unknown as UnstructuredObject;

/** The namespace and the accounts of the components. */
function componentObjects(): UnstructuredObject[] {
  const accounts = [...COMPONENTS.map((component) => component.account), VIRT_API_ACCOUNT, EVIDENCE_ACCOUNT];
  return [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: COMPONENT_NAMESPACE } },
    ...accounts.map((name) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: COMPONENT_NAMESPACE },
    })),
  ];
}

function componentRights(agentRules: readonly PolicyRule[]): Pick<ServerExtension, 'roles' | 'bindings'> {
  const virt = virtPolicy();
  const components = policyOf([
    ...COMPONENTS,
    { account: VIRT_API_ACCOUNT, rules: virt.rules },
    { account: EVIDENCE_ACCOUNT, rules: evidenceRules },
  ]);
  const nodes: PolicyRole = { kind: 'ClusterRole', name: NODE_ROLE, exact: true, rules: agentRules };
  return {
    roles: [...virt.roles, ...components.roles, nodes, METRICS_READER],
    bindings: [...virt.bindings, ...components.bindings, NODE_BINDING],
  };
}
