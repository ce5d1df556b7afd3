/** Which DataVolume (CDI) a claim belongs to. Not every cluster serves them. */

import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';

/** Name of the DataVolume that controls a claim. */
export const ownerDataVolume = ({ metadata }: ReadonlyClaim): string | undefined =>
  metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'DataVolume')?.name;
