/** The node agent as one object: composition, order of the start, and the distribution of news to launchers. */
import { mkdir, readFile, statfs } from 'node:fs/promises';
import { availableParallelism, release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Node, Pod } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { createInformer, type Informer } from '@coracle/client/informer/informer';
import { amountsOf } from '@coracle/cluster-rules/placement/pod-requests';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kinds';
import type { NodeFacts, SmbiosConfig } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import { isInProcess } from '@coracle/runtime/http/in-process-peer';
import type { ApiHandler, ApiRequest } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import { bootId } from '@coracle/runtime/process/identity';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import { isUid } from '../disk/vm-directory.ts';
import { createFills, type Fills } from '../fill/fills.ts';
import { type ImageStore, openImageStore } from '../image/image-store.ts';
import { DEFAULT_BINARY, readNodeFacts } from '../qemu/node-facts.ts';
import { openPool, type Pool } from '../storage/pool.ts';
import { tpmFacts } from '../tpm/swtpm.ts';
import type { AgentEnvironment } from './environment.ts';
import { findRecords } from './launcher/adopt.ts';
import { Launcher } from './launcher/launcher.ts';
import { openTombstones } from './launcher/vm-record.ts';
import { sweepStates } from './memory/state-files.ts';
import type { PeerIdentity } from './migration/peer.ts';
import { type SentGuest, streamMetrics } from './migration/stream-figures.ts';
import { agentId } from './registration/agent-id.ts';
import { checkWritable, takeAgentLock } from './registration/agent-lock.ts';
import { createHeldClaims, type HeldClaims } from './registration/held-claims.ts';
import { leaveNode } from './registration/leave-node.ts';
import { type NodeDescription, nodeStatus, shareOfHost } from './registration/node-object.ts';
import { registerNode } from './registration/node-registration.ts';
import { createNodeRoom } from './registration/node-room.ts';
import { createObsoleteModels } from './registration/obsolete-models.ts';
import { osImage } from './registration/os-image.ts';
import { createUnmanagedPodStatus, isLauncher } from './registration/other-pods.ts';
import { createNodeHandler } from './requests/handler.ts';
import { createServerAccess } from './requests/server-access.ts';

export interface AgentOptions {
  /** QEMU's name or path. */
  readonly binary?: string;
  /** 'tcg' leaves KVM out even where it works. */
  readonly accelerator?: 'auto' | 'tcg';
  /** Shared with other agents of this host; default: below dataDir. */
  readonly images?: ImageStore;
  readonly addressesDir?: string;
  readonly memoryDir?: string;
  /** Shared with other agents of this host as well; default: one of its own, `claims` below dataDir. */
  readonly pool?: Pool;
  /** Of that pool. */
  readonly fills?: Fills;
  /** Found out already, by another agent of this host. */
  readonly facts?: NodeFacts;
  /** Address of the node. Default 127.0.0.1. */
  readonly address?: string;
  /** Port on which `handler` is served; 0 when it is called in process only. */
  readonly servingPort?: number;
  /** PEM of the CA that the serving certificate chains to, published on the Node for virt-api to trust. */
  readonly servingCa?: string;
  /** More labels for the Node. */
  readonly labels?: Readonly<Record<string, string>>;
  /** What the node offers; default: what the host has. */
  readonly cpus?: number;
  readonly memoryBytes?: number;
  /** Agents of this host between which its cores, memory and disk are divided; 1 when absent. */
  readonly share?: number;
  /** Default: what the cluster's KubeVirt object says. */
  readonly smbios?: SmbiosConfig;
  /** Directories below which hostDisk images may lie; none = the feature is off. */
  readonly hostDiskRoots?: readonly string[];
  /** Guests may have ports of their address under their own number, where a VMI asks for it. */
  readonly allowsHostPorts?: boolean;
  /** Names that a client certificate must carry to call `handler` over the network. */
  readonly allowedClients?: readonly string[];
  /** The API server is not ours: it may ask what a kubelet is asked, if the cluster lets it. */
  readonly asKubelet?: boolean;
  /** What this node proves its name to other nodes with: for live migrations. Without it, or while it cannot, guests stay where they are. */
  readonly peer?: PeerIdentity;
  /** Our version, for the Node. */
  readonly version?: string;
}

export interface AgentConfig {
  readonly client: Client;
  readonly nodeName: string;
  /** Made when missing, mode 0700. One agent only. */
  readonly dataDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly options?: AgentOptions;
}

export interface Agent {
  /** Adopts, registers and begins to work; resolves when the node is Ready. Stops with the signal; guests run on. */
  start(signal: AbortSignal): Promise<void>;
  /** The node API. In process, or behind a TLS server that verifies client certificates. */
  readonly handler: ApiHandler;
  /** How far the guests have come that are being sent to other nodes, under upstream's labels. */
  sending(): readonly SentGuest[];
  /** `keepVms: false` first shuts every guest down, within its grace period. */
  stop(options: { readonly keepVms: boolean }): Promise<void>;
  /** The guests that a `stop` waits for. */
  stopping(): readonly StoppingGuest[];
  /** Ends every guest at once: for a `stop` that somebody does not want to wait for. */
  forceStop(): Promise<void>;
}

/** A guest that is asked to shut down. */
export interface StoppingGuest {
  readonly node: string;
  readonly namespace: string;
  readonly name: string;
  /** What is left of its grace period. */
  readonly leftMs: number;
}

/** Longest a stopping agent waits for its last reports to be taken. */
const LAST_REPORT_MS = 3000;
const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
const MIGRATION_TARGET_LABEL = 'kubevirt.io/migrationTargetNodeName';

/** Makes an agent; nothing happens before `start`. */
export function createAgent(config: AgentConfig): Agent {
  const { client, nodeName, dataDir, clock } = config;
  const options = config.options ?? {};
  const log = config.log.with({ room: 'agent', node: nodeName });
  const memoryDirectory = options.memoryDir ?? join(dataDir, 'memory');
  const allowed = new Set(options.allowedClients ?? []);
  /** By Pod UID. */
  const launchers = new Map<string, Launcher>();
  const runs = new Set<Promise<void>>();
  let life: LinkedController | undefined;
  let unlock: (() => Promise<void>) | undefined;
  let id = '';
  let isRegistered = false;
  let informersDone: Promise<unknown> = Promise.resolve();
  /** Pods of this node; from the start on. */
  let pods: Informer<Pod> | undefined;
  let ownNode: DeepReadonly<Node> | undefined;
  let heldClaims: HeldClaims | undefined;
  let pool = options.pool;
  let fills = options.fills;

  const serverAccess = options.asKubelet ? createServerAccess({ client, nodeName, clock, log }) : undefined;
  const isControlPlane = ({ peer }: ApiRequest): boolean =>
    isInProcess(peer) || (peer.certificate?.verified === true && allowed.has(peer.certificate.commonName));
  const authorize = (request: ApiRequest): boolean | Promise<boolean> =>
    isControlPlane(request) || (serverAccess?.(request) ?? false);

  const find = (namespace: string, name: string): Launcher | undefined => {
    for (const launcher of launchers.values()) {
      const { record } = launcher;
      // A guest that is still on its way here is asked for at its source, one that has gone at its target.
      const { phase } = record?.migration ?? {};
      if (phase === 'receiving' || phase === 'handing-over' || phase === 'feeding') continue;
      if (record?.namespace === namespace && record.name === name && !record.result && launcher.guest) return launcher;
    }
    return undefined;
  };

  const findPod = (namespace: string, name: string): Launcher | undefined =>
    [...launchers.values()].find(({ podKey }) => podKey.namespace === namespace && podKey.name === name);

  const sending = (): SentGuest[] =>
    [...launchers.values()].flatMap(({ record, stream }) =>
      record && stream
        ? [{ labels: { node: nodeName, namespace: record.namespace, name: record.name }, figures: stream }]
        : [],
    );

  const others = (): Iterable<Launcher> => launchers.values();

  const launch = (environment: AgentEnvironment, podUid: string, launcher: Launcher): void => {
    launchers.set(podUid, launcher);
    const run = launcher
      .run()
      .catch((error: Error) => {
        if (!environment.signal.aborted) log.error('launcher failed', { podUid, error: error.stack ?? error.message });
      })
      .finally(() => {
        runs.delete(run);
        if (launchers.get(podUid) === launcher && !environment.signal.aborted) launchers.delete(podUid);
      });
    runs.add(run);
  };

  const prepare = async (signal: AbortSignal): Promise<AgentEnvironment> => {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await checkWritable(dataDir);
    unlock = await takeAgentLock(dataDir);
    id = await agentId(dataDir);
    const at = (name: string): string => join(dataDir, name);
    const boot = await bootId();
    const facts =
      options.facts ??
      (await readNodeFacts({
        directory: dataDir,
        clock,
        log,
        signal,
        ...(options.binary !== undefined && { binary: options.binary }),
        ...(options.accelerator !== undefined && { accelerator: options.accelerator }),
      }));
    await mkdir(at('vms'), { recursive: true, mode: 0o700 });
    await sweepStates(memoryDirectory);
    pool = options.pool ?? (await openPool({ directory: at('claims'), clock, log, signal }));
    const images =
      options.images ?? (await openImageStore(at('images'), { clock, log, architecture: facts.architecture }));
    fills = options.fills ?? createFills({ pool, images, clock, log, signal });
    const room = createNodeRoom({
      pods: () => pods?.list() ?? [],
      allocatable: async () => amountsOf(nodeStatus(await describe(environment), undefined, clock.now()).allocatable),
    });
    const environment: AgentEnvironment = {
      nodeName,
      client,
      clock,
      log,
      events: createEventRecorder(client, { component: 'virt-handler', host: nodeName, clock, log, signal }),
      facts,
      images,
      tombstones: await openTombstones(at('ended')),
      signal,
      bootId: boot,
      binary: options.binary ?? DEFAULT_BINARY,
      ...(options.smbios && { smbios: options.smbios }),
      ...(options.peer && { peer: options.peer }),
      hostIP: options.address ?? '127.0.0.1',
      vmsDirectory: at('vms'),
      addressesDirectory: options.addressesDir ?? at('addresses'),
      memoryDirectory,
      pool,
      hostDiskRoots: options.hostDiskRoots ?? [],
      allowsHostPorts: options.allowsHostPorts === true,
      decideResize: (pod) => room.decide(pod),
      node: () => ownNode,
    };
    heldClaims = createHeldClaims({
      pool,
      records: () => [...launchers.values()].map(({ record }) => record),
      log,
    });
    return environment;
  };

  const obsoleteModels = createObsoleteModels(client, log);

  const describe = async (environment: AgentEnvironment): Promise<NodeDescription> => {
    const { blocks, bsize, bavail } = await statfs(dataDir);
    const held = await heldClaims?.list();
    const host = { cpus: availableParallelism(), memoryBytes: totalmem(), storageBytes: blocks * bsize };
    return {
      name: nodeName,
      facts: { ...environment.facts, ...tpmFacts() },
      ...shareOfHost(host, options.share ?? 1),
      disk: { free: bavail * bsize, total: blocks * bsize, directory: dataDir },
      ...(options.cpus !== undefined && { cpus: options.cpus }),
      ...(options.memoryBytes !== undefined && { memoryBytes: options.memoryBytes }),
      address: environment.hostIP,
      port: options.servingPort ?? 0,
      ...(options.servingCa !== undefined && { servingCa: options.servingCa }),
      agentId: id,
      ...(held !== undefined && { heldClaims: held }),
      labels: { ...options.labels, ...(pool && { [POOL_LABEL]: pool.id }) },
      obsoleteCpuModels: await obsoleteModels(environment.signal),
      bootId: environment.bootId,
      machineId: (await readFile('/etc/machine-id', 'utf8').catch(() => '')).trim(),
      kernelVersion: release(),
      osImage: await osImage(),
      version: options.version ?? 'v0.0.0-coracle',
    };
  };

  const start = async (outer: AbortSignal): Promise<void> => {
    if (life) throw new Error('this agent was started before');
    life = createLinkedController(outer);
    const { signal } = life;
    const environment = await prepare(signal);
    // Guests first: whatever the API says or whether it answers, they are looked after.
    for (const record of await findRecords(environment.vmsDirectory, {
      bootId: environment.bootId,
      clock,
      log,
      signal,
    }))
      launch(environment, record.podUid, new Launcher(environment, { record, others }));

    const ownPods = createInformer(client, PODS, { fieldSelector: `spec.nodeName=${nodeName}`, clock, log });
    pods = ownPods;
    const vmis = createInformer(client, VIRTUAL_MACHINE_INSTANCES, {
      labelSelector: `${NODE_NAME_LABEL}=${nodeName}`,
      clock,
      log,
    });
    // Instances on their way here carry the name of another node until they have come.
    const arriving = createInformer(client, VIRTUAL_MACHINE_INSTANCES, {
      labelSelector: `${MIGRATION_TARGET_LABEL}=${nodeName}`,
      clock,
      log,
    });
    const reportUnmanaged = createUnmanagedPodStatus(environment);
    ownPods.onChange(({ type, object }) => {
      const uid = object.metadata.uid ?? '';
      if (!isLauncher(object)) {
        if (type !== 'deleted') reportUnmanaged(object);
        return;
      }
      const launcher = launchers.get(uid);
      if (launcher) launcher.observePod(type === 'deleted' ? undefined : object);
      else if (type !== 'deleted' && isUid(uid)) adoptPod(environment, object, uid);
    });
    for (const informer of [vmis, arriving])
      informer.onChange(({ type, object }) => {
        // One that lost our label is no news: only its deletion mark is, and that comes as a change.
        if (type === 'deleted') return;
        for (const launcher of launchers.values()) launcher.observeVmi(object);
      });
    const adoptPod = (target: AgentEnvironment, pod: DeepReadonly<Pod>, uid: string): void => {
      launch(target, uid, new Launcher(target, { pod, others }));
      const { namespace } = pod.metadata;
      for (const vmi of [...vmis.list(namespace), ...arriving.list(namespace)]) launchers.get(uid)?.observeVmi(vmi);
    };
    // What is said of each guest's moves depends on it.
    options.peer?.onChange?.(() => {
      for (const launcher of launchers.values()) launcher.lookAgain();
    });
    const { done } = await registerNode({
      client,
      clock,
      log,
      signal,
      describe: () => describe(environment),
      observe: (found) => {
        ownNode = found;
        void heldClaims?.observe(found);
        for (const launcher of launchers.values()) launcher.lookAgain();
      },
    });
    isRegistered = true;
    informersDone = Promise.all([ownPods.start(signal), vmis.start(signal), arriving.start(signal), done]);
    await Promise.all([ownPods.synced(signal), vmis.synced(signal), arriving.synced(signal)]);
    // Only now a Pod that is not in the list is known to be gone.
    const present = new Set(ownPods.list().map((pod) => pod.metadata.uid));
    for (const [uid, launcher] of launchers) if (!present.has(uid)) launcher.observePod(undefined);
    log.info('node agent ready', { accelerator: environment.facts.accelerator, adopted: launchers.size });
  };

  return {
    start,
    sending,
    handler: createNodeHandler({
      find,
      metrics: () => streamMetrics(sending()),
      node: {
        nodeName,
        dataDir,
        pods: () =>
          (pods?.list() ?? []).map((pod) => ({
            pod,
            process: launchers.get(pod.metadata.uid ?? '')?.record?.process,
          })),
      },
      findPod,
      pool: () => pool,
      fills: () => fills,
      isControlPlane,
      directoryOf: (vmiUid) => join(dataDir, 'vms', vmiUid),
      memoryDirectory,
      authorize,
      clock,
      log,
    }),
    stopping: () =>
      [...launchers.values()].flatMap(({ stopping }) =>
        stopping ? [{ node: nodeName, ...stopping.guest, leftMs: stopping.leftMs }] : [],
      ),
    async forceStop() {
      await Promise.all([...launchers.values()].map((launcher) => launcher.forceStop()));
    },
    async stop({ keepVms }) {
      if (!keepVms) {
        for (const launcher of launchers.values()) launcher.requestStop();
        const busy = (): boolean =>
          [...launchers.values()].some((launcher) => launcher.guest && !launcher.record?.result);
        while (life && !life.signal.aborted && busy()) await clock.sleep(100, life.signal).catch(() => {});
        // What is not reported now is reported by the next agent, from the record: a silent API keeps nobody here for long.
        const owing = (): boolean => [...launchers.values()].some((launcher) => launcher.owesReport);
        const deadline = clock.monotonic() + LAST_REPORT_MS;
        while (life && !life.signal.aborted && owing() && clock.monotonic() < deadline)
          await clock.sleep(20, life.signal).catch(() => {});
      }
      life?.abort(new DOMException('the node agent stops', 'AbortError'));
      life?.release();
      await Promise.allSettled([...runs, informersDone]);
      if (isRegistered) {
        const guestsStay = [...launchers.values()].some(({ record }) => record?.process && !record.result);
        const bound = AbortSignal.timeout(LAST_REPORT_MS);
        await leaveNode({ client, nodeName, agentId: id, guestsStay, clock, log, signal: bound });
      }
      if (!options.fills) await fills?.close();
      if (!options.pool) await pool?.close();
      await unlock?.();
      unlock = undefined;
    },
  };
}
