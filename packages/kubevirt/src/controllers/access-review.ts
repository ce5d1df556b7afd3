/** Rights of others: the API server is asked by a SubjectAccessReview. */
import type { Client } from '@coracle/client/client';

export interface Subject {
  readonly username: string;
  readonly groups: readonly string[];
  readonly uid?: string | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

export interface ReviewedResource {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace: string;
  readonly name: string;
}

/** Throws ApiError when it cannot be asked. */
export async function isAllowed(
  client: Client,
  { username, groups, uid, extra }: Subject,
  resourceAttributes: ReviewedResource,
): Promise<boolean> {
  const review = (await client.raw('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', {
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: username, groups: [...groups], ...(uid && { uid }), ...(extra && { extra }), resourceAttributes },
    },
  })) as { status?: { allowed?: boolean } };
  return review.status?.allowed === true;
}
