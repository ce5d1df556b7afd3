/** Whether who asks may read an object whose labels a decision would show them. */

import type { Client } from '@coracle/client/client';
import type { InferenceRef } from '../../../rules/instancetype/infer.ts';
import type { AdmissionUser } from './admission-context.ts';

/** What is to be read: `group` of the resource beside the names. */
export type ReadTarget = InferenceRef & { readonly group: string };

/** Asks the API server by a SubjectAccessReview for `get`. Throws ApiError when it cannot be asked. */
export async function mayRead(client: Client, user: AdmissionUser, target: ReadTarget): Promise<boolean> {
  const { group, resource, namespace, name } = target;
  const review = (await client.raw('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: {
        user: user.username,
        groups: [...user.groups],
        ...(user.uid && { uid: user.uid }),
        ...(user.extra && { extra: user.extra }),
        resourceAttributes: { group, resource, namespace, name, verb: 'get' },
      },
    },
  })) as { status?: { allowed?: boolean } };
  return review.status?.allowed === true;
}
