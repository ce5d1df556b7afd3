/** Whether who asks may read an object whose labels a decision would show them. */

import type { Client } from '@coracle/client/client';
import type { InferenceRef } from '../../../rules/instancetype/infer.ts';
import { isAllowed } from '../../access-review.ts';
import type { AdmissionUser } from './admission-context.ts';

/** What is to be read: `group` of the resource beside the names. */
export type ReadTarget = InferenceRef & { readonly group: string };

/** Throws ApiError when the API server cannot be asked. */
export const mayRead = (
  client: Client,
  user: AdmissionUser,
  { group, resource, namespace, name }: ReadTarget,
): Promise<boolean> => isAllowed(client, user, { group, resource, namespace, name, verb: 'get' });
