/**
 * For whom the tokens are that a node asks for (feature ServiceAccountNodeAudienceRestriction): for who is named by a
 * projected volume of the Pod. For others it takes a right: the verb `request-serviceaccounts-token-audience` on a
 * resource that is called as the audience is.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { forbidden } from '@coracle/apimachinery/meta/status';
import type { PodParts } from '@coracle/apimachinery/types/types';
import type { Authorizer } from '../auth/identity.ts';
import type { AdmissionAttributes } from './plugin.ts';

/** Validates the audiences of a TokenRequest that is bound to `pod`. Rejects with ApiError 403. */
export async function checkTokenAudience(
  attributes: AdmissionAttributes,
  pod: Readonly<UnstructuredObject>,
  authorize: Authorizer,
): Promise<void> {
  const { info, name, namespace, user, object } = attributes;
  const audiences = (object as { spec?: { audiences?: string[] | null } }).spec?.audiences ?? [];
  if (audiences.length > 1) throw forbidden(info, name, 'node may only request 0 or 1 audiences');
  const audience = audiences[0] ?? '';
  if (isNamedByVolume(pod, audience)) return;
  const decision = await authorize(user, {
    type: 'resource',
    verb: 'request-serviceaccounts-token-audience',
    group: '',
    version: 'v1',
    resource: audience,
    subresource: '',
    namespace,
    name,
  });
  if (decision.allowed) return;
  throw forbidden(
    info,
    name,
    `audience ${JSON.stringify(audience)} not found in pod spec volume, ${user.username} is not authorized to request tokens for this audience`,
  );
}

const isNamedByVolume = (pod: Readonly<UnstructuredObject>, audience: string): boolean =>
  ((pod as PodParts).spec?.volumes ?? [])
    .flatMap(({ projected }) => projected?.sources ?? [])
    .some(({ serviceAccountToken }) => serviceAccountToken && (serviceAccountToken.audience ?? '') === audience);
