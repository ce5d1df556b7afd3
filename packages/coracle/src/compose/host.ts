/** The composition root of `coracle up`: files, TLS, the control plane, its controllers and its node agents. */

import { existsSync } from 'node:fs';
import { DEFAULT_SERVICE_CIDR } from '@coracle/apimachinery/types/service-cidrs';
import { ISSUER } from '@coracle/apiserver/assembly/access';
import { StorageError } from '@coracle/apiserver/storage/backend';
import { createSqliteBackend } from '@coracle/apiserver/storage/sqlite-backend';
import { createGitOpsMetrics } from '@coracle/gitops/status/sync-metrics';
import { createGitOpsController } from '@coracle/gitops/sync/gitops-controller';
import { NODE_VM_RULES } from '@coracle/node-agent/agent/rbac';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { startTlsServer, type TlsServer } from '@coracle/runtime/http/tls-server';
import type { MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { buildFacts } from '../config/build-facts.ts';
import { type DataDir, ensurePrivateDir } from '../config/data-dir.ts';
import { type ClusterAccess, renderKubeconfig } from '../config/kubeconfig.ts';
import { FRONT_PROXY_NAME, openPki, type Pki } from '../config/pki.ts';
import { inUrl, LOOPBACK, type ServingAddress, servingAddress } from '../config/serving-address.ts';
import { VERSION } from '../config/version.ts';
import { readFileIfAny, writePrivateFile } from '../config/write-file.ts';
import { startUploadProxy, type UploadProxy } from '../upload-proxy/upload-proxy.ts';
import { createUploadTokens } from '../upload-proxy/upload-tokens.ts';
import { type AgentsOptions, nodeNames, type RunningAgents, startAgents } from './agents.ts';
import { type AuditSettings, openAuditLog } from './audit-log.ts';
import { createClientsFirst } from './clients-first.ts';
import { type ComponentRuns, createComponentRuns } from './component-runs.ts';
import {
  type Component,
  type ComponentFacts,
  type ComponentRunOptions,
  chooseComponents,
  keepRunning,
} from './components.ts';
import { compressor } from './compressor.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts';
import { type HostCertificates, issueCertificates, SERVER_NAMES } from './host-certificates.ts';
import { createLargeWork } from './large-work.ts';
import { createNodeConnector, type NodeConnector } from './node-connection.ts';
import { nodesLeft } from './nodes-left.ts';
import { createOutbound, type Outbound } from './outbound.ts';
import { clearUnservedNodes, type UnservedNodes } from './unserved-nodes.ts';

export interface HostOptions
  extends Pick<AgentsOptions, 'hostDiskRoots' | 'allowsHostPorts'>,
    Pick<
      ControlPlaneOptions,
      | 'clock'
      | 'log'
      | 'serviceCidr'
      | 'byteLimits'
      | 'corsAllowedOrigins'
      | 'staticTokens'
      | 'oidc'
      | 'tokenWebhook'
      | 'authentication'
      | 'authorizers'
    > {
  readonly dir: DataDir;
  readonly port: number;
  /** Port that images are uploaded to, on the same address; a free one when 0, or not given. */
  readonly uploadPort?: number;
  /** Where the API is served, and the nodes of this process too; loopback when not given. */
  readonly address?: ServingAddress;
  readonly nodes: number;
  /** Where audit events go; none are written without. */
  readonly audit?: AuditSettings;
  /** What cluster selectors go by; the cluster has no name when absent. */
  readonly clusterName?: string;
  /** As --controllers. */
  readonly controllers: string;
}

export interface Host extends Pick<RunningAgents, 'close' | 'stopping' | 'forceStop'> {
  readonly url: string;
  readonly nodes: readonly string[];
  /** Those of them that were not asked for: guests of theirs are here. */
  readonly nodesLeft: readonly string[];
  /** Nodes that it does not serve, and what became of them. */
  readonly unserved: UnservedNodes;
  /** Resolves when the nodes have registered; rejects when they cannot. */
  readonly nodesReady: Promise<void>;
  readonly access: ClusterAccess;
}

/** What all parts of a host are started with. */
interface HostBase extends HostOptions {
  readonly address: ServingAddress;
  readonly serviceCidr: string;
  readonly pki: Pki;
  readonly certificates: HostCertificates;
}

const DRAIN_MS = 5_000;

/** Starts everything; resolves when /readyz is ok. Rejects with one-line errors a user can act on. */
export async function startHost(options: HostOptions): Promise<Host> {
  const { dir, clock, log } = options;
  const { address = servingAddress(LOOPBACK), serviceCidr = DEFAULT_SERVICE_CIDR } = options;
  const chosen = chooseComponents(options.controllers, { withKeys: true });
  ensurePrivateDir(dir.root);
  const stop = new AbortController();
  // Controllers stop before the nodes: a VM that is shut down must not be started anew meanwhile.
  const controllersStop = new AbortController();
  const pki = await openPki(dir.pki, clock);
  const certificates = await issueCertificates(pki, { address, serviceCidr });
  const base: HostBase = { ...options, address, serviceCidr, pki, certificates };

  const nodes = createNodeConnector(certificates.virtApi);
  let outbound: Outbound | undefined;
  const bodies = createLargeWork();
  const components = createComponentRuns();
  const clientsFirst = createClientsFirst(clock);
  let nodeMetrics: () => Promise<readonly MetricFamily[]> = async () => [];

  const audit = options.audit && openAuditLog(options.audit, { clock, log });
  // The port is taken before the state is opened, so that a taken port changes nothing.
  let serve: ApiHandler = async () => ({ status: 503, headers: { 'retry-after': '1' } });
  const tls = await listen(
    base,
    clientsFirst.before((request) => serve(request)),
  );
  const uploads = await listenForUploads(base).catch(async (error) => {
    await tls.close();
    throw error;
  });
  try {
    const plane = await startControlPlane({
      ...planeSettings(base),
      advertise: { address: address.advertise, port: tls.port },
      connectNode: nodes.connect,
      nodeMetrics: () => nodeMetrics(),
      controllersReady: components.controllersReady,
      readElsewhere: bodies.read,
      runStage: bodies.runStage,
      writeElsewhere: bodies.write,
      connectOutbound: (store) => {
        outbound = createOutbound({ store, frontProxy: certificates.frontProxy.client });
        return outbound.connect;
      },
      ...(audit && { audit }),
      signal: stop.signal,
    });
    serve = plane.handler;

    const { names, left, unserved } = await settleNodes(base, plane, stop.signal);
    const gitops = createGitOpsMetrics();
    const running = startComponents(chosen, {
      plane,
      components,
      facts: {
        ...componentFacts(base, { plane, nodes, gitops }),
        uploadProxy: { ...uploads, url: `https://${inUrl(address.advertise)}:${uploads.port}`, ca: pki.ca },
      },
      clock,
      log,
      signal: controllersStop.signal,
      turn: clientsFirst.turn,
    });
    const agents = startNodes(base, { names, plane, signal: stop.signal });
    nodeMetrics = async () => [...(await agents.metrics()), ...gitops.families()];

    const url = `https://${inUrl(address.advertise)}:${tls.port}`;
    const access: ClusterAccess = { name: 'coracle', server: url, ca: pki.ca, user: certificates.admin };
    // Written only when it says something else: others may watch the file.
    const kubeconfig = renderKubeconfig(access);
    if (readFileIfAny(dir.kubeconfig) !== kubeconfig) writePrivateFile(dir.kubeconfig, kubeconfig);
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
        await uploads.close();
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
    await uploads.close();
    await tls.close();
    audit?.close();
    throw explain(error, dir);
  }
}

/** What of the control plane does not change with what runs beside it. */
function planeSettings({ dir, address, pki, certificates: { frontProxy }, audit: _, ...options }: HostBase) {
  const { clock, log } = options;
  return {
    ...options,
    backend: createSqliteBackend({ directory: dir.state, clock, log }),
    version: VERSION,
    build: buildFacts(),
    signingKey: pki.signingKey,
    issuer: ISSUER,
    agentRules: NODE_VM_RULES,
    compressor,
    hostNames: [...SERVER_NAMES, ...address.dnsNames],
    clientCa: pki.ca,
    frontProxy: { ca: frontProxy.ca, allowedNames: [FRONT_PROXY_NAME] },
  };
}

/** Which nodes are served here: those asked for, and those that guests are left of. Of the others nothing is to run. */
async function settleNodes({ dir, nodes, clock, log }: HostBase, plane: ControlPlane, signal: AbortSignal) {
  const asked = nodeNames(nodes);
  const left = await nodesLeft(dir.nodes, asked);
  const names = [...asked, ...left];
  // Before anything is scheduled, and before somebody may ask.
  const unserved = await clearUnservedNodes({
    client: await plane.adminClient(),
    nodesDirectory: dir.nodes,
    served: names,
    clock,
    log,
    signal,
  });
  return { names, left, unserved };
}

const componentFacts = (
  { dir, clusterName, pki }: HostBase,
  parts: {
    readonly plane: ControlPlane;
    readonly nodes: NodeConnector;
    readonly gitops: ReturnType<typeof createGitOpsMetrics>;
  },
): ComponentFacts => ({
  rootCa: pki.ca,
  version: VERSION,
  keys: { sign: pki.sign, signToken: parts.plane.signLegacyToken },
  askAgent: parts.plane.askAgent,
  connectNode: parts.nodes.connect,
  createGitOps: (environment) =>
    createGitOpsController({
      ...environment,
      directory: dir.gitops,
      metrics: parts.gitops,
      ...(clusterName !== undefined && { clusterName }),
    }),
});

/** Runs each component as its own account. The promises settle when they have stopped. */
function startComponents(
  chosen: readonly Component[],
  {
    plane,
    components,
    ...common
  }: Pick<ComponentRunOptions, 'facts' | 'clock' | 'log' | 'signal' | 'turn'> & {
    readonly plane: ControlPlane;
    readonly components: ComponentRuns;
  },
): Promise<void>[] {
  return chosen.map((component) => {
    const run = keepRunning({ ...common, component, client: plane.clientFor(component.account) }, (canWork) =>
      components.note(component.name, canWork),
    );
    return components.follow(component.name, run);
  });
}

/** Starts the agents of this host's nodes. */
function startNodes(
  { dir, pki, address, clock, log, hostDiskRoots, allowsHostPorts }: HostBase,
  parts: { readonly names: readonly string[]; readonly plane: ControlPlane; readonly signal: AbortSignal },
): RunningAgents {
  const { names, plane, signal } = parts;
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
    signal,
    ...(hostDiskRoots && { hostDiskRoots }),
    ...(allowsHostPorts && { allowsHostPorts: true }),
  });
  // A host without QEMU still has a whole API: its VMs wait for a node.
  agents.ready.catch((error: unknown) => {
    if (!signal.aborted)
      log.error('no node of this host works', { error: error instanceof Error ? error.message : String(error) });
  });
  return agents;
}

async function listen(base: HostBase, handler: ApiHandler): Promise<TlsServer> {
  const { address, port, log } = base;
  const { serving, frontProxy } = base.certificates;
  const { ca } = base.pki;
  // With the CA behind it, so that a node that joins can know it by its hash.
  const certificate = `${serving.certificate.trimEnd()}\n${ca}`;
  try {
    return await startTlsServer({
      handler,
      host: address.listen,
      port,
      tls: { certificate, key: serving.key, clientCa: ca, frontProxyCa: frontProxy.ca },
      bodiesWhenAsked: true,
      log,
    });
  } catch (error) {
    throw explainPort(error, { host: address.listen, port, flag: '--port' });
  }
}

async function listenForUploads(base: HostBase): Promise<UploadProxy> {
  const { uploadPort: port = 0, address, pki, clock, log } = base;
  const host = address.listen;
  const tokens = await createUploadTokens(pki.signingKey, () => clock.now());
  try {
    return await startUploadProxy({
      host,
      port,
      ...base.certificates.serving,
      pairFor: (host) => pki.issue({ commonName: 'export', dnsNames: [host], usage: 'server', days: 1 }),
      tokens,
      clock,
      log,
    });
  } catch (error) {
    throw explainPort(error, { host, port, flag: '--upload-port' });
  }
}

/** Why a port cannot be listened on, in the words of a user. */
function explainPort(
  error: unknown,
  { host, port, flag }: { readonly host: string; readonly port: number; readonly flag: string },
): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRNOTAVAIL') return new Error(`--bind-address: this host has no address ${host}`);
  if (code === 'EADDRINUSE')
    return new Error(
      `port ${port} on ${host} is taken by another program; choose one with ${flag} N, or ${flag} 0 for any free one`,
    );
  return error;
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
