/** The steps of a DataVolume: its claim, then a volume in a pool that is filled, then the PersistentVolume for it. */
import { controllerOf, controllerReference, isControlledBy } from '@coracle/apimachinery/meta/controller-reference';
import { keyOf, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim, ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { commit } from '@coracle/client/commit/commit';
import { defaultClassOf } from '@coracle/cluster-rules/storage/default-class';
import { isLeftToPopulator } from '@coracle/cluster-rules/storage/provision-plan';
import { DATA_VOLUMES, type ReadonlyDataVolume, STORAGE_PROFILES } from '../../kinds/kinds.ts';
import {
  ALLOW_ADOPTION,
  BIND_IMMEDIATELY,
  claimOfDataVolume,
  PREPOPULATED,
} from '../../rules/data-volume/claim-of-data-volume.ts';
import { type DataVolumeSource, sourceOfDataVolume, workOf } from '../../rules/data-volume/data-volume-source.ts';
import { nextAttemptAt } from '../../rules/data-volume/data-volume-status.ts';
import { propertySetsOf } from '../../rules/data-volume/storage-profile.ts';
import { withUploadAnnotations } from '../../rules/data-volume/upload-annotations.ts';
import { POPULATED_FOR_ANNOTATION } from '../../rules/snapshot/restored-claim.ts';
import { ClaimFilling, type ClaimFillingOptions, MISSING_MS, type StepResult, withReason } from './claim-filling.ts';

const VIRT_DEFAULT_CLASS = 'storageclass.kubevirt.io/is-default-virt-class';
/** What the passes of all DataVolumes share, and those of claims that are filled without one. */
export class DataVolumeSteps {
  readonly client;
  readonly dataVolumes;
  readonly claims;
  readonly classes;
  readonly nodes;
  readonly profiles;
  readonly #filling: ClaimFilling;

  constructor(options: ClaimFillingOptions) {
    const { client, informers } = options;
    this.client = client;
    this.dataVolumes = informers.of(DATA_VOLUMES);
    this.claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
    this.profiles = informers.of(STORAGE_PROFILES);
    this.#filling = new ClaimFilling(options);
    this.classes = this.#filling.classes;
    this.nodes = this.#filling.nodes;
  }

  /** Takes the next step. Errors of the API are thrown; what a user can correct is an outcome. */
  async step(dataVolume: ReadonlyDataVolume, signal: AbortSignal): Promise<StepResult> {
    const { namespace = '', name = '' } = dataVolume.metadata;
    const source = sourceOfDataVolume(dataVolume.spec, namespace);
    const work = workOf(source);
    const claim = this.claims.get({ namespace, name });
    await this.#filling.forgetOthers(keyOf(dataVolume), claim, signal);
    const result = await withReason(claim, async () => {
      if (!claim) return this.#makeClaim(dataVolume, source);
      if (!isControlledBy(claim, dataVolume.metadata.uid)) return this.#takeClaim(dataVolume, claim);
      if (claim.status?.phase === 'Bound') return this.#filling.end(claim, work);
      if (!source || !isLeftToPopulator(claim))
        // A claim that fills itself, or was taken over: its provisioner makes it.
        return { outcome: { type: 'waiting', message: 'PVC Pending' }, claim, againMs: MISSING_MS };
      return this.#filling.fill(
        {
          claim,
          source,
          attempt: dataVolume.status?.restartCount ?? 0,
          notBefore: nextAttemptAt(dataVolume.status),
          isImmediate: dataVolume.metadata.annotations?.[BIND_IMMEDIATELY] !== undefined,
        },
        signal,
      );
    });
    if (work !== 'Upload' || !result.claim) return result;
    await this.#annotate(result.claim, result);
    return result.outcome.type === 'waiting' ? { ...result, outcome: { ...result.outcome, work } } : result;
  }

  /** The same for a claim that is to be filled by an upload and that no DataVolume has made. */
  async stepClaim(claim: ReadonlyClaim, signal: AbortSignal): Promise<StepResult> {
    await this.#filling.forgetOthers(keyOf(claim), claim, signal);
    const result = await withReason(claim, async () => {
      if (claim.status?.phase === 'Bound') return this.#filling.end(claim, 'Upload');
      const isImmediate = claim.metadata.annotations?.[BIND_IMMEDIATELY] !== undefined;
      return this.#filling.fill({ claim, source: { type: 'upload' }, attempt: 0, notBefore: 0, isImmediate }, signal);
    });
    await this.#annotate(claim, result);
    return result;
  }

  /** Says on the claim how far its upload is. */
  async #annotate(claim: ReadonlyClaim, { outcome }: StepResult): Promise<void> {
    await commit(this.client, PERSISTENT_VOLUME_CLAIMS, {
      before: claim,
      after: withUploadAnnotations(claim, outcome),
    });
  }

  /** Ends what is being made for a claim that is gone. */
  forget(key: ObjectKey, signal: AbortSignal): Promise<void> {
    return this.#filling.forget(key, signal);
  }

  async #makeClaim(dataVolume: ReadonlyDataVolume, source: DataVolumeSource | undefined): Promise<StepResult> {
    const { metadata, status, spec } = dataVolume;
    if (metadata.annotations?.[PREPOPULATED] !== undefined && metadata.annotations[PREPOPULATED] !== 'false')
      return { outcome: { type: 'waiting', message: 'Waits for the claim that is filled already' }, claim: undefined };
    // Content that was there once is not made up for by fetching it again.
    if (status?.phase === 'Succeeded' || metadata.deletionTimestamp !== undefined)
      return { outcome: { type: 'waiting', reason: 'NotFound', message: 'The claim is gone' }, claim: undefined };
    const asked = spec.pvc ?? spec.storage;
    const className = asked?.storageClassName ?? this.#defaultClass();
    const clone = source && (await this.#filling.cloneSource(source));
    const wanted = claimOfDataVolume(dataVolume, {
      propertySets: propertySetsOf(
        className === undefined ? undefined : this.classes.get({ namespace: '', name: className }),
        className === undefined ? undefined : this.profiles.get({ namespace: '', name: className }),
      ),
      className,
      ...(clone && { sourceBytes: clone.bytes }),
    });
    if ('problem' in wanted)
      // virtctl ends an upload with what an event of this reason says.
      return {
        outcome: { type: 'waiting', reason: 'ErrClaimNotValid', message: wanted.problem },
        claim: undefined,
        againMs: MISSING_MS,
      };
    // A claim that names no class waits for a default one.
    const { claim } = wanted;
    if (className !== undefined && claim.spec) claim.spec.storageClassName = className;
    const made = await this.client.create(PERSISTENT_VOLUME_CLAIMS, claim);
    return { outcome: { type: 'waiting', message: `PVC ${made.metadata.name} Pending` }, claim: made as ReadonlyClaim };
  }

  #defaultClass(): string | undefined {
    const classes = this.classes.list();
    const virt = classes.find(({ metadata }) => metadata.annotations?.[VIRT_DEFAULT_CLASS] === 'true');
    return (virt ?? defaultClassOf(classes))?.metadata.name;
  }

  /** A claim of the name that somebody else made: taken over where that is allowed, else in the way. */
  async #takeClaim(dataVolume: ReadonlyDataVolume, claim: ReadonlyClaim): Promise<StepResult> {
    const { name } = dataVolume.metadata;
    const annotations = dataVolume.metadata.annotations ?? {};
    const isFilled =
      claim.metadata.annotations?.[POPULATED_FOR_ANNOTATION] === name ||
      annotations[PREPOPULATED] === name ||
      annotations[ALLOW_ADOPTION] === 'true';
    const isFree = !controllerOf(claim);
    if (!isFilled || !isFree)
      return {
        outcome: {
          type: 'waiting',
          reason: 'ErrResourceExists',
          message: `Resource "${name}" already exists and is not managed by DataVolume`,
        },
        claim: undefined,
      };
    const after = {
      ...claim,
      metadata: {
        ...claim.metadata,
        ownerReferences: [...(claim.metadata.ownerReferences ?? []), controllerReference(dataVolume)],
      },
    } as PersistentVolumeClaim;
    const stored = await commit(this.client, PERSISTENT_VOLUME_CLAIMS, { before: claim, after });
    return { outcome: { type: 'waiting', message: `PVC ${name} Pending` }, claim: (stored ?? claim) as ReadonlyClaim };
  }
}
