/** The node agent as one object: composition, and the order of its start and its end. */
import { join } from 'node:path';
import type { EventRecorder } from '@coracle/client/events/recorder';
import { isExporter } from '@coracle/kubevirt/rules/export/exporter-pod';
import type { Clock } from '@coracle/runtime/clock/clock';
import { isInProcess } from '@coracle/runtime/http/in-process-peer';
import type { ApiHandler, ApiRequest } from '@coracle/runtime/http/seam';
import { createLinkedController, type LinkedController } from '@coracle/runtime/signal/linked-controller';
import { AgentHost } from './agent-host.ts';
import type { AgentConfig } from './agent-options.ts';
import { type FollowedObjects, followObjects } from './follow-objects.ts';
import { guestMetrics, type MeasuredGuest } from './guest/guest-metrics.ts';
import { findRecords } from './launcher/adopt.ts';
import { LauncherSet, type StoppingGuest } from './launcher/launcher-set.ts';
import { type SentGuest, streamMetrics } from './migration/stream-stats.ts';
import { createClusterNetwork } from './network/cluster-network.ts';
import { endSwitch } from './network/keep-switch.ts';
import { leaveNode } from './registration/leave-node.ts';
import { registerNode } from './registration/node-registration.ts';
import { exporterEndpoint } from './requests/exporter-port.ts';
import { createNodeHandler } from './requests/handler.ts';
import { createServerAccess } from './requests/server-access.ts';

export interface Agent {
  /** Adopts, registers and begins to work; resolves when the node is Ready. Stops with the signal; guests run on. */
  start(signal: AbortSignal): Promise<void>;
  /** The node API. In process, or behind a TLS server that verifies client certificates. */
  readonly handler: ApiHandler;
  /** How far the guests have come that are being sent to other nodes, under upstream's labels. */
  sending(): readonly SentGuest[];
  /** What the guests take now. An answer is kept for a second: whoever asks more often has the same. */
  measured(): Promise<readonly MeasuredGuest[]>;
  /** `keepVms: false` first shuts every guest down, within its grace period. */
  stop(options: { readonly keepVms: boolean }): Promise<void>;
  /** The guests that a `stop` waits for. */
  stopping(): readonly StoppingGuest[];
  /** Ends every guest at once: for a `stop` that somebody does not want to wait for. */
  forceStop(): Promise<void>;
}

/** Longest a stopping agent waits for its last reports to be taken. */
const LAST_REPORT_MS = 3000;
const MEASURED_MS = 1000;

/** Makes an agent; nothing happens before `start`. */
export function createAgent(config: AgentConfig): Agent {
  const { client, nodeName, clock, options = {} } = config;
  const log = config.log.with({ room: 'agent', node: nodeName });
  const launchers = new LauncherSet(nodeName, log);
  /** From the start on. */
  let followed: FollowedObjects | undefined;
  const host = new AgentHost({ ...config, log, launchers, pods: () => followed?.pods() ?? [] });
  let life: LinkedController | undefined;
  let isRegistered = false;
  let events: EventRecorder | undefined;
  let informersDone: Promise<unknown> = Promise.resolve();

  const start = async (outer: AbortSignal): Promise<void> => {
    if (life) throw new Error('this agent was started before');
    life = createLinkedController(outer);
    const { signal } = life;
    const environment = await host.open(signal);
    events = environment.events;
    const { vmsDirectory, bootId, facts } = environment;
    // Guests first: whatever the API says or whether it answers, they are looked after.
    for (const record of await findRecords(vmsDirectory, { bootId, clock, log, signal }))
      launchers.launch(environment, record.podUid, { record });
    const objects = followObjects(environment, launchers);
    followed = objects;
    // What is said of each guest's moves depends on it.
    options.peer?.onChange?.(() => {
      host.network?.identify();
      launchers.lookAgain();
    });
    const { done } = await registerNode({
      client,
      clock,
      log,
      signal,
      describe: () => host.describe(environment),
      observe: (found) => {
        host.observe(found);
        launchers.lookAgain();
      },
    });
    isRegistered = true;
    const network = createClusterNetwork(environment, {
      dataDir: config.dataDir,
      records: () => [...launchers.all()].map(({ record }) => record),
      async forward(address, port) {
        const launcher = [...launchers.all()].find(({ record, guest }) => guest && record?.address === address);
        if (!launcher?.guest?.forwarder) throw new Error('the guest is not connected yet');
        await launcher.guest.forwarder.endpoint(port);
        launcher.lookAgain();
      },
    });
    host.network = network;
    informersDone = Promise.all([network.done, objects.start(signal), done]);
    await objects.synced(signal);
    // Only now a Pod that is not in the list is known to be gone.
    launchers.keepOnly(new Set(objects.pods().map((pod) => pod.metadata.uid)));
    log.info('node agent ready', { accelerator: facts.accelerator, adopted: launchers.size });
  };

  /** Until every guest has ended; the signal of the agent's life cuts it short. */
  const stopGuests = async (): Promise<void> => {
    launchers.requestStop();
    while (life && !life.signal.aborted && launchers.isBusy) await clock.sleep(100, life.signal).catch(() => {});
    // What is not reported now is reported by the next agent, from the record: a silent API keeps nobody here for long.
    const deadline = clock.monotonic() + LAST_REPORT_MS;
    while (life && !life.signal.aborted && launchers.owesReports && clock.monotonic() < deadline)
      await clock.sleep(20, life.signal).catch(() => {});
  };

  /** Of what became of the guests. A silent API keeps nobody here for long either. */
  const writeEvents = async (): Promise<void> => {
    const limit = createLinkedController(life?.signal);
    await Promise.race([events?.flush(), clock.sleep(LAST_REPORT_MS, limit.signal).catch(() => {})]);
    limit.abort();
    limit.release();
  };

  const measured = onceIn(MEASURED_MS, clock, () => launchers.measured());

  return {
    start,
    sending: () => launchers.sending(),
    measured,
    handler: nodeHandler({ ...config, log }, host, { launchers, measured, pods: () => followed?.pods() ?? [] }),
    stopping: () => launchers.stopping(),
    forceStop: () => launchers.forceStop(),
    async stop({ keepVms }) {
      if (!keepVms) await stopGuests();
      await writeEvents();
      life?.abort(new DOMException('the node agent stops', 'AbortError'));
      life?.release();
      await Promise.allSettled([launchers.ended(), informersDone]);
      if (isRegistered) {
        const signal = AbortSignal.timeout(LAST_REPORT_MS);
        const guestsStay = launchers.hasGuests;
        await leaveNode({ client, nodeName, agentId: host.id, guestsStay, clock, log, signal });
      }
      if (!keepVms) await endSwitch(config.dataDir, { clock, signal: AbortSignal.timeout(LAST_REPORT_MS) });
      await host.close();
    },
  };
}

/** The promise of the last call, for so long; a new one then. */
function onceIn<T>(ms: number, clock: Clock, ask: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly answer: Promise<T> } | undefined;
  return () => {
    const now = clock.monotonic();
    if (!last || now - last.at >= ms) last = { at: now, answer: ask() };
    return last.answer;
  };
}

/** Who may ask what of this node. */
function nodeHandler(
  { client, nodeName, dataDir, clock, log, options = {} }: AgentConfig,
  host: AgentHost,
  { launchers, measured, pods }: { launchers: LauncherSet } & Pick<Agent, 'measured'> & Pick<FollowedObjects, 'pods'>,
): ApiHandler {
  const allowed = new Set(options.allowedClients ?? []);
  const serverAccess = options.asKubelet ? createServerAccess({ client, nodeName, clock, log }) : undefined;
  const isControlPlane = ({ peer }: ApiRequest): boolean =>
    isInProcess(peer) || (peer.certificate?.verified === true && allowed.has(peer.certificate.commonName));
  return createNodeHandler({
    find: (namespace, name) => launchers.find(namespace, name),
    findPod: (namespace, name) => launchers.findPod(namespace, name),
    findExporter: (namespace, name) =>
      pods().some((pod) => isExporter(pod) && pod.metadata.namespace === namespace && pod.metadata.name === name)
        ? exporterEndpoint(client)
        : undefined,
    metrics: async () => [...streamMetrics(launchers.sending()), ...guestMetrics(await measured())],
    node: {
      nodeName,
      dataDir,
      pods: () => pods().map((pod) => ({ pod, process: launchers.get(pod.metadata.uid ?? '')?.record?.process })),
    },
    pool: () => host.pool,
    fills: () => host.fills,
    volumes: () => host.volumes,
    isControlPlane,
    directoryOf: (vmiUid) => join(dataDir, 'vms', vmiUid),
    memoryDirectory: host.memoryDirectory,
    authorize: (request) => isControlPlane(request) || (serverAccess?.(request) ?? false),
    clock,
    log,
  });
}
