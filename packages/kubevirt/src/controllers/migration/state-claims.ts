/**
 * The claims with the firmware state of an instance that moves (upstream's backend storage). One that both nodes may have
 * open serves source and target; else the target fills a second one, labelled with the name of the migration: on success
 * it becomes the claim in use and the source's is deleted, otherwise it is deleted itself. Every step may be repeated.
 */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { isNotFound } from '@coracle/client/api-failure';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { KUBEVIRTS, type ReadonlyMigration, type ReadonlyVmi } from '../../kinds/kubevirt.ts';
import {
  backendStorageClaimOf,
  needsBackendStorage,
  newStateClaim,
  STATE_LABEL,
  STATE_MIGRATION_LABEL,
} from '../../rules/backend-storage/backend-storage.ts';
import { isStateClaimReady, NO_STATE_CLASS, stateClass } from '../../rules/backend-storage/state-class.ts';

/** The names of both claims, the same where one serves both. */
export interface StateClaimPair {
  readonly source: string;
  readonly target: string;
}

export interface MigrationStateClaims {
  /** Sees to the claim of the target: undefined where the instance needs none, 'wait' while it cannot be used yet. */
  prepare(migration: ReadonlyMigration, vmi: ReadonlyVmi): Promise<StateClaimPair | undefined | 'wait'>;
  /** The migration has ended: the claim that counts is the target's when the guest `moved`. */
  settle(migration: ReadonlyMigration, moved: boolean): Promise<void>;
}

/** Rights beside those the controller has anyway. */
export const stateClaimRules = policyRules(
  'get list watch create patch delete : core : persistentvolumeclaims',
  'get list watch : storage.k8s.io : storageclasses',
  // A claim that blocks its owner's deletion takes this right on the owner.
  'update : kubevirt.io : virtualmachines/finalizers',
);

/** Makes them; informers asked for here are started by the set's owner. */
export function createMigrationStateClaims({
  client,
  informers,
}: Pick<ControllerEnvironment, 'client' | 'informers'>): MigrationStateClaims {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const classes = informers.of(STORAGE_CLASSES);
  const kubevirts = informers.of(KUBEVIRTS);
  const list = async (namespace: string): Promise<readonly ReadonlyClaim[]> =>
    (await client.list(PERSISTENT_VOLUME_CLAIMS, { namespace })).items;
  const ofTarget = (all: readonly ReadonlyClaim[], { metadata }: ReadonlyMigration): ReadonlyClaim | undefined =>
    all.find((claim) => !isDeleting(claim) && claim.metadata.labels?.[STATE_MIGRATION_LABEL] === metadata.name);
  const remove = async (claim: ReadonlyClaim): Promise<void> => {
    try {
      const preconditions = { uid: claim.metadata.uid ?? '' };
      await client.delete(PERSISTENT_VOLUME_CLAIMS, keyOf(claim), { preconditions });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  };

  return {
    async prepare(migration, vmi) {
      if (!needsBackendStorage(vmi.spec)) return undefined;
      const namespace = vmi.metadata.namespace ?? '';
      const source = backendStorageClaimOf(vmi, claims.list(namespace));
      if (!source) throw new Error('no backend-storage PVC found for the instance');
      const name = source.metadata.name ?? '';
      const modes = source.status?.accessModes ?? source.spec?.accessModes ?? [];
      if (modes.includes('ReadWriteMany')) return { source: name, target: name };
      // Asked of the API: a cache that lags would have a second one made.
      let target = ofTarget(await list(namespace), migration);
      if (!target) {
        const found = stateClass(classes.list(), kubevirts.list()[0]?.spec?.configuration?.vmStateStorageClass);
        if (!found) throw new Error(NO_STATE_CLASS);
        const claim = newStateClaim(vmi, { ...found, migration: migration.metadata.name ?? '' });
        target = await client.create(PERSISTENT_VOLUME_CLAIMS, claim);
      }
      const classOf = (wanted: string) => classes.get({ namespace: '', name: wanted });
      if (!isStateClaimReady(target, classOf)) return 'wait';
      return { source: name, target: target.metadata.name ?? '' };
    },
    async settle(migration, moved) {
      const namespace = migration.metadata.namespace ?? '';
      // Most migrations have none, and the cache shows it.
      const pending = ofTarget(claims.list(namespace), migration);
      if (!pending) return;
      const all = await list(namespace);
      const target = ofTarget(all, migration);
      if (!target) return;
      if (!moved) return remove(target);
      const name = migration.spec.vmiName ?? '';
      const used = all.filter(({ metadata }) => metadata.labels?.[STATE_LABEL] === name);
      // First the target's: with both labelled it is the newer one that counts.
      const metadata = { uid: target.metadata.uid, labels: { [STATE_LABEL]: name } };
      await client.patch(PERSISTENT_VOLUME_CLAIMS, keyOf(target), { type: 'merge', body: { metadata } });
      for (const claim of used) if (claim.metadata.uid !== target.metadata.uid) await remove(claim);
      // Last, since this label is what a pass after a crash finds the rest of the work by.
      const done = { uid: target.metadata.uid, labels: { [STATE_MIGRATION_LABEL]: null } };
      await client.patch(PERSISTENT_VOLUME_CLAIMS, keyOf(target), { type: 'merge', body: { metadata: done } });
    },
  };
}
