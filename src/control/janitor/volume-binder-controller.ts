/**
 * Binds claims to the PersistentVolumes that administrators made for them (pkg/controller/volume/persistentvolume): a
 * claim that names a free volume gets it, a volume that is reserved for a claim is completed with that claim's uid, and
 * a volume that is another claim's stays what it is. Nothing is provisioned here, and a claim that neither names a
 * volume nor is named by one is left alone: agents keep its content by its uid.
 *
 * Order: the volume's `claimRef` is written first, under the revision that was read. Of two claims that ask for the
 * same volume one is thus refused by the server, whatever either was told before.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../api/kinds/builtin/resource-types.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/kinds/builtin/types.ts';
import { holdingOf, mismatchOf } from '../../api/kinds/builtin/volume-claims.ts';
import { type DeepReadonly, keyOf } from '../../api/meta/object.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import { type Controller, createController, DONE, ownKeys, source } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;
type Volume = DeepReadonly<PersistentVolume>;

const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
const BY_VOLUME = 'volume-binder.volume';
const BY_CLAIM = 'volume-binder.claim';

export const volumeBinderRules: PolicyRule[] = [
  {
    apiGroups: [''],
    resources: ['persistentvolumes', 'persistentvolumeclaims'],
    verbs: ['list', 'watch', 'patch'],
  },
  { apiGroups: [''], resources: ['persistentvolumes/status', 'persistentvolumeclaims/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

const claimKey = ({ spec }: Volume): string[] =>
  spec?.claimRef ? [`${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}`] : [];

/** Makes the controller. */
export function createVolumeBinderController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  claims.addIndex(BY_VOLUME, (claim) => (claim.spec?.volumeName ? [claim.spec.volumeName] : []));
  volumes.addIndex(BY_CLAIM, claimKey);
  const events = createEventRecorder(client, { component: 'persistentvolume-controller', clock, log });

  /** The one it names; else one that is kept for it. */
  const volumeFor = (claim: Claim): Volume | undefined => {
    if (claim.spec?.volumeName) return volumes.get({ namespace: '', name: claim.spec.volumeName });
    return volumes
      .byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`)
      .find((volume) => holdingOf(volume, claim) !== 'other' && mismatchOf(volume, claim) === undefined);
  };

  const bind = async (claim: Claim, volume: Volume, signal: AbortSignal): Promise<void> => {
    const holding = holdingOf(volume, claim);
    if (holding !== 'bound') {
      await commit(client, PERSISTENT_VOLUMES, { before: volume, after: takenBy(volume, claim, holding), signal });
      return; // The claim follows once the volume is seen to be its own.
    }
    const named = withVolume(claim, volume.metadata.name ?? '');
    if (await commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after: named, signal }))
      return;
    const status = {
      ...claim.status,
      phase: 'Bound' as const,
      ...(volume.spec?.accessModes && { accessModes: volume.spec.accessModes }),
      ...(volume.spec?.capacity && { capacity: volume.spec.capacity }),
    };
    const after: Claim = { ...claim, status };
    await commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after, signal });
  };

  return createController({
    name: 'persistentvolume-binder-controller',
    client,
    clock,
    log,
    sources: [
      ownKeys(claims),
      source(volumes, (volume) => [
        ...claims.byIndex(BY_VOLUME, volume.metadata.name ?? '').map(keyOf),
        // Volumes have no namespace, and so does no claim lack one: one queue for both.
        { namespace: '', name: volume.metadata.name ?? '' },
        ...claimKey(volume).map((key) => ({ namespace: key.split('/')[0] ?? '', name: key.split('/')[1] ?? '' })),
      ]),
      source(claims, (claim) =>
        [...(claim.spec?.volumeName ? [claim.spec.volumeName] : [])].map((name) => ({ namespace: '', name })),
      ),
    ],
    async reconcile(key, { signal }) {
      try {
        if (key.namespace === '') {
          const volume = volumes.get(key);
          if (volume) await sayPhase(volume, signal);
          return DONE;
        }
        const claim = claims.get(key);
        if (!claim || claim.metadata.deletionTimestamp !== undefined) return DONE;
        const volume = volumeFor(claim);
        if (!volume) return DONE;
        const holding = holdingOf(volume, claim);
        if (holding === 'other') {
          if (claim.status?.phase !== 'Bound')
            events.event(
              claim as PersistentVolumeClaim,
              'Warning',
              'FailedBinding',
              `volume "${volume.metadata.name}" already bound to a different claim.`,
            );
          return DONE;
        }
        const mismatch = holding === 'free' ? mismatchOf(volume, claim) : undefined;
        if (mismatch !== undefined) {
          const message = `Cannot bind to requested volume "${volume.metadata.name}": ${mismatch}`;
          events.event(claim as PersistentVolumeClaim, 'Warning', 'VolumeMismatch', message);
          return DONE;
        }
        await bind(claim, volume, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return DONE;
    },
  });

  async function sayPhase(volume: Volume, signal: AbortSignal): Promise<void> {
    const reference = volume.spec?.claimRef;
    const claim = reference && claims.get({ namespace: reference.namespace ?? '', name: reference.name ?? '' });
    const held = claim && holdingOf(volume, claim) === 'bound';
    const phase = !reference || (reference.uid ?? '') === '' ? 'Available' : held ? 'Bound' : 'Released';
    if (volume.status?.phase === phase) return;
    const after = { ...volume, status: { ...volume.status, phase } };
    await commit(client, PERSISTENT_VOLUMES, { before: volume, after, signal });
  }
}

function takenBy(volume: Volume, claim: Claim, holding: 'free' | 'reserved' | 'other'): Volume {
  const { namespace, name, uid, resourceVersion } = claim.metadata;
  const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion };
  return {
    ...volume,
    metadata:
      holding === 'free'
        ? { ...volume.metadata, annotations: { ...volume.metadata.annotations, [BOUND_BY_CONTROLLER]: 'yes' } }
        : volume.metadata,
    spec: { ...volume.spec, claimRef: { ...volume.spec?.claimRef, ...claimRef } },
  } as Volume;
}

const withVolume = (claim: Claim, volumeName: string): Claim => ({
  ...claim,
  metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, [BIND_COMPLETED]: 'yes' } },
  spec: { ...claim.spec, volumeName },
});
