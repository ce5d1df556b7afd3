/** The claims whose files this node keeps: listed on its Node, removed when the control plane says that they are gone. */
import { dirname } from 'node:path';
import type { ReadonlyNode } from '@coracle/apimachinery/types/types';
import {
  formatHeldClaims,
  GONE_CLAIMS_ANNOTATION,
  HELD_CLAIMS_ANNOTATION,
  parseHeldClaims,
} from '@coracle/cluster-rules/claims/held-claims';
import type { Logger } from '@coracle/runtime/log/log';
import { listClaimFiles, removeClaimFiles } from '../../disk/claim-files.ts';
import type { Pool } from '../../storage/pool.ts';
import type { VmRecord } from '../launcher/vm-record.ts';

export interface HeldClaims {
  /** For the Node; undefined while there are none and never were. */
  list(): Promise<string | undefined>;
  /** Acts on what the Node says; never rejects. */
  observe(node: ReadonlyNode): Promise<void>;
}

/** Looks after `claims/`. `records` are the guests of this node, those that have ended but are not cleared up among them. */
export function createHeldClaims(options: {
  readonly pool: Pick<Pool, 'directory' | 'deleteVolume'>;
  readonly records: () => readonly (VmRecord | undefined)[];
  readonly log: Logger;
}): HeldClaims {
  const { pool, records, log } = options;
  let isListed = false;
  // Of a guest that an older version started it is not known what it has open.
  const inUse = (directory: string): boolean =>
    records().some((record) => record && (record.files?.some((file) => dirname(file) === directory) ?? true));
  return {
    async list() {
      const text = formatHeldClaims(await listClaimFiles(pool.directory));
      return text === '' && !isListed ? undefined : text;
    },
    async observe({ metadata }) {
      isListed = (metadata.annotations?.[HELD_CLAIMS_ANNOTATION] ?? '') !== '';
      const gone = parseHeldClaims(metadata.annotations?.[GONE_CLAIMS_ANNOTATION]);
      try {
        const uids = gone.map(({ uid }) => uid);
        const removed = await removeClaimFiles(pool, uids, inUse);
        if (removed.length > 0) log.info('files of deleted claims removed', { claims: removed.join() });
      } catch (error) {
        log.warn('files of deleted claims not removed', { error: (error as Error).message });
      }
    },
  };
}
