/**
 * DataImportCrons: an image of a registry is looked at on a schedule; where its digest is another one it is imported by a
 * DataVolume, and the DataSource leads to that once it is full. Older ones go.
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import {
  type Controller,
  createController,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import { createEventRecorder } from '@coracle/client/events/recorder';
import type { ImageDigest } from '@coracle/cluster-rules/storage/pool-calls';
import {
  CDI_GROUP,
  CDI_VERSION,
  DATA_IMPORT_CRONS,
  DATA_SOURCES,
  DATA_VOLUMES,
  type DataImportCron,
  type DataImportCronStatus,
  type DataSource,
  type DataVolume,
} from '../../kinds/kinds.ts';
import { BIND_IMMEDIATELY } from '../../rules/data-volume/claim-of-data-volume.ts';
import { parseCron } from '../../rules/data-volume/cron-schedule.ts';
import { importCronConditions, importName, outdatedImports } from '../../rules/data-volume/import-cron.ts';
import { MissingPart } from '../resolve-data-source.ts';
import type { ClaimFillingOptions } from './claim-filling.ts';
import { createFillSourceReader } from './fill-source.ts';
import { reasonOf } from './pool-access.ts';

type Cron = DeepReadonly<DataImportCron>;

const CRON_LABEL = 'cdi.kubevirt.io/dataImportCron';
/** When a registry, or a pool, that did not answer is asked again. */
const RETRY_MS = 60_000;
/** Timers do not reach further than some weeks: a schedule is looked at this often. */
const LONGEST_MS = 3_600_000;

/** Makes the controller; nothing happens before `start`. */
export function createImportCronController(options: ClaimFillingOptions): Controller {
  const { client, clock, log, informers, pools } = options;
  const crons = informers.of(DATA_IMPORT_CRONS);
  const dataVolumes = informers.of(DATA_VOLUMES);
  const sources = createFillSourceReader(client);
  const events = createEventRecorder(client, { component: 'dataimportcron-controller', clock, log });

  /** Asks for the digest of the image. Throws MissingPart, or what the pool call failed with. */
  const poll = async ({ metadata, spec }: Cron, signal: AbortSignal): Promise<string> => {
    const { registry } = spec.template.spec.source ?? {};
    if (!registry) throw new MissingPart('only images of registries are polled');
    const image = await sources.registry(metadata.namespace ?? '', registry);
    const [pool] = pools.ready();
    if (pool === undefined) throw new MissingPart('no ready node serves a pool of volumes');
    return (await pools.call<ImageDigest>(pool, 'imageDigest', image, signal)).digest;
  };

  const collect = async (cron: Cron, current: string): Promise<void> => {
    const mine = dataVolumes
      .list(cron.metadata.namespace ?? '')
      .filter(({ metadata }) => metadata.labels?.[CRON_LABEL] === cron.metadata.name);
    for (const one of outdatedImports(mine, cron.spec, current))
      await orAbsent(client.delete(DATA_VOLUMES, keyOf(one)));
  };

  const pass = async (cron: Cron, signal: AbortSignal): Promise<ReconcileResult> => {
    const now = clock.now();
    const status = cloneJson(cron.status ?? {}) as DataImportCronStatus;
    const schedule = parseCron(cron.spec.schedule);
    const lastAt = Date.parse(status.lastExecutionTimestamp ?? '');
    let dueAt = Number.isNaN(lastAt) ? now : schedule?.next(lastAt);
    let problem: string | undefined;
    if (dueAt !== undefined && dueAt <= now) {
      try {
        const digest = await poll(cron, signal);
        const [current] = status.currentImports ?? [];
        if (current?.Digest !== digest)
          status.currentImports = [{ DataVolumeName: importName(cron.spec.managedDataSource, digest), Digest: digest }];
        status.lastExecutionTimestamp = formatTime(now);
        dueAt = schedule?.next(now);
      } catch (error) {
        if (!(error instanceof MissingPart) && reasonOf(error) === undefined) throw error;
        problem = (error as Error).message;
        dueAt = now + RETRY_MS;
        events.event(cron as DataImportCron, 'Warning', 'PollFailed', problem);
      }
    }
    const [current] = status.currentImports ?? [];
    let isFull = false;
    if (current) {
      const { namespace = '' } = cron.metadata;
      const found = dataVolumes.get({ namespace, name: current.DataVolumeName });
      if (!found) await ensureImport(client, cron, current.DataVolumeName, current.Digest);
      isFull = found?.status?.phase === 'Succeeded';
      if (isFull) {
        await pointTo(client, cron, current.DataVolumeName);
        if (status.lastImportedPVC?.name !== current.DataVolumeName) {
          status.lastImportedPVC = { namespace, name: current.DataVolumeName };
          status.lastImportTimestamp = formatTime(now);
        }
        status.sourceFormat = 'pvc';
        await collect(cron, current.DataVolumeName);
      }
    }
    status.conditions = importCronConditions(status, { isFull, problem, now });
    if (!deepEqual(cron.status ?? {}, status))
      await commit(client, DATA_IMPORT_CRONS, { before: cron, after: { ...cron, status } as DataImportCron, signal });
    if (dueAt !== undefined) return requeueAfter(Math.min(LONGEST_MS, Math.max(1000, dueAt - now)));
  };

  return createController({
    ...options,
    name: 'data-import-cron',
    concurrency: 2,
    sources: [
      ownKeys(crons),
      source(dataVolumes, ({ metadata: { namespace = '', labels } }) => {
        const name = labels?.[CRON_LABEL];
        return name === undefined ? [] : [{ namespace, name }];
      }),
    ],
    async reconcile(key, { signal }) {
      const cron = crons.get(key);
      if (cron && !isDeleting(cron)) return pass(cron, signal);
    },
  });
}

/** Makes the DataVolume of one digest, unless it is there. */
async function ensureImport(client: Client, cron: Cron, name: string, digest: string): Promise<void> {
  const { namespace = '' } = cron.metadata;
  const spec = cloneJson(cron.spec.template.spec) as DataVolume['spec'];
  const url = (spec.source?.registry?.url ?? '').replace(/@sha256:[0-9a-f]+$/, '').replace(/:[^/:]+$/, '');
  if (spec.source?.registry) spec.source.registry.url = `${url}@${digest}`;
  const made: DataVolume = {
    apiVersion: `${CDI_GROUP}/${CDI_VERSION}`,
    kind: 'DataVolume',
    metadata: {
      name,
      namespace,
      labels: { ...cron.spec.template.metadata?.labels, [CRON_LABEL]: cron.metadata.name ?? '' },
      annotations: { ...cron.spec.template.metadata?.annotations, [BIND_IMMEDIATELY]: 'true' },
      ...ownersOf(cron),
    },
    spec,
  };
  await orThere(client.create(DATA_VOLUMES, made));
}

/** Leads the managed DataSource to the claim of that name. */
async function pointTo(client: Client, cron: Cron, name: string): Promise<void> {
  const { namespace = '' } = cron.metadata;
  const key = { namespace, name: cron.spec.managedDataSource };
  const wanted = { source: { pvc: { namespace, name } } };
  const found = await orAbsent(client.get(DATA_SOURCES, key));
  if (!found) {
    const labels = { [CRON_LABEL]: cron.metadata.name ?? '' };
    const made: DataSource = {
      apiVersion: `${CDI_GROUP}/${CDI_VERSION}`,
      kind: 'DataSource',
      metadata: { ...key, labels, ...ownersOf(cron) },
      spec: wanted,
    };
    await client.create(DATA_SOURCES, made);
    return;
  }
  // One that somebody made by hand is his: it is led where he says.
  if (found.metadata.labels?.[CRON_LABEL] !== cron.metadata.name || deepEqual(found.spec, wanted)) return;
  await commit(client, DATA_SOURCES, { before: found, after: { ...found, spec: wanted } });
}

/** With retention policy None, what was imported goes with the cron. */
const ownersOf = ({ metadata, spec }: Cron) =>
  spec.retentionPolicy === 'None' && {
    ownerReferences: [
      {
        apiVersion: `${CDI_GROUP}/${CDI_VERSION}`,
        kind: 'DataImportCron',
        name: metadata.name ?? '',
        uid: metadata.uid ?? '',
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
