/**
 * The control plane put together, in any JavaScript engine: store, API server, identities and rights, KubeVirt's API.
 * What a host adds (TLS, files, node agents) is in host.ts; what runs beside it (controllers) in components.ts.
 */

import { builtinResources } from '../../api/kinds/builtin/builtin-resources.ts';
import { kubevirtCrd, kubevirtResources } from '../../api/kinds/kubevirt/kubevirt.ts';
import { PROTOBUF } from '../../api/kinds/protobuf/documents.ts';
import { protobufBody } from '../../api/kinds/protobuf/request-body.ts';
import { formatTime, type UnstructuredObject } from '../../api/meta/object.ts';
import type { Clock } from '../../base/clock/clock.ts';
import { type ApiHandler, type Peer, redirected } from '../../base/http/seam.ts';
import type { Logger } from '../../base/log/log.ts';
import type { Client } from '../../client/client.ts';
import { createClient } from '../../client/create-client.ts';
import { VIRT_API_ACCOUNT } from '../../control/virt-api/virt-api.ts';
import { defaultPlugins } from '../../server/admission/default-plugins.ts';
import { createAuthenticator } from '../../server/auth/authenticator.ts';
import {
  DEFAULT_BINDINGS,
  DEFAULT_ROLES,
  type PolicyBinding,
  type PolicyRole,
} from '../../server/auth/bootstrap-policy.ts';
import { rbacEscalation } from '../../server/auth/escalation.ts';
import { createRbac, type PolicyRule } from '../../server/auth/rbac.ts';
import { reconcilePolicy } from '../../server/auth/reconcile-policy.ts';
import { createReviewHandlers } from '../../server/auth/reviews.ts';
import { createTokenIssuer, serviceAccountUser } from '../../server/auth/service-account-tokens.ts';
import { findUidIn, requestToken } from '../../server/auth/token-request.ts';
import { createObjectStore } from '../../server/cache/create-object-store.ts';
import type { ObjectStore } from '../../server/cache/object-store.ts';
import { createApiServer } from '../../server/endpoints/api-server.ts';
import type { CreateOnlyHandler, SubresourceHandler } from '../../server/endpoints/exchange.ts';
import { ensureBootstrapObjects } from '../../server/registry/bootstrap-objects.ts';
import { createFieldManagement } from '../../server/registry/field-management.ts';
import { createResourceCatalog } from '../../server/registry/resource-catalog.ts';
import type { Backend } from '../../server/storage/backend.ts';
import { COMPONENT_TOKEN_SECONDS, createTokenSource, type TokenSource } from './component-token.ts';
import { COMPONENT_NAMESPACE, COMPONENTS, type PolicyRuleData } from './components.ts';
import { createVirtApi, virtPolicy } from './virt-api.ts';

export interface ControlPlaneOptions {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly log: Logger;
  /** Coracle's own version. */
  readonly version: string;
  /** Architecture of the host, as Go names it; amd64 when not given. */
  readonly architecture?: string;
  /** PKCS #8 PEM that service-account tokens are signed with. */
  readonly signingKey: string;
  /** Issuer named in tokens; stays the same for the life of the data. */
  readonly issuer: string;
  /** Address and port of the API as guests and clients reach it. */
  readonly advertise?: { readonly address: string; readonly port: number };
  /** Reaches a node's own API, for consoles and guest commands. Throws when the node cannot be reached. */
  readonly connectNode?: (nodeName: string, client: Client) => Promise<ApiHandler>;
  /** Rights of node agents, which run elsewhere. */
  readonly agentRules?: readonly PolicyRuleData[];
  readonly compress?: (bytes: Uint8Array) => Promise<Uint8Array>;
  readonly signal: AbortSignal;
}

export interface ControlPlane {
  readonly handler: ApiHandler;
  readonly store: ObjectStore;
  /** A client that acts as one of the components' service accounts. */
  clientFor(account: string): Promise<Client>;
  /** A client with every right (group system:masters), for the process that holds the state anyway. */
  adminClient(): Promise<Client>;
  /** A token of one of the components' service accounts, kept fresh. */
  tokenFor(account: string): Promise<TokenSource>;
  /** Answers what is in flight, makes everything durable, closes the store. */
  close(signal: AbortSignal): Promise<void>;
}

/** Calls that never left the process come from whoever holds its keys: as if they had shown the admin's certificate. */
const ADMIN_PEER: Peer = {
  address: '',
  certificate: {
    verified: true,
    commonName: 'kubernetes-admin',
    organizations: ['system:masters'],
    fingerprint: 'in-process',
  },
};

export const AGENT_ACCOUNT = 'coracle-agent';

/** Starts the control plane on a backend; resolves when it is ready to serve. Rejects with StorageError when the state cannot be opened. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { backend, clock, log, signal } = options;
  const store = await createObjectStore({ backend, clock, log, signal });
  try {
    return await assemble(store, options);
  } catch (error) {
    // Whoever tries again must find the state free.
    await store.close();
    throw error;
  }
}

async function assemble(store: ObjectStore, options: ControlPlaneOptions): Promise<ControlPlane> {
  const { clock, log, issuer } = options;
  const tokens = await createTokenIssuer({ key: options.signingKey, issuer, clock, findUid: findUidIn(store) });
  const rbac = createRbac(store);
  const virtInfos = kubevirtResources();
  const resources = createResourceCatalog([...builtinResources(), ...virtInfos]);

  const reviews = createReviewHandlers({ authorize: rbac.authorize, rulesFor: rbac.rulesFor, tokens });
  const createOnlyHandlers = new Map<string, CreateOnlyHandler>(
    [...reviews].map(([resource, review]) => [
      resource,
      (object, user, { info }) => review(object, user, info.namespace),
    ]),
  );
  const subresourceHandlers = new Map<string, SubresourceHandler>([
    [
      '/serviceaccounts/token',
      async ({ body, info, user }) => ({
        status: 201,
        object: await requestToken(
          body ??
            ({ kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', metadata: {} } as UnstructuredObject),
          info,
          // A node's agent is given tokens of launcher Pods only: what it may not be, it cannot become.
          { store, tokens, podsOnly: user.username === componentUser(AGENT_ACCOUNT) },
        ),
      }),
    ],
  ]);

  // Late-bound: virt-api is a client of the very server it is a part of.
  let serve: ApiHandler = () => Promise.reject(new Error('the server is not put together yet'));
  const handler: ApiHandler = (request) => serve(request);
  const sources: TokenSource[] = [];
  const tokenFor = async (account: string): Promise<TokenSource> => {
    const source = await createTokenSource(
      async () => {
        const uid = findUidIn(store)('ServiceAccount', COMPONENT_NAMESPACE, account);
        if (uid === undefined) throw new Error(`service account ${COMPONENT_NAMESPACE}/${account} does not exist`);
        return tokens.sign({
          namespace: COMPONENT_NAMESPACE,
          serviceAccount: { name: account, uid },
          audiences: [issuer],
          expirationSeconds: COMPONENT_TOKEN_SECONDS,
        });
      },
      { clock, log },
    );
    sources.push(source);
    return source;
  };
  const clientFor = async (account: string): Promise<Client> => {
    const source = await tokenFor(account);
    return createClient(handler, { userAgent: account, token: source.current });
  };

  const virtApi = createVirtApi({
    version: options.version,
    architecture: options.architecture ?? 'amd64',
    clock,
    log,
    authorize: rbac.authorize,
    store,
    client: () => clientFor(VIRT_API_ACCOUNT),
    ...(options.connectNode && { connectNode: options.connectNode }),
  });
  const server = createApiServer({
    store,
    resources,
    authenticate: createAuthenticator({ tokens }),
    authorize: rbac.authorize,
    admission: [...defaultPlugins(store, clock), rbacEscalation(rbac), ...virtApi.admission],
    clock,
    log,
    aggregated: [virtApi.subresources],
    fields: createFieldManagement(resources),
    subresourceHandlers,
    createOnlyHandlers,
    bodyDecoders: new Map([[PROTOBUF, protobufBody]]),
    ...(options.compress && { compress: options.compress }),
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

  const accounts = [...COMPONENTS.map((component) => component.account), AGENT_ACCOUNT, VIRT_API_ACCOUNT];
  await ensureBootstrapObjects(server.registry, {
    resources,
    ...(options.advertise && { advertise: options.advertise }),
    more: [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: COMPONENT_NAMESPACE } },
      ...accounts.map((name) => ({
        apiVersion: 'v1',
        kind: 'ServiceAccount',
        metadata: { name, namespace: COMPONENT_NAMESPACE },
      })),
      ...virtInfos
        .filter((info) => info.version === 'v1')
        .map((info) => kubevirtCrd(info, clock.now()) as unknown as UnstructuredObject),
      ...virtApi.objects,
    ],
  });
  const virt = virtPolicy();
  const stamp = (object: UnstructuredObject): void => {
    object.metadata.uid = crypto.randomUUID();
    object.metadata.creationTimestamp = formatTime(clock.now());
  };
  const componentPolicy = policyOf([
    ...COMPONENTS.map(({ account, rules }) => ({ account, rules })),
    { account: AGENT_ACCOUNT, rules: options.agentRules ?? [] },
    { account: VIRT_API_ACCOUNT, rules: virt.rules },
  ]);
  await reconcilePolicy(
    store,
    {
      roles: [...DEFAULT_ROLES, ...virt.roles, ...componentPolicy.roles],
      bindings: [...DEFAULT_BINDINGS, ...virt.bindings, ...componentPolicy.bindings],
    },
    stamp,
  );
  await virtApi.start();
  server.setReady();

  return {
    handler,
    store,
    clientFor,
    adminClient: async () =>
      createClient((request) => handler(redirected(request, { peer: ADMIN_PEER })), { userAgent: 'coracle-admin' }),
    tokenFor,
    async close(closing) {
      for (const source of sources) source.stop();
      virtApi.stop();
      await server.drain(closing).catch(() => log.warn('requests were cut off at shutdown'));
      rbac.stop();
      await store.close();
    },
  };
}

const jsonResponse = (value: unknown, type = 'application/json') => ({
  status: 200,
  headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' },
  body: new TextEncoder().encode(JSON.stringify(value)),
});

/** One ClusterRole and binding for each component, holding exactly the rules it names. */
function policyOf(components: readonly { readonly account: string; readonly rules: readonly PolicyRuleData[] }[]): {
  roles: PolicyRole[];
  bindings: PolicyBinding[];
} {
  const name = (account: string): string => `coracle:${account.replace(/^coracle-/, '')}`;
  return {
    roles: components.map(({ account, rules }) => ({
      kind: 'ClusterRole',
      name: name(account),
      exact: true,
      rules: rules as readonly PolicyRule[],
    })),
    bindings: components.map(({ account }) => ({
      kind: 'ClusterRoleBinding',
      name: name(account),
      roleKind: 'ClusterRole',
      role: name(account),
      subjects: [{ kind: 'ServiceAccount', name: account, namespace: COMPONENT_NAMESPACE }],
    })),
  };
}

/** The user name of a component, as admission sees it. */
export const componentUser = (account: string): string => serviceAccountUser(COMPONENT_NAMESPACE, account).username;
