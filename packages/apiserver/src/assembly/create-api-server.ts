/**
 * A working Kubernetes API server from its rooms: store, identities and rights, admission, endpoints and the objects that
 * must exist before it is ready. It opens no port: its handler is called by whatever listens, by clients in the same process,
 * by tests. What it does beyond the core is handed in: `parts` of this package, and `extend` for APIs of somebody else.
 */

import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { VersionInfo } from '@coracle/apimachinery/meta/version-info';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { type Clock, systemClock } from '@coracle/runtime/clock/clock';
import { inProcessPeer } from '@coracle/runtime/http/in-process-peer';
import { type ApiHandler, type Peer, redirected } from '@coracle/runtime/http/seam';
import { type Logger, silentLogger } from '@coracle/runtime/log/log';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { type AdmissionMetrics, createAdmissionMetrics } from '../admission/admission-metrics.ts';
import { certificatePlugins } from '../admission/certificates.ts';
import { defaultPlugins } from '../admission/default-plugins.ts';
import type { AdmissionPlugin } from '../admission/plugin.ts';
import type { OnPolicyRefusal } from '../admission/policy/validating-policies.ts';
import { createAuthenticator } from '../auth/authenticator.ts';
import { type AuthorizerSetup, createAuthorizerChain, DEFAULT_AUTHORIZERS } from '../auth/authorizer-chain.ts';
import {
  DEFAULT_BINDINGS,
  DEFAULT_ROLES,
  NODE_RULES,
  type PolicyBinding,
  type PolicyRole,
} from '../auth/bootstrap-policy.ts';
import { bootstrapTokens } from '../auth/bootstrap-tokens.ts';
import { rbacEscalation } from '../auth/escalation.ts';
import type { FrontProxyOptions } from '../auth/front-proxy.ts';
import type { Authorizer } from '../auth/identity.ts';
import { createNodeAuthorizer, type NodeDecision } from '../auth/node-authorizer.ts';
import { createNodeGraph, type NodeGraph } from '../auth/node-graph.ts';
import { createRbac } from '../auth/rbac.ts';
import { reconcilePolicy } from '../auth/reconcile-policy.ts';
import { createReviewHandlers } from '../auth/reviews.ts';
import { createSigningKey, createTokenIssuer, type TokenIssuer } from '../auth/service-account-tokens.ts';
import { type AskTokenUser, createTokenAuthenticator, type FindTokenUser } from '../auth/token-authenticator.ts';
import { findUidIn, requestToken, secretTokenIn } from '../auth/token-request.ts';
import { createObjectStore } from '../cache/create-object-store.ts';
import type { ByteLimits } from '../cache/namespace-bytes.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { createEndpoints, type Endpoints, type EndpointsOptions } from '../endpoints/create-endpoints.ts';
import type { CreateOnlyHandler, SubresourceHandler } from '../endpoints/exchange.ts';
import { createExtensions } from '../extensions/definition-controller.ts';
import { builtinResources } from '../kinds/builtin/builtin-resources.ts';
import { type ConnectOutbound, noOutbound } from '../outbound/outbound.ts';
import { ensureBootstrapObjects } from '../registry/bootstrap-objects.ts';
import { createFieldManagement } from '../registry/field-management.ts';
import { keepBootstrapObjects } from '../registry/keep-bootstrap-objects.ts';
import { renewStored } from '../registry/renew-stored.ts';
import { createResourceCatalog, type ResourceCatalog } from '../registry/resource-catalog.ts';
import { createSigningMetrics } from '../registry/signing-metrics.ts';
import type { Registry } from '../registry/write-contract.ts';
import type { Backend } from '../storage/backend.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import type { ServerParts } from './server-parts.ts';
import { tokenDocuments } from './token-documents.ts';

/** What is there when APIs of somebody else are put in. */
export interface ServerCore {
  readonly store: ObjectStore;
  readonly resources: ResourceCatalog;
  readonly authorize: Authorizer;
  readonly clock: Clock;
  readonly log: Logger;
  /** The server itself, for calls in the name of a user; it answers once the server is put together. */
  handlerAs(user: { readonly name: string; readonly groups: readonly string[] }): ApiHandler;
}

/** APIs of somebody else in the same process. */
export interface ServerExtension {
  /** Plug-ins that stand where webhooks stand: behind policies, before webhooks. */
  readonly admission?: readonly AdmissionPlugin[];
  /** Called with what ValidatingAdmissionPolicies refuse. */
  readonly onPolicyRefusal?: OnPolicyRefusal;
  readonly aggregated?: EndpointsOptions['aggregated'];
  readonly connectNode?: EndpointsOptions['connectNode'];
  readonly deletesWhole?: EndpointsOptions['deletesWhole'];
  readonly metrics?: () => readonly MetricFamily[];
  /** Objects that are made at the first start; those of `lasting` come back when somebody deletes them. */
  readonly objects?: readonly UnstructuredObject[];
  readonly lasting?: readonly UnstructuredObject[];
  readonly roles?: readonly PolicyRole[];
  readonly bindings?: readonly PolicyBinding[];
  /** Runs when all kinds are served, before the server is ready. */
  prepare?(registry: Registry): Promise<void>;
  stop?(): void;
}

/** What finding users by tokens may ask. */
export interface TokenServices {
  readonly connect: ConnectOutbound;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Settings of endpoints that are passed on as they are. */
type PassedOn = Pick<
  EndpointsOptions,
  | 'compressor'
  | 'readElsewhere'
  | 'runStage'
  | 'writeElsewhere'
  | 'corsAllowedOrigins'
  | 'hostNames'
  | 'components'
  | 'maxInFlight'
>;

export interface ApiServerOptions extends PassedOn {
  /** Where the state lies; in memory, and gone with the process, when not given. */
  readonly backend?: Backend;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** The document at `/version`. */
  readonly version?: VersionInfo;
  /** Kinds beside the built-in ones. */
  readonly resources?: readonly ResourceInfo[];
  readonly parts?: ServerParts;
  readonly extend?: (core: ServerCore) => ServerExtension;
  /** PKCS #8 PEM that service-account tokens are signed with; a new key, which is not kept, when not given. */
  readonly signingKey?: string;
  /** Issuer named in tokens; stays the same for the life of the data. */
  readonly issuer?: string;
  /** Address and port of the API as guests and clients reach it. */
  readonly advertise?: { readonly address: string; readonly port: number };
  /** Range that Services get cluster IPs from; `DEFAULT_SERVICE_CIDR` when not given. */
  readonly serviceCidr?: string;
  /** Bytes of objects that are taken; the defaults when not given. */
  readonly byteLimits?: ByteLimits;
  /** How the host calls webhooks and aggregated APIs; without it every such call fails with a sentence. */
  readonly connectOutbound?: (store: Pick<ObjectStore, 'get' | 'list'>) => ConnectOutbound;
  /** Whose tokens are believed beside those of service accounts and bootstrap tokens. */
  readonly tokenUsers?: (services: TokenServices) => readonly (FindTokenUser | AskTokenUser)[];
  /** Who may come without a credential, looked at with each request; everybody when not given. */
  readonly anonymous?: NonNullable<Parameters<typeof createAuthenticator>[0]['anonymous']>;
  /** Who is asked what users may do, looked at before each decision; the Node authorizer and RBAC when not given. */
  readonly authorizers?: () => readonly AuthorizerSetup[];
  /** By `group/resource`: what nodes may do with kinds of somebody else. */
  readonly nodeRights?: (facts: {
    readonly graph: NodeGraph;
    readonly store: ObjectStore;
  }) => Readonly<Record<string, NodeDecision>>;
  /** Proxies that may say who the user is. */
  readonly frontProxy?: FrontProxyOptions & { readonly ca: string };
  /** PEM of the CA of client certificates, for extension API servers. */
  readonly clientCa?: string;
  readonly signal?: AbortSignal;
}

export interface ApiServer {
  /** Answers any request; never rejects. */
  readonly handler: ApiHandler;
  /** The same in the name of a user, without a credential. */
  readonly handlerAs: ServerCore['handlerAs'];
  readonly store: ObjectStore;
  /** Signs the token of a Secret of type `kubernetes.io/service-account-token`. */
  readonly signLegacyToken: TokenIssuer['signLegacy'];
  /** Answers what is in flight, makes everything durable, closes the store. */
  close(signal: AbortSignal): Promise<void>;
}

/** The issuer of service-account tokens, which no other issuer may be called. */
export const ISSUER = 'https://kubernetes.default.svc.cluster.local';

/** Starts a server; resolves when it is ready to serve. Rejects with StorageError when the state cannot be opened. */
export async function createApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const { clock = systemClock, log = silentLogger } = options;
  // A store that is beyond its bounds starts as any other: else nobody could delete anything from it.
  const { promise: limitsAfter, resolve: limit } = Promise.withResolvers<void>();
  const store = await createObjectStore({
    backend: options.backend ?? createMemoryBackend(),
    clock,
    log,
    renew: renewStored,
    ...(options.byteLimits && { byteLimits: options.byteLimits }),
    limitsAfter,
    signal: options.signal ?? new AbortController().signal,
  });
  try {
    const server = await assemble(store, { ...options, clock, log });
    limit();
    return server;
  } catch (error) {
    // Whoever tries again must find the state free.
    await store.close();
    throw error;
  }
}

type Settled = ApiServerOptions & Required<Pick<ApiServerOptions, 'clock' | 'log'>>;

async function assemble(store: ObjectStore, options: Settled): Promise<ApiServer> {
  const { clock, log, issuer = ISSUER, parts = {} } = options;
  const connectOutbound = options.connectOutbound?.(store) ?? noOutbound;
  // Late-bound: what extends the server is a client of it.
  let serve: ApiHandler = () => Promise.reject(new Error('the server is not put together yet'));
  const handler: ApiHandler = (request) => serve(request);
  const handlerAs: ServerCore['handlerAs'] = ({ name, groups }) => {
    const peer = peerNamed(name, ...groups);
    return (request) => handler(redirected(request, { peer }));
  };
  const resources = createResourceCatalog([...builtinResources(), ...(options.resources ?? [])]);
  const definitions = createExtensions({ resources, connect: connectOutbound, log });
  const tokens = await createTokenIssuer({
    key: options.signingKey ?? (await createSigningKey()),
    issuer,
    clock,
    findUid: findUidIn(store, clock),
    secretToken: secretTokenIn(store),
  });
  const tokenAuthenticator = createTokenAuthenticator(tokens, [
    bootstrapTokens(store, clock),
    ...(options.tokenUsers?.({ connect: connectOutbound, clock, log }) ?? []),
  ]);
  const rbac = createRbac(store);
  const graph = createNodeGraph(store);
  const chain = createAuthorizerChain({
    setup: options.authorizers ?? (() => DEFAULT_AUTHORIZERS),
    node: createNodeAuthorizer({
      graph,
      store,
      rules: NODE_RULES,
      ...(options.nodeRights && { more: options.nodeRights({ graph, store }) }),
    }),
    rbac,
    webhook: parts.webhookAuthorizer,
    clock,
    log,
  });
  const { authorize } = chain;

  const extension: ServerExtension = options.extend?.({ store, resources, authorize, clock, log, handlerAs }) ?? {};
  const metrics = createAdmissionMetrics(clock);
  const signingMetrics = createSigningMetrics(store);
  const reviews = createReviewHandlers({ authorize, rulesFor: chain.rulesFor, tokens: tokenAuthenticator, clock });
  const endpoints = createEndpoints({
    ...passedOn(options),
    ...endpointParts(parts),
    store,
    resources,
    clock,
    log,
    authenticate: createAuthenticator({
      tokens: tokenAuthenticator,
      clock,
      ...(options.frontProxy && { frontProxy: options.frontProxy }),
      ...(options.anonymous && { anonymous: options.anonymous }),
    }),
    authorize,
    admission: admissionChain({
      core: { store, clock, log, resources, authorize, connectOutbound, metrics },
      own: [
        ...certificatePlugins({ clock, authorize }),
        rbacEscalation({ ...rbac, authorize }),
        ...definitions.admission,
      ],
      parts,
      extension,
    }),
    ...(options.version && { version: options.version }),
    ...(extension.aggregated && { aggregated: extension.aggregated }),
    ...(extension.connectNode && { connectNode: extension.connectNode }),
    ...(extension.deletesWhole && { deletesWhole: extension.deletesWhole }),
    connectOutbound,
    fields: createFieldManagement(resources),
    subresourceHandlers: tokenRequests({ store, tokens, clock }),
    createOnlyHandlers: new Map<string, CreateOnlyHandler>(
      [...reviews].map(([resource, review]) => [
        resource,
        (object, user, { info }) => review(object, user, info.namespace),
      ]),
    ),
    admissionMetrics: metrics,
    metrics: () => [...metrics.families(), ...signingMetrics.families(), ...(extension.metrics?.() ?? [])],
    ...(options.advertise && { serverAddress: `${options.advertise.address}:${options.advertise.port}` }),
    paths: tokenDocuments({ issuer, keySet: tokens.keySet }),
  });
  serve = endpoints.handler;

  const stopKeeping = await fill(endpoints, { options, resources, extension, definitions });
  return {
    handler,
    handlerAs,
    store,
    signLegacyToken: tokens.signLegacy,
    async close(closing) {
      extension.stop?.();
      stopKeeping();
      signingMetrics.stop();
      definitions.stop();
      await endpoints.drain(closing).catch(() => log.warn('requests were cut off at shutdown'));
      rbac.stop();
      graph.stop();
      await store.close();
    },
  };
}

/** Calls that never left the process come from whoever holds its keys: as if they had shown a certificate of its CA. */
const peerNamed = (commonName: string, ...organizations: string[]): Peer =>
  inProcessPeer({ verified: true, commonName, organizations, fingerprint: `in-process ${commonName}` });

const passedOn = (options: Settled): PassedOn => ({
  ...(options.compressor && { compressor: options.compressor }),
  ...(options.readElsewhere && { readElsewhere: options.readElsewhere }),
  ...(options.runStage && { runStage: options.runStage }),
  ...(options.writeElsewhere && { writeElsewhere: options.writeElsewhere }),
  ...(options.corsAllowedOrigins && { corsAllowedOrigins: options.corsAllowedOrigins }),
  ...(options.hostNames && { hostNames: options.hostNames }),
  ...(options.components && { components: options.components }),
  ...(options.maxInFlight !== undefined && { maxInFlight: options.maxInFlight }),
});

const endpointParts = ({ aggregation, flowControl, swagger2, bodyDecoders, auditor }: ServerParts) => ({
  ...(aggregation && { aggregation }),
  ...(flowControl && { flowControl }),
  ...(swagger2 && { swagger2 }),
  ...(bodyDecoders && { bodyDecoders }),
  ...(auditor && { auditor }),
});

/** The plug-ins in upstream's order: those of every server, policies, what stands like a webhook, webhooks, quotas. */
function admissionChain({
  core,
  own,
  parts,
  extension,
}: {
  readonly core: Omit<ServerCore, 'handlerAs'> & {
    readonly connectOutbound: ConnectOutbound;
    readonly metrics: AdmissionMetrics;
  };
  readonly own: readonly AdmissionPlugin[];
  readonly parts: ServerParts;
  readonly extension: ServerExtension;
}): AdmissionPlugin[] {
  const { store, clock, authorize } = core;
  return defaultPlugins(store, {
    clock,
    authorize,
    more: [
      ...own,
      ...(parts.policies?.({ ...core, onPolicyRefusal: extension.onPolicyRefusal }) ?? []),
      ...(extension.admission ?? []),
      ...(parts.webhooks?.(core) ?? []),
    ],
    podSecurity: parts.podSecurity ? [parts.podSecurity(store)] : [],
    quota: parts.quota ? [parts.quota(store, clock)] : [],
  });
}

const tokenRequests = ({
  store,
  tokens,
  clock,
}: {
  readonly store: ObjectStore;
  readonly tokens: TokenIssuer;
  readonly clock: Clock;
}): ReadonlyMap<string, SubresourceHandler> =>
  new Map([
    [
      '/serviceaccounts/token',
      async ({ body, info, annotate, validate }) => {
        const { object, id } = await requestToken(body!, info, { store, tokens, clock, validate });
        annotate('authentication.kubernetes.io/issued-credential-id', `JTI=${id}`);
        return { status: 201, object };
      },
    ],
  ]);

/** Makes the objects that must exist, and says that the server is ready. Returns what stops keeping them. */
async function fill(
  endpoints: Endpoints,
  {
    options,
    resources,
    extension,
    definitions,
  }: {
    readonly options: Settled;
    readonly resources: ResourceCatalog;
    readonly extension: ServerExtension;
    readonly definitions: ReturnType<typeof createExtensions>;
  },
): Promise<() => void> {
  const { clock, log } = options;
  const { registry } = endpoints;
  const kept = {
    resources,
    ...(options.advertise && { advertise: options.advertise }),
    ...(options.serviceCidr && { serviceCidr: options.serviceCidr }),
    ...(options.clientCa && { clientCa: options.clientCa }),
    ...(options.frontProxy && { frontProxy: options.frontProxy }),
    lasting: extension.lasting ?? [],
  };
  await ensureBootstrapObjects(registry, { ...kept, more: extension.objects ?? [] });
  definitions.start(registry);
  await extension.prepare?.(registry);
  const policy = {
    roles: [...DEFAULT_ROLES, ...(extension.roles ?? [])],
    bindings: [...DEFAULT_BINDINGS, ...(extension.bindings ?? [])],
  };
  await reconcilePolicy(registry.store, policy, (object) => {
    object.metadata.uid = crypto.randomUUID();
    object.metadata.creationTimestamp = formatTime(clock.now());
  });
  const stopKeeping = keepBootstrapObjects(registry, { ...kept, log });
  endpoints.setReady();
  return stopKeeping;
}
