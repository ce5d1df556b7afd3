/** One pass over an export: what it needs is made, then its status says how it stands and the proxy hears what it may give. */
import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { type DeepReadonly, keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS, SERVICES } from '@coracle/apimachinery/types/resource-types';
import type { Pod, ReadonlyPod, Service } from '@coracle/apimachinery/types/types';
import { orAbsent, orThere } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type ReconcileResult, requeueAfter } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { SELECTED_NODE } from '@coracle/cluster-rules/storage/claim-step';
import { POOL_DRIVER, POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { poolOfHandle } from '@coracle/cluster-rules/storage/snapshot-plan';
import {
  VOLUME_SNAPSHOT_CONTENTS,
  VOLUME_SNAPSHOTS,
  type VolumeSnapshot,
} from '@coracle/cluster-rules/volume-snapshot/kinds';
import {
  type ReadonlyExport,
  VIRTUAL_MACHINE_EXPORTS,
  type VirtualMachineExport,
  type VolumeBackup,
} from '../../kinds/kubevirt.ts';
import {
  EXPORT_SERVICE_LABEL,
  EXPORT_TOKEN_KEY,
  exportServiceName,
  exportTokenName,
} from '../../rules/export/export-names.ts';
import { type ExportSource, snapshotClaimName } from '../../rules/export/export-source.ts';
import { expiryOf, exportLink, exportStatus, tokenSecretOf } from '../../rules/export/export-status.ts';
import { EXPORTER_PORT, exporterPod, isExporterReady } from '../../rules/export/exporter-pod.ts';
import { claimFromSnapshot } from '../../rules/snapshot/restored-claim.ts';
import { ExportStores } from './export-stores.ts';
import type { ExportedVolume, ExportTargets } from './export-targets.ts';

export interface ExportControllerOptions extends ControllerEnvironment {
  readonly targets: ExportTargets;
  /** The server of the bytes. */
  readonly server: { readonly url: string; readonly ca: string };
}

/** A longer wait than a timer can hold is cut. */
const LONGEST_WAIT_MS = 24 * 3_600_000;
/** A namespace that has no room for the Pod may have some later. */
const POD_RETRY_MS = 30_000;
const TOKEN_LENGTH = 20;
/** 5 bits each. */
const TOKEN_DIGITS = 'abcdefghijklmnopqrstuvwxyz234567';
const DISK_CONTENT = { 'cdi.kubevirt.io/storage.contentType': 'kubevirt' };

const newToken = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(TOKEN_LENGTH)), (byte) => TOKEN_DIGITS[byte % 32]).join('');

export class ExportSteps extends ControllerSteps<ExportControllerOptions> {
  readonly stores = new ExportStores(this.options.informers);
  readonly #events = createEventRecorder(this.client, { ...this.options, component: 'export-controller' });

  async pass(object: ReadonlyExport): Promise<ReconcileResult> {
    const { client, clock } = this;
    const { targets } = this.options;
    const key = keyOf(object as VirtualMachineExport);
    if (isDeleting(object)) {
      targets.drop(key);
      return;
    }
    const left = expiryOf(object) - clock.now();
    if (left <= 0) {
      targets.drop(key);
      const preconditions = { uid: object.metadata.uid ?? '' };
      await orAbsent(client.delete(VIRTUAL_MACHINE_EXPORTS, key, { preconditions }));
      return;
    }
    await this.#makeService(object);
    if (object.spec.source.kind === 'VirtualMachineSnapshot') await this.#makeClaims(object);
    const { source, volumes } = this.#available(object);
    if (source.obstacle) {
      targets.drop(key);
      const pod = this.stores.ownPod(object);
      if (pod) await this.#deletePod(object, pod, ['ExportPaused', source.obstacle.message]);
      await this.#writeStatus(object, source);
    } else {
      await this.#makeToken(object);
      targets.set(key, { uid: object.metadata.uid ?? '', secret: tokenSecretOf(object), volumes });
      const found = await this.#exporter(object);
      await this.#writeStatus(object, 'obstacle' in found ? { ...source, ...found } : source);
      if ('refused' in found) return requeueAfter(Math.min(left, POD_RETRY_MS));
    }
    return requeueAfter(Math.min(left, LONGEST_WAIT_MS));
  }

  /** Makes the Pod that the Service leads to, and says what keeps it from serving (updateCommonVMExportStatusFields). */
  async #exporter(
    object: ReadonlyExport,
  ): Promise<Pick<ExportSource, 'obstacle' | 'isOver'> & { readonly refused?: true }> {
    const pod = this.stores.ownPod(object);
    const pending = (message: string) => ({ obstacle: { reason: 'PodPending', message } });
    if (!pod) {
      try {
        const made = await orThere(this.client.create(PODS, exporterPod(object)));
        if (made) {
          const { namespace, name } = made.metadata;
          this.#events.event(object, 'Normal', 'ExporterPodCreated', `Created exporter pod ${namespace}/${name}`);
        }
        return pending('');
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        return { ...pending(error.message), refused: true };
      }
    }
    const { phase } = pod.status ?? {};
    if (hasEnded(pod)) {
      const { namespace, name } = pod.metadata;
      const message = `Exporter pod ${namespace}/${name} is in phase ${phase}`;
      await this.#deletePod(object, pod, ['ExporterPodFailedOrCompleted', message]);
      return phase === 'Succeeded'
        ? { obstacle: { reason: 'PodCompleted', message: '' }, isOver: true }
        : { obstacle: { reason: 'Unknown', message: '' } };
    }
    const unplaced = pod.status?.conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
    return isExporterReady(pod) ? {} : pending(unplaced?.message ?? '');
  }

  async #deletePod(
    object: ReadonlyExport,
    pod: ReadonlyPod,
    [reason, message]: readonly [string, string],
  ): Promise<void> {
    if (isDeleting(pod)) return;
    this.#events.event(object, 'Warning', reason, message);
    const preconditions = { uid: pod.metadata.uid ?? '' };
    await orAbsent(this.client.delete(PODS, keyOf(pod as Pod), { preconditions }));
  }

  /** The source, with what hinders a download that the source itself does not know of. */
  #available(object: ReadonlyExport): { readonly source: ExportSource; readonly volumes: readonly ExportedVolume[] } {
    const source = this.stores.sourceOf(object);
    const volumes: ExportedVolume[] = [];
    if (source.obstacle) return { source, volumes };
    for (const claim of source.claims) {
      const volume = this.stores.exported(claim);
      if (volume) volumes.push(volume);
      else {
        const { namespace, name } = claim.metadata;
        const message = `PersistentVolumeClaim ${namespace}/${name} is not a volume of ${POOL_DRIVER}`;
        return { source: { ...source, obstacle: { reason: 'Unknown', message } }, volumes };
      }
    }
    return { source, volumes };
  }

  async #writeStatus(object: ReadonlyExport, source: ExportSource): Promise<void> {
    const { client, clock } = this;
    const { server } = this.options;
    const base = {
      base: server.url,
      cert: server.ca,
      claims: source.claims,
      isDisk: (claim: ExportSource['claims'][number]) => this.stores.isDisk(claim),
      hasMachine: source.machine !== undefined,
    };
    const links = { internal: exportLink(object, base, 'internal'), external: exportLink(object, base, 'external') };
    const status = exportStatus(object, { source, links, now: clock.now() });
    const after: VirtualMachineExport = { ...(object as VirtualMachineExport), status };
    await commit(client, VIRTUAL_MACHINE_EXPORTS, { before: object, after });
  }

  async #makeService(object: ReadonlyExport): Promise<void> {
    const namespace = object.metadata.namespace ?? '';
    const name = exportServiceName(object);
    if (this.stores.services.get({ namespace, name })) return;
    const service: Service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name,
        namespace,
        labels: { 'kubevirt.io': 'virt-exporter' },
        ownerReferences: [controllerReference(object)],
      },
      spec: {
        ports: [{ protocol: 'TCP', port: 443, targetPort: EXPORTER_PORT }],
        selector: { [EXPORT_SERVICE_LABEL]: object.metadata.name ?? '' },
      },
    };
    if (await orThere(this.client.create(SERVICES, service)))
      this.#events.event(object, 'Normal', 'ServiceCreated', `Created service ${namespace}/${name}`);
  }

  async #makeToken(object: ReadonlyExport): Promise<void> {
    if (object.spec.tokenSecretRef !== undefined || object.status?.tokenSecretRef !== undefined) return;
    const namespace = object.metadata.namespace ?? '';
    const name = exportTokenName(object);
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace, ownerReferences: [controllerReference(object)] },
      type: 'Opaque',
      stringData: { [EXPORT_TOKEN_KEY]: newToken() },
    };
    if (await orThere(this.client.create(SECRETS, secret)))
      this.#events.event(object, 'Normal', 'SecretCreated', `Created default secret ${namespace}/${name}`);
  }

  /** Claims with the content of a snapshot: they share its layers, so that nothing is copied and no guest waits. */
  async #makeClaims(object: ReadonlyExport): Promise<void> {
    const { client } = this;
    const namespace = object.metadata.namespace ?? '';
    const { backups, content } = this.stores.savedVolumes(object);
    for (const backup of backups) {
      const name = snapshotClaimName(object, backup.persistentVolumeClaim.metadata?.name ?? '');
      if (this.stores.ownClaim(object, name)) continue;
      const key = { namespace, name: backup.volumeSnapshotName ?? '' };
      const snapshot = await orAbsent(client.get(VOLUME_SNAPSHOTS, key));
      if (!snapshot) continue;
      const claim = claimFromSnapshot({ namespace, name }, { backup, snapshot });
      const node = await this.#nodeFor(snapshot);
      const volumes = content?.spec.source.virtualMachine?.spec?.template?.spec?.volumes ?? [];
      claim.metadata.annotations = {
        ...claim.metadata.annotations,
        ...(isDiskOf(volumes, backup) && DISK_CONTENT),
        ...(node !== undefined && { [SELECTED_NODE]: node }),
      };
      claim.metadata.ownerReferences = [controllerReference(object)];
      await orThere(client.create(PERSISTENT_VOLUME_CLAIMS, claim));
    }
  }

  /** A node of the pool that the snapshot lies in: no Pod will say where the claim is to be. */
  async #nodeFor({ metadata, status }: DeepReadonly<VolumeSnapshot>): Promise<string | undefined> {
    const name = status?.boundVolumeSnapshotContentName;
    if (!name) return undefined;
    const content = await orAbsent(this.client.get(VOLUME_SNAPSHOT_CONTENTS, { namespace: '', name }));
    const place = content?.spec.volumeSnapshotRef.uid === metadata.uid && poolOfHandle(content?.status?.snapshotHandle);
    return place
      ? this.stores.nodes.list().find((node) => node.metadata.labels?.[POOL_LABEL] === place.pool)?.metadata.name
      : undefined;
  }
}

const isDiskOf = (
  volumes: readonly {
    readonly name: string;
    readonly dataVolume?: unknown;
    readonly persistentVolumeClaim?: unknown;
  }[],
  { volumeName }: DeepReadonly<VolumeBackup>,
): boolean =>
  volumes.some(
    ({ name, dataVolume, persistentVolumeClaim }) =>
      name === volumeName && (dataVolume !== undefined || persistentVolumeClaim !== undefined),
  );
