/**
 * Who may write what of a CertificateSigningRequest (pkg/registry/certificates): the spec stays as it was made, the
 * approval endpoint writes conditions, the status endpoint everything but what a decision says.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { UpdateStrategy } from '@coracle/apimachinery/types/strategy';

interface Condition {
  type: string;
  status?: string;
}

interface Parts {
  status?: { conditions?: Condition[] };
}

/** Approval and denial are given through `/approval` alone. */
const DECISIONS = ['Approved', 'Denied'];

type Status = NonNullable<Parts['status']>;

/** `object` with the old spec and a status made of the two; changes `object`. */
const keeping =
  (statusOf: (wanted: Status, before: Status) => Status): UpdateStrategy['keepUnwritten'] =>
  (object, old) => {
    object['spec'] = cloneJson(old['spec']);
    const status = statusOf((object as Parts).status ?? {}, cloneJson((old as Parts).status ?? {}) as Status);
    if (Object.keys(status).length > 0) object['status'] = status;
    else delete object['status'];
    return object;
  };

/** What each endpoint of a request leaves as it was. */
export const keepRequest = keeping((_wanted, before) => before);
export const keepAllButApproval = keeping((wanted, { conditions: _, ...rest }) => ({
  ...rest,
  ...(wanted.conditions && { conditions: wanted.conditions }),
}));
export const keepDecisions = keeping((wanted, before) =>
  wanted.conditions ? { ...wanted, conditions: withDecisions(wanted.conditions, before.conditions ?? []) } : wanted,
);

/** With the decisions as they were given. Where there are more or fewer of them, admission refuses. */
function withDecisions(wanted: readonly Condition[], before: readonly Condition[]): Condition[] {
  const next = [...wanted];
  for (const decision of DECISIONS) {
    const given = before.filter(({ type }) => type === decision);
    const places = [...next.keys()].filter((at) => next[at]!.type === decision);
    if (given.length === places.length) for (const [i, at] of places.entries()) next[at] = given[i]!;
  }
  return next;
}
