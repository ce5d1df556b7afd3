import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  STORAGE_CLASSES,
} from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolume, PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { claimsOfPod, classNameOf, namesNoClass } from '@coracle/apimachinery/types/volume-claims';
import { orAbsent } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import type { Controller } from '@coracle/client/controller/controller';
import { ControllerSteps } from '@coracle/client/controller/controller-steps';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createEventRecorder } from '@coracle/client/events/recorder';
import {
  boundStatus,
  unboundStatus,
  withClaim,
  withPhase,
  withVolume,
} from '@coracle/cluster-rules/storage/bind-writes';
import {
  BIND_COMPLETED,
  type ClaimEvent,
  claimStep,
  STORAGE_PROVISIONER,
  STORAGE_PROVISIONER_BETA,
} from '@coracle/cluster-rules/storage/claim-step';
import { unbound, volumeStep } from '@coracle/cluster-rules/storage/volume-step';

type Claim = DeepReadonly<PersistentVolumeClaim>;

type Volume = DeepReadonly<PersistentVolume>;

export const BY_VOLUME = 'persistentvolume.claimed-volume';

export const BY_CLASS = 'persistentvolume.class';

export const BY_CLAIM = 'persistentvolume.claim';

export const claimKeyOf = ({ spec }: Volume): ObjectKey[] =>
  spec?.claimRef ? [{ namespace: spec.claimRef.namespace ?? '', name: spec.claimRef.name ?? '' }] : [];

export const volumeKey = (name: string): ObjectKey => ({ namespace: '', name });

const isUnbound = ({ metadata, spec }: Claim): boolean =>
  (spec?.volumeName ?? '') === '' && metadata.annotations?.[BIND_COMPLETED] === undefined;

/** The steps that bind claims and volumes. */
export class VolumeSteps extends ControllerSteps {
  readonly claims;
  readonly volumes;
  readonly classes;
  readonly pods;
  readonly #events;

  readonly #enqueue;

  constructor(environment: ControllerEnvironment, enqueue: Controller['enqueue']) {
    super(environment);
    this.#enqueue = enqueue;
    const { client, informers, clock, log } = environment;
    this.claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.volumes = informers.of(PERSISTENT_VOLUMES);
    this.classes = informers.of(STORAGE_CLASSES);
    this.pods = informers.of(PODS);
    this.claims.addIndex(BY_VOLUME, (claim) => (claim.spec?.volumeName ? [claim.spec.volumeName] : []));
    this.claims.addIndex(BY_CLASS, (claim) =>
      isUnbound(claim) ? [namesNoClass(claim) ? '' : `=${classNameOf(claim)}`] : [],
    );
    this.volumes.addIndex(BY_CLAIM, (volume) =>
      claimKeyOf(volume).map(({ namespace, name }) => `${namespace}/${name}`),
    );
    this.pods.addIndex(BY_CLAIM, (pod) => claimsOfPod(pod).map((name) => `${pod.metadata.namespace}/${name}`));
    this.#events = createEventRecorder(client, { component: 'persistentvolume-controller', clock, log });
  }

  #report(object: Claim | Volume, event: ClaimEvent | undefined): void {
    if (event) this.#events.event(object as PersistentVolumeClaim, event.type, event.reason, event.message);
  }

  async #saveClaim(before: Claim, after: Claim, signal: AbortSignal): Promise<Claim> {
    return (
      (await commit<PersistentVolumeClaim>(this.client, PERSISTENT_VOLUME_CLAIMS, { before, after, signal })) ?? before
    );
  }

  async #saveVolume(before: Volume, after: Volume, signal: AbortSignal): Promise<Volume> {
    return before === after
      ? before
      : ((await commit(this.client, PERSISTENT_VOLUMES, { before, after, signal })) ?? before);
  }

  async #bind(claim: Claim, volume: Volume, signal: AbortSignal): Promise<void> {
    const reserved = await this.#saveVolume(volume, withClaim(volume, claim), signal);
    const taken = await this.#saveVolume(reserved, withPhase(reserved, 'Bound'), signal);
    const named = await this.#saveClaim(claim, withVolume(claim, volume.metadata.name ?? ''), signal);
    await this.#saveClaim(named, boundStatus(named, taken), signal);
  }

  async syncClaim(claim: Claim, signal: AbortSignal): Promise<void> {
    // One that goes is given nothing any more.
    if (claim.metadata.deletionTimestamp !== undefined && isUnbound(claim)) return;
    const step = claimStep(claim, {
      volumes: () => this.volumes.list(),
      volumeNamed: (name) => this.volumes.get(volumeKey(name)),
      classNamed: (name) => this.classes.get(volumeKey(name)),
      classes: () => this.classes.list(),
      waitingPods: () =>
        this.pods
          .byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`)
          .filter((pod) => (pod.spec.nodeName ?? '') === '' && pod.metadata.deletionTimestamp === undefined)
          .map((pod) => pod.metadata.name ?? '')
          .sort(),
    });
    switch (step.type) {
      case 'bind':
        return this.#bind(claim, step.volume, signal);
      case 'set-class':
        await this.#saveClaim(
          claim,
          { ...claim, spec: { ...claim.spec, storageClassName: step.name } } as Claim,
          signal,
        );
        return;
      case 'provision': {
        const asked = { [STORAGE_PROVISIONER]: step.provisioner, [STORAGE_PROVISIONER_BETA]: step.provisioner };
        const annotations = { ...claim.metadata.annotations, ...asked };
        const after = await this.#saveClaim(claim, { ...claim, metadata: { ...claim.metadata, annotations } }, signal);
        if (after !== claim) this.#report(claim, step.event);
        await this.#saveClaim(after, unboundStatus(after, 'Pending'), signal);
        return;
      }
      case 'pending':
        this.#report(claim, step.event);
        await this.#saveClaim(claim, unboundStatus(claim, 'Pending'), signal);
        return;
      case 'lost': {
        // The copy of the volumes lags behind: what it does not hold may just have been made.
        if (step.event.reason === 'ClaimLost' && (await this.#exists(claim.spec?.volumeName, signal))) return;
        const after = unboundStatus(claim, 'Lost');
        if (claim.status?.phase !== 'Lost') this.#report(claim, step.event);
        await this.#saveClaim(claim, after, signal);
        return;
      }
    }
  }

  async #exists(name: string | undefined, signal: AbortSignal): Promise<boolean> {
    return !!name && (await orAbsent(this.client.get(PERSISTENT_VOLUMES, volumeKey(name), { signal }))) !== undefined;
  }

  async syncVolume(volume: Volume, signal: AbortSignal): Promise<void> {
    const [key] = claimKeyOf(volume);
    let claim: Claim | undefined = key && this.claims.get(key);
    const uid = volume.spec?.claimRef?.uid ?? '';
    // Before a volume is let go the server is asked: the copy lags behind.
    if (key && uid !== '' && claim?.metadata.uid !== uid && volume.status?.phase !== 'Released')
      claim = await orAbsent<Claim>(this.client.get(PERSISTENT_VOLUME_CLAIMS, key, { signal }));
    const step = volumeStep(volume, claim);
    switch (step.type) {
      case 'claim':
        this.#report(volume, step.event);
        this.#enqueue(key!);
        return;
      case 'unbind': {
        const free = await this.#saveVolume(volume, unbound(volume), signal);
        await this.#saveVolume(free, withPhase(free, 'Available'), signal);
        return;
      }
      case 'phase': {
        const after = withPhase(volume, step.phase, step.event?.message);
        if (after === volume) return;
        this.#report(volume, step.event);
        await this.#saveVolume(volume, after, signal);
      }
    }
  }
}
