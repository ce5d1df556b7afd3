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
import { createApiServer } from '@coracle/apiserver/assembly/create-api-server';
import { type AuditSink, createAuditor } from '@coracle/apiserver/audit/auditor';
import type { AuditPolicy } from '@coracle/apiserver/audit/policy';
import type { AuthenticationSetup } from '@coracle/apiserver/auth/authentication-configuration';
import type { AuthorizerSetup } from '@coracle/apiserver/auth/authorizer-chain';
import type { PolicyBinding } from '@coracle/apiserver/auth/bootstrap-policy';
import type { FrontProxyOptions } from '@coracle/apiserver/auth/front-proxy';
import { createIssuersUsers } from '@coracle/apiserver/auth/jwt-users';
import { createOidcUsers, type OidcSettings } from '@coracle/apiserver/auth/oidc';
import type { TokenIssuer } from '@coracle/apiserver/auth/service-account-tokens';
import type { FindTokenUser } from '@coracle/apiserver/auth/token-authenticator';
import { createWebhookAuthorizer } from '@coracle/apiserver/auth/webhook-authorizer';
import { createWebhookUsers, type TokenWebhook } from '@coracle/apiserver/auth/webhook-tokens';
import type { ByteLimits } from '@coracle/apiserver/cache/namespace-bytes';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { WriteElsewhere } from '@coracle/apiserver/endpoints/document-forms';
import { createFlowControl } from '@coracle/apiserver/endpoints/flow-control/flow-control';
import { swagger2 } from '@coracle/apiserver/endpoints/openapi-v2-document';
import type { ReadElsewhere } from '@coracle/apiserver/endpoints/read-elsewhere';
import { PROTOBUF } from '@coracle/apiserver/kinds/protobuf/documents';
import { protobufBody } from '@coracle/apiserver/kinds/protobuf/request-body';
import type { ConnectOutbound } from '@coracle/apiserver/outbound/outbound';
import type { RunStage } from '@coracle/apiserver/registry/stage-job';
import type { Backend } from '@coracle/apiserver/storage/backend';
import type { Client } from '@coracle/client/client';
import type { AskAgent } from '@coracle/client/controller/ask-agent';
import { createClient } from '@coracle/client/create-client';
import { volumeSnapshotCrds } from '@coracle/cluster-rules/volume-snapshot/definitions';
import { configSyncCrds } from '@coracle/gitops/kinds/definitions';
import { CONFIG_SYNC_NAMESPACE } from '@coracle/gitops/kinds/kinds';
import { VIRT_API_ACCOUNT } from '@coracle/kubevirt/controllers/virt-api/virt-api';
import { kubevirtCrds, kubevirtResources, otherCrds } from '@coracle/kubevirt/kinds/kubevirt';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Compressor } from '@coracle/runtime/http/gzip-blocks';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { createMetricsApi, METRICS_READER } from '../resource-metrics/metrics-api.ts';
import { createNodeUsage } from '../resource-metrics/node-usage.ts';
import { createUploadTokenApi } from '../upload-proxy/upload-token-api.ts';
import { createUploadTokens } from '../upload-proxy/upload-tokens.ts';
import { createAskAgent } from './ask-agent.ts';
import { policyOf } from './component-policy.ts';
import { AGENT_ACCOUNT, COMPONENT_NAMESPACE, COMPONENTS } from './components.ts';
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

export interface ControlPlaneOptions {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly log: Logger;
  /** Coracle's own version. */
  readonly version: string;
  /** What `/version` tells of this program. */
  readonly build?: VersionFacts;
  /** Architecture of the host, as Go names it; amd64 when not given. */
  readonly architecture?: string;
  /** PKCS #8 PEM that service-account tokens are signed with. */
  readonly signingKey: string;
  /** Issuer named in tokens; stays the same for the life of the data. */
  readonly issuer: string;
  /** Address and port of the API as guests and clients reach it. */
  readonly advertise?: { readonly address: string; readonly port: number };
  /** Range that Services get cluster IPs from; `DEFAULT_SERVICE_CIDR` when not given. */
  readonly serviceCidr?: string;
  /** Bytes of objects that are taken; the defaults when not given. */
  readonly byteLimits?: ByteLimits;
  /** Reaches a node's own API, for consoles and guest commands. Throws when the node cannot be reached. */
  readonly connectNode?: (nodeName: string, client: Client) => Promise<ApiHandler>;
  /** What the nodes of this process have to say in `/metrics`. */
  readonly nodeMetrics?: () => Promise<readonly MetricFamily[]>;
  /** Whether the controllers of this process run and can work. */
  readonly controllersReady?: () => boolean;
  /** What nodes may do beside what the Node authorizer gives them. */
  readonly agentRules?: readonly PolicyRule[];
  /** Compresses large answers, where the host can. */
  readonly compressor?: Compressor;
  /** Reads large bodies on another thread, where the host has one. */
  readonly readElsewhere?: ReadElsewhere;
  /** Does the stages of large writes on another thread; without it they are done on this one. */
  readonly runStage?: RunStage;
  /** Writes large answers that are no JSON on another thread; without it they are written on this one. */
  readonly writeElsewhere?: WriteElsewhere;
  /** How the host calls webhooks and aggregated APIs; without it every such call fails with a sentence. */
  readonly connectOutbound?: (store: Pick<ObjectStore, 'get' | 'list'>) => ConnectOutbound;
  /** Regular expressions of the origins whose web pages may call; none when absent. */
  readonly corsAllowedOrigins?: readonly string[];
  /** DNS names of the serving certificate; requests may name any host when absent. */
  readonly hostNames?: readonly string[];
  /** Users by tokens from a file. */
  readonly staticTokens?: FindTokenUser;
  /** The OpenID Connect issuer whose ID tokens are believed; none without. */
  readonly oidc?: OidcSettings;
  /** Asked about tokens that nobody else knows. */
  readonly tokenWebhook?: TokenWebhook;
  /** Issuers of tokens and who may come without one, looked at with each request; everybody may when not given. */
  readonly authentication?: () => AuthenticationSetup;
  /** Who is asked what users may do, looked at before each decision; the Node authorizer and RBAC when not given. */
  readonly authorizers?: () => readonly AuthorizerSetup[];
  /** Proxies that may say who the user is. */
  readonly frontProxy?: FrontProxyOptions & { readonly ca: string };
  /** PEM of the CA of client certificates, for extension API servers. */
  readonly clientCa?: string;
  /** What is audited, and where it is written; nothing without. */
  readonly audit?: { readonly policy: AuditPolicy; readonly sink: AuditSink };
  readonly signal: AbortSignal;
}

export interface ControlPlane {
  readonly handler: ApiHandler;
  readonly store: ObjectStore;
  /** A client that acts as the agent of a node (`system:node:NAME`). */
  clientForNode(name: string): Client;
  /** A client that acts as one of the components' service accounts, also while that does not exist. */
  clientFor(account: string): Client;
  /** A client with every right (group system:masters), for the process that holds the state anyway. */
  adminClient(): Promise<Client>;
  /** Signs the token of a Secret of type `kubernetes.io/service-account-token`. */
  readonly signLegacyToken: TokenIssuer['signLegacy'];
  /** Asks agents for controllers; rejects for all where the plane knows no way to them. */
  readonly askAgent: AskAgent;
  /** Answers what is in flight, makes everything durable, closes the store. */
  close(signal: AbortSignal): Promise<void>;
}
const ADMIN = { name: 'kubernetes-admin', groups: ['system:masters'] };
const NODE_ROLE = 'coracle:agent';
const NODE_BINDING: PolicyBinding = {
  kind: 'ClusterRoleBinding',
  name: NODE_ROLE,
  roleKind: 'ClusterRole',
  role: NODE_ROLE,
  subjects: [{ kind: 'Group', name: 'system:nodes' }],
};

type HandlerAs = ServerCore['handlerAs'];

const clientAs = (handlerAs: HandlerAs, user: Parameters<HandlerAs>[0], userAgent: string): Client =>
  createClient(handlerAs(user), { userAgent });

/** No token: it would die with the account, and who deletes its namespace waits for these very clients to finish that. */
const clientOfComponent = (handlerAs: HandlerAs, account: string): Client =>
  clientAs(
    handlerAs,
    {
      name: `system:serviceaccount:${COMPONENT_NAMESPACE}:${account}`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${COMPONENT_NAMESPACE}`],
    },
    account,
  );

/** Starts the control plane on a backend; resolves when it is ready to serve. Rejects with StorageError when the state cannot be opened. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { clock, log, connectNode, authentication, staticTokens, oidc, tokenWebhook } = options;
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
    clientFor: (account) => clientOfComponent(handlerAs, account),
    adminClient: async () => clientAs(handlerAs, ADMIN, 'coracle-admin'),
    askAgent: createAskAgent((name) =>
      connectNode
        ? connectNode(name, virtClient)
        : Promise.reject(new Error(`node ${name} cannot be reached from here`)),
    ),
    clientForNode: (name) =>
      clientAs(handlerAs, { name: `system:node:${name}`, groups: ['system:nodes'] }, AGENT_ACCOUNT),
    signLegacyToken: server.signLegacyToken,
    close: server.close,
  };
}

/** What makes of an API server one of virtual machines: KubeVirt's API, protection, the bin, kinds and roles of its own. */
function extension(
  { store, resources, authorize, handlerAs }: ServerCore,
  options: ControlPlaneOptions,
): ServerExtension {
  const { clock, log, connectNode } = options;
  const closing = new AbortController();
  const evidence = createRefusalEvidence({
    store,
    client: clientOfComponent(handlerAs, EVIDENCE_ACCOUNT),
    clock,
    log,
    signal: closing.signal,
  });
  const virtClient = clientOfComponent(handlerAs, VIRT_API_ACCOUNT);
  const virtApi = createVirtApi({
    version: options.version,
    ...(options.build && { build: options.build }),
    architecture: options.architecture ?? 'amd64',
    clock,
    log,
    authorize,
    store,
    resources,
    revisions: resources.lookup('apps', 'v1', 'controllerrevisions')!,
    events: resources.lookup('', 'v1', 'events')!,
    client: virtClient,
    evidence,
    ...(connectNode && { connectNode }),
  });
  const virtMetrics = createVirtMetrics(store, {
    clock,
    version: options.version,
    controllersReady: () => options.controllersReady?.() ?? false,
  });
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
      ...(connectNode
        ? [
            createMetricsApi({
              store,
              nodes: resources.lookup('', 'v1', 'nodes')!,
              pods: resources.lookup('', 'v1', 'pods')!,
              usage: createNodeUsage({
                connect: (name) => connectNode(name, virtClient),
                clock,
                log,
                signal: closing.signal,
              }),
              clock,
            }),
          ]
        : []),
    ],
    ...(connectNode && { connectNode: (name: string) => connectNode(name, virtClient) }),
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
  const nodes = {
    kind: 'ClusterRole' as const,
    name: NODE_ROLE,
    exact: true,
    rules: agentRules,
  };
  return {
    roles: [...virt.roles, ...components.roles, nodes, METRICS_READER],
    bindings: [...virt.bindings, ...components.bindings, NODE_BINDING],
  };
}
