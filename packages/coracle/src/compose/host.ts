/** The composition root of `coracle up`: files, TLS, the control plane, its controllers and its node agents. */
import { existsSync } from 'node:fs';
import { DEFAULT_SERVICE_CIDR, firstServiceIp } from '@coracle/apimachinery/types/service-cidrs';
import type { AuthenticationSetup } from '@coracle/apiserver/auth/authentication-configuration';
import type { AuthorizerSetup } from '@coracle/apiserver/auth/authorizer-chain';
import type { OidcSettings } from '@coracle/apiserver/auth/oidc';
import type { FindTokenUser } from '@coracle/apiserver/auth/token-authenticator';
import type { TokenWebhook } from '@coracle/apiserver/auth/webhook-tokens';
import type { ByteLimits } from '@coracle/apiserver/cache/namespace-bytes';
import { StorageError } from '@coracle/apiserver/storage/backend';
import { createSqliteBackend } from '@coracle/apiserver/storage/sqlite-backend';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createGitOpsMetrics } from '@coracle/gitops/status/sync-metrics';
import { createGitOpsController } from '@coracle/gitops/sync/gitops-controller';
import type { StoppingGuest } from '@coracle/node-agent/agent/agent';
import { NODE_VM_RULES } from '@coracle/node-agent/agent/rbac';
import type { Clock } from '@coracle/runtime/clock/clock';
import { startTlsServer, type TlsServer } from '@coracle/runtime/http/tls-server';
import type { Logger } from '@coracle/runtime/log/log';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { buildFacts } from '../config/build-facts.ts';
import { type DataDir, ensurePrivateDir } from '../config/data-dir.ts';
import { type ClusterAccess, renderKubeconfig } from '../config/kubeconfig.ts';
import { FRONT_PROXY_NAME, openPki } from '../config/pki.ts';
import { inUrl, LOOPBACK, type ServingAddress, servingAddress } from '../config/serving-address.ts';
import { VERSION } from '../config/version.ts';
import { readFileIfAny, writePrivateFile } from '../config/write-file.ts';
import { nodeNames, startAgents } from './agents.ts';
import { type AuditSettings, openAuditLog } from './audit-log.ts';
import { createComponentRuns } from './component-health.ts';
import { chooseComponents, keepRunning } from './components.ts';
import { compressor } from './compressor.ts';
import { startControlPlane } from './control-plane.ts';
import { createLargeWork } from './large-work.ts';
import { createNodeConnector, VIRT_API_COMMON_NAME } from './node-connection.ts';
import { nodesLeft } from './nodes-left.ts';
import { createOutbound, type Outbound } from './outbound.ts';
import { clearUnservedNodes, type UnservedNodes } from './unserved-nodes.ts';

export interface HostOptions {
  readonly dir: DataDir;
  readonly port: number;
  /** Where the API is served, and the nodes of this process too; loopback when not given. */
  readonly address?: ServingAddress;
  readonly nodes: number;
  /** Directories below which hostDisk volumes may lie. */
  readonly hostDiskRoots?: readonly string[];
  /** Guests may have ports of their address under their own number. */
  readonly allowsHostPorts?: boolean;
  /** Regular expressions of the origins whose web pages may call the API; none when absent. */
  readonly corsAllowedOrigins?: readonly string[];
  /** Range that Services get cluster IPs from; `DEFAULT_SERVICE_CIDR` when not given. */
  readonly serviceCidr?: string;
  /** Bytes of objects that are taken; the defaults when not given. */
  readonly byteLimits?: ByteLimits;
  /** Users by tokens from a file. */
  readonly staticTokens?: FindTokenUser;
  /** The OpenID Connect issuer whose ID tokens are believed. */
  readonly oidc?: OidcSettings;
  /** Asked about tokens that nobody else knows. */
  readonly tokenWebhook?: TokenWebhook;
  /** Who is asked what users may do, looked at before each decision; the Node authorizer and RBAC when not given. */
  readonly authorizers?: () => readonly AuthorizerSetup[];
  /** Issuers of tokens and the rule for requests without a credential, looked at with each request. */
  readonly authentication?: () => AuthenticationSetup;
  /** Where audit events go; none are written without. */
  readonly audit?: AuditSettings;
  /** What cluster selectors go by; the cluster has no name when absent. */
  readonly clusterName?: string;
  /** As --controllers. */
  readonly controllers: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Host {
  readonly url: string;
  readonly nodes: readonly string[];
  /** Those of them that were not asked for: guests of theirs are here. */
  readonly nodesLeft: readonly string[];
  /** Nodes that it does not serve, and what became of them. */
  readonly unserved: UnservedNodes;
  /** Resolves when the nodes have registered; rejects when they cannot. */
  readonly nodesReady: Promise<void>;
  readonly access: ClusterAccess;
  close(options: { readonly keepVms: boolean }): Promise<void>;
  /** The guests that `close` waits for. */
  stopping(): readonly StoppingGuest[];
  /** Ends all guests at once, for a `close` that is not to wait. */
  forceStop(): Promise<void>;
}

/** The issuer of service-account tokens, which no other issuer may be called. */
export const ISSUER = 'https://kubernetes.default.svc.cluster.local';
const SERVER_NAMES = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];
const YEAR_DAYS = 365;
const DRAIN_MS = 5_000;

/** Starts everything; resolves when /readyz is ok. Rejects with one-line errors a user can act on. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { dir, clock, log, clusterName } = options;
  const { address = servingAddress(LOOPBACK), serviceCidr = DEFAULT_SERVICE_CIDR } = options;
  const chosen = chooseComponents(options.controllers, { withKeys: true });
  ensurePrivateDir(dir.root);
  const stop = new AbortController();
  // Controllers stop before the nodes: a VM that is shut down must not be started anew meanwhile.
  const controllersStop = new AbortController();
  const pki = await openPki(dir.pki, clock);
  const [serving, admin, virtApi, frontProxy] = await Promise.all([
    pki.pair('server', {
      commonName: 'kube-apiserver',
      dnsNames: [...SERVER_NAMES, ...address.dnsNames],
      ipAddresses: [...new Set([LOOPBACK, ...address.ipAddresses, firstServiceIp(serviceCidr)])],
      usage: 'server',
      days: YEAR_DAYS,
    }),
    pki.pair('admin', {
      commonName: 'kubernetes-admin',
      organizations: ['system:masters'],
      usage: 'client',
      days: YEAR_DAYS,
    }),
    pki.pair('virt-api', { commonName: VIRT_API_COMMON_NAME, usage: 'client', days: YEAR_DAYS }),
    pki.frontProxy(),
  ]);

  const nodes = createNodeConnector(virtApi);
  let outbound: Outbound | undefined;
  const bodies = createLargeWork();
  const components = createComponentRuns();
  let nodeMetrics: () => readonly MetricFamily[] = () => [];

  const audit = options.audit && openAuditLog(options.audit, { clock, log });
  // The port is taken before the state is opened, so that a taken port changes nothing.
  let serve: Parameters<typeof startTlsServer>[0]['handler'] = async () => ({
    status: 503,
    headers: { 'retry-after': '1' },
  });
  const tls = await listen(options, {
    host: address.listen,
    handler: (request) => serve(request),
    serving,
    ca: pki.ca,
    frontProxyCa: frontProxy.ca,
  });
  try {
    const plane = await startControlPlane({
      backend: createSqliteBackend({ directory: dir.state, clock, log }),
      clock,
      log,
      version: VERSION,
      build: buildFacts(),
      signingKey: pki.signingKey,
      issuer: ISSUER,
      advertise: { address: address.advertise, port: tls.port },
      connectNode: nodes.connect,
      nodeMetrics: () => nodeMetrics(),
      components: () => components.health(),
      agentRules: NODE_VM_RULES,
      compressor,
      readElsewhere: bodies.read,
      runStage: bodies.runStage,
      connectOutbound: (store) => {
        outbound = createOutbound({ store, frontProxy: frontProxy.client });
        return outbound.connect;
      },
      hostNames: [...SERVER_NAMES, ...address.dnsNames],
      ...(options.corsAllowedOrigins && { corsAllowedOrigins: options.corsAllowedOrigins }),
      ...(audit && { audit }),
      serviceCidr,
      ...(options.byteLimits && { byteLimits: options.byteLimits }),
      clientCa: pki.ca,
      frontProxy: { ca: frontProxy.ca, allowedNames: [FRONT_PROXY_NAME] },
      ...(options.staticTokens && { staticTokens: options.staticTokens }),
      ...(options.oidc && { oidc: options.oidc }),
      ...(options.tokenWebhook && { tokenWebhook: options.tokenWebhook }),
      ...(options.authorizers && { authorizers: options.authorizers }),
      ...(options.authentication && { authentication: options.authentication }),
      signal: stop.signal,
    });
    serve = plane.handler;

    const asked = nodeNames(options.nodes);
    const left = await nodesLeft(dir.nodes, asked);
    const names = [...asked, ...left];
    // Before anything is scheduled, and before somebody may ask.
    const unserved = await clearUnservedNodes({
      client: await plane.adminClient(),
      nodesDirectory: dir.nodes,
      served: names,
      clock,
      log,
      signal: stop.signal,
    });
    const running: Promise<void>[] = [];
    const gitops = createGitOpsMetrics();
    for (const component of chosen) {
      const options = {
        component,
        client: plane.clientFor(component.account),
        facts: {
          rootCa: pki.ca,
          version: VERSION,
          keys: { sign: pki.sign, signToken: plane.signLegacyToken },
          askAgent: plane.askAgent,
          connectNode: nodes.connect,
          createGitOps: (environment: ControllerEnvironment) =>
            createGitOpsController({
              ...environment,
              directory: dir.gitops,
              metrics: gitops,
              ...(clusterName !== undefined && { clusterName }),
            }),
        },
        clock,
        log,
        signal: controllersStop.signal,
      };
      const run = keepRunning(options, (trouble) => components.note(component.name, trouble));
      running.push(components.follow(component.name, run));
    }
    const agents = startAgents({
      names,
      clientFor: plane.clientForNode,
      pki,
      clientCa: pki.ca,
      dir,
      // What guests move through has to be reached by the nodes of other hosts that join.
      ...(address.isOpen && { address: address.advertise }),
      clock,
      log,
      signal: stop.signal,
      ...(options.hostDiskRoots && { hostDiskRoots: options.hostDiskRoots }),
      ...(options.allowsHostPorts && { allowsHostPorts: true }),
    });
    nodeMetrics = () => [...agents.metrics(), ...gitops.families()];
    // A host without QEMU still has a whole API: its VMs wait for a node.
    agents.ready.catch((error: unknown) => {
      if (!stop.signal.aborted)
        log.error('no node of this host works', { error: error instanceof Error ? error.message : String(error) });
    });

    const url = `https://${inUrl(address.advertise)}:${tls.port}`;
    const access: ClusterAccess = { name: 'coracle', server: url, ca: pki.ca, user: admin };
    const text = renderKubeconfig(access);
    if (readFileIfAny(dir.kubeconfig) !== text) writePrivateFile(dir.kubeconfig, text);
    return {
      url,
      nodes: names,
      nodesLeft: left,
      unserved,
      nodesReady: agents.ready,
      access,
      stopping: agents.stopping,
      forceStop: agents.forceStop,
      async close({ keepVms }) {
        controllersStop.abort(new Error('the control plane stops'));
        await Promise.all(running);
        await agents.close({ keepVms });
        stop.abort(new Error('the control plane stops'));
        await plane.close(AbortSignal.timeout(DRAIN_MS));
        await nodes.close();
        outbound?.close();
        await bodies.close();
        await tls.close();
        audit?.close();
      },
    };
  } catch (error) {
    controllersStop.abort(error);
    stop.abort(error);
    await bodies.close();
    await tls.close();
    audit?.close();
    throw explain(error, dir);
  }
}

async function listen(
  options: HostOptions,
  {
    host,
    handler,
    serving,
    ca,
    frontProxyCa,
  }: {
    readonly host: string;
    readonly handler: Parameters<typeof startTlsServer>[0]['handler'];
    readonly serving: { certificate: string; key: string };
    readonly ca: string;
    readonly frontProxyCa: string;
  },
): Promise<TlsServer> {
  try {
    return await startTlsServer({
      handler,
      host,
      port: options.port,
      // With the CA behind it, so that a node that joins can know it by its hash.
      tls: { certificate: `${serving.certificate.trimEnd()}\n${ca}`, key: serving.key, clientCa: ca, frontProxyCa },
      bodiesWhenAsked: true,
      log: options.log,
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRNOTAVAIL') throw new Error(`--bind-address: this host has no address ${host}`);
    if (code === 'EADDRINUSE')
      throw new Error(
        `port ${options.port} on ${host} is taken by another program; choose one with --port N, or --port 0 for any free one`,
      );
    throw error;
  }
}

/** Storage failures in the words of a user. */
function explain(error: unknown, dir: DataDir): unknown {
  if (
    (error as NodeJS.ErrnoException).code === 'ENOSPC' ||
    (error instanceof StorageError && error.kind === 'no-space')
  )
    return new Error(`no space is left on the disk of ${dir.root}; free some there and start again (nothing is lost)`);
  if (!(error instanceof StorageError)) return error;
  if (error.kind === 'in-use') return new Error(`already running in ${dir.root}: ${error.message}`);
  if (error.kind === 'corrupt' && existsSync(dir.state))
    return new Error(`the state in ${dir.state} cannot be read: ${error.message}`);
  return error;
}
