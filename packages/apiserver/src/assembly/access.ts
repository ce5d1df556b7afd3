/** Who users are, and what they may do: tokens, the authorizers of the server, the plug-ins that guard rights. */
import { formatTime } from '@coracle/apimachinery/meta/object';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import { certificatePlugins } from '../admission/certificates.ts';
import type { AdmissionPlugin } from '../admission/plugin.ts';
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
import { createNodeAuthorizer, type NodeAuthorizerOptions } from '../auth/node-authorizer.ts';
import { createNodeGraph, type NodeGraph } from '../auth/node-graph.ts';
import { createRbac } from '../auth/rbac.ts';
import { reconcilePolicy } from '../auth/reconcile-policy.ts';
import { createReviewHandlers } from '../auth/reviews.ts';
import { createSigningKey, createTokenIssuer, type TokenIssuer } from '../auth/service-account-tokens.ts';
import { createTokenAuthenticator, type FindTokenUser, type LookUpTokenUser } from '../auth/token-authenticator.ts';
import { findUidIn, requestToken, secretTokenIn } from '../auth/token-request.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { EndpointsOptions } from '../endpoints/create-endpoints.ts';
import type { SubresourceHandler } from '../endpoints/exchange.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import type { ServerParts } from './server-parts.ts';

/** The roles that a server keeps. */
export interface Policy {
  readonly roles: readonly PolicyRole[];
  readonly bindings: readonly PolicyBinding[];
}

/** What a server is put together with: it asks this, and nobody else, who users are and what they may do. */
export interface Access {
  readonly authenticate: EndpointsOptions['authenticate'];
  readonly authorize: Authorizer;
  /** Plug-ins that guard rights; they stand before policies. */
  readonly admission: readonly AdmissionPlugin[];
  /** The endpoints of tokens, reviews and keys. */
  readonly endpoints: Partial<Pick<EndpointsOptions, 'subresourceHandlers' | 'createOnlyHandlers' | 'paths'>>;
  /** Makes the objects that rights are kept in; `more` are those of somebody else's APIs. */
  prepare?(more: Policy): Promise<void>;
  stop?(): void;
}

/** What finding users by tokens may ask. */
export interface TokenServices {
  readonly connect: ConnectOutbound;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface AccessOptions {
  /** PKCS #8 PEM that service-account tokens are signed with; a new key, which is not kept, when not given. */
  readonly signingKey?: string;
  /** Issuer named in tokens; stays the same for the life of the data. */
  readonly issuer?: string;
  /** Whose tokens are believed beside those of service accounts and bootstrap tokens. */
  readonly tokenUsers?: (services: TokenServices) => readonly (FindTokenUser | LookUpTokenUser)[];
  /** Who may come without a credential, looked at with each request; everybody when not given. */
  readonly anonymous?: NonNullable<Parameters<typeof createAuthenticator>[0]['anonymous']>;
  /** Who is asked what users may do, looked at before each decision; the Node authorizer and RBAC when not given. */
  readonly authorizers?: () => readonly AuthorizerSetup[];
  /** What nodes may do with kinds of somebody else, and beside what every node may. */
  readonly nodeRights?: (facts: {
    readonly graph: NodeGraph;
    readonly store: ObjectStore;
  }) => Pick<NodeAuthorizerOptions, 'more' | 'beside'>;
  /** Proxies that may say who the user is. */
  readonly frontProxy?: FrontProxyOptions & { readonly ca: string };
  readonly parts?: ServerParts;
}

/** The issuer of service-account tokens, which no other issuer may be called. */
export const ISSUER = 'https://kubernetes.default.svc.cluster.local';

/** Service-account and other tokens, the Node authorizer, RBAC. Rejects when the signing key cannot be read. */
export async function openAccess(
  store: ObjectStore,
  options: AccessOptions,
  services: TokenServices,
): Promise<Access & Pick<TokenIssuer, 'signLegacy'>> {
  const { issuer = ISSUER } = options;
  const { clock, log } = services;
  const tokens = await createTokenIssuer({
    key: options.signingKey ?? (await createSigningKey()),
    issuer,
    clock,
    findUid: findUidIn(store, clock),
    secretToken: secretTokenIn(store),
  });
  const tokenAuthenticator = createTokenAuthenticator(tokens, [
    bootstrapTokens(store, clock),
    ...(options.tokenUsers?.(services) ?? []),
  ]);
  const rbac = createRbac(store);
  const graph = createNodeGraph(store);
  const { authorize, rulesFor } = createAuthorizerChain({
    setup: options.authorizers ?? (() => DEFAULT_AUTHORIZERS),
    node: createNodeAuthorizer({
      graph,
      rules: NODE_RULES,
      ...options.nodeRights?.({ graph, store }),
    }),
    rbac,
    webhook: options.parts?.webhookAuthorizer,
    clock,
    log,
  });
  return {
    authorize,
    authenticate: createAuthenticator({
      tokens: tokenAuthenticator,
      clock,
      ...(options.frontProxy && { frontProxy: options.frontProxy }),
      ...(options.anonymous && { anonymous: options.anonymous }),
    }),
    admission: [...certificatePlugins(clock, authorize), rbacEscalation({ ...rbac, authorize })],
    endpoints: {
      subresourceHandlers: new Map<string, SubresourceHandler>([
        [
          '/serviceaccounts/token',
          async ({ body, info, annotate, validate }) => {
            const { object, id } = await requestToken(body, info, { store, tokens, clock, validate });
            annotate('authentication.kubernetes.io/issued-credential-id', `JTI=${id}`);
            return object;
          },
        ],
      ]),
      createOnlyHandlers: createReviewHandlers({ authorize, rulesFor, tokens: tokenAuthenticator, clock }),
      paths: tokenDocuments(issuer, tokens.keySet),
    },
    prepare: (more) =>
      reconcilePolicy(
        store,
        { roles: [...DEFAULT_ROLES, ...more.roles], bindings: [...DEFAULT_BINDINGS, ...more.bindings] },
        (object) => {
          object.metadata.uid = crypto.randomUUID();
          object.metadata.creationTimestamp = formatTime(clock.now());
        },
      ),
    stop() {
      rbac.stop();
      graph.stop();
    },
    signLegacy: tokens.signLegacy,
  };
}

/** The documents by which others check service-account tokens (OpenID Connect Discovery 1.0, section 4), by path. */
const tokenDocuments = (issuer: string, keySet: unknown): ReadonlyMap<string, () => ApiResponse> =>
  new Map([
    ['/openid/v1/jwks', () => jsonResponse(keySet, 'application/jwk-set+json')],
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
  ]);

const jsonResponse = (value: unknown, type = 'application/json'): ApiResponse => ({
  status: 200,
  headers: { 'content-type': type, 'cache-control': 'public, max-age=3600' },
  body: new TextEncoder().encode(JSON.stringify(value)),
});
