/** The flags of `coracle up` that say how many bytes of objects are taken; `byte-limits.ts` reads them. */
import { type FlagSpec, valueFlag } from './command.ts';

/** Of all objects together: etcd's name. */
export const TOTAL = 'quota-backend-bytes';
export const NAMESPACE = 'quota-namespace-bytes';

export const BYTE_LIMIT_FLAGS: Readonly<Record<string, FlagSpec>> = {
  [TOTAL]: valueFlag('BYTES', 'objects that may be stored in all, as 8Gi (default: 2Gi)'),
  [NAMESPACE]: valueFlag(
    'BYTES',
    'objects of one namespace without annotation coracle.dev/max-object-bytes (default: 512Mi)',
  ),
};
