/**
 * Tells nodes which of the claims they hold in files are gone (annotation on the Node, `cluster-rules/claims`). A claim is gone
 * when no object has its UID; its finalizer has kept it until no Pod used it. A class whose policy is Retain keeps the
 * files, and so does a class that is gone: nobody knows then what it said.
 */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NODES, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '@coracle/apimachinery/types/resource-types';
import { isNotFound } from '@coracle/client/api-failure';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import {
  formatHeldClaims,
  GONE_CLAIMS_ANNOTATION,
  HELD_CLAIMS_ANNOTATION,
  type HeldClaim,
  parseHeldClaims,
} from '@coracle/cluster-rules/claims/held-claims';

export const claimFilesRules = policyRules(
  'list watch patch : core : nodes',
  'list watch : core : persistentvolumeclaims',
  'list watch : storage.k8s.io : storageclasses',
);

const BY_UID = 'claim-files.uid';

/** Makes the controller; its keys are Nodes. */
export function createClaimFilesController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const nodes = informers.of(NODES);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const classes = informers.of(STORAGE_CLASSES);
  claims.addIndex(BY_UID, ({ metadata }) => [metadata.uid ?? '']);
  nodes.addIndex(BY_UID, (node) => heldBy(node).map(({ uid }) => uid));

  /** Classes are few: one that is not in the cache yet only delays, as one that is gone does. */
  const isDeleted = ({ storageClass }: HeldClaim): boolean => {
    if (storageClass === '') return true;
    const found = classes.get({ namespace: '', name: storageClass });
    return found !== undefined && (found.reclaimPolicy ?? 'Delete') === 'Delete';
  };

  return createController({
    ...environment,
    name: 'claim-files-controller',
    sources: [
      ownKeys(nodes),
      source(claims, ({ metadata }) =>
        nodes.byIndex(BY_UID, metadata.uid ?? '').map((node) => ({ namespace: '', name: node.metadata.name ?? '' })),
      ),
    ],
    async reconcile(key, { signal, log: passLog }) {
      const node = nodes.get(key);
      if (!node) return;
      let gone = heldBy(node).filter((held) => claims.byIndex(BY_UID, held.uid).length === 0 && isDeleted(held));
      if (gone.length > 0) {
        // The copy here lags behind: a claim that was just made may have its files already.
        const { items } = await client.list(PERSISTENT_VOLUME_CLAIMS, { metadataOnly: true, signal });
        const present = new Set(items.map(({ metadata }) => metadata.uid));
        gone = gone.filter(({ uid }) => !present.has(uid));
      }
      const wanted = formatHeldClaims(gone.map(({ uid }) => ({ uid, storageClass: '' })));
      const listed = node.metadata.annotations?.[GONE_CLAIMS_ANNOTATION] ?? '';
      if (wanted === listed) return;
      const annotations = { [GONE_CLAIMS_ANNOTATION]: wanted === '' ? null : wanted };
      const body = { metadata: { uid: node.metadata.uid, annotations } };
      try {
        await client.patch(NODES, key, { type: 'merge', body }, { signal });
        if (wanted !== '') passLog.info('files of deleted claims are to go', { node: key.name, claims: gone.length });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  });
}

const heldBy = ({
  metadata,
}: DeepReadonly<{ metadata: { annotations?: Readonly<Record<string, string>> } }>): HeldClaim[] =>
  parseHeldClaims(metadata.annotations?.[HELD_CLAIMS_ANNOTATION]);
