/** What an agent holds of its host: the lock of its directory, its pool, what its launchers share, and how it describes its Node. */
import { mkdir, readFile, statfs } from 'node:fs/promises';
import { availableParallelism, release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { ReadonlyNode, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { amountsOf } from '@coracle/cluster-rules/placement/pod-requests';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import type { Logger } from '@coracle/runtime/log/log';
import { bootId } from '@coracle/runtime/process/identity';
import { createVolumeReader, type VolumeReader } from '../export/volume-content.ts';
import { createFills, type Fills } from '../fill/fills.ts';
import { openImageStore } from '../image/image-store.ts';
import { DEFAULT_BINARY, readNodeFacts } from '../qemu/node-facts.ts';
import { openPool, type Pool } from '../storage/pool.ts';
import { tpmFacts } from '../tpm/swtpm.ts';
import type { AgentConfig, AgentOptions } from './agent-options.ts';
import type { AgentEnvironment } from './environment.ts';
import type { LauncherSet } from './launcher/launcher-set.ts';
import { openTombstones } from './launcher/vm-record.ts';
import { sweepStates } from './memory/state-files.ts';
import type { ClusterNetwork } from './network/cluster-network.ts';
import { agentId } from './registration/agent-id.ts';
import { checkWritable, takeAgentLock } from './registration/agent-lock.ts';
import { createHeldClaims, type HeldClaims } from './registration/held-claims.ts';
import { type NodeDescription, nodeStatus, shareOfHost } from './registration/node-object.ts';
import { createResizeDecision } from './registration/node-room.ts';
import { createObsoleteModels } from './registration/obsolete-models.ts';

/** Of one agent; nothing is touched before `open`. */
export class AgentHost {
  /** Where saved guests lie. */
  readonly memoryDirectory: string;
  /** From the registration of the node on. */
  network: ClusterNetwork | undefined;
  /** From `open` on, as the two that follow. */
  pool: Pool | undefined;
  fills: Fills | undefined;
  volumes: VolumeReader | undefined;
  /** The agent's own, whatever the Node is called. Empty before `open`. */
  id = '';
  readonly #config: AgentConfig;
  readonly #options: AgentOptions;
  readonly #log: Logger;
  readonly #launchers: LauncherSet;
  readonly #pods: () => readonly ReadonlyPod[];
  readonly #obsoleteModels: ReturnType<typeof createObsoleteModels>;
  #unlock: (() => Promise<void>) | undefined;
  #heldClaims: HeldClaims | undefined;
  #node: ReadonlyNode | undefined;

  /** `pods` are those of this node, as they are known now. */
  constructor(config: AgentConfig & { readonly launchers: LauncherSet; readonly pods: () => readonly ReadonlyPod[] }) {
    this.#config = config;
    this.#options = config.options ?? {};
    this.#log = config.log;
    this.#launchers = config.launchers;
    this.#pods = config.pods;
    this.pool = this.#options.pool;
    this.fills = this.#options.fills;
    this.#obsoleteModels = createObsoleteModels(config.client, config.log);
    this.memoryDirectory = this.#options.memoryDir ?? this.#at('memory');
  }

  #at(name: string): string {
    return join(this.#config.dataDir, name);
  }

  /** Takes the directory and finds out about the host. What it has taken when it rejects, `close` gives back. */
  async open(signal: AbortSignal): Promise<AgentEnvironment> {
    const { dataDir, clock } = this.#config;
    const options = this.#options;
    const log = this.#log;
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await checkWritable(dataDir);
    this.#unlock = await takeAgentLock(dataDir);
    this.id = await agentId(dataDir);
    const boot = await bootId();
    const { binary, accelerator } = options;
    const facts =
      options.facts ?? (await readNodeFacts({ directory: dataDir, clock, log, signal, binary, accelerator }));
    await mkdir(this.#at('vms'), { recursive: true, mode: 0o700 });
    await sweepStates(this.memoryDirectory);
    const pool = options.pool ?? (await openPool({ directory: this.#at('claims'), clock, log, signal }));
    this.pool = pool;
    this.volumes = createVolumeReader(pool, clock);
    const { architecture } = facts;
    const images = options.images ?? (await openImageStore(this.#at('images'), { clock, log, architecture }));
    this.fills = options.fills ?? createFills({ pool, images, clock, log, signal, architecture });
    const environment = await this.#environment({ pool, images, facts, bootId: boot, signal });
    const records = () => [...this.#launchers.all()].map(({ record }) => record);
    this.#heldClaims = createHeldClaims({ pool, records, log });
    return environment;
  }

  async #environment(
    found: Pick<AgentEnvironment, 'pool' | 'images' | 'facts' | 'bootId' | 'signal'>,
  ): Promise<AgentEnvironment> {
    const { client, nodeName, clock } = this.#config;
    const options = this.#options;
    const log = this.#log;
    const { signal } = found;
    const allocatable = async () =>
      amountsOf(nodeStatus(await this.describe(environment), undefined, clock.now()).allocatable);
    const environment: AgentEnvironment = {
      ...found,
      nodeName,
      client,
      clock,
      log,
      events: createEventRecorder(client, { component: 'virt-handler', host: nodeName, clock, log, signal }),
      tombstones: await openTombstones(this.#at('ended')),
      binary: options.binary ?? DEFAULT_BINARY,
      ...(options.peer && { peer: options.peer }),
      hostIP: options.address ?? '127.0.0.1',
      vmsDirectory: this.#at('vms'),
      addressesDirectory: options.addressesDir ?? this.#at('addresses'),
      memoryDirectory: this.memoryDirectory,
      hostDiskRoots: options.hostDiskRoots ?? [],
      allowsHostPorts: options.allowsHostPorts === true,
      decideResize: createResizeDecision({ pods: this.#pods, allocatable }),
      node: () => this.#node,
      guestsChanged: () => this.network?.guestsChanged(),
    };
    return environment;
  }

  /** What the Node says of this host. */
  async describe({ facts, hostIP, signal, bootId: boot }: AgentEnvironment): Promise<NodeDescription> {
    const { dataDir, nodeName } = this.#config;
    const options = this.#options;
    const { blocks, bsize, bavail } = await statfs(dataDir);
    const held = await this.#heldClaims?.list();
    const host = { cpus: availableParallelism(), memoryBytes: totalmem(), storageBytes: blocks * bsize };
    return {
      name: nodeName,
      facts: { ...facts, ...tpmFacts() },
      ...shareOfHost(host, options.share ?? 1),
      disk: { free: bavail * bsize, total: blocks * bsize, directory: dataDir },
      ...(options.cpus !== undefined && { cpus: options.cpus }),
      ...(options.memoryBytes !== undefined && { memoryBytes: options.memoryBytes }),
      address: hostIP,
      port: options.servingPort ?? 0,
      ...(options.servingCa !== undefined && { servingCa: options.servingCa }),
      agentId: this.id,
      ...(this.network?.endpoint !== undefined && { podNetwork: this.network.endpoint }),
      ...(held !== undefined && { heldClaims: held }),
      labels: this.pool ? { [POOL_LABEL]: this.pool.id } : {},
      obsoleteCpuModels: await this.#obsoleteModels(signal),
      bootId: boot,
      machineId: (await readFile('/etc/machine-id', 'utf8').catch(() => '')).trim(),
      kernelVersion: release(),
      osImage: await osImage(),
      version: options.version ?? 'v0.0.0-coracle',
    };
  }

  /** News of the Node. */
  observe(node: ReadonlyNode): void {
    this.#node = node;
    void this.#heldClaims?.observe(node);
  }

  /** Gives back what it has taken. */
  async close(): Promise<void> {
    if (!this.#options.fills) await this.fills?.close();
    if (!this.#options.pool) await this.pool?.close();
    await this.#unlock?.();
    this.#unlock = undefined;
  }
}

/** What the host calls its operating system. */
async function osImage(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text)?.[1] ?? 'Linux';
}
