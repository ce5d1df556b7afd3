/**
 * The parts that run beside the API server, each with a service account of its own and exactly the rights it names.
 * They know nothing but a client; where that client leads is decided elsewhere.
 */

import { NODES } from '@coracle/apimachinery/types/resource-types';
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import type { AskAgent } from '@coracle/client/controller/ask-agent';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { createInformerSet } from '@coracle/client/informer/informer-set';
import { NotSyncedError, SYNC_WITHIN_MS } from '@coracle/client/informer/not-synced';
import { CONFIG_SYNC_NAMESPACE } from '@coracle/gitops/kinds/kinds';
import { gitopsNamespaceRules, gitopsRules } from '@coracle/gitops/sync/gitops-rules';
import { syncsToWaitFor } from '@coracle/gitops/sync/ordered-syncs';
import { certificateControllers, type KeyHolder } from '@coracle/kube-controllers/certificates/certificate-controllers';
import { PEER_AUTHORITY } from '@coracle/kube-controllers/certificates/peer-authority';
import {
  createPeerController,
  peerNamespaceRules,
  peerRules,
} from '@coracle/kube-controllers/certificates/peer-controller';
import { kubeControllers } from '@coracle/kube-controllers/controllers/kube-controllers';
import { createScheduler, schedulerRules } from '@coracle/kube-controllers/scheduler/scheduler';
import { createPools, type Pools } from '@coracle/kube-controllers/storage/pools';
import { poolControllers, storageControllers } from '@coracle/kube-controllers/storage/storage-controllers';
import {
  backupControllerRules,
  createBackupControllers,
} from '@coracle/kubevirt/controllers/backup/backup-controllers';
import { binControllerRules, createBinController } from '@coracle/kubevirt/controllers/bin/bin-controller';
import { isHeld } from '@coracle/kubevirt/controllers/bin/held-volumes';
import { cloneControllerRules, createCloneController } from '@coracle/kubevirt/controllers/clone/clone-controller';
import {
  commonInstancetypesRules,
  createCommonInstancetypesController,
} from '@coracle/kubevirt/controllers/common-instancetypes/common-instancetypes-controller';
import { dataVolumeRules } from '@coracle/kubevirt/controllers/data-volume/data-volume-controller';
import { createDataVolumeControllers } from '@coracle/kubevirt/controllers/data-volume/data-volume-controllers';
import { createUploadTargets } from '@coracle/kubevirt/controllers/data-volume/upload-targets';
import {
  createEvacuationController,
  evacuationControllerRules,
} from '@coracle/kubevirt/controllers/evacuation/evacuation-controller';
import { createExportController, exportControllerRules } from '@coracle/kubevirt/controllers/export/export-controller';
import { createExportTargets } from '@coracle/kubevirt/controllers/export/export-targets';
import {
  createKubeVirtController,
  kubeVirtControllerRules,
} from '@coracle/kubevirt/controllers/kubevirt/kubevirt-controller';
import { createMemoryController, memoryControllerRules } from '@coracle/kubevirt/controllers/memory/memory-controller';
import {
  createMigrationController,
  migrationControllerRules,
} from '@coracle/kubevirt/controllers/migration/migration-controller';
import { createPoolController, poolControllerRules } from '@coracle/kubevirt/controllers/pool/pool-controller';
import {
  createProtectionController,
  protectionControllerRules,
} from '@coracle/kubevirt/controllers/protection/protection-controller';
import { createSspController, sspControllerRules } from '@coracle/kubevirt/controllers/protection/ssp-controller';
import {
  createReplicaSetController,
  replicaSetControllerRules,
} from '@coracle/kubevirt/controllers/replica-set/replica-set-controller';
import {
  createSnapshotControllers,
  snapshotControllerRules,
} from '@coracle/kubevirt/controllers/snapshot/snapshot-controllers';
import { createVmController, vmControllerRules } from '@coracle/kubevirt/controllers/vm/vm-controller';
import { createVmiController, vmiControllerRules } from '@coracle/kubevirt/controllers/vmi/vmi-controller';
import {
  createWorkloadUpdateController,
  workloadUpdateControllerRules,
} from '@coracle/kubevirt/controllers/workload-update/workload-update-controller';
import { isHeldByMachine } from '@coracle/kubevirt/rules/protection/held-by-machine';
import type { Clock } from '@coracle/runtime/clock/clock';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';
import { aborted } from '@coracle/runtime/signal/abortable';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { ExportServing } from '../upload-proxy/serve-export.ts';
import type { UploadSource } from '../upload-proxy/upload-proxy.ts';
import { clusterSettings } from './cluster-settings.ts';
import { createDeletionWebhookComponent, DELETION_WEBHOOK_RULES, type ServeWebhook } from './deletion-webhook.ts';
import { createPeerKeyWork } from './peer-keys.ts';

export interface Component {
  /** As `--controllers` names it. */
  readonly name: string;
  /** Service account in `COMPONENT_NAMESPACE`. */
  readonly account: string;
  readonly rules: readonly PolicyRule[];
  /** More rules, for `COMPONENT_NAMESPACE` alone. */
  readonly namespaceRules?: readonly PolicyRule[];
  /** More rules, each for one namespace alone. */
  readonly localRules?: readonly { readonly namespace: string; readonly rules: readonly PolicyRule[] }[];
  /** Objects it fills and may not make: kind and name, in `COMPONENT_NAMESPACE`. */
  readonly fills?: readonly { readonly kind: 'Secret' | 'ConfigMap'; readonly name: string }[];
  /** It runs beside the embedded server, which holds the cluster's keys, and nowhere else. */
  readonly needsKeys?: boolean;
  readonly create: (environment: ControllerEnvironment, facts: ComponentFacts) => Runnable;
}

/** What a component may need to know of the cluster and cannot ask the API for. */
export interface ComponentFacts {
  /** PEM of the cluster's CA. */
  readonly rootCa: string;
  /** Version of this program, for what reports it. */
  readonly version?: string;
  /** Only where the keys are. */
  readonly keys?: KeyHolder;
  /** Only beside the server that knows how agents are reached. */
  readonly askAgent?: AskAgent;
  /** Serves a webhook where the API server reaches it; only where an address for that is given. */
  readonly serveWebhook?: ServeWebhook;
  /** Only where there is a file system, and git. */
  readonly createGitOps?: (environment: ControllerEnvironment) => Runnable;
  /** Reaches the port of a node's agent; only where the keys are. */
  readonly connectNode?: (nodeName: string, client: Client) => Promise<ApiHandler>;
  /** Takes uploads for the claims that the DataVolume controller names, and serves exports; only where there is a port for them. */
  readonly uploadProxy?: {
    readonly url: string;
    /** PEM of the authority of its certificate. */
    readonly ca: string;
    serve(source: UploadSource): void;
    serveExports(source: ExportServing): void;
  };
}

type Row = Omit<Component, 'account'>;

/** Each with the service account of its name. */
const withAccounts = (rows: readonly Row[]): readonly Component[] =>
  rows.map((row) => ({ ...row, account: `coracle-${row.name.replace(/-controller$/, '')}` }));

/** Where the components' service accounts live: upstream trusts the accounts of this namespace with VMI specs. */
export const COMPONENT_NAMESPACE = 'kubevirt';

/** Account of node agents on servers that do not know them as nodes; the embedded one has none of that name. */
export const AGENT_ACCOUNT = 'coracle-agent';

/** Who may write managed objects, while those are guarded: what writes for all syncs, and what cleans up after deletions. */
export const GUARD_TRUSTED = ['gitops', 'namespace', 'garbage-collector'].map(
  (name) => `system:serviceaccount:${COMPONENT_NAMESPACE}:coracle-${name}`,
);

/** Name of the component that an external API server asks about deletions. */
export const DELETION_WEBHOOK = 'deletion-webhook';

const NO_ENDPOINT: ServeWebhook = () => Promise.reject(new Error('no address is given for webhooks'));
/** Reaches the ports of nodes. Rejects where the keys for that are not. */
const nodesOf =
  ({ client }: ControllerEnvironment, { connectNode }: ComponentFacts) =>
  (name: string): Promise<ApiHandler> =>
    connectNode?.(name, client) ?? Promise.reject(new Error('nodes cannot be reached from here'));
const poolsOf = (environment: ControllerEnvironment, facts: ComponentFacts): Pools =>
  createPools({
    nodes: environment.informers.of(NODES),
    connect: nodesOf(environment, facts),
    clock: environment.clock,
  });
/** Asks or reaches no node: where no way to them is known. */
export const NO_NODES = (name: string): Promise<never> =>
  Promise.reject(new Error(`node ${name} cannot be reached from here`));

const idle = (name: string): Runnable => ({ name, start: aborted });

/** Every component a control plane runs, in no order. */
export const COMPONENTS = withAccounts([
  { name: 'vm', rules: vmControllerRules, create: createVmController },
  {
    name: 'vmi',
    rules: vmiControllerRules,
    create: (environment) => createVmiController({ ...environment, settings: clusterSettings(environment.informers) }),
  },
  { name: 'common-instancetypes', rules: commonInstancetypesRules, create: createCommonInstancetypesController },
  { name: 'protection', rules: protectionControllerRules, create: createProtectionController },
  {
    name: 'ssp',
    rules: sspControllerRules,
    // On another cluster the kind is ssp-operator's.
    needsKeys: true,
    create: (environment, { version = '' }) => createSspController({ ...environment, version }),
  },
  {
    name: 'bin',
    rules: binControllerRules,
    // Only our own server captures what it keeps, and its agents answer only to the holder of the cluster's keys.
    needsKeys: true,
    create: (environment, facts) => createBinController({ ...environment, callPool: poolsOf(environment, facts).call }),
  },
  {
    name: 'data-volume',
    rules: dataVolumeRules,
    // Pools are called by the holder of the cluster's keys; on another cluster CDI does this.
    needsKeys: true,
    create: (environment, facts) => {
      const { uploadProxy } = facts;
      const pools = poolsOf(environment, facts);
      const uploads = uploadProxy && createUploadTargets();
      if (uploads) uploadProxy.serve({ targets: uploads, pools });
      return createDataVolumeControllers({ ...environment, pools, ...(uploads && { uploads, uploadProxy }) });
    },
  },
  {
    name: 'export',
    rules: exportControllerRules,
    // Bytes come from pools, which only the holder of the cluster's keys reaches; on another cluster KubeVirt does this.
    needsKeys: true,
    create: (environment, facts) => {
      const { connectNode, uploadProxy } = facts;
      if (!uploadProxy || !connectNode) return idle('export');
      const targets = createExportTargets();
      const pools = poolsOf(environment, facts);
      const controller = createExportController({ ...environment, targets, server: uploadProxy });
      uploadProxy.serveExports({ targets, pools, content: controller.content });
      return controller;
    },
  },
  {
    name: 'kubevirt',
    rules: kubeVirtControllerRules,
    // On another cluster virt-operator owns this status.
    needsKeys: true,
    create: (environment, { version = '' }) => createKubeVirtController({ ...environment, version }),
  },
  { name: 'evacuation', rules: evacuationControllerRules, create: createEvacuationController },
  {
    name: 'migration',
    rules: migrationControllerRules,
    create: (environment) =>
      createMigrationController({ ...environment, settings: clusterSettings(environment.informers) }),
  },
  {
    name: 'memory',
    rules: memoryControllerRules,
    // Agents of other clusters are not asked.
    needsKeys: true,
    create: (environment, { askAgent = NO_NODES }) => createMemoryController({ ...environment, askAgent }),
  },
  {
    name: 'backup',
    rules: backupControllerRules,
    create: (environment, { askAgent = NO_NODES }) => createBackupControllers({ ...environment, askAgent }),
  },
  { name: 'workload-update', rules: workloadUpdateControllerRules, create: createWorkloadUpdateController },
  { name: 'clone', rules: cloneControllerRules, create: createCloneController },
  { name: 'replica-set', rules: replicaSetControllerRules, create: createReplicaSetController },
  { name: 'pool', rules: poolControllerRules, create: createPoolController },
  { name: 'snapshot', rules: snapshotControllerRules, create: createSnapshotControllers },
  {
    name: 'gitops',
    rules: gitopsRules,
    localRules: [{ namespace: CONFIG_SYNC_NAMESPACE, rules: gitopsNamespaceRules }],
    create: (environment, { createGitOps }) => createGitOps?.(environment) ?? idle('gitops'),
  },
  { name: 'scheduler', rules: schedulerRules, create: createScheduler },
  ...kubeControllers.map(
    ({ name, rules, create }): Row => ({
      name,
      rules,
      create: (environment, { rootCa }) =>
        create({ ...environment, rootCa, goesFirst: syncsToWaitFor, isKept: isHeldByMachine }),
    }),
  ),
  ...storageControllers,
  ...poolControllers.map(
    ({ name, rules, create }): Row => ({
      name,
      rules,
      // Agents answer these calls to the holder of the cluster's own certificates alone.
      needsKeys: true,
      create: (environment, facts) =>
        create({
          ...environment,
          connect: nodesOf(environment, facts),
          isHeld: (handle, signal) => isHeld(environment.client, handle, signal),
        }),
    }),
  ),
  ...certificateControllers.map(
    ({ name, rules, needsKeys, create }): Row => ({
      name,
      rules,
      needsKeys,
      create: (environment, facts) => create({ ...environment, ...facts }),
    }),
  ),
]);

/** Those that only an external cluster has need of. */
export const EXTERNAL_COMPONENTS = withAccounts([
  {
    name: 'peer-certificates',
    rules: peerRules,
    namespaceRules: peerNamespaceRules,
    fills: [
      { kind: 'Secret', name: PEER_AUTHORITY },
      { kind: 'ConfigMap', name: PEER_AUTHORITY },
    ],
    create: (environment) =>
      createPeerController({
        ...environment,
        keys: createPeerKeyWork(environment.clock),
        namespace: COMPONENT_NAMESPACE,
        agentUser: `system:serviceaccount:${COMPONENT_NAMESPACE}:${AGENT_ACCOUNT}`,
      }),
  },
  {
    name: DELETION_WEBHOOK,
    rules: DELETION_WEBHOOK_RULES,
    create: (environment, { serveWebhook = NO_ENDPOINT }) =>
      createDeletionWebhookComponent(environment, { serve: serveWebhook, namespace: COMPONENT_NAMESPACE }),
  },
]);

/**
 * Picks components as kube-controller-manager's --controllers does: `*` all, `name` this one, `-name` not this one. Those
 * that need the cluster's keys are in only `withKeys`, and then unless they are taken out by name; those for an external
 * cluster only `external`. Throws an Error that names an unknown one and the ones there are.
 */
export function chooseComponents(
  list: string,
  { withKeys = false, external = false }: { readonly withKeys?: boolean; readonly external?: boolean } = {},
): readonly Component[] {
  const words = list
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
  const known = new Set([...COMPONENTS, ...EXTERNAL_COMPONENTS].map((component) => component.name));
  for (const word of words) {
    const name = word.replace(/^-/, '');
    if (word !== '*' && !known.has(name))
      throw new Error(`--controllers: "${name}" is not a controller; there are ${[...known].join(', ')}`);
  }
  // What needs the keys can run nowhere but beside them, so that it runs there whatever else runs elsewhere.
  const isChosen = ({ name, needsKeys = false }: Component): boolean =>
    needsKeys ? withKeys : words.includes('*') || words.includes(name);
  return [...COMPONENTS, ...(external ? EXTERNAL_COMPONENTS : [])].filter(
    (component) => isChosen(component) && !words.includes(`-${component.name}`),
  );
}

export interface ComponentRunOptions {
  readonly component: Component;
  readonly client: Client;
  readonly facts: ComponentFacts;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Hears that its informers have synced: when the time is over in which it would have failed for want of that. */
  readonly onSynced?: () => void;
  /** Resolves when it may begin: in a turn of its own when not given. */
  readonly turn?: (signal: AbortSignal) => Promise<void>;
}

/**
 * Runs one component with informers of its own until the signal aborts; resolves when it has stopped.
 * @throws NotSyncedError when its informers do not sync: it has stopped, and may be run anew
 */
export async function runComponent(options: ComponentRunOptions): Promise<void> {
  const { component, client, facts, clock, log, signal, onSynced } = options;
  const own = log.with({ controller: component.name });
  const informers = createInformerSet(client, { clock, log: own });
  const runnable = component.create({ client, informers, clock, log: own }, facts);
  const run = createLinkedController(signal);
  const stopTimer = clock.schedule(SYNC_WITHIN_MS + 1000, () => onSynced?.());
  const parts = [informers.start(run.signal), runnable.start(run.signal)];
  try {
    const synced = informers.syncedInTime(run.signal).catch((error: unknown) => {
      if (!run.signal.aborted) throw error;
    });
    await Promise.all([...parts, synced]);
  } finally {
    stopTimer();
    run.abort(new Error('the component has ended'));
    await Promise.allSettled(parts);
    run.release();
  }
}

/** The same, run anew whenever its informers do not sync; `onWorking` is called with whether they have. */
export async function keepRunning(
  options: ComponentRunOptions,
  onWorking: (canWork: boolean) => void = () => {},
): Promise<void> {
  const { component, log, signal, turn = nextTurn } = options;
  // Forty of them start at once, and that the API answers need not wait for them.
  await turn(signal);
  while (!signal.aborted) {
    try {
      await runComponent({ ...options, onSynced: () => onWorking(true) });
      return;
    } catch (error) {
      if (!(error instanceof NotSyncedError)) throw error;
      log.error('controller cannot work', { controller: component.name, error: error.message });
      onWorking(false);
    }
  }
}
