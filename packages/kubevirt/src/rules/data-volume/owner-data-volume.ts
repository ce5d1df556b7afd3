/** Which DataVolume (CDI) a claim belongs to. Not every cluster serves them. */

import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';

/** Name of the DataVolume that controls a claim. */
export const ownerDataVolume = (claim: ReadonlyClaim): string | undefined => controllerOf(claim, 'DataVolume')?.name;
