/**
 * The rooms of the server on an open store: admission, endpoints, custom kinds, and the objects that must exist before it
 * is ready. Who users are is asked of the `Access` that is handed in.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import { inProcessPeer } from '@coracle/runtime/http/in-process-peer';
import { type ApiHandler, redirected } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import { createAdmissionMetrics } from '../admission/admission-metrics.ts';
import { defaultPlugins } from '../admission/default-plugins.ts';
import type { AdmissionPlugin } from '../admission/plugin.ts';
import type { OnPolicyRefusal } from '../admission/policy/validating-policies.ts';
import type { PolicyBinding, PolicyRole } from '../auth/bootstrap-policy.ts';
import type { Authorizer } from '../auth/identity.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { createEndpoints, type Endpoints, type EndpointsOptions } from '../endpoints/create-endpoints.ts';
import { Extensions } from '../extensions/definition-controller.ts';
import { builtinResources } from '../kinds/builtin/builtin-resources.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { ensureBootstrapObjects } from '../registry/bootstrap-objects.ts';
import { createFieldManagement } from '../registry/field-management.ts';
import { keepBootstrapObjects } from '../registry/keep-bootstrap-objects.ts';
import { createResourceCatalog, type ResourceCatalog } from '../registry/resource-catalog.ts';
import { createSigningMetrics } from '../registry/signing-metrics.ts';
import type { Registry } from '../registry/write-contract.ts';
import type { Access } from './access.ts';
import type { ServerParts } from './server-parts.ts';

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
export interface ServerExtension
  extends Pick<EndpointsOptions, 'aggregated' | 'connectNode' | 'deletesWhole' | 'metrics'> {
  /** Plug-ins that stand where webhooks stand: behind policies, before webhooks. */
  readonly admission?: readonly AdmissionPlugin[];
  /** Called with what ValidatingAdmissionPolicies refuse. */
  readonly onPolicyRefusal?: OnPolicyRefusal;
  /** Objects that are made at the first start; those of `lasting` come back when somebody deletes them. */
  readonly objects?: readonly UnstructuredObject[];
  readonly lasting?: readonly UnstructuredObject[];
  readonly roles?: readonly PolicyRole[];
  readonly bindings?: readonly PolicyBinding[];
  /** Runs when all kinds are served, before the server is ready. */
  prepare?(registry: Registry): Promise<void>;
  stop?(): void;
}

/** What a server is made of, beside its store and its access. */
export interface AssemblyOptions
  extends Pick<
      EndpointsOptions,
      'version' | 'compressor' | 'readElsewhere' | 'runStage' | 'writeElsewhere' | 'corsAllowedOrigins'
    >,
    Pick<EndpointsOptions, 'hostNames' | 'maxInFlight'> {
  /** Kinds beside the built-in ones. */
  readonly resources?: readonly ResourceInfo[];
  readonly parts?: ServerParts;
  readonly extend?: (core: ServerCore) => ServerExtension;
  /** Address and port of the API as guests and clients reach it. */
  readonly advertise?: { readonly address: string; readonly port: number };
  /** Range that Services get cluster IPs from; `DEFAULT_SERVICE_CIDR` when not given. */
  readonly serviceCidr?: string;
  /** PEM of the CA of client certificates, for extension API servers. */
  readonly clientCa?: string;
  /** Proxies that may say who the user is, as extension API servers are shown them. */
  readonly frontProxy?: NonNullable<Parameters<typeof ensureBootstrapObjects>[1]['frontProxy']>;
}

export interface AssemblyServices {
  readonly clock: Clock;
  readonly log: Logger;
  readonly connect: ConnectOutbound;
  readonly access: Access;
  /** Makes the chain of plug-ins: that of every server when not given. */
  readonly plugins?: typeof defaultPlugins;
}

export interface AssembledServer {
  readonly endpoints: Endpoints;
  readonly resources: ResourceCatalog;
  /** Answers in the name of a user, without a credential. */
  readonly handlerAs: ServerCore['handlerAs'];
  /** Makes the objects that must exist, keeps them, and says that the server is ready. Once. */
  start(): Promise<void>;
  /** Answers what is in flight. The store stays open. */
  stop(signal: AbortSignal): Promise<void>;
}

/** Puts a server together; it is not ready before its `start`. */
export function assembleServer(
  store: ObjectStore,
  options: AssemblyOptions,
  { clock, log, connect, access, plugins = defaultPlugins }: AssemblyServices,
): AssembledServer {
  const { parts = {} } = options;
  const { authenticate, authorize } = access;
  // Late-bound: what extends the server is a client of it.
  let serve: ApiHandler = () => Promise.reject(new Error('the server is not put together yet'));
  const handlerAs: ServerCore['handlerAs'] = ({ name, groups }) => {
    // Calls that never left the process come from whoever holds its keys: as if they had shown a certificate of its CA.
    const fingerprint = `in-process ${name}`;
    const peer = inProcessPeer({ verified: true, commonName: name, organizations: groups, fingerprint });
    return (request) => serve(redirected(request, { peer }));
  };
  const resources = createResourceCatalog([...builtinResources(), ...(options.resources ?? [])]);
  const definitions = new Extensions({ resources, connect, log });
  const core = { store, resources, authorize, clock, log };
  const extension: ServerExtension = options.extend?.({ ...core, handlerAs }) ?? {};
  const metrics = createAdmissionMetrics(clock);
  const signingMetrics = createSigningMetrics(store);
  const user = { ...core, connectOutbound: connect, metrics };
  // Behind the plug-ins of every server, in upstream's order.
  const more = [
    ...access.admission,
    ...definitions.admission,
    ...(parts.policies?.({ ...user, onPolicyRefusal: extension.onPolicyRefusal }) ?? []),
    ...(extension.admission ?? []),
    ...(parts.webhooks?.(user) ?? []),
  ];
  const podSecurity = parts.podSecurity ? [parts.podSecurity(store)] : [];
  const quota = parts.quota ? [parts.quota(store, clock)] : [];
  const endpoints = createEndpoints({
    ...options,
    ...parts,
    ...extension,
    ...access.endpoints,
    ...core,
    authenticate,
    admission: plugins(store, { clock, authorize, more, podSecurity, quota }),
    connectOutbound: connect,
    fields: createFieldManagement(resources),
    admissionMetrics: metrics,
    metrics: async () => [
      ...metrics.families(),
      ...signingMetrics.families(),
      ...((await extension.metrics?.()) ?? []),
    ],
    ...(options.advertise && { serverAddress: `${options.advertise.address}:${options.advertise.port}` }),
  });
  serve = endpoints.handler;
  let stopKeeping = (): void => {};
  return {
    endpoints,
    resources,
    handlerAs,
    async start() {
      const { registry } = endpoints;
      const kept = { ...options, resources, lasting: extension.lasting ?? [] };
      await ensureBootstrapObjects(registry, { ...kept, more: extension.objects ?? [] });
      definitions.start(registry);
      await extension.prepare?.(registry);
      await access.prepare?.({ roles: extension.roles ?? [], bindings: extension.bindings ?? [] });
      stopKeeping = keepBootstrapObjects(registry, { ...kept, log });
      endpoints.setReady();
    },
    async stop(signal) {
      extension.stop?.();
      stopKeeping();
      signingMetrics.stop();
      definitions.stop();
      await endpoints.drain(signal).catch(() => log.warn('requests were cut off at shutdown'));
      access.stop?.();
    },
  };
}
