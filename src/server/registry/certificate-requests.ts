/**
 * Who may write what of a CertificateSigningRequest (pkg/registry/certificates): the spec stays as it was made, the
 * approval endpoint writes conditions, the status endpoint everything but the verdict.
 */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';

interface Condition {
  type: string;
  status?: string;
}

interface Parts {
  status?: { conditions?: Condition[] };
}

/** Approval and denial are given through `/approval` alone. */
const VERDICTS = new Set(['Approved', 'Denied']);

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
    const verdicts = (before.conditions ?? []).filter(({ type }) => VERDICTS.has(type));
    const others = (wanted.conditions ?? []).filter(({ type }) => !VERDICTS.has(type));
    const conditions = [...verdicts, ...others];
    status = { ...wanted, ...(conditions.length > 0 && { conditions }) };
  } else status = before;
  if (Object.keys(status).length > 0) object['status'] = status;
  else delete object['status'];
  return object;
}
