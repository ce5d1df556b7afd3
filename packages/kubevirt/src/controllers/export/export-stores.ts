/** What the controller of exports reads, and the look-ups of its steps. */
import { isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import {
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  SERVICES,
} from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyClaim, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import { placeOf } from '@coracle/cluster-rules/storage/provision-plan';
import { DATA_VOLUMES } from '../../kinds/kinds.ts';
import {
  type ReadonlyExport,
  VIRTUAL_MACHINE_EXPORTS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';
import { ownerDataVolume } from '../../rules/data-volume/owner-data-volume.ts';
import { exportServiceName } from '../../rules/export/export-names.ts';
import {
  type ClaimView,
  claimSource,
  type ExportSource,
  machineSource,
  snapshotSource,
} from '../../rules/export/export-source.ts';
import { holdsDisk } from '../../rules/export/export-status.ts';
import { podsWithClaims } from '../../rules/snapshot/pods-with-claims.ts';
import { claimedVolumes } from '../../rules/snapshot/saved-volumes.ts';
import type { ExportedVolume } from './export-targets.ts';

const isOf = (object: ReadonlyExport, part: ReadonlyObject): boolean => isControlledBy(part, object.metadata.uid);

export class ExportStores {
  readonly exports;
  readonly claims;
  readonly volumes;
  readonly pods;
  readonly services;
  readonly nodes;
  readonly dataVolumes;
  readonly vms;
  readonly vmis;
  readonly snapshots;
  readonly contents;

  constructor(informers: InformerSet) {
    this.exports = informers.of(VIRTUAL_MACHINE_EXPORTS);
    this.claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.volumes = informers.of(PERSISTENT_VOLUMES);
    this.pods = informers.of(PODS);
    this.services = informers.of(SERVICES);
    this.nodes = informers.of(NODES);
    this.dataVolumes = informers.of(DATA_VOLUMES);
    this.vms = informers.of(VIRTUAL_MACHINES);
    this.vmis = informers.of(VIRTUAL_MACHINE_INSTANCES);
    this.snapshots = informers.of(VIRTUAL_MACHINE_SNAPSHOTS);
    this.contents = informers.of(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS);
  }

  #dataVolumeOf(claim: ReadonlyClaim) {
    const name = ownerDataVolume(claim);
    return name === undefined
      ? undefined
      : { found: this.dataVolumes.get({ namespace: claim.metadata.namespace ?? '', name }) };
  }

  #view(namespace: string, name: string): ClaimView {
    const claim = this.claims.get({ namespace, name });
    const dataVolume = claim && this.#dataVolumeOf(claim);
    const isInUse = podsWithClaims(this.pods.list(namespace), (one) => one === name).length > 0;
    return { claim, isPopulated: !dataVolume || dataVolume.found?.status?.phase === 'Succeeded', isInUse };
  }

  /** The saved volumes of a snapshot that an export is of; none while it is not ready. */
  savedVolumes({ metadata, spec }: ReadonlyExport) {
    const namespace = metadata.namespace ?? '';
    const snapshot = this.snapshots.get({ namespace, name: spec.source.name });
    const name = snapshot?.status?.readyToUse === true ? snapshot.status.virtualMachineSnapshotContentName : undefined;
    const content = name === undefined ? undefined : this.contents.get({ namespace, name });
    return { snapshot, content, backups: content?.spec.volumeBackups ?? [] };
  }

  /** A claim that this very export made. */
  ownClaim(object: ReadonlyExport, name: string): ReadonlyClaim | undefined {
    const claim = this.claims.get({ namespace: object.metadata.namespace ?? '', name });
    return claim && isOf(object, claim) ? claim : undefined;
  }

  /** The Pod that it made. */
  ownPod(object: ReadonlyExport): ReadonlyPod | undefined {
    const pod = this.pods.get({ namespace: object.metadata.namespace ?? '', name: exportServiceName(object) });
    return pod && isOf(object, pod) ? pod : undefined;
  }

  sourceOf(object: ReadonlyExport): ExportSource {
    const namespace = object.metadata.namespace ?? '';
    const { kind, name } = object.spec.source;
    const view = (claim: string): ClaimView => this.#view(namespace, claim);
    if (kind === 'PersistentVolumeClaim') return claimSource(object, view(name));
    if (kind === 'VirtualMachine') {
      const [vm, vmi] = [this.vms.get({ namespace, name }), this.vmis.get({ namespace, name })];
      const volumes = vm ? claimedVolumes(vm, { claims: this.claims.list(namespace) }) : [];
      return machineSource(object, { vm, vmi, volumes, view });
    }
    const { snapshot, backups } = this.savedVolumes(object);
    return snapshotSource(object, { snapshot, backups, claimNamed: (claim) => this.ownClaim(object, claim) });
  }

  isDisk(claim: ReadonlyClaim): boolean {
    const dataVolume = this.#dataVolumeOf(claim)?.found;
    return holdsDisk(claim, dataVolume && (dataVolume.spec.contentType ?? ''));
  }

  /** Where the content of a claim lies; undefined when it is in no pool of ours. Volume and claim name one another. */
  exported(claim: ReadonlyClaim): ExportedVolume | undefined {
    const volume = this.volumes.get({ namespace: '', name: claim.spec?.volumeName ?? '' });
    if (volume?.spec?.claimRef?.uid !== claim.metadata.uid) return undefined;
    const place = volume && placeOf(volume);
    return place && { claim: claim.metadata.name ?? '', ...place, isDisk: this.isDisk(claim) };
  }
}
