/** The snapshots of a checkpoint in the pool: their handles follow from its name, so that nobody has to remember them. */
import { uuidV5 } from '../identity/firmware-identity.ts';

/** Namespace of the handles (RFC 4122, version 5). */
const CHECKPOINTS = '6a3c6f0e-57d3-4c52-9d58-0b0f6f1c8e51';

/** Handle of the snapshot of one volume, by the volume's name in the instance. No namespace reaches those of another. */
export const checkpointHandle = (namespace: string, checkpoint: string, volume: string): string =>
  uuidV5(CHECKPOINTS, `${namespace}/${checkpoint}/${volume}`);

/** Finalizer of a tracker whose checkpoint is kept. */
export const CHECKPOINT_FINALIZER = 'coracle.dev/checkpoint';
/** Annotation of such a tracker: names of the volumes in the checkpoint, with commas between. */
export const CHECKPOINT_VOLUMES = 'coracle.dev/checkpoint-volumes';
