/**
 * The persistentvolume controller of kube-controller-manager: binds claims and volumes, reports their phases, and asks
 * provisioners for volumes. What is to be done is decided by `domain/storage` (`claimStep`, `volumeStep`); here it is
 * written.
 *
 * Keys without a namespace are volumes, the others claims. A binding is four writes in the order of
 * `domain/storage/bind-writes.ts`; a pass that stops in between, or whose copy was stale (409), is begun again and ends
 * the same way, because the volume's claimRef decides.
 */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  PODS,
  STORAGE_CLASSES,
} from '../../api/kinds/builtin/resource-types.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/kinds/builtin/types.ts';
import { claimsOfPod, classNameOf, namesNoClass } from '../../api/kinds/builtin/volume-claims.ts';
import type { DeepReadonly, ObjectKey } from '../../api/meta/object.ts';
import { keyOf } from '../../api/meta/object.ts';
import { isNotFound } from '../../client/api-failure.ts';
import { commit } from '../../client/commit/commit.ts';
import { type Controller, createController, DONE, ownKeys, source } from '../../client/controller/controller.ts';
import type { ControllerEnvironment } from '../../client/controller/environment.ts';
import { createEventRecorder } from '../../client/events/recorder.ts';
import { boundStatus, unboundStatus, withClaim, withPhase, withVolume } from '../../domain/storage/bind-writes.ts';
import {
  BIND_COMPLETED,
  type ClaimEvent,
  claimStep,
  STORAGE_PROVISIONER,
  STORAGE_PROVISIONER_BETA,
} from '../../domain/storage/claim-step.ts';
import { unbound, volumeStep } from '../../domain/storage/volume-step.ts';

type Claim = DeepReadonly<PersistentVolumeClaim>;
type Volume = DeepReadonly<PersistentVolume>;

const BY_VOLUME = 'persistentvolume.claimed-volume';
const BY_CLASS = 'persistentvolume.class';
const BY_CLAIM = 'persistentvolume.claim';
const CONCURRENCY = 8;

/** Rights the controller needs, and no others. */
export const volumeControllerRules: PolicyRule[] = [
  {
    apiGroups: [''],
    resources: ['persistentvolumes', 'persistentvolumeclaims'],
    verbs: ['get', 'list', 'watch', 'patch'],
  },
  { apiGroups: [''], resources: ['persistentvolumes/status', 'persistentvolumeclaims/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

const claimKeyOf = ({ spec }: Volume): ObjectKey[] =>
  spec?.claimRef ? [{ namespace: spec.claimRef.namespace ?? '', name: spec.claimRef.name ?? '' }] : [];
const volumeKey = (name: string): ObjectKey => ({ namespace: '', name });
const isUnbound = ({ metadata, spec }: Claim): boolean =>
  (spec?.volumeName ?? '') === '' && metadata.annotations?.[BIND_COMPLETED] === undefined;

/** Makes the controller. */
export function createVolumeController(environment: ControllerEnvironment): Controller {
  const { client, informers, clock, log } = environment;
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const classes = informers.of(STORAGE_CLASSES);
  const pods = informers.of(PODS);
  claims.addIndex(BY_VOLUME, (claim) => (claim.spec?.volumeName ? [claim.spec.volumeName] : []));
  claims.addIndex(BY_CLASS, (claim) => (isUnbound(claim) ? [namesNoClass(claim) ? '' : `=${classNameOf(claim)}`] : []));
  volumes.addIndex(BY_CLAIM, (volume) => claimKeyOf(volume).map(({ namespace, name }) => `${namespace}/${name}`));
  pods.addIndex(BY_CLAIM, (pod) => claimsOfPod(pod).map((name) => `${pod.metadata.namespace}/${name}`));
  const events = createEventRecorder(client, { component: 'persistentvolume-controller', clock, log });
  const tell = (object: Claim | Volume, event: ClaimEvent | undefined): void => {
    if (event) events.event(object as PersistentVolumeClaim, event.type, event.reason, event.message);
  };
  const saveClaim = async (before: Claim, after: Claim, signal: AbortSignal): Promise<Claim> =>
    (await commit<PersistentVolumeClaim>(client, PERSISTENT_VOLUME_CLAIMS, { before, after, signal })) ?? before;
  const saveVolume = async (before: Volume, after: Volume, signal: AbortSignal): Promise<Volume> =>
    before === after ? before : ((await commit(client, PERSISTENT_VOLUMES, { before, after, signal })) ?? before);

  const bind = async (claim: Claim, volume: Volume, signal: AbortSignal): Promise<void> => {
    const reserved = await saveVolume(volume, withClaim(volume, claim), signal);
    const taken = await saveVolume(reserved, withPhase(reserved, 'Bound'), signal);
    const named = await saveClaim(claim, withVolume(claim, volume.metadata.name ?? ''), signal);
    await saveClaim(named, boundStatus(named, taken), signal);
  };

  const syncClaim = async (claim: Claim, signal: AbortSignal): Promise<void> => {
    // One that goes is given nothing any more.
    if (claim.metadata.deletionTimestamp !== undefined && isUnbound(claim)) return;
    const step = claimStep(claim, {
      volumes: () => volumes.list(),
      volumeNamed: (name) => volumes.get(volumeKey(name)),
      classNamed: (name) => classes.get(volumeKey(name)),
      classes: () => classes.list(),
      waitingPods: () =>
        pods
          .byIndex(BY_CLAIM, `${claim.metadata.namespace}/${claim.metadata.name}`)
          .filter((pod) => (pod.spec.nodeName ?? '') === '' && pod.metadata.deletionTimestamp === undefined)
          .map((pod) => pod.metadata.name ?? '')
          .sort(),
    });
    switch (step.type) {
      case 'bind':
        return bind(claim, step.volume, signal);
      case 'set-class':
        await saveClaim(claim, { ...claim, spec: { ...claim.spec, storageClassName: step.name } } as Claim, signal);
        return;
      case 'provision': {
        const asked = { [STORAGE_PROVISIONER]: step.provisioner, [STORAGE_PROVISIONER_BETA]: step.provisioner };
        const annotations = { ...claim.metadata.annotations, ...asked };
        const after = await saveClaim(claim, { ...claim, metadata: { ...claim.metadata, annotations } }, signal);
        if (after !== claim) tell(claim, step.event);
        await saveClaim(after, unboundStatus(after, 'Pending'), signal);
        return;
      }
      case 'pending':
        tell(claim, step.event);
        await saveClaim(claim, unboundStatus(claim, 'Pending'), signal);
        return;
      case 'lost': {
        // The copy of the volumes lags behind: what it does not hold may just have been made.
        if (step.event.reason === 'ClaimLost' && (await exists(claim.spec?.volumeName, signal))) return;
        const after = unboundStatus(claim, 'Lost');
        if (claim.status?.phase !== 'Lost') tell(claim, step.event);
        await saveClaim(claim, after, signal);
        return;
      }
    }
  };

  const exists = async (name: string | undefined, signal: AbortSignal): Promise<boolean> =>
    !!name && (await found(client.get(PERSISTENT_VOLUMES, volumeKey(name), { signal }))) !== undefined;

  const syncVolume = async (volume: Volume, signal: AbortSignal): Promise<void> => {
    const [key] = claimKeyOf(volume);
    let claim: Claim | undefined = key && claims.get(key);
    const uid = volume.spec?.claimRef?.uid ?? '';
    // Before a volume is let go the server is asked: the copy lags behind.
    if (key && uid !== '' && claim?.metadata.uid !== uid && volume.status?.phase !== 'Released')
      claim = await found<Claim>(client.get(PERSISTENT_VOLUME_CLAIMS, key, { signal }));
    const step = volumeStep(volume, claim);
    switch (step.type) {
      case 'claim':
        tell(volume, step.event);
        controller.enqueue(key!);
        return;
      case 'unbind': {
        const free = await saveVolume(volume, unbound(volume), signal);
        await saveVolume(free, withPhase(free, 'Available'), signal);
        return;
      }
      case 'phase': {
        const after = withPhase(volume, step.phase, step.event?.message);
        if (after === volume) return;
        tell(volume, step.event);
        await saveVolume(volume, after, signal);
      }
    }
  };

  const controller = createController({
    name: 'persistentvolume-binder-controller',
    client,
    clock,
    log,
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(claims),
      ownKeys(volumes),
      source(claims, (claim) => (claim.spec?.volumeName ? [volumeKey(claim.spec.volumeName)] : [])),
      // A claim that is gone, or bound elsewhere, may leave volumes behind that were made for it.
      source(claims, ({ metadata }) => volumes.byIndex(BY_CLAIM, `${metadata.namespace}/${metadata.name}`).map(keyOf)),
      source(volumes, (volume) => [
        ...claims.byIndex(BY_VOLUME, volume.metadata.name ?? '').map(keyOf),
        ...claimKeyOf(volume),
        // One that is free may be what others wait for.
        ...(volume.status?.phase === 'Available' && !volume.spec?.claimRef
          ? claims.byIndex(BY_CLASS, `=${classNameOf(volume)}`).map(keyOf)
          : []),
      ]),
      source(classes, ({ metadata }) =>
        [...claims.byIndex(BY_CLASS, ''), ...claims.byIndex(BY_CLASS, `=${metadata.name}`)].map(keyOf),
      ),
      source(pods, (pod, previous) =>
        previous === undefined
          ? claimsOfPod(pod).map((name) => ({ namespace: pod.metadata.namespace ?? '', name }))
          : [],
      ),
    ],
    async reconcile(key, { signal }) {
      try {
        const volume = key.namespace === '' ? volumes.get(key) : undefined;
        const claim = key.namespace === '' ? undefined : claims.get(key);
        if (volume) await syncVolume(volume, signal);
        else if (claim) await syncClaim(claim, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return DONE;
    },
  });
  return controller;
}

async function found<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
