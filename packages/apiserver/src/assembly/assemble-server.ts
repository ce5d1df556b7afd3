/**
 * The rooms of the server on an open store: admission, endpoints, custom kinds, and the objects that must exist before it
 * is ready. Who users are is asked of the `Access` that is handed in.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { VersionInfo } from '@coracle/apimachinery/meta/version-info';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { Clock } from '@coracle/runtime/clock/clock';
import { inProcessPeer } from '@coracle/runtime/http/in-process-peer';
import { type ApiHandler, type Peer, redirected } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { type AdmissionMetrics, createAdmissionMetrics } from '../admission/admission-metrics.ts';
import { defaultPlugins } from '../admission/default-plugins.ts';
import type { AdmissionPlugin } from '../admission/plugin.ts';
import type { OnPolicyRefusal } from '../admission/policy/validating-policies.ts';
import type { PolicyBinding, PolicyRole } from '../auth/bootstrap-policy.ts';
import type { Authorizer } from '../auth/identity.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { createEndpoints, type Endpoints, type EndpointsOptions } from '../endpoints/create-endpoints.ts';
import { createExtensions } from '../extensions/definition-controller.ts';
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
export interface ServerExtension {
  /** Plug-ins that stand where webhooks stand: behind policies, before webhooks. */
  readonly admission?: readonly AdmissionPlugin[];
  /** Called with what ValidatingAdmissionPolicies refuse. */
  readonly onPolicyRefusal?: OnPolicyRefusal;
  readonly aggregated?: EndpointsOptions['aggregated'];
  readonly connectNode?: EndpointsOptions['connectNode'];
  readonly deletesWhole?: EndpointsOptions['deletesWhole'];
  readonly metrics?: () => Promise<readonly MetricFamily[]>;
  /** Objects that are made at the first start; those of `lasting` come back when somebody deletes them. */
  readonly objects?: readonly UnstructuredObject[];
  readonly lasting?: readonly UnstructuredObject[];
  readonly roles?: readonly PolicyRole[];
  readonly bindings?: readonly PolicyBinding[];
  /** Runs when all kinds are served, before the server is ready. */
  prepare?(registry: Registry): Promise<void>;
  stop?(): void;
}

/** Settings of endpoints that are passed on as they are. */
type PassedOn = Pick<
  EndpointsOptions,
  'compressor' | 'readElsewhere' | 'runStage' | 'writeElsewhere' | 'corsAllowedOrigins' | 'hostNames' | 'maxInFlight'
>;

/** What a server is made of, beside its store and its access. */
export interface AssemblyOptions extends PassedOn {
  /** The document at `/version`. */
  readonly version?: VersionInfo;
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
    const peer = peerNamed(name, ...groups);
    return (request) => serve(redirected(request, { peer }));
  };
  const resources = createResourceCatalog([...builtinResources(), ...(options.resources ?? [])]);
  const definitions = createExtensions({ resources, connect, log });
  const extension: ServerExtension = options.extend?.({ store, resources, authorize, clock, log, handlerAs }) ?? {};
  const metrics = createAdmissionMetrics(clock);
  const signingMetrics = createSigningMetrics(store);
  const endpoints = createEndpoints({
    ...passedOn(options),
    ...endpointParts(parts),
    ...access.endpoints,
    store,
    resources,
    clock,
    log,
    authenticate,
    authorize,
    admission: plugins(store, {
      clock,
      authorize,
      ...userPlugins({
        core: { store, clock, log, resources, authorize, connectOutbound: connect, metrics },
        own: [...access.admission, ...definitions.admission],
        parts,
        extension,
      }),
    }),
    ...(options.version && { version: options.version }),
    ...(extension.aggregated && { aggregated: extension.aggregated }),
    ...(extension.connectNode && { connectNode: extension.connectNode }),
    ...(extension.deletesWhole && { deletesWhole: extension.deletesWhole }),
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
      stopKeeping = await fill(endpoints, { options, resources, extension, definitions, access, log });
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

/** Calls that never left the process come from whoever holds its keys: as if they had shown a certificate of its CA. */
const peerNamed = (commonName: string, ...organizations: string[]): Peer =>
  inProcessPeer({ verified: true, commonName, organizations, fingerprint: `in-process ${commonName}` });

const passedOn = (options: PassedOn): PassedOn => ({
  ...(options.compressor && { compressor: options.compressor }),
  ...(options.readElsewhere && { readElsewhere: options.readElsewhere }),
  ...(options.runStage && { runStage: options.runStage }),
  ...(options.writeElsewhere && { writeElsewhere: options.writeElsewhere }),
  ...(options.corsAllowedOrigins && { corsAllowedOrigins: options.corsAllowedOrigins }),
  ...(options.hostNames && { hostNames: options.hostNames }),
  ...(options.maxInFlight !== undefined && { maxInFlight: options.maxInFlight }),
});

const endpointParts = ({ aggregation, flowControl, swagger2, bodyDecoders, auditor }: ServerParts) => ({
  ...(aggregation && { aggregation }),
  ...(flowControl && { flowControl }),
  ...(swagger2 && { swagger2 }),
  ...(bodyDecoders && { bodyDecoders }),
  ...(auditor && { auditor }),
});

/** The plug-ins behind those of every server, in upstream's order: policies, what stands like a webhook, webhooks, quotas. */
function userPlugins({
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
}) {
  return {
    more: [
      ...own,
      ...(parts.policies?.({ ...core, onPolicyRefusal: extension.onPolicyRefusal }) ?? []),
      ...(extension.admission ?? []),
      ...(parts.webhooks?.(core) ?? []),
    ],
    podSecurity: parts.podSecurity ? [parts.podSecurity(core.store)] : [],
    quota: parts.quota ? [parts.quota(core.store, core.clock)] : [],
  };
}

/** Makes the objects that must exist, and says that the server is ready. Returns what stops keeping them. */
async function fill(
  endpoints: Endpoints,
  {
    options,
    resources,
    extension,
    definitions,
    access,
    log,
  }: {
    readonly options: AssemblyOptions;
    readonly resources: ResourceCatalog;
    readonly extension: ServerExtension;
    readonly definitions: ReturnType<typeof createExtensions>;
    readonly access: Access;
    readonly log: Logger;
  },
): Promise<() => void> {
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
  await access.prepare?.({ roles: extension.roles ?? [], bindings: extension.bindings ?? [] });
  const stopKeeping = keepBootstrapObjects(registry, { ...kept, log });
  endpoints.setReady();
  return stopKeeping;
}
