/**
 * Who may write what of a CertificateSigningRequest (pkg/registry/certificates): the spec stays as it was made, the
 * approval endpoint writes conditions, the status endpoint everything but what a verdict says.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

interface Condition {
  type: string;
  status?: string;
}

interface Parts {
  status?: { conditions?: Condition[] };
}

/** Approval and denial are given through `/approval` alone. */
const VERDICTS = ['Approved', 'Denied'];

export const isSigningRequest = (info: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  info.group === 'certificates.k8s.io' && info.resource === 'certificatesigningrequests';

/** `object` with what this endpoint may not write taken from `old`. Changes `object`. */
export function keepRequestParts(
  subresource: string,
  { object, old }: { readonly object: UnstructuredObject; readonly old: Readonly<UnstructuredObject> },
): UnstructuredObject {
  object['spec'] = cloneJson(old['spec']);
  const before = cloneJson((old as Parts).status ?? {}) as NonNullable<Parts['status']>;
  const wanted = (object as Parts).status ?? {};
  let status: NonNullable<Parts['status']>;
  if (subresource === 'approval') {
    const { conditions: _, ...rest } = before;
    status = { ...rest, ...(wanted.conditions && { conditions: wanted.conditions }) };
  } else if (subresource === 'status') {
    status = wanted.conditions
      ? { ...wanted, conditions: withVerdicts(wanted.conditions, before.conditions ?? []) }
      : wanted;
  } else status = before;
  if (Object.keys(status).length > 0) object['status'] = status;
  else delete object['status'];
  return object;
}

/** With the verdicts as they were given. Where there are more or fewer of them, admission refuses. */
function withVerdicts(wanted: readonly Condition[], before: readonly Condition[]): Condition[] {
  const next = [...wanted];
  for (const verdict of VERDICTS) {
    const given = before.filter(({ type }) => type === verdict);
    const places = [...next.keys()].filter((at) => next[at]!.type === verdict);
    if (given.length === places.length) for (const [i, at] of places.entries()) next[at] = given[i]!;
  }
  return next;
}
