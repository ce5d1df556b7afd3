/**
 * The control plane put together, in any JavaScript engine: store, API server, identities and rights, KubeVirt's API.
 * What a host adds (TLS, files, node agents) is in host.ts; what runs beside it (controllers) in components.ts.
 */

import { builtinResources } from '../../api/kinds/builtin/builtin-resources.ts';
import { SECRETS } from '../../api/kinds/builtin/resource-types.ts';
import { configSyncCrds } from '../../api/kinds/config-sync/definitions.ts';
import { CONFIG_SYNC_NAMESPACE } from '../../api/kinds/config-sync/kinds.ts';
import { coracleCrds } from '../../api/kinds/coracle/definitions.ts';
import { type VersionFacts, versionInfo } from '../../api/kinds/discovery/version-info.ts';
import { kubevirtCrds, kubevirtResources } from '../../api/kinds/kubevirt/kubevirt.ts';
import { PROTOBUF } from '../../api/kinds/protobuf/documents.ts';
import { protobufBody } from '../../api/kinds/protobuf/request-body.ts';
import { sspCrd } from '../../api/kinds/ssp/definition.ts';
import { volumeSnapshotCrds } from '../../api/kinds/volume-snapshot/definitions.ts';
import { formatTime, type UnstructuredObject } from '../../api/meta/object.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { Compressor } from '../../base/http/gzip-blocks.ts';
import { inProcessPeer } from '../../base/http/in-process-peer.ts';
import { type ApiHandler, type Peer, redirected } from '../../base/http/seam.ts';
import type { Logger } from '../../base/log/log.ts';
import type { MetricFamily } from '../../base/metrics/metric-family.ts';
import type { Client } from '../../client/client.ts';
import type { AskAgent } from '../../client/controller/ask-agent.ts';
import { createClient } from '../../client/create-client.ts';
import { VIRT_API_ACCOUNT } from '../../control/virt-api/virt-api.ts';
import { createAdmissionMetrics } from '../../server/admission/admission-metrics.ts';
import { certificatePlugins } from '../../server/admission/certificates.ts';
import { defaultPlugins } from '../../server/admission/default-plugins.ts';
import { dynamicPlugins } from '../../server/admission/dynamic-plugins.ts';
import { type AuditSink, createAuditor } from '../../server/audit/auditor.ts';
import type { AuditPolicy } from '../../server/audit/policy.ts';
import type { AuthenticationSetup } from '../../server/auth/authentication-configuration.ts';
import { createAuthenticator } from '../../server/auth/authenticator.ts';
import {
  type AuthorizerSetup,
  createAuthorizerChain,
  DEFAULT_AUTHORIZERS,
} from '../../server/auth/authorizer-chain.ts';
import { DEFAULT_BINDINGS, DEFAULT_ROLES, type PolicyBinding } from '../../server/auth/bootstrap-policy.ts';
import { bootstrapTokens } from '../../server/auth/bootstrap-tokens.ts';
import { CONTROLLER_BINDINGS, CONTROLLER_ROLES } from '../../server/auth/controller-roles.ts';
import { rbacEscalation } from '../../server/auth/escalation.ts';
import type { FrontProxyOptions } from '../../server/auth/front-proxy.ts';
import { createIssuersUsers } from '../../server/auth/jwt-users.ts';
import { createLegacyTokenUse, tokenTracking } from '../../server/auth/legacy-token-use.ts';
import { createNodeAuthorizer } from '../../server/auth/node-authorizer.ts';
import { createNodeGraph } from '../../server/auth/node-graph.ts';
import { createOidcUsers, type OidcSettings } from '../../server/auth/oidc.ts';
import { createRbac, type PolicyRule } from '../../server/auth/rbac.ts';
import { reconcilePolicy } from '../../server/auth/reconcile-policy.ts';
import { createReviewHandlers } from '../../server/auth/reviews.ts';
import { createTokenIssuer, type TokenIssuer } from '../../server/auth/service-account-tokens.ts';
import { NODE_RULES, SYSTEM_BINDINGS, SYSTEM_ROLES } from '../../server/auth/system-roles.ts';
import { createTokenAuthenticator, type FindTokenUser } from '../../server/auth/token-authenticator.ts';
import { findUidIn, requestToken, secretTokenIn } from '../../server/auth/token-request.ts';
import { createWebhookUsers, type TokenWebhook } from '../../server/auth/webhook-tokens.ts';
import { createObjectStore } from '../../server/cache/create-object-store.ts';
import type { ByteLimits } from '../../server/cache/namespace-bytes.ts';
import type { ObjectStore } from '../../server/cache/object-store.ts';
import { createApiServer } from '../../server/endpoints/api-server.ts';
import type { ComponentHealth } from '../../server/endpoints/component-health.ts';
import type { CreateOnlyHandler, SubresourceHandler } from '../../server/endpoints/exchange.ts';
import type { ReadElsewhere } from '../../server/endpoints/read-elsewhere.ts';
import { createExtensions } from '../../server/extensions/definition-controller.ts';
import { type ConnectOutbound, noOutbound } from '../../server/outbound/outbound.ts';
import { ensureBootstrapObjects } from '../../server/registry/bootstrap-objects.ts';
import { createFieldManagement } from '../../server/registry/field-management.ts';
import { keepBootstrapObjects } from '../../server/registry/keep-bootstrap-objects.ts';
import { renewStored } from '../../server/registry/renew-stored.ts';
import { createResourceCatalog } from '../../server/registry/resource-catalog.ts';
import { createSigningMetrics } from '../../server/registry/signing-metrics.ts';
import type { Backend } from '../../server/storage/backend.ts';
import { createAskAgent } from './ask-agent.ts';
import { policyOf } from './component-policy.ts';
import { AGENT_ACCOUNT, COMPONENT_NAMESPACE, COMPONENTS, type PolicyRuleData } from './components.ts';
import { declaredFieldsGuard } from './declared-fields-guard.ts';
import { deletesWhole } from './deletion-protection.ts';
import { createKruiseProtection } from './kruise-protection.ts';
import { nodeInstances } from './node-vmis.ts';
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
  readonly nodeMetrics?: () => readonly MetricFamily[];
  /** How the controllers of this process are, for ComponentStatus. */
  readonly components?: () => readonly ComponentHealth[];
  /** What nodes may do beside what the Node authorizer gives them. */
  readonly agentRules?: readonly PolicyRuleData[];
  /** Compresses large answers, where the host can. */
  readonly compressor?: Compressor;
  /** Reads large bodies on another thread, where the host has one. */
  readonly readElsewhere?: ReadElsewhere;
  /** How the host calls webhooks and aggregated APIs; without it every such call fails with a sentence. */
  readonly connectOutbound?: (store: Pick<ObjectStore, 'get' | 'list'>) => ConnectOutbound;
  /** Regular expressions of the origins whose web pages may call; none when absent. */
  readonly corsAllowedOrigins?: readonly string[];
  /** DNS names of the serving certificate; requests may name any host when absent. */
  readonly hostNames?: readonly string[];
  /** Flags that it was started with, for /flagz: nothing secret. */
  readonly flags?: Readonly<Record<string, string>>;
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
  /** Asks agents for controllers; rejects for all where the plane was told of no way to them. */
  readonly askAgent: AskAgent;
  /** Answers what is in flight, makes everything durable, closes the store. */
  close(signal: AbortSignal): Promise<void>;
}

/** Calls that never left the process come from whoever holds its keys: as if they had shown a certificate of its CA. */
const peerNamed = (commonName: string, ...organizations: string[]): Peer =>
  inProcessPeer({ verified: true, commonName, organizations, fingerprint: `in-process ${commonName}` });
/** What the server writes of its own accord, by a way that clients could take. */
const SERVER_PEER = peerNamed('system:apiserver', 'system:masters');
const ADMIN_PEER = peerNamed('kubernetes-admin', 'system:masters');

/** Starts the control plane on a backend; resolves when it is ready to serve. Rejects with StorageError when the state cannot be opened. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { backend, clock, log, signal } = options;
  // A store that is beyond its bounds starts as any other: else nobody could delete anything from it.
  const { promise: limitsAfter, resolve: limit } = Promise.withResolvers<void>();
  const store = await createObjectStore({
    backend,
    clock,
    log,
    renew: renewStored,
    ...(options.byteLimits && { byteLimits: options.byteLimits }),
    limitsAfter,
    signal,
  });
  try {
    const plane = await assemble(store, options);
    limit();
    return plane;
  } catch (error) {
    // Whoever tries again must find the state free.
    await store.close();
    throw error;
  }
}

async function assemble(store: ObjectStore, options: ControlPlaneOptions): Promise<ControlPlane> {
  const { clock, log, issuer } = options;
  const findUid = findUidIn(store, clock);
  const tokens = await createTokenIssuer({
    key: options.signingKey,
    issuer,
    clock,
    findUid,
    secretToken: secretTokenIn(store),
    legacyTokenUsed: createLegacyTokenUse({
      store,
      clock,
      log,
      label: ({ namespace, name, uid }, labels) =>
        clientAs(SERVER_PEER, 'kube-apiserver').patch(
          SECRETS,
          { namespace, name },
          { type: 'merge', body: { metadata: { uid, labels } } },
        ),
    }),
  });
  const rbac = createRbac(store);
  const connectOutbound = options.connectOutbound?.(store) ?? noOutbound;
  const virtInfos = kubevirtResources();
  const resources = createResourceCatalog([...builtinResources(), ...virtInfos]);
  const extensions = createExtensions({ resources, connect: connectOutbound, log });

  const { authentication } = options;
  const tokenAuthenticator = createTokenAuthenticator(tokens, [
    ...(options.staticTokens ? [options.staticTokens] : []),
    bootstrapTokens(store, clock),
    ...(options.oidc ? [createOidcUsers(options.oidc, { connect: connectOutbound, clock, log })] : []),
    ...(authentication
      ? [createIssuersUsers(() => authentication().issuers, { connect: connectOutbound, clock, log })]
      : []),
    ...(options.tokenWebhook ? [createWebhookUsers(options.tokenWebhook, { audiences: [issuer], clock, log })] : []),
  ]);
  const graph = createNodeGraph(store);
  const { authorize, rulesFor } = createAuthorizerChain({
    setup: options.authorizers ?? (() => DEFAULT_AUTHORIZERS),
    node: createNodeAuthorizer({
      graph,
      store,
      rules: NODE_RULES,
      more: { 'kubevirt.io/virtualmachineinstances': nodeInstances({ graph, store }) },
    }),
    rbac,
    clock,
    log,
  });
  const reviews = createReviewHandlers({ authorize, rulesFor, tokens: tokenAuthenticator, clock });
  const createOnlyHandlers = new Map<string, CreateOnlyHandler>(
    [...reviews].map(([resource, review]) => [
      resource,
      (object, user, { info }) => review(object, user, info.namespace),
    ]),
  );
  const subresourceHandlers = new Map<string, SubresourceHandler>([
    [
      '/serviceaccounts/token',
      async ({ body, info, annotate, validate }) => {
        const { object, id } = await requestToken(body!, info, { store, tokens, clock, validate });
        annotate('authentication.kubernetes.io/issued-credential-id', `JTI=${id}`);
        return { status: 201, object };
      },
    ],
  ]);

  // Late-bound: virt-api is a client of the very server it is a part of.
  let serve: ApiHandler = () => Promise.reject(new Error('the server is not put together yet'));
  const handler: ApiHandler = (request) => serve(request);
  const clientAs = (peer: Peer, userAgent: string): Client =>
    createClient((request) => handler(redirected(request, { peer })), { userAgent });
  // No token: it would die with the account, and who deletes its namespace waits for these very clients to finish that.
  const clientFor = (account: string): Client => {
    const peer = peerNamed(
      `system:serviceaccount:${COMPONENT_NAMESPACE}:${account}`,
      'system:serviceaccounts',
      `system:serviceaccounts:${COMPONENT_NAMESPACE}`,
    );
    return clientAs(peer, account);
  };

  const noMoreEvidence = new AbortController();
  const evidence = createRefusalEvidence({
    store,
    client: clientFor(EVIDENCE_ACCOUNT),
    clock,
    log,
    signal: noMoreEvidence.signal,
  });
  const virtClient = clientFor(VIRT_API_ACCOUNT);
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
    ...(options.connectNode && { connectNode: options.connectNode }),
  });
  const { connectNode } = options;
  const admissionMetrics = createAdmissionMetrics(clock);
  const signingMetrics = createSigningMetrics(store);
  const virtMetrics = createVirtMetrics(store, clock);
  const kruise = createKruiseProtection({ store, evidence });
  const bin = createRecycleBin({ store, resources, authorize, clock });
  const server = createApiServer({
    store,
    resources,
    ...(connectNode && { connectNode: (name: string) => connectNode(name, virtClient) }),
    authenticate: createAuthenticator({
      tokens: tokenAuthenticator,
      clock,
      ...(options.frontProxy && { frontProxy: options.frontProxy }),
      ...(authentication && { anonymous: () => authentication().anonymous ?? { enabled: true } }),
    }),
    authorize,
    admission: defaultPlugins(store, {
      clock,
      authorize,
      more: [
        ...certificatePlugins({ clock, authorize }),
        rbacEscalation({ ...rbac, authorize }),
        ...extensions.admission,
        ...dynamicPlugins({
          store,
          clock,
          log,
          resources,
          authorize,
          connectOutbound,
          webhookLike: [...virtApi.admission, kruise.plugin, bin.plugin, declaredFieldsGuard({ store })],
          onPolicyRefusal: noteDeletionPolicy(evidence),
          metrics: admissionMetrics,
        }),
      ],
    }),
    clock,
    log,
    version: versionInfo({ ...options.build, platform: `linux/${options.architecture ?? 'amd64'}` }),
    aggregated: [virtApi.subresources],
    connectOutbound,
    fields: createFieldManagement(resources),
    subresourceHandlers,
    createOnlyHandlers,
    bodyDecoders: new Map([[PROTOBUF, protobufBody]]),
    admissionMetrics,
    deletesWhole,
    ...(options.components && { components: options.components }),
    metrics: () => [
      ...admissionMetrics.families(),
      ...signingMetrics.families(),
      ...virtMetrics(),
      ...kruise.families(),
      ...evidence.families(),
      ...(options.nodeMetrics?.() ?? []),
    ],
    ...(options.compressor && { compressor: options.compressor }),
    ...(options.readElsewhere && { readElsewhere: options.readElsewhere }),
    ...(options.audit && { auditor: createAuditor({ ...options.audit, now: () => clock.now() }) }),
    ...(options.corsAllowedOrigins && { corsAllowedOrigins: options.corsAllowedOrigins }),
    ...(options.hostNames && { hostNames: options.hostNames }),
    ...(options.flags && { flags: options.flags }),
    ...(options.advertise && { serverAddress: `${options.advertise.address}:${options.advertise.port}` }),
    paths: new Map([
      ['/openid/v1/jwks', () => jsonResponse(tokens.keySet, 'application/jwk-set+json')],
      [
        '/.well-known/openid-configuration',
        () =>
          jsonResponse({
            issuer,
            jwks_uri: `${issuer}/openid/v1/jwks`,
            response_types_supported: ['id_token'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['ES256'],
          }),
      ],
    ]),
  });
  serve = server.handler;

  const accounts = [...COMPONENTS.map((component) => component.account), VIRT_API_ACCOUNT, EVIDENCE_ACCOUNT];
  const lasting = {
    resources,
    ...(options.advertise && { advertise: options.advertise }),
    ...(options.serviceCidr && { serviceCidr: options.serviceCidr }),
    ...(options.clientCa && { clientCa: options.clientCa }),
    ...(options.frontProxy && { frontProxy: options.frontProxy }),
    lasting: [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: COMPONENT_NAMESPACE } },
      ...accounts.map((name) => ({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name, namespace: COMPONENT_NAMESPACE },
      })),
      tokenTracking(clock.now()),
      ...virtApi.objects,
    ],
  };
  await ensureBootstrapObjects(server.registry, {
    ...lasting,
    more: [
      ...kubevirtCrds(clock.now()),
      ...volumeSnapshotCrds(clock.now()),
      ...configSyncCrds(clock.now()),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: CONFIG_SYNC_NAMESPACE } },
      sspCrd(clock.now()),
      ...coracleCrds(clock.now()),
    ] as unknown as UnstructuredObject[],
  });
  extensions.start(server.registry);
  await makeStorageClasses(server.registry, resources);
  const virt = virtPolicy();
  const stamp = (object: UnstructuredObject): void => {
    object.metadata.uid = crypto.randomUUID();
    object.metadata.creationTimestamp = formatTime(clock.now());
  };
  const componentPolicy = policyOf([
    ...COMPONENTS,
    { account: VIRT_API_ACCOUNT, rules: virt.rules },
    { account: EVIDENCE_ACCOUNT, rules: evidenceRules },
  ]);
  await reconcilePolicy(
    store,
    {
      roles: [
        ...DEFAULT_ROLES,
        ...SYSTEM_ROLES,
        ...CONTROLLER_ROLES,
        ...virt.roles,
        ...componentPolicy.roles,
        {
          kind: 'ClusterRole',
          name: NODE_ROLE,
          exact: true,
          rules: (options.agentRules ?? []) as readonly PolicyRule[],
        },
      ],
      bindings: [
        ...DEFAULT_BINDINGS,
        ...SYSTEM_BINDINGS,
        ...CONTROLLER_BINDINGS,
        ...virt.bindings,
        ...componentPolicy.bindings,
        NODE_BINDING,
      ],
    },
    stamp,
  );
  const stopKeeping = keepBootstrapObjects(server.registry, { ...lasting, log });
  server.setReady();

  return {
    handler,
    store,
    clientFor,
    adminClient: async () => clientAs(ADMIN_PEER, 'coracle-admin'),
    askAgent: createAskAgent((name) =>
      connectNode
        ? connectNode(name, virtClient)
        : Promise.reject(new Error(`node ${name} cannot be reached from here`)),
    ),
    clientForNode: (name) => clientAs(peerNamed(`system:node:${name}`, 'system:nodes'), AGENT_ACCOUNT),
    signLegacyToken: tokens.signLegacy,
    async close(closing) {
      noMoreEvidence.abort(new Error('the server is closing'));
      virtApi.stop();
      bin.stop();
      stopKeeping();
      signingMetrics.stop();
      extensions.stop();
      await server.drain(closing).catch(() => log.warn('requests were cut off at shutdown'));
      rbac.stop();
      graph.stop();
      await store.close();
    },
  };
}

const jsonResponse = (value: unknown, type = 'application/json') => ({
  status: 200,
  headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' },
  body: new TextEncoder().encode(JSON.stringify(value)),
});

const NODE_ROLE = 'coracle:agent';
const NODE_BINDING: PolicyBinding = {
  kind: 'ClusterRoleBinding',
  name: NODE_ROLE,
  roleKind: 'ClusterRole',
  role: NODE_ROLE,
  subjects: [{ kind: 'Group', name: 'system:nodes' }],
};
